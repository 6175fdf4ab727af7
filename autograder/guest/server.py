"""The fork server: imports once, then makes a process for each submission, as its mode makes them.

It never reads a request or a reply: those pipes are made by the host, passed through and closed, so
that no submission's bytes stay in memory that the next one inherits.

Control socket: the host sends one byte with three descriptors (request to read, reply to write, memory
that says where a pass is); the
server answers one byte with a pidfd, and when all is over a `wire.STATUS` record. The pidfd becomes readable
when nothing of the submission is left; how the host ends it, its mode says (`sandbox/modes.py`).
"""

import os
import signal
import socket
import sys
from contextlib import nullcontext
from typing import Protocol

import msgspec

from . import keeper, nested, single, wire
from .stage import Stage


class Maker(Protocol):
    """Makes the processes of one submission after the other."""

    def start(self, pipes: tuple[int, int], place: int) -> tuple[int, int]:
        """The pid and the pidfd of a child that minds the submission, with these pipes and the memory of its place."""

    def finish(self, status: int) -> int:
        """That child has ended, with this wait status; the one that the host is told."""


def serve(settings: wire.Settings) -> None:
    """Serve submissions until the control socket closes."""
    if settings.mode == "nested" and (fault := nested.find_fault(settings)):
        os.write(settings.control, b"n" + fault.encode()[:500])
        return
    with keeper.lend_home() if settings.mode in ("user", "none") else nullcontext():
        stage = Stage(settings)
    if settings.mode == "single":
        single.serve_one(stage)
    maker: Maker = nested.NestedMaker(stage) if settings.mode == "nested" else keeper.KeeperMaker(stage)
    stage.control.send(b"r")
    while True:
        data, fds, _, _ = socket.recv_fds(stage.control, 1, 3)
        if not data:
            return
        pid, pidfd = maker.start((fds[0], fds[1]), fds[2])
        for fd in fds:
            os.close(fd)
        socket.send_fds(stage.control, [b"p"], [pidfd])
        os.close(pidfd)
        _, status, usage = os.wait4(pid, 0)
        told = maker.finish(status)
        stage.control.send(wire.STATUS.pack(told, usage.ru_utime, usage.ru_stime))


def _read_all(fd: int) -> bytes:
    os.lseek(fd, 0, os.SEEK_SET)
    with os.fdopen(fd, "rb") as file:
        return file.read()


def main() -> None:
    """Entry point of a guest. The first argument names a descriptor that holds the settings."""
    # Where it was ignored by whoever started the grader, the time of ended processes would count nowhere.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    serve(msgspec.msgpack.decode(_read_all(int(sys.argv[1])), type=wire.Settings))
