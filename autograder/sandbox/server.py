"""Starts and ends one fork server behind the outer wall, and hands it pipes.

Root gives up root first, through `launcher.py`.
"""

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from autograder.course import Assignment
from autograder.errors import SandboxError, SandboxUnavailable
from autograder.guest import wire
from autograder.sandbox.bubblewrap import Bind, build_command, find_hidden, list_binds
from autograder.sandbox.seccomp import build_filter

SANDBOX_UID = 61001
"""Who student code is to the host when the grader is root; no account of this number should exist."""

STAGE = "/run/autograder"
START_SECONDS = 60.0
ANSWER_SECONDS = 15.0


class Clone(msgspec.Struct):
    """One submission's walled processes: the host's ends of its pipes and the handle that ends it."""

    request: int
    reply: int
    pidfd: int

    def close_request(self) -> None:
        """Nothing more will be asked; the guest's process ends then."""
        if self.request >= 0:
            os.close(self.request)
            self.request = -1

    def close(self) -> None:
        """Give back all descriptors."""
        self.close_request()
        os.close(self.reply)
        os.close(self.pidfd)


class ForkServer:
    """A running fork server. Serves one submission at a time, until it is closed."""

    def __init__(
        self, course_folder: Path, assignment: Assignment, cells: Sequence[str], lesson: Sequence[str]
    ) -> None:
        bubblewrap = shutil.which("bwrap")
        if bubblewrap is None:
            raise SandboxUnavailable(
                "bubblewrap is not installed, and student code is not run without a sandbox; "
                "install it (Debian, Ubuntu: apt-get install bubblewrap) and see `autograder doctor`"
            )
        limits = assignment.limits
        binds, package_path = list_binds(assignment.preload)
        hidden = find_hidden(course_folder, binds)
        with ExitStack() as stack:
            self._log = _make_memory_file("sandbox-log", stack)
            self._control, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            stack.callback(self._control.close)
            with inside:
                settings = wire.Settings(
                    control=inside.fileno(),
                    filter=build_filter(),
                    preload=assignment.preload,
                    cells=tuple(cells),
                    lesson=tuple(lesson),
                    disk_bytes=limits.disk_bytes,
                    files=limits.files,
                    memory_bytes=limits.memory_bytes,
                    processes=limits.processes,
                    cpu_seconds=int(limits.cpu_seconds),
                )
                with ExitStack() as started:
                    settings_fd = _make_memory_file("sandbox-settings", started)
                    os.write(settings_fd, msgspec.msgpack.encode(settings))
                    self._process = subprocess.Popen(
                        _build_start(bubblewrap, binds, package_path, hidden, settings_fd),
                        stdin=subprocess.DEVNULL,
                        stdout=self._log,
                        stderr=self._log,
                        pass_fds=(inside.fileno(), settings_fd),
                        cwd="/",
                    )
            stack.callback(self._end)
            self._wait_until_ready()
            self._resources = stack.pop_all()

    def _wait_until_ready(self) -> None:
        self._control.settimeout(START_SECONDS)
        try:
            ready = self._control.recv(1)
        except TimeoutError:
            ready = b""
        if ready != b"r":
            self._end()
            said = os.pread(self._log, 4000, 0).decode("utf-8", "replace").strip() or "it said nothing"
            reason = said.splitlines()[-1]
            raise SandboxUnavailable(
                f"the sandbox does not start on this machine: {reason}; `autograder doctor` says what to do"
            )
        self._control.settimeout(ANSWER_SECONDS)

    def clone(self) -> Clone:
        """Walled processes for one submission. `SandboxError` when the server does not answer."""
        request_inside, request = os.pipe2(os.O_CLOEXEC)
        reply, reply_inside = os.pipe2(os.O_CLOEXEC)
        try:
            socket.send_fds(self._control, [b"c"], [request_inside, reply_inside])
            data, fds, _, _ = socket.recv_fds(self._control, 1, 1)
        except OSError as error:
            os.close(request)
            os.close(reply)
            raise SandboxError("the sandbox's fork server does not answer") from error
        finally:
            os.close(request_inside)
            os.close(reply_inside)
        if data != b"p" or len(fds) != 1:
            os.close(request)
            os.close(reply)
            raise SandboxError("the sandbox's fork server could not make a process; `autograder doctor` looks why")
        os.set_inheritable(fds[0], False)
        os.set_blocking(request, False)
        os.set_blocking(reply, False)
        return Clone(request, reply, fds[0])

    def read_status(self) -> tuple[int, float]:
        """The exit code of the init that just ended (see `guest.walls`), negative for a signal; CPU seconds."""
        try:
            record = self._control.recv(wire.STATUS.size)
            status, user, system = wire.STATUS.unpack(record)
        except (OSError, struct.error) as error:
            raise SandboxError("the sandbox's fork server does not answer") from error
        return os.waitstatus_to_exitcode(status), user + system

    def _end(self) -> None:
        self._control.close()
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the server and everything inside."""
        self._resources.close()


def _make_memory_file(name: str, stack: ExitStack) -> int:
    """A file in memory that is gone with the stack."""
    fd = os.memfd_create(name)
    stack.callback(os.close, fd)
    return fd


def _build_start(
    bubblewrap: str,
    binds: Sequence[Bind],
    package_path: Sequence[str],
    hidden: Sequence[str],
    settings: int,
) -> list[str]:
    if os.geteuid() != 0:
        return build_command(bubblewrap, binds, package_path, hidden, settings)
    staged = [Bind(Path(STAGE) / str(number), bind.target) for number, bind in enumerate(binds)]
    order = {
        "uid": SANDBOX_UID,
        "stage": STAGE,
        "binds": [[str(bind.source), str(number)] for number, bind in enumerate(binds)],
        "argv": build_command(bubblewrap, staged, package_path, hidden, settings),
    }
    launcher = Path(__file__).with_name("launcher.py")
    return [sys.executable, "-I", "-S", str(launcher), json.dumps(order)]
