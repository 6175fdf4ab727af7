"""A Python that every user may read, for mode `user` on machines where it stands in root's own home."""

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autograder.sandbox.access import find_readable

_CLONE_NEWNS = 0x00020000
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def open_python() -> Iterator[None]:
    """In a mount namespace of its own, root's home shows the interpreter alone, to everybody.

    Nothing is changed for other processes. Where the interpreter is open anyway, nothing is done.
    """
    prefix = Path(sys.base_prefix).resolve()
    if find_readable([str(prefix)]):
        yield
        return
    home = Path("/", *prefix.parts[1:2])
    before = os.open("/proc/thread-self/ns/mnt", os.O_RDONLY)
    folder = os.getcwd()
    assert _libc.unshare(_CLONE_NEWNS) == 0, os.strerror(ctypes.get_errno())
    try:
        for command in (
            ["mount", "--make-rprivate", "/"],
            ["mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", "/mnt"],
            ["mkdir", "-p", f"/mnt/{prefix.relative_to(home)}"],
            ["mount", "--bind", str(prefix), f"/mnt/{prefix.relative_to(home)}"],
            ["mount", "--rbind", "/mnt", str(home)],
        ):
            subprocess.run(command, check=True)
        yield
    finally:
        # The kernel refuses while there is another thread, and one that was joined may take a moment to be gone.
        end = time.monotonic() + 10
        while _libc.setns(before, _CLONE_NEWNS) != 0:
            assert time.monotonic() < end, (os.strerror(ctypes.get_errno()), threading.enumerate())
            time.sleep(0.01)
        os.close(before)
        os.chdir(folder)
