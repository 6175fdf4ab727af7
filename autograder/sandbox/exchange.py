"""One talk with one set of walled processes: requests out, replies in, an end to whatever overruns."""

import contextlib
import os
import select
import time

from autograder.errors import SandboxError
from autograder.guest import wire
from autograder.records import Ending
from autograder.sandbox.clone import Clone
from autograder.sandbox.progress import Progress
from autograder.sandbox.watch import Watch

_END_SECONDS = 10.0
"""How long killed processes may take to be gone."""


class Exchange:
    """Talks until all passes are done or the processes are gone.

    Nothing here waits for the guest: reading, writing and looking at limits take turns.
    """

    def __init__(self, clone: Clone, progress: Progress, job: wire.Job, watch: Watch) -> None:
        self._clone = clone
        self._progress = progress
        self._watch = watch
        self._outgoing = bytearray(wire.build_frame(job) + self._take_requests())
        self._reader = wire.FrameReader(progress.frame_cap)
        self._received = 0
        self._ended: tuple[Ending, str] | None = None
        self._give_up = 0.0
        self._poll = select.poll()
        self._poll.register(clone.pidfd, select.POLLIN)
        self._poll.register(clone.reply, select.POLLIN)
        self._poll.register(clone.request, select.POLLOUT)
        self._dead = False
        self.was_refused = False
        """Whether they were ended for what they sent; whoever sent it had begun before."""

    def run(self) -> tuple[Ending, str] | None:
        """How the host ended the processes, and why; None when they ended of themselves."""
        while not self._dead:
            for fd, event in self._poll.poll(self._wait_seconds() * 1000 + 1):
                if fd == self._clone.pidfd:
                    self._dead = True
                elif fd == self._clone.request:
                    self._write(event)
                else:
                    self._read()
            if self._ended is None:
                self._continue()
        # What the processes left in the pipe; its end may never come, when they hid a copy of it in a socket.
        while self._read():
            pass
        return self._ended

    def _take_requests(self) -> bytes:
        was_wary = self._progress.is_wary
        more = self._progress.take_requests()
        if was_wary and not self._progress.is_wary:
            self._watch.note_hidden()
        return more

    def _wait_seconds(self) -> float:
        if self._ended is None:
            return self._watch.wait_seconds()
        left = self._give_up - time.monotonic()
        if left <= 0:
            raise SandboxError("processes of a submission do not end after they were killed")
        return left

    def _continue(self) -> None:
        """Ask for what may be asked now, close when all is done, end what overruns."""
        more = self._take_requests()
        if more:
            self._outgoing += more
            self._poll.register(self._clone.request, select.POLLOUT)
        if self._progress.is_done and self._clone.request >= 0:
            self._stop_polling(self._clone.request)
            self._clone.close_request()
        if self._watch.is_due and self._progress.take_place(*self._clone.read_place()):
            self._watch.progress()
        if not self._dead and (broken := self._watch.check()) is not None:
            self._kill(*broken)

    def _kill(self, ending: Ending, reason: str) -> None:
        self._ended = ending, reason
        self._give_up = time.monotonic() + _END_SECONDS
        # It may have ended itself since it said what it is ended for.
        with contextlib.suppress(ProcessLookupError):
            self._clone.end()

    def _write(self, event: int) -> None:
        try:
            if event & select.POLLOUT and self._outgoing:
                del self._outgoing[: os.write(self._clone.request, self._outgoing[: 2**16])]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._outgoing.clear()
        if not self._outgoing or event & (select.POLLERR | select.POLLHUP):
            self._stop_polling(self._clone.request)

    def _read(self) -> bool:
        """Take what is there; whether there may be more."""
        try:
            data = os.read(self._clone.reply, 2**18)
        except BlockingIOError:
            return False
        if not data:
            self._stop_polling(self._clone.reply)
            return False
        self._received += len(data)
        if self._ended is not None:
            return self._received < 2 * self._progress.total_cap
        try:
            if self._received > self._progress.total_cap:
                raise wire.WireError(
                    "more bytes than all answers and outputs may have (limits answer_bytes and output_bytes)"
                )
            for body in self._reader.feed(data):
                self._progress.take(wire.parse_reply(body), self._watch)
        except wire.WireError as error:
            self.was_refused = True
            self._kill(Ending.KILLED, f"its replies were refused: {error}")
        return True

    def _stop_polling(self, fd: int) -> None:
        with contextlib.suppress(KeyError):
            self._poll.unregister(fd)
