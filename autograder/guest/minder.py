"""Waits for the student's process, reaps what else ends, and looks at what it writes to disk."""

import os
import signal
import time
from collections.abc import Iterable, Sequence

from . import wire

_POLL_SECONDS = 0.1


def catch_signals(*numbers: signal.Signals) -> None:
    """Keep signals for `mind_student`, from before the student is forked. Ctrl-C is the host's affair."""
    # Python's own handler would let a student's process end its init.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD, *numbers))


def mind_student(
    student: int, stop: Sequence[signal.Signals], places: Iterable[str], settings: wire.Settings, uid: int
) -> int:
    """Wait until the student's process has ended or must be; the code that the init exits with.

    0: exited with 0; 1: exited with another status; `wire.DISK_FULL`: there are more files or bytes in `places` than
    the settings allow; 64 + n: ended by signal n, or asked to end it by a signal of `stop`.
    """
    look = time.monotonic() + _POLL_SECONDS
    while True:
        got = signal.sigtimedwait((signal.SIGCHLD, *stop), max(0.0, look - time.monotonic()))
        if got is not None and got.si_signo in stop:
            return 64 + int(signal.SIGKILL)
        if (code := reap(student)) is not None:
            return code
        if time.monotonic() >= look:
            if is_full(places, settings.disk_bytes, settings.files, uid):
                return wire.DISK_FULL
            look = time.monotonic() + _POLL_SECONDS


def wait_for_student(student: int) -> int:
    """The same where namespaces keep the limits: 0, 1 or 64 + n."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == student:
            return _build_code(status)


def reap(student: int) -> int | None:
    """Take leave of all children that have ended; the code for the student's process when it is one of them."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == student:
            code = _build_code(status)


def has_children() -> bool:
    """Whether there are children, ended ones included that are not reaped."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _build_code(status: int) -> int:
    number = os.waitstatus_to_exitcode(status)
    return 64 - number if number < 0 else min(number, 1)


def is_full(places: Iterable[str], disk_bytes: int, files: int, uid: int) -> bool:
    """Whether what a user owns in some folders is more than there may be."""
    size = count = 0
    waiting = list(places)
    while waiting:
        for entry in list_owned(waiting.pop(), uid):
            try:
                size += entry.stat(follow_symlinks=False).st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
            except OSError:
                continue
            count += 1
            if size > disk_bytes or count > files:
                return True
    return False


def list_owned(folder: str, uid: int) -> Iterable["os.DirEntry[str]"]:
    """What a user owns directly in a folder; what goes while it looks is left out."""
    try:
        entries = os.scandir(folder)
    except OSError:
        return
    with entries:
        for entry in entries:
            try:
                if entry.stat(follow_symlinks=False).st_uid == uid:
                    yield entry
            except OSError:
                continue
