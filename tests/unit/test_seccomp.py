"""The system call filter, run by a small interpreter of its instructions: what it says to each call."""

import errno
import fcntl
import os
import signal
import socket
import struct

import pyseccomp
import pytest

from autograder.sandbox.seccomp import NEWEST_REVIEWED, build_filter

ALLOW = 0x7FFF0000
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}[os.uname().machine]
CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWTIME = 0x10000000, 0x00020000, 0x20000000, 0x80


def deny(code: int) -> int:
    return 0x00050000 | code


def judge(name: "str | int", *arguments: int, arch: int = AUDIT_ARCH) -> int:
    """What the filter returns for a system call."""
    number = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name) if isinstance(name, str) else name
    padded = [*arguments, *[0] * (6 - len(arguments))]
    return run_filter(build_filter(), struct.pack("=IIQ6Q", number, arch, 0, *padded))


def run_filter(program: bytes, data: bytes) -> int:
    """Classic BPF as far as libseccomp uses it."""
    instructions = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    register = at = 0
    while True:
        code, true, false, value = instructions[at]
        at += 1
        if code == 0x20:  # load a word of the call's data
            (register,) = struct.unpack_from("=I", data, value)
        elif code == 0x54:  # and
            register &= value
        elif code == 0x06:  # return
            return value
        elif code == 0x05:  # jump
            at += value
        else:
            holds = {0x15: register == value, 0x25: register > value, 0x35: register >= value, 0x45: register & value}
            at += true if holds[code] else false


@pytest.mark.parametrize(
    "name",
    "read write openat close mmap munmap brk futex exit_group exit wait4 execve pipe2 clock_gettime getrandom "
    "rt_sigaction sched_yield statx getdents64 unlinkat mkdirat fcntl lseek ppoll madvise mprotect nanosleep "
    "sched_getaffinity fsync ftruncate renameat2 prlimit64 kill tgkill epoll_create1".split(),
)
def test_what_numpy_and_subprocesses_need_is_allowed(name) -> None:
    assert judge(name) == ALLOW


@pytest.mark.parametrize(
    "name",
    "socket bind connect listen accept accept4 setsockopt ptrace process_vm_readv process_vm_writev unshare "
    "setns mount umount2 pivot_root chroot bpf perf_event_open userfaultfd io_uring_setup io_uring_enter "
    "keyctl add_key request_key memfd_create shmget shmat semget msgget mq_open open_by_handle_at "
    "name_to_handle_at init_module finit_module kexec_load reboot swapon sethostname clock_settime "
    "personality pidfd_getfd fsopen move_mount kcmp syslog vmsplice splice tee inotify_init1 inotify_add_watch "
    "sync syncfs seccomp fadvise64".split(),
)
def test_what_would_leave_the_wall_or_outlive_it_is_denied(name) -> None:
    assert judge(name) == deny(errno.EPERM)


def test_threads_and_forks_are_allowed_and_new_namespaces_are_not() -> None:
    assert judge("clone", 0x003D0F00) == ALLOW  # pthread_create
    assert judge("clone", 17) == ALLOW  # fork
    for flag in (
        CLONE_NEWUSER,
        CLONE_NEWNS,
        CLONE_NEWPID,
        CLONE_NEWTIME,
        0x40000000,
        0x08000000,
        0x04000000,
        0x02000000,
    ):
        assert judge("clone", flag | 17) == deny(errno.EPERM)
    assert judge("clone3") == deny(errno.ENOSYS)


def test_calls_newer_than_the_reviewed_ones_do_not_exist() -> None:
    assert judge(NEWEST_REVIEWED) == ALLOW
    for number in (NEWEST_REVIEWED + 1, 1000, 0x40000000, 0x40000000 | 41, 2**32 - 1):
        assert judge(number) == deny(errno.ENOSYS)


def test_calls_of_another_architecture_are_not_allowed() -> None:
    for arch in (0x40000003, 0x40000028, 0):
        assert judge("read", arch=arch) != ALLOW
        assert judge("socket", arch=arch) != ALLOW


def test_only_a_local_pair_of_streams_is_allowed() -> None:
    stream, local = int(socket.SOCK_STREAM), int(socket.AF_UNIX)
    for flags in (0, int(socket.SOCK_CLOEXEC), int(socket.SOCK_NONBLOCK)):
        assert judge("socketpair", local, stream | flags) == ALLOW
        assert judge("socketpair", local, int(socket.SOCK_DGRAM) | flags) == deny(errno.EPERM)
        assert judge("socketpair", local, int(socket.SOCK_SEQPACKET) | flags) == deny(errno.EPERM)
    assert judge("socketpair", int(socket.AF_INET), stream) == deny(errno.EPERM)


def test_a_process_cannot_make_itself_dumpable_and_may_use_prctl_else() -> None:
    assert judge("prctl", 4, 1) == deny(errno.EPERM)
    assert judge("prctl", 15) == ALLOW  # a thread's name
    assert judge("prctl", 22, 2) == deny(errno.EPERM)  # a filter of its own


def test_nobody_is_kept_waiting_by_a_lease_and_files_are_locked_as_ever() -> None:
    for command in (fcntl.F_SETLEASE, fcntl.F_NOTIFY, fcntl.F_SETLEASE | 1 << 32):
        assert judge("fcntl", 3, command) == deny(errno.EPERM)
    for command in (fcntl.F_SETLK, fcntl.F_SETFD, fcntl.F_DUPFD_CLOEXEC, fcntl.F_GETFL, 1031):
        assert judge("fcntl", 3, command) == ALLOW


def test_the_end_of_children_is_never_ignored() -> None:
    """Where it is, their processor time is added to nobody's."""
    assert judge("rt_sigaction", int(signal.SIGCHLD), 0xABC) == deny(errno.EPERM)
    assert judge("rt_sigaction", int(signal.SIGCHLD) | 1 << 32, 0xABC << 32) == deny(errno.EPERM)
    assert judge("rt_sigaction", int(signal.SIGCHLD), 0) == ALLOW  # asking what it is
    assert judge("rt_sigaction", int(signal.SIGINT), 0xABC) == ALLOW


def test_what_files_are_in_memory_is_neither_changed_nor_asked() -> None:
    assert judge(451) == deny(errno.EPERM)  # cachestat
    for advice in (20, 21, 21 | 1 << 40):
        assert judge("madvise", 0, 0, advice) == deny(errno.EPERM)
    for advice in range(20):
        assert judge("madvise", 0, 0, advice) == ALLOW


def test_a_terminal_cannot_be_typed_into() -> None:
    for request in (0x5412, 0x541C, 0x5412 | 1 << 40):
        assert judge("ioctl", 0, request) == deny(errno.EPERM)
    assert judge("ioctl", 0, 0x5401) == ALLOW


def test_the_filter_is_whole_instructions_and_the_same_each_time() -> None:
    program = build_filter()
    assert len(program) % 8 == 0
    assert len(program) // 8 < 4096
    build_filter.cache_clear()
    assert build_filter() == program
