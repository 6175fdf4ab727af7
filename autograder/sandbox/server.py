"""Servers of submissions, one class for each way of making their processes; all keep one small protocol."""

import contextlib
import json
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, cast

from autograder.course import Assignment
from autograder.errors import SandboxError, SandboxUnavailable
from autograder.guest import wire
from autograder.sandbox import landlock, notices
from autograder.sandbox.access import check_access
from autograder.sandbox.behind import Walled, can_disable_userns
from autograder.sandbox.bubblewrap import (
    GUEST,
    PYTHON_FLAGS,
    STUDENT_PACKAGES,
    Sole,
    build_environment,
    find_package_folders,
    find_python,
)
from autograder.sandbox.clone import Clone
from autograder.sandbox.modes import SandboxMode
from autograder.sandbox.processes import measure_tree, read_memory, read_parent, read_pid
from autograder.sandbox.seccomp import build_filter
from autograder.sandbox.started import BuildSettings, NestedForbidden, StartedGuest

_OPEN_START = (
    "import sys, importlib.util as u; sys.path[:0] = sys.argv[3:]; "
    "s = u.spec_from_file_location('guest', sys.argv[2] + '/__init__.py', submodule_search_locations=[sys.argv[2]]); "
    "sys.modules['guest'] = m = u.module_from_spec(s); s.loader.exec_module(m); "
    "from guest.server import main; main()"
)
"""Without a wall the guest's folder stands beside the rest of the package, which must not be on the path."""


class Server(Protocol):
    """Serves one submission at a time, until it is closed. Started when it is made."""

    @property
    def pid(self) -> int:
        """The process under which everything of it lives."""

    def clone(self) -> Clone:
        """Processes for one submission. `SandboxError` when the server does not answer."""

    def read_status(self, clone: Clone) -> tuple[int, float]:
        """The exit code of a clone's root that just ended (see `guest.minder`), negative for a signal; CPU seconds."""

    def close(self) -> None:
        """End the server and everything inside."""


def start_server(
    mode: SandboxMode,
    course_folder: Path,
    assignment: Assignment,
    preload: tuple[str, ...],
    cells: Sequence[str],
    lesson: Sequence[str],
) -> Server:
    """A server for a mode; says what a person must know about it. `SandboxUnavailable` when it does not start.

    preload: modules that it imports before a submission is there. cells, lesson: see `Session`.
    """
    if mode is SandboxMode.AUTO:
        if not notices.has_fallen_back():
            try:
                return start_server(SandboxMode.NESTED, course_folder, assignment, preload, cells, lesson)
            except NestedForbidden as error:
                notices.note_fallback(error.what)
        return start_server(SandboxMode.SINGLE, course_folder, assignment, preload, cells, lesson)
    name = cast(wire.ModeName, mode.value)

    def build_settings(control: int) -> wire.Settings:
        limits = assignment.limits
        return wire.Settings(
            mode=name,
            control=control,
            filter=b"" if mode is SandboxMode.NONE else build_filter(),
            preload=preload,
            cells=tuple(cells),
            lesson=tuple(lesson),
            disk_bytes=limits.disk_bytes,
            files=limits.files,
            memory_bytes=limits.memory_bytes,
            processes=limits.processes,
            cpu_seconds=int(limits.cpu_seconds),
            landlock=landlock.find_version() if mode is SandboxMode.USER else 0,
            readable=landlock.list_readable(assignment.preload) if mode is SandboxMode.USER else (),
        )

    if mode is SandboxMode.SINGLE:
        return SingleServer(Walled(course_folder, assignment.preload), build_settings, assignment.limits.disk_bytes)
    if mode is SandboxMode.NESTED:
        walled = Walled(course_folder, assignment.preload)
        return ForkServer(walled.build_argv, build_settings, own_network=True, first=1)
    packages = [str(folder) for folder in find_package_folders((*STUDENT_PACKAGES, *assignment.preload))]
    if mode is SandboxMode.USER:
        check_access(course_folder, packages)
    else:
        notices.warn_unwalled()

    def build_argv(settings: int) -> list[str]:
        return [find_python(), *PYTHON_FLAGS, _OPEN_START, str(settings), str(GUEST), *packages]

    return ForkServer(build_argv, build_settings, _build_open_environment(), signal.SIGTERM)


def _build_open_environment() -> dict[str, str]:
    """Without a wall `/tmp` is everybody's: nothing there may be believed. The guest makes homes of its own."""
    return {name: "/nonexistent" if value == "/tmp" else value for name, value in build_environment().items()}


