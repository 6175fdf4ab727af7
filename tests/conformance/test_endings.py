"""However a submission ends, its other exercises and the next submission do not feel it; in every mode."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest

from autograder.course import Limits
from autograder.records import Cell, Ending, Program
from autograder.sandbox.watch import build_budget

from .conftest import INPUT_SETS, TIGHT, Room
from .differences import NONE

ENDINGS = {
    "sys.exit": ("import sys\nsys.exit(0)", {Ending.EXITED}),
    "os._exit": ("import os\nos._exit(0)", {Ending.EXITED}),
    # The init of a namespace of its own does not hear it.
    "kill": ("import os\nos.kill(os.getpid(), 9)\nos.abort()", {Ending.KILLED}),
    "segmentation fault": ("import ctypes\nctypes.string_at(0)", {Ending.KILLED}),
    "endless loop": ("while True: pass", {Ending.TIMEOUT}),
    "deaf sleep": (
        "import signal, time\nfor n in (1, 2, 15):\n    signal.signal(n, signal.SIG_IGN)\ntime.sleep(1000)",
        {Ending.TIMEOUT},
    ),
    "memory": ("hoard = []\nwhile True: hoard.append(bytearray(2**24))", {Ending.OUT_OF_MEMORY}),
    "memory to the last byte": (
        "hoard = []\nfor size in (2**24, 2**16, 2**10, 2**6):\n    try:\n"
        "        while True: hoard.append(bytearray(size))\n    except MemoryError: pass\n"
        "hoard.append(bytearray(2**24))",
        {Ending.OUT_OF_MEMORY},
    ),
    "memory that is kept quietly": (
        "hoard = []\nfor size in (2**24, 2**16, 2**10, 2**6):\n    try:\n"
        "        while True: hoard.append(bytearray(size))\n    except MemoryError: pass",
        {Ending.OK},
    ),
    "memory of many": (
        "import os, time\nfor _ in range(6):\n    if os.fork() == 0:\n        hoard = bytearray(220 * 2**20)\n"
        "        time.sleep(1000)\ntime.sleep(1000)",
        {Ending.OUT_OF_MEMORY},
    ),
    "output flood": ("while True: print('x' * 10_000)", {Ending.TIMEOUT, Ending.KILLED}),
    "fork bomb": (
        "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass",
        {Ending.TIMEOUT, Ending.KILLED},
    ),
}


def assert_next_is_right(room: Room) -> None:
    execution = room.run("b = n + 2")
    room.assert_others_right(execution)
    assert [each.answers["b"] for each in execution.passes] == [values["n"] + 2 for _, values in INPUT_SETS]


def test_answers_are_right_on_every_input_set(room: Room) -> None:
    assert_next_is_right(room)


@pytest.mark.parametrize("name", ENDINGS)
def test_an_ending_costs_its_own_exercise_alone(room: Room, name: str) -> None:
    if name == "fork bomb" and room.mode == NONE:
        pytest.skip("mode none has no limit on processes")
    code, endings = ENDINGS[name]
    execution = room.run(code, budget=TIGHT if Ending.TIMEOUT in endings else None)
    room.assert_others_right(execution)
    assert room.read_ending(execution)[0] in endings, room.read_ending(execution)
    assert [each.answers.get("b") for each in execution.passes] == [None, None]
    assert_next_is_right(room)


def test_sandboxes_that_a_submission_makes_necessary_are_on_its_own_time(room: Room, monkeypatch) -> None:
    """Each cell that ends its process needs a further one, and a notebook may hold thousands."""
    clones = []

    def clone(server):
        clones.append(time.sleep(0.3 if clones else 0))
        return make(server)

    room.run("b = 1")
    (starting,) = room.session._servers.values()
    make = type(starting.result()).clone
    monkeypatch.setattr(type(starting.result()), "clone", clone)
    cells = tuple(Cell(number, "import os\nos._exit(0)") for number in range(60))
    budget = msgspec.structs.replace(build_budget(room.assignment), wall=6.0)
    execution = room.session.execute(Program(cells), INPUT_SETS, budget)
    assert len(clones) < 30
    assert execution.passes[0].runs[-1].ending is Ending.TIMEOUT


LIMITS_OF_THE_INIT = """
import os, resource, time
for name in ('RLIMIT_CPU', 'RLIMIT_AS', 'RLIMIT_DATA', 'RLIMIT_NOFILE', 'RLIMIT_STACK', 'RLIMIT_NPROC'):
    try:
        if os.getppid():  # else it would be its own
            resource.prlimit(os.getppid(), getattr(resource, name), (0, 0))
    except OSError:
        pass
end = time.monotonic() + 1
while time.monotonic() < end:
    # Orphans give the init work, on its own processor time.
    if os.fork() == 0:
        os.fork()
        os._exit(0)
    os.wait()
b = 1
"""


def test_the_process_that_minds_a_submission_cannot_be_starved(walled: Room) -> None:
    execution = walled.run(LIMITS_OF_THE_INIT)
    walled.assert_others_right(execution)
    assert_next_is_right(walled)


class FullGroup:
    """Stands for a control group whose memory is full: the kernel ends all processes in it at one stroke."""

    def __init__(self) -> None:
        self.is_full = False

    @contextmanager
    def confine(self, root: int, limits: Limits) -> Iterator["FullGroup"]:
        def end() -> None:
            self.is_full = True
            os.kill(root, signal.SIGKILL)

        timer = threading.Timer(2, end)
        timer.start()
        yield self
        timer.cancel()
        self.is_full = False

    def is_out_of_memory(self) -> bool:
        return self.is_full


def test_memory_that_the_kernel_ends_with_everything_in_the_group_is_named(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room.session, "_groups", FullGroup())
    execution = room.run("import time\ntime.sleep(1000)")
    room.assert_others_right(execution)
    assert room.read_ending(execution)[0] is Ending.OUT_OF_MEMORY
