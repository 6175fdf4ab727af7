"""One started guest process: its control socket, its log, its end."""

import fcntl
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress

import msgspec

from autograder.errors import SandboxError, SandboxUnavailable
from autograder.guest import wire

START_SECONDS = 60.0
ANSWER_SECONDS = 15.0
_END_SECONDS = 2.0


class NestedForbidden(SandboxUnavailable):
    """Bubblewrap works here, namespaces inside it do not."""

    def __init__(self, reason: str) -> None:
        self.what = f"namespaces inside bubblewrap do not work here ({reason})"
        super().__init__(f"{self.what}; leave --sandbox nested out, or see `autograder doctor`")


BuildSettings = Callable[[int], wire.Settings]
"""Settings for a control socket's descriptor."""


class StartedGuest:
    """A guest that is ready for submissions. `SandboxUnavailable` when it does not start.

    build_argv: the command line, for the descriptor that holds the settings.
    pass_fds: descriptors that the command gets beside its own.
    """

    def __init__(
        self,
        build_argv: Callable[[int], list[str]],
        build_settings: BuildSettings,
        environment: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        with ExitStack() as stack:
            self._log = _make_memory_file("sandbox-log", stack)
            self.control, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            stack.callback(self.control.close)
            with inside, ExitStack() as started:
                settings_fd = _make_memory_file("sandbox-settings", started)
                os.write(settings_fd, msgspec.msgpack.encode(build_settings(inside.fileno())))
                self.process = subprocess.Popen(
                    build_argv(settings_fd),
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=self._log,
                    pass_fds=(inside.fileno(), settings_fd, *pass_fds),
                    cwd="/",
                    env=environment,
                )
            stack.callback(self._end)
            self._wait_until_ready()
            self._resources = stack.pop_all()

    def _wait_until_ready(self) -> None:
        self.control.settimeout(START_SECONDS)
        try:
            ready = self.control.recv(1000)
        except TimeoutError:
            ready = b"late"
        if ready.startswith(b"n"):
            # It ends of itself; until it has, its namespaces count to what this user may have.
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(_END_SECONDS)
            self._end()
            raise NestedForbidden(ready[1:].decode("utf-8", "replace"))
        if ready != b"r":
            if ready != b"late" and self._was_killed():
                raise SandboxError("the sandbox was killed from outside while it started")
            self._end()
            said = os.pread(self._log, 4000, 0).decode("utf-8", "replace").strip() or "it said nothing"
            reason = f"not ready after {START_SECONDS:g} s" if ready == b"late" else said.splitlines()[-1]
            raise SandboxUnavailable(
                f"the sandbox does not start on this machine: {reason}; `autograder doctor` says what to do"
            )
        self.control.settimeout(ANSWER_SECONDS)

    def _was_killed(self) -> bool:
        """Whether a signal to it, or to what bubblewrap waits for, ended the start, and not its own failure."""
        try:
            code = self.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            return False
        return code in (-signal.SIGKILL, 128 + signal.SIGKILL)

    def send_pipes(self) -> tuple[int, int, int]:
        """Give the guest the pipes of a submission, and the memory that says where a pass is (`wire.PLACE`).

        Returns the host's ends, to write requests and to read replies, and that memory.
        """
        request_inside, request = os.pipe2(os.O_CLOEXEC)
        reply, reply_inside = os.pipe2(os.O_CLOEXEC)
        place = -1
        try:
            place = _make_place()
            socket.send_fds(self.control, [b"c"], [request_inside, reply_inside, place])
        except OSError as error:
            os.close(request)
            os.close(reply)
            if place >= 0:
                os.close(place)
            raise SandboxError("the sandbox's fork server does not answer") from error
        finally:
            os.close(request_inside)
            os.close(reply_inside)
        os.set_blocking(request, False)
        os.set_blocking(reply, False)
        return request, reply, place

    def receive_pidfd(self) -> int:
        """The handle of the processes that were made for the pipes just sent. `SandboxError` when there is none."""
        try:
            data, fds, _, _ = socket.recv_fds(self.control, 1, 1)
        except OSError as error:
            raise SandboxError("the sandbox's fork server does not answer") from error
        if data != b"p" or len(fds) != 1:
            raise SandboxError("the sandbox's fork server could not make a process; `autograder doctor` looks why")
        os.set_inheritable(fds[0], False)
        return fds[0]

    def receive_status(self) -> tuple[int, float] | None:
        """Exit code, negative for a signal, and CPU seconds of the processes just ended; None where it went too."""
        try:
            record = self.control.recv(wire.STATUS.size)
        except ConnectionError:
            return None
        except OSError as error:
            raise SandboxError("the sandbox's fork server does not answer") from error
        if len(record) != wire.STATUS.size:
            return None
        status, user, system = wire.STATUS.unpack(record)
        return os.waitstatus_to_exitcode(status), user + system

    def _end(self) -> None:
        self.control.close()
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """End the guest and everything inside."""
        self._resources.close()


def _make_place() -> int:
    """Memory of a fixed size: what the guest could add to it, nobody would count."""
    place = os.memfd_create("place", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(place, wire.PLACE.size)
    fcntl.fcntl(place, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)
    return place


def _make_memory_file(name: str, stack: ExitStack) -> int:
    """A file in memory that is gone with the stack."""
    fd = os.memfd_create(name)
    stack.callback(os.close, fd)
    return fd
