"""Waits for the student's process, reaps what else ends, and looks at what it writes to disk."""

import errno
import os
import secrets
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from . import wire

_POLL_SECONDS = 0.1


def catch_signals(*numbers: signal.Signals) -> None:
    """Keep signals for `mind_student`, from before the student is forked. Ctrl-C is the host's affair."""
    # Python's own handler would let a student's process end its init.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD, *numbers))


def mind_student(student: int, stop: Sequence[signal.Signals], is_over: Callable[[], bool]) -> int:
    """Wait until the student's process has ended or must be; the code that the init exits with.

    is_over: whether there are more files or bytes than the settings allow.
    0: exited with 0; 1: exited with another status; `wire.DISK_FULL`: `is_over`; 64 + n: ended by signal n, or asked
    to end it by a signal of `stop`.
    """
    look = time.monotonic() + _POLL_SECONDS
    while True:
        got = signal.sigtimedwait((signal.SIGCHLD, *stop), max(0.0, look - time.monotonic()))
        if got is not None and got.si_signo in stop:
            return 64 + int(signal.SIGKILL)
        if (code := reap(student)) is not None:
            return code
        if time.monotonic() >= look:
            if is_over():
                return wire.DISK_FULL
            look = time.monotonic() + _POLL_SECONDS


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


def count_files(mount: str) -> int:
    """Files of a mount beside its topmost folder, wherever student code hides them and whether or not it deleted
    those that it has open."""
    numbers = os.statvfs(mount)
    return numbers.f_files - numbers.f_ffree - 1


def is_full(places: Iterable[str], disk_bytes: int, files: int, uid: int) -> bool:
    """Whether what a user owns in some folders is more than there may be."""
    size = count = 0
    waiting = list(places)
    while waiting:
        try:
            for entry in list_owned(waiting.pop(), uid):
                size += entry.stat(follow_symlinks=False).st_blocks * 512
                count += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
        except OSError:
            return True
        if size > disk_bytes or count > files:
            return True
    return False


def list_owned(folder: str, uid: int) -> Iterable["os.DirEntry[str]"]:
    """What a user owns directly in a folder; what goes while it looks is left out.

    `OSError` where it is nested so deep that no path leads to it.
    """
    try:
        entries = os.scandir(folder)
    except OSError:
        return
    with entries:
        for entry in entries:
            try:
                if entry.stat(follow_symlinks=False).st_uid == uid:
                    yield entry
            except OSError as error:
                if error.errno == errno.ENAMETOOLONG:
                    raise


def remove_tree(folder: str) -> None:
    """Remove a folder and all that is in it, however deep; what cannot be removed stays.

    Folders move to the top before they are emptied, so that neither paths nor the stack grow with the depth, and each
    is held by a descriptor, so that no link is followed.
    """
    try:
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    waiting = _empty(top, top)
    while waiting:
        name = waiting.pop()
        with suppress(OSError):
            inside = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
            try:
                waiting += _empty(inside, top)
            finally:
                os.close(inside)
            os.rmdir(name, dir_fd=top)
    os.close(top)
    with suppress(OSError):
        os.rmdir(folder)


def _empty(folder: int, top: int) -> list[str]:
    """Delete a folder's files and move its folders to the top, under these new names."""
    names = []
    with os.scandir(folder) as entries:
        found = list(entries)
    for entry in found:
        with suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                name = secrets.token_hex(16)
                os.rename(entry.name, name, src_dir_fd=folder, dst_dir_fd=top)
                names.append(name)
            else:
                os.unlink(entry.name, dir_fd=folder)
    return names
