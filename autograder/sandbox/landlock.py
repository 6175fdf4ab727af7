"""Whether this kernel has Landlock, which mode `user` takes where it is there."""

import ctypes
from collections.abc import Iterable
from pathlib import Path

from autograder.sandbox.bubblewrap import list_binds

_CREATE_RULESET = 444
_ASK_VERSION = 1


def find_version() -> int:
    """The version of Landlock that this kernel offers; 0 where there is none, or a container keeps it away."""
    libc = ctypes.CDLL(None)
    libc.syscall.restype = ctypes.c_long
    version: int = libc.syscall(ctypes.c_long(_CREATE_RULESET), None, ctypes.c_size_t(0), ctypes.c_ulong(_ASK_VERSION))
    return max(0, version)


def list_readable(preload: Iterable[str]) -> tuple[str, ...]:
    """What student code can read: the same that a sandbox of bubblewrap shows."""
    binds, _ = list_binds(preload)
    return tuple(str(bind.source) for bind in binds)


def keep_within(paths: Iterable[str], readable: Iterable[str]) -> list[str]:
    """Those paths that Landlock lets student code read."""
    tops = [Path(top).resolve() for top in readable]
    return [path for path in paths if any(Path(path).resolve().is_relative_to(top) for top in tops)]
