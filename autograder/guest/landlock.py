"""What the kernel itself refuses to a submission of mode `user`, whatever permissions files have: Landlock.

A domain of Landlock holds a process and all that it starts, for good: they open the files of an allow-list, write into
the private folder, and signal each other; all else is refused. What it does not know of are names and properties:
whether a file exists, its size and times can be asked for as before.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from . import wire

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""Alike on all machines."""
_RULE_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = (1 << bit for bit in range(6))
_MAKE_CHAR, _MAKE_DIR, _MAKE_REG, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM = (1 << bit for bit in range(6, 13))
_REFER, _TRUNCATE, _IOCTL_DEV = (1 << bit for bit in range(13, 16))
_RIGHTS = {1: 2**13 - 1, 2: _REFER, 3: _TRUNCATE, 5: _IOCTL_DEV}
"""Rights to files, by the version that knows them first."""
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
"""What a rule for something that is no folder may name."""
_TCP = 0b11
_TCP_SINCE = 4
_SCOPES = 0b11
"""No abstract socket and no process outside of the domain."""
_SCOPES_SINCE = 6
_NO_LOG = 1
_NO_LOG_SINCE = 7
"""Student code could fill the machine's log with refusals."""

_READ = _EXECUTE | _READ_FILE | _READ_DIR
_USE = _READ_FILE | _WRITE_FILE | _TRUNCATE
_OWN = (
    _READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_FIFO | _MAKE_SYM | _REFER
    | _TRUNCATE
)  # fmt: skip

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def confine(version: int, readable: Iterable[str], private: str) -> None:
    """Enter a domain for good; `OSError` when the kernel refuses. Needs no new privileges to be set.

    version: of Landlock in this kernel.
    readable: folders and files that can be read and run.
    private: the folder that can be written to.
    """
    rights = sum(right for since, right in _RIGHTS.items() if version >= since)
    tcp = _TCP if version >= _TCP_SINCE else 0
    scopes = _SCOPES if version >= _SCOPES_SINCE else 0
    # An older kernel knows a shorter record, and accepts a longer one that ends in zeros.
    attributes = struct.pack("=QQQ", rights, tcp, scopes)
    ruleset = _call("landlock_create_ruleset", _CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    try:
        for paths, allowed in (
            (readable, _READ),
            (wire.DEVICES, _USE),
            (list_own_files(os.getpid()), _READ_FILE),
            ((private,), _OWN),
        ):
            for path in paths:
                _allow(ruleset, path, allowed & rights)
        no_log = _NO_LOG if version >= _NO_LOG_SINCE else 0
        _call("landlock_restrict_self", _RESTRICT_SELF, ruleset, no_log)
    finally:
        os.close(ruleset)


def list_own_files(pid: int) -> list[str]:
    """What a process may read about itself. Whoever wants it to stay readable holds these files open: the rules are
    on what the kernel makes anew when nobody does."""
    return [f"/proc/{pid}/{name}" for name in ("status", "stat", "statm", "cmdline")]


def _allow(ruleset: int, path: str, allowed: int) -> None:
    try:
        fd = os.open(path, os.O_PATH)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            allowed &= _FILE_RIGHTS
        rule = struct.pack("=Qi", allowed, fd)
        _call(f"landlock_add_rule {path}", _ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(fd)


def _call(stage: str, number: int, *arguments: object) -> int:
    # A plain int would be passed as 32 bits, and the kernel reads 64.
    wide = [ctypes.c_ulong(each) if isinstance(each, int) else each for each in arguments]
    result: int = _libc.syscall(ctypes.c_long(number), *wide)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{stage}: {os.strerror(ctypes.get_errno())}")
    return result
