"""Any stream of bytes from a guest is taken as replies or refused with `WireError`, whatever it holds.

`python tests/fuzz/run.py wire` looks for bytes that break it; the ordinary tests replay the corpus.
"""

import contextlib

from autograder.course import Assignment, Exercise, Limits
from autograder.guest import wire
from autograder.records import Cell, Program
from autograder.sandbox.clone import Clone
from autograder.sandbox.progress import Progress
from autograder.sandbox.watch import Watch, build_budget

ASSIGNMENT = Assignment(
    title="Two exercises",
    seeds=(42, 7),
    exercises=(
        Exercise(id="first", title="One", answers={"a1": "number", "b1": "(n, m)"}),
        Exercise(id="second", title="Two", answers={"a2": "number"}),
    ),
    limits=Limits(answer_bytes=2**16, output_bytes=2**16),
)
PROGRAM = Program(cells=tuple(Cell(number, f"x = {number}") for number in range(4)))
INPUT_SETS = [(42, {"X": 1}), (7, {"X": 2})]


def open_progress(evidence: bool = True) -> tuple[Progress, Watch]:
    """A submission of four cells and three passes whose first requests are out."""
    progress = Progress(ASSIGNMENT, PROGRAM, INPUT_SETS, frozenset({2}), evidence)
    progress.begin()
    progress.take_requests()
    return progress, Watch(Clone(-1, -1, -1, -1), build_budget(ASSIGNMENT), 2**28)


def take_stream(data: bytes) -> Progress:
    """Read a guest's bytes as the host does: the first says in what portions they arrive."""
    progress, watch = open_progress()
    step = (data[0] if data else 0) * 16 + 1
    reader = wire.FrameReader(progress.frame_cap)
    with contextlib.suppress(wire.WireError):
        for start in range(1, len(data), step):
            for body in reader.feed(data[start : start + step]):
                progress.take(wire.parse_reply(body), watch)
                progress.take_requests()
    progress.build_execution()
    return progress


check_bytes = take_stream
