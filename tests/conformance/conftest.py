"""One sandbox of each mode, and a course that nobody else may read."""

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from autograder.course import Assignment, Exercise, Limits
from autograder.records import Cell, Ending, Execution, Program
from autograder.sandbox import landlock
from autograder.sandbox.modes import SandboxMode
from autograder.sandbox.session import Session
from autograder.sandbox.watch import Budget, build_budget

from .differences import BARE_USER, MODES, NONE, USER, USERS
from .open_python import open_python

LIMITS = Limits(
    cell_wall_seconds=60,
    cell_cpu_seconds=20,
    wall_seconds=240,
    cpu_seconds=80,
    memory_bytes=768 * 2**20,
    processes=12,
    disk_bytes=2 * 2**20,
    files=64,
    output_bytes=2**16,
    answer_bytes=2**16,
)
"""Times that nothing reaches by being slow; what a time limit must end gets `TIGHT`."""

TIGHT = Budget(wall=60, cpu=20, cell_wall=2, cell_cpu=0.6)

INPUT_SETS: list[tuple[int, dict[str, Any]]] = [(seed, {"n": seed + 40}) for seed in (1, 2)]
HONEST = "value = n * 2\nassert value"


def build_assignment() -> Assignment:
    exercises = tuple(Exercise(id=name, title=name, answers={name: "whole number"}) for name in ("a", "b", "c"))
    return Assignment(title="conformance", seeds=(1, 2), exercises=exercises, limits=LIMITS)


def lend_kernel(mode: str) -> AbstractContextManager[object]:
    """The kernel as it is, or for sessions that are opened meanwhile one that knows nothing of Landlock."""
    return patch.object(landlock, "find_version", lambda: 0) if mode == BARE_USER else nullcontext()


class Room:
    """A session of one mode, and the course that it must keep to itself."""

    def __init__(self, mode: str, folder: Path) -> None:
        self.mode = mode
        self.sandbox = SandboxMode(USER if mode in USERS else mode)
        self.folder = folder
        self.assignment = build_assignment()
        self.session = self.open_session()

    def open_session(self) -> Session:
        return Session(self.folder, self.assignment, mode=self.sandbox)

    def run(self, code: str, session: Session | None = None, budget: Budget | None = None) -> Execution:
        """A submission whose second exercise holds this code."""
        cells = (Cell(0, "a = n + 1", ("a",)), Cell(1, code, ("b",)), Cell(2, "c = n + 3", ("c",)))
        budget = msgspec.structs.replace(budget) if budget else build_budget(self.assignment)
        return (session or self.session).execute(Program(cells), INPUT_SETS, budget)

    def ask(self, code: str, session: Session | None = None) -> Any:
        """What code that binds `told` found out in the pass as submitted."""
        execution = self.run(f"{code}\nimport json as _json\nprint('TOLD' + _json.dumps(told))\nb = 1", session)
        said = b"".join(output.data for output in execution.outputs if output.mime == "stream/stdout").decode()
        assert "TOLD" in said, (said, execution.outputs, execution.evidence)
        return json.loads(said.partition("TOLD")[2])

    @staticmethod
    def read_ending(execution: Execution) -> tuple[Ending, str]:
        """How the second exercise's cell ended on the last input set."""
        return next((run.ending, run.text) for run in execution.passes[-1].runs if run.cell == 1)

    @staticmethod
    def assert_others_right(execution: Execution) -> None:
        """The exercises around the second one have their answers on every input set."""
        found = [(each.answers.get("a"), each.answers.get("c")) for each in execution.passes]
        assert found == [(values["n"] + 1, values["n"] + 3) for _, values in INPUT_SETS], execution


@pytest.fixture(scope="session", params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name in USERS and os.geteuid() != 0:
        pytest.skip("only root can make a user for each submission")
    if name == USER and landlock.find_version() == 0:
        pytest.skip("this kernel has no Landlock")
    if name not in (NONE, *USERS) and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed here")
    return name


@pytest.fixture(scope="session")
def canary() -> Iterator[str]:
    """A value in the grader's own environment that must stay there."""
    value = secrets.token_hex(16)
    os.environ["AUTOGRADER_TEST_CANARY"] = value
    yield value
    os.environ.pop("AUTOGRADER_TEST_CANARY", None)


@pytest.fixture(scope="session")
def course_folder() -> Iterator[Path]:
    """Files as a course has them, in a folder that others may not enter."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        folder = Path(name)
        for path in (
            "course.toml",
            "tests/hidden/x/test_x.py",
            "solutions/x/reference.py",
            ".autograder/store.sqlite",
            "submitted/other/x/x.ipynb",
        ):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text("secret-of-the-course\n")
        yield folder


@pytest.fixture(scope="session")
def room(mode: str, course_folder: Path, canary: str) -> Iterator[Room]:
    """Opened once for each mode."""
    with ExitStack() as stack:
        stack.enter_context(lend_kernel(mode))
        if mode in USERS:
            stack.enter_context(open_python())
        room = Room(mode, course_folder)
        stack.enter_context(room.session)
        yield room


@pytest.fixture
def walled(room: Room) -> Room:
    """A room of a mode that has a wall."""
    if room.mode == NONE:
        pytest.skip("mode none has no wall")
    return room
