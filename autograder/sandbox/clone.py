"""What the host holds of one submission's processes."""

import contextlib
import os
import signal

import msgspec

from autograder.guest import wire


class Clone(msgspec.Struct):
    """One submission's processes: the host's ends of its pipes and the handle that ends it.

    place: memory in which graded passes say where they are (`wire.PLACE`); what stands there is a claim.
    pidfd: of the root of its processes (an init, which may be the student's process, or a keeper); readable when
    nothing of the submission is left.
    end_signal: what tells that root to end everything.
    cpu_before: seconds of processor time that the root had used before the submission was there.
    memory_before: bytes that each of the first processes shares with the fork server; `first` is their number: the
    student's own, and the root where that is another.
    network_pid: of a process of ours in its network, all of whose sockets are the submission's; 0 where others use it.
    """

    request: int
    reply: int
    place: int
    pidfd: int
    end_signal: signal.Signals = signal.SIGKILL
    cpu_before: float = 0.0
    memory_before: int = 0
    first: int = 2
    network_pid: int = 0
    was_ended: bool = False

    def end(self) -> None:
        """End everything of the submission; the pidfd tells when it is done."""
        self.was_ended = True
        # It may have ended itself since it said what it is ended for.
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, self.end_signal)

    def read_place(self) -> tuple[int, int]:
        """The number of the graded pass that runs and of its cell; -1 for a cell where none has begun."""
        number, cell = divmod(int(wire.PLACE.unpack(os.pread(self.place, wire.PLACE.size, 0))[0]), 2**32)
        return number, cell - 1

    def close_request(self) -> None:
        """Nothing more will be asked; the guest's process ends then."""
        if self.request >= 0:
            os.close(self.request)
            self.request = -1

    def close(self) -> None:
        """Give back all descriptors."""
        self.close_request()
        os.close(self.reply)
        os.close(self.place)
        os.close(self.pidfd)
