"""The firing range: attacks and honest submissions through the real line, one after another."""

import functools
import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from autograder.catalogue import fill_notebook
from autograder.course import Course, load_course
from autograder.grading import Grader
from autograder.marking.reference import load_reference
from autograder.records import Execution, Grade, Submission
from autograder.sandbox.processes import measure_tree

from .attacks import ASSIGNMENT, LIMITS, ROOMY, ROOT

WITNESS = Path(__file__).with_name("witness.py").read_text(encoding="utf-8")


class Range:
    """One grader, and all that an outsider can watch while it works."""

    def __init__(self, grader: Grader, secret: str, mode: str = "nested") -> None:
        self.grader = grader
        self.mode = mode
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
        return sum(measure_tree(pid).processes for pid in self.grader.sandbox.pids)

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


@pytest.fixture(scope="session")
def canary() -> Iterator[str]:
    """A value in the grader's own environment that must stay there."""
    value = secrets.token_hex(16)
    os.environ["AUTOGRADER_TEST_CANARY"] = value
    yield value
    os.environ.pop("AUTOGRADER_TEST_CANARY", None)


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


def open_grader(course: Course, timed: bool) -> Grader:
    """A grader with small limits; its times are tight, or generous."""
    assignment = course.assignment(ASSIGNMENT)
    limits = assignment.limits.model_copy(update=LIMITS if timed else LIMITS | ROOMY)
    changed = {ASSIGNMENT: assignment.model_copy(update={"limits": limits})}
    return Grader(course.model_copy(update={"assignments": changed}), ASSIGNMENT)


@pytest.fixture(scope="session")
def open_range(course: Course, canary: str) -> Iterator[Callable[[bool], Range]]:
    """A range, with generous time limits or with tight ones; each is opened once."""
    with ExitStack() as stack:

        @functools.cache
        def find_range(timed: bool) -> Range:
            return Range(stack.enter_context(open_grader(course, timed)), secrets.token_hex(16))

        yield find_range
