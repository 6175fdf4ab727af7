"""Modes `user` and `none`: no namespaces. A keeper minds each submission and removes what it leaves.

The keeper is the parent of all that the submission starts (a subreaper), and ends it in good order when its student
ends, when the host asks with SIGTERM, or when the fork server dies. Its own end means that nothing is left. In mode
`user` it is root, and the submission is a user of its own; in mode `none` both are whoever grades.
"""

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from . import deleted, landlock, minder, users, walls, wire
from .stage import Stage
from .student import be_student, report_fault

_SWEEP_SECONDS = 8.0


@contextmanager
def lend_home() -> Iterator[None]:
    """A home while modules are imported, which may write there and believe what they read there."""
    with tempfile.TemporaryDirectory(prefix="autograder-") as home:
        _move_home(home)
        yield
    _move_home("/nonexistent")


def _move_home(folder: str) -> None:
    for name in ("HOME", "TMPDIR", "MPLCONFIGDIR", "IPYTHONDIR"):
        os.environ[name] = folder
    # It remembers what TMPDIR was.
    tempfile.tempdir = None


class KeeperMaker:
    """Forks a keeper for each submission."""

    def __init__(self, stage: Stage) -> None:
        walls.end_with_parent(signal.SIGKILL)
        # So that what a keeper that was killed leaves is not handed to a stranger.
        walls.adopt_orphans()
        self._stage = stage
        self._own_user = stage.settings.mode == "user"
        self._lease: users.Lease | None = None
        self._folder = ""
        if self._own_user:
            users.sweep_stale(_SWEEP_SECONDS)

    def start(self, pipes: tuple[int, int], place: int) -> tuple[int, int]:
        """The keeper's pid and pidfd."""
        self._lease = users.take_lease() if self._own_user else None
        self._folder = tempfile.mkdtemp(prefix="autograder-", dir="/tmp")
        if self._lease is not None:
            self._lease.note_folder(self._folder)
            os.chown(self._folder, self._lease.uid, self._lease.uid)
        pid = os.fork()
        if pid == 0:
            self._keep(pipes, place)
        return pid, os.pidfd_open(pid)

    def finish(self, status: int) -> int:
        """A keeper that was killed leaves its work to the server."""
        if os.WIFSIGNALED(status):
            self._sweep(was_killed=True)
        # Ended processes of the submission that its keeper had no time to take leave of.
        minder.reap(0)
        if self._lease is not None:
            self._lease.release()
        return status

    def _keep(self, pipes: tuple[int, int], place: int) -> NoReturn:
        stage, uid = self._stage, self._lease.uid if self._lease is not None else None
        code = wire.SETUP_FAILED
        try:
            minder.catch_signals(signal.SIGTERM)
            walls.end_with_parent(signal.SIGTERM)
            walls.adopt_orphans()
            stage.control.close()
            student = os.fork()
            if student == 0:
                be_student(pipes, place, lambda: self._enter_student(pipes, uid))
            for fd in (*pipes, place):
                os.close(fd)
            if stage.settings.landlock:
                for path in landlock.list_own_files(student):
                    os.open(path, os.O_PATH)  # held until the end; see there
            owner = os.getuid() if uid is None else uid
            places = users.list_places() if self._own_user else [self._folder]
            disk_bytes, files = stage.settings.disk_bytes, stage.settings.files

            def is_over() -> bool:
                unnamed = deleted.list_sizes(_list_descendants(os.getpid()))
                return minder.is_full(places, disk_bytes, files, owner, unnamed)

            code = minder.mind_student(student, (signal.SIGTERM,), is_over)
        except BaseException as error:
            with suppress(OSError):  # by then the pipe may be closed
                report_fault(pipes[1], "keeper", error)
        os._exit(code if self._sweep() else wire.SWEEP_FAILED)

    def _enter_student(self, pipes: tuple[int, int], uid: int | None) -> None:
        os.chdir(self._folder)
        _move_home(self._folder)
        walls.end_with_parent(signal.SIGKILL)
        if uid is None:
            # The processes of a whole desktop count here, so that a limit for them would be an accident.
            limits = {name: value for name, value in self._stage.limits.items() if name != "RLIMIT_NPROC"}
            walls.enter_limits(pipes, limits)
        else:
            settings = self._stage.settings
            walls.write_text("/proc/self/oom_score_adj", "1000")
            if settings.landlock:
                walls.close_off()
                landlock.confine(settings.landlock, settings.readable, self._folder)
            walls.enter_student(pipes, self._stage.limits, settings.filter, uid)

    def _sweep(self, *, was_killed: bool = False) -> bool:
        """End all processes of the submission and remove its files; whether nothing is left.

        was_killed: the keeper cannot do it itself any more.
        """
        if self._lease is not None:
            # All processes of the user descend from the keeper, and orphans come back to it.
            gone = not (minder.has_children() or was_killed) or users.end_processes(self._lease.uid, _SWEEP_SECONDS)
            users.remove_files(self._lease.uid, self._folder)
            return gone
        end = time.monotonic() + _SWEEP_SECONDS
        while (left := _list_descendants(os.getpid())) and time.monotonic() < end:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            minder.reap(0)
            time.sleep(0.001)
        minder.remove_tree(self._folder)
        return not left


def _list_descendants(root: int) -> list[int]:
    """All processes below one, ended ones included that wait to be reaped."""
    found: list[int] = []
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        tasks: list[str] = []
        with suppress(OSError):
            tasks = os.listdir(f"/proc/{pid}/task")
        for task in tasks:
            # One that ends meanwhile hides no child of another.
            with suppress(OSError):
                children = [int(child) for child in _read(f"/proc/{pid}/task/{task}/children").split()]
                found += children
                waiting += children
    return found


def _read(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()
