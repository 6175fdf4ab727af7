"""Stands before the code of each attack: how it tells what came of it, and how it reaches the runner around it."""

import builtins
import os
import sys
from types import SimpleNamespace

TMP = os.environ.get("TMPDIR", "/tmp")


def escaped(*what):
    """Tell that a wall gave way; the test fails when it reads this."""
    print("ESCA" + "PED:", *what, flush=True)


def tried():
    """Tell that the attack was carried out to its end."""
    print("TRI" + "ED", flush=True)


LETTERS = " .abcdefghiklmnoprstuvwy"
"""Of the texts in the course."""


def list_exceptions():
    """Built-in exceptions, in an order in which they stand for letters."""
    kinds = dict.fromkeys(kind for _, kind in sorted(vars(builtins).items()) if isinstance(kind, type))
    left_out = (UnicodeError, Warning, BaseExceptionGroup, MemoryError)
    return [kind for kind in kinds if issubclass(kind, Exception) and not issubclass(kind, left_out)]


def list_processes():
    """Numbers of processes: those that are listed, or where nothing is, those that may be."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return list(range(1, os.getpid() + 50))


def find_above(*names):
    """Local variables of whoever called, from the nearest frame that has them."""
    found = {}
    frame = sys._getframe(1)
    while frame is not None:
        for name in names:
            if name in frame.f_locals:
                found.setdefault(name, frame.f_locals[name])
        frame = frame.f_back
    return found


def is_watched():
    """Whether anybody would see what is printed; what takes long need not be done in the silent passes."""
    order = find_above("order").get("order")
    return order is None or not getattr(order, "graded", False)


def reach_runner():
    """The runner's own things, by walking up the frames: both pipes, the wire, the pass and the cell."""
    found = find_above("reply_fd", "request_fd", "data", "order", "cell")
    wire = sys.modules["guest.wire"]

    def write(data):
        view = memoryview(data)
        while view:
            view = view[os.write(found["reply_fd"], view) :]

    def send(*messages):
        write(b"".join(wire.build_frame(message) for message in messages))

    def end_cell():
        send(wire.Ended(found["order"].number, found["cell"].number, "ok"))

    return SimpleNamespace(
        reply=found["reply_fd"],
        request=found["request_fd"],
        data=found["data"],
        order=found["order"],
        number=found["order"].number,
        cell=found["cell"].number,
        wire=wire,
        write=write,
        send=send,
        end_cell=end_cell,
    )
