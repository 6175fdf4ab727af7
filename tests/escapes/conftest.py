"""The firing range: attacks and honest submissions through the real line, one after another."""

import functools
import hashlib
import json
import os
import secrets
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from autograder.catalogue import fill_notebook
from autograder.course import Course, load_course
from autograder.grading import Grader
from autograder.marking.reference import load_reference
from autograder.records import Ending, Execution, Grade, Submission
from autograder.sandbox.processes import measure_tree

ROOT = Path(__file__).parents[2]
CORPUS = Path(__file__).with_name("corpus")
ASSIGNMENT = "qkv"
FULL = {"shared-key": 4.0, "head-size": 5.0, "shared-value": 4.0}
KIT = Path(__file__).with_name("kit.py").read_text(encoding="utf-8")
WITNESS = Path(__file__).with_name("witness.py").read_text(encoding="utf-8")
ESCAPED, TRIED = b"ESCAPED:", b"TRIED"

LIMITS: dict[str, int | float] = {
    "cell_wall_seconds": 1.5,
    "cell_cpu_seconds": 0.8,
    "wall_seconds": 6.0,
    "cpu_seconds": 6.0,
    "memory_bytes": 512 * 2**20,
    "processes": 24,
    "disk_bytes": 2 * 2**20,
    "files": 64,
    "output_bytes": 2**16,
    "answer_bytes": 2**18,
}
"""Small, so that an attack that must be waited for is soon over; ample for an honest cell on a busy machine."""

ROOMY = {"cell_wall_seconds": 12.0, "cell_cpu_seconds": 6.0, "wall_seconds": 60.0, "cpu_seconds": 40.0}
"""For attacks that something else than a time limit must end; on a slow machine they may need their time."""


class Attack(BaseModel):
    """One file of the corpus.

    earns: the points that the values it leaves in the answers are worth.
    endings: the statuses that its exercise may end with.
    place: where its code stands, relative to the solution of its exercise.
    tried: it says when it is through, so that one which breaks off early is no proof.
    unwalled: it must succeed in a plain process, which proves that the wall is what stops it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tries: str
    must: str
    exercise: str
    code: str
    earns: float = 0
    endings: Annotated[tuple[Ending, ...], Field(min_length=1)]
    place: Literal["instead", "before", "after"] = "instead"
    tried: bool = True
    unwalled: bool = False

    @property
    def is_timed(self) -> bool:
        """Whether a time limit may end it; then waiting for a generous one would only cost time."""
        return Ending.TIMEOUT in self.endings


def load_corpus() -> dict[str, Attack]:
    """All attacks by the name of their file."""
    files = sorted(CORPUS.glob("*.toml"))
    return {file.stem: Attack.model_validate(tomllib.loads(file.read_text(encoding="utf-8"))) for file in files}


class Range:
    """One grader, and all that an outsider can watch while it works."""

    def __init__(self, grader: Grader, secret: str) -> None:
        self.grader = grader
        self.secret = secret
        self.source = grader.course.solution_notebook(ASSIGNMENT).read_bytes()
        self.executions: list[Execution] = []
        self.seconds = 0.0
        self.broken = False
        run = grader.sandbox.execute

        def execute(*args: Any, **options: Any) -> Execution:
            execution = run(*args, **options)
            self.executions.append(execution)
            return execution

        grader.sandbox.execute = execute  # type: ignore[method-assign]
        # The first lost mark runs the known mistakes once; they are no part of an attack's cost.
        self.grade(fill_notebook(self.source, {"shared-key": "Wk_shared = 0"}))
        self.quiet = self.count_processes()

    def count_processes(self) -> int:
        """Processes of the sandbox on the host, bubblewrap and fork server included."""
        return measure_tree(self.grader.sandbox._start()._process.pid).processes

    def build_attack(self, attack: Attack) -> bytes:
        """The solution notebook with the attack in its exercise's cell."""
        return build_attack(attack, self.source, self.grader.course.folder)

    def build_honest(self) -> bytes:
        """The solution notebook with a secret and a look around before the first exercise."""
        look = f"{WITNESS}\nneighbour_secret = 'neighbour-' + {self.secret!r}\n"
        return fill_notebook(self.source, {}, {"shared-key": look})

    def grade(self, data: bytes) -> Grade:
        """The grade of a notebook; `executions` and `seconds` tell what it took."""
        self.executions.clear()
        began = time.monotonic()
        grade = self.grader.grade_submission(Submission("eve", "eve.ipynb", data, hashlib.sha256(data).hexdigest()))
        self.seconds = time.monotonic() - began
        self.broken = grade.status != "graded"
        return grade

    def clear(self) -> None:
        """Start anew where an attack before has got through."""
        if self.broken or self.count_leftovers():
            self.grader.sandbox.close()

    def read_outputs(self) -> bytes:
        """All outputs that people would see of the last submission."""
        return b"".join(output.data for execution in self.executions for output in execution.outputs)

    def count_leftovers(self) -> int:
        """Processes of the sandbox that were not there before; teardown gets a moment."""
        end = time.monotonic() + 10
        while (left := self.count_processes() - self.quiet) > 0 and time.monotonic() < end:
            time.sleep(0.02)
        return left


