"""The inner wall: what one submission's processes do to themselves before any student code runs.

The order is the one that held in trials; each step says what goes wrong without it. Linux only.
"""

import ctypes
import os
import resource
import signal
import struct
import sys
from collections.abc import Iterable
from typing import Any

CLONE_FLAGS = (
    0x10000000  # CLONE_NEWUSER: the fork server's /proc entries and memory are out of reach
    | 0x20000000  # CLONE_NEWPID: ending the init ends everything, daemons too
    | 0x00020000  # CLONE_NEWNS: own /proc and /tmp
    | 0x08000000  # CLONE_NEWIPC: no System V or POSIX message left for the next
    | 0x04000000  # CLONE_NEWUTS
    | 0x02000000  # CLONE_NEWCGROUP
    | 0x00001000  # CLONE_PIDFD: the host's handle for ending it
    | int(signal.SIGCHLD)
)
_SYS_CLONE = {"x86_64": 56, "aarch64": 220}
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
_PR_SET_SECCOMP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 22, 36, 38, 47
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT, _MS_BIND = 1, 2, 4, 8, 32, 4096
_LOCKED_FLAGS = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
"""What a mount from outside may not lose."""
_CAPABILITY_VERSION_3 = 0x20080522
_UID = 1000

# PyDLL keeps the interpreter lock across the call: no other thread may run between clone and its repair.
_libc = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def _call(stage: str, result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{stage}: {os.strerror(ctypes.get_errno())}")
    return result


def _prctl(stage: str, option: int, *arguments: Any) -> None:
    padded = [ctypes.c_ulong(argument) if isinstance(argument, int) else argument for argument in arguments]
    _call(stage, _libc.prctl(option, *padded, *[ctypes.c_ulong(0)] * (4 - len(padded))))


def clone_into_namespaces() -> tuple[int, int]:
    """A child in namespaces of its own: (0, -1) there, (pid, pidfd) here."""
    pidfd = ctypes.c_int(-1)
    ctypes.pythonapi.PyOS_BeforeFork()
    number = _SYS_CLONE[os.uname().machine]
    pid = _libc.syscall(number, ctypes.c_ulong(CLONE_FLAGS), 0, ctypes.byref(pidfd), 0, 0)
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
        return 0, -1
    ctypes.pythonapi.PyOS_AfterFork_Parent()
    return _call("clone", pid), pidfd.value


def enter_init(disk_bytes: int, files: int, devices: Iterable[str]) -> None:
    """Steps of the new init: identity, mounts, nothing to gain."""
    write_text("/proc/self/setgroups", "deny")
    write_text("/proc/self/uid_map", f"{_UID} {_UID} 1")
    write_text("/proc/self/gid_map", f"{_UID} {_UID} 1")
    end_with_parent(signal.SIGKILL)
    write_text("/proc/self/oom_score_adj", "1000")
    # Through the old /proc: a further user namespace would give capabilities back.
    write_text("/proc/sys/user/max_user_namespaces", "0")
    _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, "subset=pid")
    _mount("tmpfs", "/tmp", "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={disk_bytes},nr_inodes={files},mode=0700")
    for device in devices:
        # Devices can be written to all the same, but their times and modes carry no message any more.
        flags = os.statvfs(device).f_flag & _LOCKED_FLAGS
        _mount("none", device, "none", _MS_REMOUNT | _MS_BIND | _MS_RDONLY | flags, "")
    os.chdir("/tmp")
    close_off()


def enter_sole_init() -> None:
    """Steps of an init that bubblewrap has made: it is pid 1 of its one submission, and its walls stand."""
    end_with_parent(signal.SIGKILL)
    write_text("/proc/self/oom_score_adj", "1000")
    close_off()


def close_off() -> None:
    """Nothing to gain by any program, and nothing to look into for processes of the same user."""
    _prctl("no-new-privs", _PR_SET_NO_NEW_PRIVS, 1)
    _prctl("dumpable", _PR_SET_DUMPABLE, 0)


def end_with_parent(number: int) -> None:
    """Have a signal sent when the parent dies."""
    _prctl("pdeathsig", _PR_SET_PDEATHSIG, int(number))


def adopt_orphans() -> None:
    """Processes below that lose their parent become children of this one."""
    _prctl("subreaper", _PR_SET_CHILD_SUBREAPER, 1)


def write_text(path: str, text: str) -> None:
    """Write into a file of the kernel's; `OSError` when it refuses."""
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    result = _libc.mount(
        source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode() if options else None
    )
    _call(f"mount {target}", result)


def enter_student(keep: tuple[int, int], limits: dict[str, int], filter_bytes: bytes, uid: int | None = None) -> None:
    """Steps of the process that runs student code; the system call filter comes last.

    keep: the two descriptors that stay open beside 0 to 2.
    uid: who it becomes, where the wall is a user of its own.
    """
    enter_limits(keep, limits)
    _drop_bounding_set()
    if uid is not None:
        become(uid)
        # A change of user clears it.
        end_with_parent(signal.SIGKILL)
    _drop_capabilities()
    close_off()
    _load_filter(filter_bytes)


def enter_limits(keep: tuple[int, int], limits: dict[str, int]) -> None:
    """A session of its own, no descriptor but two, resource limits."""
    os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    _close_all_but(keep)
    for name, value in limits.items():
        number = getattr(resource, name)
        _, hard = resource.getrlimit(number)
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (allowed, allowed))


def become(uid: int) -> None:
    """Be an ordinary user for good: no groups, no way back."""
    if uid <= 0:
        raise ValueError(f"not an ordinary user: {uid}")
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _close_all_but(keep: tuple[int, int]) -> None:
    low, high = sorted(keep)
    os.closerange(3, low)
    os.closerange(low + 1, high)
    os.closerange(high + 1, 2**20)
    for fd in keep:
        os.set_inheritable(fd, False)


def _drop_bounding_set() -> None:
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) < 0:
            break


def _drop_capabilities() -> None:
    _prctl("ambient", _PR_CAP_AMBIENT, 4, 0)
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    _call("capset", _libc.capset(header, bytes(24)))


def _load_filter(filter_bytes: bytes) -> None:
    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))

    program = Program(len(filter_bytes) // 8, filter_bytes)
    _prctl("seccomp", _PR_SET_SECCOMP, 2, ctypes.byref(program))


def address_space() -> int:
    """Bytes of address space that this process has mapped."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


if sys.platform != "linux":
    raise ImportError("the walls are Linux namespaces")
