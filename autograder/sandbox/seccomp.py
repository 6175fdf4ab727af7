"""The system call filter of student processes, built on the host by libseccomp and loaded as bytes.

A deny list over what NumPy, threads, subprocess, multiprocessing, asyncio and sqlite do not need.
Everything newer than the newest reviewed call answers ENOSYS, so that a new kernel opens no new door.
"""

import errno
import functools
import os
import signal
import socket
import struct
from types import ModuleType

from autograder.errors import SandboxUnavailable

NEWEST_REVIEWED = 456
"""futex_requeue. Above stand statmount, listmount and whatever comes; 424 and up are alike on all machines."""

_DENIED = """
    mount umount2 pivot_root chroot move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr
    unshare setns
    ptrace process_vm_readv process_vm_writev process_madvise kcmp pidfd_getfd
    bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register io_setup
    keyctl add_key request_key
    kexec_load kexec_file_load init_module finit_module delete_module
    memfd_create memfd_secret
    shmget shmat shmctl shmdt semget semop semtimedop semctl msgget msgsnd msgrcv msgctl
    mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr
    socket bind connect listen accept accept4 setsockopt sendmsg sendmmsg
    setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr
    open_by_handle_at name_to_handle_at fanotify_init
    quotactl quotactl_fd acct swapon swapoff reboot syslog vhangup sethostname setdomainname
    vmsplice splice tee
    inotify_init inotify_init1 inotify_add_watch
    sync syncfs seccomp
    fadvise64
    settimeofday clock_settime adjtimex clock_adjtime
    iopl ioperm modify_ldt personality lookup_dcookie nfsservctl
    landlock_create_ruleset landlock_add_rule landlock_restrict_self
""".split()
"""Among them: `sendmsg`, for a descriptor under way between two sockets is in no table in which it could be found;
attributes of files, which are a place to leave messages on what everybody may write; `fadvise64`, which throws files
that all submissions read out of the machine's memory, as `madvise` can: others wait for the disk then."""

_CACHESTAT = 451
"""Says what of a file is in memory. Alike on all machines, and older libraries do not know its name."""

_CLONE_NAMESPACES = 0x7E020000 | 0x80
_PR_SET_DUMPABLE = 4
_SIGCHLD = int(signal.SIGCHLD)
_MAP_SHARED_ANONYMOUS = 0x21
_INT = 0xFFFFFFFF
"""The kernel looks at the lower half of such an argument only."""
_PR_SET_SECCOMP = 22
_MADV_COLD, _MADV_PAGEOUT = 20, 21
_F_SETLEASE, _F_NOTIFY, _F_SETDELEG = 1024, 1026, 1040
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_BPF_LD_W_ABS, _BPF_JGE, _BPF_RET = 0x20, 0x35, 0x06
_RET_ERRNO = 0x00050000


@functools.cache
def build_filter() -> bytes:
    """The filter as BPF instructions of 8 bytes each, for this machine's architecture."""
    pyseccomp = _import_pyseccomp()
    program = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    denied = pyseccomp.ERRNO(errno.EPERM)
    for name in _DENIED:
        if pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name) >= 0:
            program.add_rule(denied, name)
    program.add_rule(denied, _CACHESTAT)
    for advice in (_MADV_COLD, _MADV_PAGEOUT):
        program.add_rule(denied, "madvise", pyseccomp.Arg(2, pyseccomp.MASKED_EQ, _INT, advice))
    program.add_rule(pyseccomp.ERRNO(errno.ENOSYS), "clone3")
    for bit in (1 << n for n in range(32) if _CLONE_NAMESPACES >> n & 1):
        program.add_rule(denied, "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, bit, bit))
    # A filter of its own could write each call into the log of the machine.
    for option in (_PR_SET_DUMPABLE, _PR_SET_SECCOMP):
        program.add_rule(denied, "prctl", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, _INT, option))
    # Whoever opens a file under a lease waits for its holder, up to 45 s: packages are shared by all submissions, and
    # belong to whom student code is to the kernel where a grader is no root and has installed them.
    for command in (_F_SETLEASE, _F_NOTIFY, _F_SETDELEG):
        program.add_rule(denied, "fcntl", pyseccomp.Arg(1, pyseccomp.MASKED_EQ, _INT, command))
    # A limit of processor time for the init of a submission would end it, and all that can be told of the submission.
    program.add_rule(denied, "prlimit64", pyseccomp.Arg(0, pyseccomp.NE, 0))
    for request in (_TIOCSTI, _TIOCLINUX):
        program.add_rule(denied, "ioctl", pyseccomp.Arg(1, pyseccomp.MASKED_EQ, _INT, request))
    # Children of a process that ignores their end leave no sum of their processor time to anyone.
    program.add_rule(
        denied, "rt_sigaction", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, _INT, _SIGCHLD), pyseccomp.Arg(1, pyseccomp.NE, 0)
    )
    # Shared memory without a file stays when its pages are let go of, and then nobody counts it.
    shared = pyseccomp.Arg(3, pyseccomp.MASKED_EQ, _MAP_SHARED_ANONYMOUS, _MAP_SHARED_ANONYMOUS)
    program.add_rule(denied, "mmap", shared)
    # asyncio and multiprocessing need a pair of local streams; every other kind of pair is denied.
    program.add_rule(denied, "socketpair", pyseccomp.Arg(0, pyseccomp.NE, int(socket.AF_UNIX)))
    for kind in (*range(int(socket.SOCK_STREAM)), *range(int(socket.SOCK_STREAM) + 1, 16)):
        program.add_rule(denied, "socketpair", pyseccomp.Arg(1, pyseccomp.MASKED_EQ, 0xF, kind))
    # In memory: a killed worker must leave no file behind.
    with os.fdopen(os.memfd_create("filter"), "w+b") as file:
        program.export_bpf(file)
        file.seek(0)
        return _deny_unreviewed() + file.read()


def _import_pyseccomp() -> ModuleType:
    """The binding looks for the library when it is imported."""
    try:
        import pyseccomp
    except (ImportError, OSError, RuntimeError) as error:
        raise SandboxUnavailable(
            f"the library libseccomp is missing ({error}); install it (Debian, Ubuntu: apt-get install libseccomp2)"
        ) from error
    module: ModuleType = pyseccomp
    return module


def _deny_unreviewed() -> bytes:
    """Three instructions that stand before libseccomp's: a number above the reviewed ones gets ENOSYS."""
    return b"".join(
        struct.pack("=HBBI", *instruction)
        for instruction in (
            (_BPF_LD_W_ABS, 0, 0, 0),
            (_BPF_JGE, 0, 1, NEWEST_REVIEWED + 1),
            (_BPF_RET, 0, 0, _RET_ERRNO | errno.ENOSYS),
        )
    )