class ForkServer:
    """A guest that imports once and forks the processes of each submission.

    end_signal: what makes the root of a submission's processes end them all.
    own_network: whether it stands behind a wall, with no network but its own. first: see `Clone`.
    """

    def __init__(
        self,
        build_argv: Callable[[int], list[str]],
        build_settings: BuildSettings,
        environment: dict[str, str] | None = None,
        end_signal: signal.Signals = signal.SIGKILL,
        *,
        own_network: bool = False,
        first: int = 2,
    ) -> None:
        self._guest = StartedGuest(build_argv, build_settings, environment, has_group=own_network)
        self._end_signal = end_signal
        self._own_network = own_network
        self._first = first
        self._parent = self._memory = 0

    @property
    def pid(self) -> int:
        """The process under which everything of it lives."""
        return self._guest.process.pid

    def clone(self) -> Clone:
        """Processes for one submission. `SandboxError` when the server does not answer."""
        ends = self._guest.send_pipes()
        try:
            pidfd = self._guest.receive_pidfd()
        except SandboxError:
            for fd in ends:
                os.close(fd)
            raise
        if not self._parent:
            # Frozen after its imports, the fork server has the same memory for as long as it lives.
            with contextlib.suppress(OSError):
                parent = read_parent(read_pid(pidfd))
                self._memory, self._parent = read_memory(parent), parent
        return Clone(
            *ends,
            pidfd,
            self._end_signal,
            memory_before=self._memory,
            first=self._first,
            network_pid=self._parent if self._own_network else 0,
        )

    def read_status(self, clone: Clone) -> tuple[int, float]:
        """See `Server`."""
        status = self._guest.receive_status()
        if status is None:
            raise SandboxError("the sandbox's fork server does not answer")
        return status

    def close(self) -> None:
        """End the server and everything inside."""
        self._guest.close()


class SingleServer:
    """Starts a guest behind a bubblewrap of its own for each submission.

    The first one is started at once, so that a machine where it does not work is found out.
    """

    def __init__(self, walled: Walled, build_settings: BuildSettings, disk_bytes: int) -> None:
        self._walled = walled
        self._build_settings = build_settings
        self._disk_bytes = disk_bytes
        self._disable_userns = can_disable_userns(walled.bubblewrap)
        self._guest, self._init = self._start()
        self._is_used = False

    @property
    def pid(self) -> int:
        """The process under which everything of it lives."""
        return self._guest.process.pid

    def _start(self) -> tuple[StartedGuest, int]:
        """A guest and the pidfd of its init."""
        told, telling = os.pipe2(os.O_CLOEXEC)
        try:
            sole = Sole(self._disk_bytes, telling, self._disable_userns)
            guest = StartedGuest(
                lambda settings: self._walled.build_argv(settings, sole),
                self._build_settings,
                pass_fds=(telling,),
                has_group=True,
            )
        except BaseException:
            os.close(told)
            raise
        finally:
            os.close(telling)
        with os.fdopen(told, "rb", buffering=0) as file:
            pid = int(json.loads(file.read(4096))["child-pid"])
        try:
            pidfd = os.pidfd_open(pid)
        except OSError as error:
            guest.close()
            raise SandboxError("the sandbox ended before a submission was there") from error
        # A number that was given to another process in the meantime would have another parent.
        if read_parent(pid) != guest.process.pid:
            os.close(pidfd)
            guest.close()
            raise SandboxError("the sandbox ended before a submission was there")
        return guest, pidfd

    def clone(self) -> Clone:
        """A fresh guest for one submission. `SandboxError` when it does not start."""
        if self._is_used:
            self.close()
            try:
                self._guest, self._init = self._start()
            except SandboxUnavailable as error:
                # It has worked here before, so that this one submission is tried again, and the others go on.
                raise SandboxError(str(error)) from error
        self._is_used = True
        before = measure_tree(read_pid(self._init))
        return Clone(
            *self._guest.send_pipes(),
            os.dup(self._init),
            cpu_before=before.cpu_seconds,
            memory_before=before.memory_bytes,
            network_pid=read_pid(self._init),
        )

    def read_status(self, clone: Clone) -> tuple[int, float]:
        """See `Server`. An init that the host has ended tells nothing any more."""
        status = self._guest.receive_status()
        if status is None and not clone.was_ended:
            raise SandboxError("the sandbox of a submission was ended from outside")
        return status or (-int(signal.SIGKILL), 0.0)

    def close(self) -> None:
        """End the guest and everything inside."""
        if self._init >= 0:
            os.close(self._init)
            self._init = -1
            self._guest.close()