def build_code(attack: Attack, course_folder: Path) -> str:
    """The kit, what the attacker knows of the course, and the attack."""
    return f"{KIT}\nCOURSE = {str(course_folder)!r}\n{attack.code}"


def read_solution(source: bytes, exercise: str) -> str:
    """The code of an exercise's answer cell in a notebook, without its marker line."""
    for cell in json.loads(source)["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == exercise:
            return "".join(cell["source"]).split("\n", 1)[1]
    raise LookupError(exercise)


def build_attack(attack: Attack, source: bytes, course_folder: Path) -> bytes:
    """The solution notebook with the attack in its exercise's cell."""
    code = build_code(attack, course_folder)
    if attack.place == "before":
        code = f"{code}\n{read_solution(source, attack.exercise)}"
    elif attack.place == "after":
        code = f"{read_solution(source, attack.exercise)}\n{code}"
    return fill_notebook(source, {attack.exercise: code})


@pytest.fixture(scope="session")
def canary() -> Iterator[str]:
    """A value in the grader's own environment that must stay there."""
    value = secrets.token_hex(16)
    os.environ["AUTOGRADER_TEST_CANARY"] = value
    yield value
    del os.environ["AUTOGRADER_TEST_CANARY"]


@pytest.fixture(scope="session")
def course() -> Course:
    return load_course(ROOT)


@pytest.fixture(scope="session")
def hidden_texts(course: Course) -> frozenset[bytes]:
    """What would give a hidden input set away: its text, as it is and as a name, and its first numbers."""
    reference = load_reference(course.reference(ASSIGNMENT))
    found: set[bytes] = set()
    for seed in course.assignment(ASSIGNMENT).seeds[1:]:
        inputs = reference.inputs(seed)
        text = inputs["text"]
        found |= {text.encode(), text.replace(" ", "_").encode(), ", ".join(map(str, inputs["ids"][:4])).encode()}
    return frozenset(found)


@pytest.fixture(scope="session")
def open_range(course: Course, canary: str) -> Iterator[Callable[[bool], Range]]:
    """A range, with generous time limits or with tight ones; each is opened once."""
    with ExitStack() as stack:

        @functools.cache
        def find_range(timed: bool) -> Range:
            assignment = course.assignment(ASSIGNMENT)
            limits = assignment.limits.model_copy(update=LIMITS if timed else LIMITS | ROOMY)
            changed = {ASSIGNMENT: assignment.model_copy(update={"limits": limits})}
            grader = stack.enter_context(Grader(course.model_copy(update={"assignments": changed}), ASSIGNMENT))
            return Range(grader, secrets.token_hex(16))

        yield find_range
