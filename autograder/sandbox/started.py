"""One started guest process: its control socket, its log, its end."""

import fcntl
import os
import select
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
    has_group: whether the command and what it forks are a process group of their own and are ended together. A
    bubblewrap that is killed just after its start leaves a child that does not know yet that it is to die with it.
    """

    def __init__(
        self,
        build_argv: Callable[[int], list[str]],
        build_settings: BuildSettings,
        environment: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
        *,
        has_group: bool,
    ) -> None:
        self._has_group = has_group
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
                    process_group=0 if has_group else None,
                )
            stack.callback(self._end)
            self._pidfd = os.pidfd_open(self.process.pid)
            stack.callback(os.close, self._pidfd)
            self._wait_until_ready()
            self._resources = stack.pop_all()

    def _wait_until_ready(self) -> None:
        word = self._read_word()
        if word == b"r":
            self.control.settimeout(ANSWER_SECONDS)
            return
        # It says why before it ends, and until it has ended its namespaces count to what this user may have.
        ended_itself = word is not None and _is_readable_within(_END_SECONDS, self._pidfd)
        self._end()
        if word is None:
            reason = f"not ready after {START_SECONDS:g} s"
        elif word.startswith(b"n"):
            raise NestedForbidden(word[1:].decode("utf-8", "replace"))
        elif ended_itself and self.process.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL):
            raise SandboxError("the sandbox was killed from outside while it started")
        else:
            said = os.pread(self._log, 4000, 0).decode("utf-8", "replace").strip() or "it said nothing"
            reason = said.splitlines()[-1]
        raise SandboxUnavailable(
            f"the sandbox does not start on this machine: {reason}; `autograder doctor` says what to do"
        )

    def _read_word(self) -> bytes | None:
        """How the guest says that it is ready or cannot be; empty when it ends without, None when it takes too long."""
        if not _is_readable_within(START_SECONDS, self.control.fileno(), self._pidfd):
            return None
        self.control.setblocking(False)
        with suppress(BlockingIOError):
            return self.control.recv(1000)
        return b""

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
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                (os.killpg if self._has_group else os.kill)(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def close(self) -> None:
        """End the guest and everything inside."""
        self._resources.close()


def _is_readable_within(seconds: float, *fds: int) -> bool:
    """Whether there is something to read from one of them; from a pidfd, that its process has ended."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


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
