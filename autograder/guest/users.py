"""Mode `user`: an unprivileged user for each submission, lent and cleaned up after by root.

A lease is a lock on a file, held by the keeper and the fork server of a submission. A file that nobody holds tells
of a user whose keeper and server were both killed: the next server ends and removes what that user left.
"""

import fcntl
import os
import pwd
import secrets
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from . import minder, walls

UIDS = range(20_000, 60_000)
"""Above ordinary accounts, below 65536, where a container's map of users ends."""
_LEASES = Path("/run/autograder/uids")
_OPEN_TO_ALL = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock", "/var/lock", "/run/shm", "/var/crash")
_WRITABLE_BY_ALL = 0o002


class Lease:
    """A user that belongs to one submission until it is released."""

    def __init__(self, uid: int, fd: int) -> None:
        self.uid = uid
        self._fd = fd

    def note_folder(self, folder: str) -> None:
        """Keep the name of the user's folder for whoever has to clean up."""
        os.pwrite(self._fd, folder.encode(), 0)

    def read_folder(self) -> str:
        """The folder noted, if any."""
        return os.pread(self._fd, 4096, 0).decode()

    def release(self) -> None:
        """Give the user back; everything of it must be gone."""
        (_LEASES / str(self.uid)).unlink(missing_ok=True)
        os.close(self._fd)


def take_lease() -> Lease:
    """A user that no account, no process and no other submission has. `OSError` when there is none."""
    _LEASES.mkdir(mode=0o700, parents=True, exist_ok=True)
    mapped = list(_list_mapped())
    first = secrets.randbelow(len(UIDS))
    for number in range(len(UIDS)):
        uid = UIDS[(first + number) % len(UIDS)]
        if not any(uid in each for each in mapped) or _has_account(uid):
            continue
        lease = _lock(uid)
        if lease is None:
            continue
        if not list_processes(uid):
            return lease
        lease.release()
    raise OSError(f"no user between {UIDS[0]} and {UIDS[-1]} is free here")


def _lock(uid: int) -> Lease | None:
    fd = os.open(_LEASES / str(uid), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    # Released and removed between the two calls: the lock is on nothing.
    if os.fstat(fd).st_nlink == 0:
        os.close(fd)
        return None
    return Lease(uid, fd)


def _list_mapped() -> Iterator[range]:
    """Users that exist in this user namespace."""
    for line in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines():
        first, _, count = (int(part) for part in line.split())
        yield range(first, first + count)


def _has_account(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def sweep_stale(seconds: float) -> None:
    """Clean up after users whose keepers and servers were killed."""
    for name in os.listdir(_LEASES) if _LEASES.is_dir() else ():
        lease = _lock(int(name)) if name.isdecimal() and int(name) in UIDS else None
        if lease is not None and end_processes(lease.uid, seconds):
            remove_files(lease.uid, lease.read_folder())
            lease.release()


def list_processes(uid: int) -> list[int]:
    """Processes of a user that have not ended; one whose first thread has ended lives on in the others."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/status", encoding="utf-8", errors="replace") as file:
                    fields = dict(
                        line.split(":", 1) for line in file if line.startswith(("Uid:", "State:", "Threads:"))
                    )
            except (OSError, ValueError):
                continue
            has_ended = fields["State"].strip().startswith(("Z", "X")) and int(fields["Threads"]) <= 1
            if str(uid) in fields["Uid"].split() and not has_ended:
                found.append(int(name))
    return found


def end_processes(uid: int, seconds: float) -> bool:
    """End all processes of a user; whether none is left after so long."""
    end = time.monotonic() + seconds
    while (left := list_processes(uid)) and time.monotonic() < end:
        killer = os.fork()
        if killer == 0:
            _kill_all(uid)
        minder.reap(0)
        time.sleep(0.001)
    minder.reap(0)
    return not left


def remove_files(uid: int, folder: str) -> None:
    """Remove a user's folder, and what it owns in places that are open to all."""
    if folder:
        minder.remove_tree(folder)
    for place in list_places():
        minder.remove_owned(place, uid)


def _kill_all(uid: int) -> None:
    """As that user, whom no other process belongs to: no process can be made in between. Never returns."""
    try:
        walls.become(uid)
        if os.getresuid() == (uid, uid, uid):
            os.kill(-1, signal.SIGKILL)
    finally:
        os._exit(0)


def list_places() -> list[str]:
    """Folders of this machine that every user may write into, where such folders usually are."""
    found: dict[str, None] = {}
    for root in _OPEN_TO_ALL:
        if os.path.isdir(root) and not os.path.islink(root):
            found[root] = None
            found.update(dict.fromkeys(_list_open_folders(root)))
    return list(found)


def _list_open_folders(root: str) -> Iterator[str]:
    with os.scandir(root) as entries:
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False) and entry.stat().st_mode & _WRITABLE_BY_ALL:
                    yield entry.path
            except OSError:
                continue
