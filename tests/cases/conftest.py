"""The real line for the cases: one grader for the session, and notebooks made from the solution notebook."""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from autograder.catalogue import fill_notebook
from autograder.course import Course, load_course
from autograder.grading import Grader
from autograder.records import Grade, Mark, Submission

ROOT = Path(__file__).parents[2]
ASSIGNMENT = "qkv"
FULL = {"shared-key": 4.0, "head-size": 5.0, "shared-value": 4.0}

QUICK_LIMITS = {
    "cell_wall_seconds": 1.2,
    "cell_cpu_seconds": 0.5,
    "wall_seconds": 20.0,
    "cpu_seconds": 3.0,
    "memory_bytes": 256 * 2**20,
}
"""Short enough for a test that waits for them, long enough for every harmless cell on a busy machine."""


class Workbench:
    """Builds notebooks from the solution notebook and grades them by the real path."""

    full = FULL

    def __init__(self, grader: Grader) -> None:
        self.grader = grader
        self.course = grader.course
        self.source = grader.course.solution_notebook(ASSIGNMENT).read_bytes()

    def fill(self, codes: Mapping[str, str], before: Mapping[str, str] | None = None) -> bytes:
        """The solution with other code in some answer cells, by exercise id."""
        return fill_notebook(self.source, codes, before)

    def build(
        self,
        *,
        replace: Mapping[str, str] | None = None,
        before: Mapping[str, Sequence[str]] | None = None,
        after: Mapping[str, Sequence[str]] | None = None,
        drop: Collection[str] = (),
    ) -> bytes:
        """The solution with whole cells changed, each named by its nbgrader `grade_id`.

        before, after: code cells of the student's own around a cell.
        """
        notebook = json.loads(self.source)
        cells: list[dict[str, Any]] = []
        for cell in notebook["cells"]:
            name = cell["metadata"].get("nbgrader", {}).get("grade_id", "")
            cells += [build_cell(source) for source in (before or {}).get(name, ())]
            if name not in drop:
                cells.append({**cell, "source": (replace or {}).get(name, cell["source"])})
            cells += [build_cell(source) for source in (after or {}).get(name, ())]
        return json.dumps({**notebook, "cells": cells}).encode()

    def read_source(self, name: str) -> str:
        """The text of the cell with this `grade_id`."""
        for cell in json.loads(self.source)["cells"]:
            if cell["metadata"].get("nbgrader", {}).get("grade_id") == name:
                return "".join(cell["source"])
        raise LookupError(name)

    def grade(self, data: bytes) -> Grade:
        """The grade of a notebook's bytes; the test fails when it is ungraded."""
        grade = self.grade_any(data)
        assert grade.status == "graded", grade.reason
        return grade

    def grade_any(self, data: bytes) -> Grade:
        """The grade of any bytes."""
        return self.grader.grade_submission(Submission("ada", "ada.ipynb", data, hashlib.sha256(data).hexdigest()))

    def grade_codes(self, codes: Mapping[str, str], before: Mapping[str, str] | None = None) -> Grade:
        """The grade of the solution with other code in some answer cells."""
        return self.grade(self.fill(codes, before))

    def grade_cells(self, *sources: str) -> Grade:
        """The grade of a notebook that holds these code cells and nothing else."""
        cells = [build_cell(source) for source in sources]
        return self.grade(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}).encode())

    @staticmethod
    def scores(grade: Grade) -> dict[str, float]:
        """Points by exercise."""
        return {exercise.id: exercise.score for exercise in grade.exercises}

    @staticmethod
    def status(grade: Grade, exercise: str) -> str:
        """How an exercise ended."""
        return next(each.status.value for each in grade.exercises if each.id == exercise)

    @staticmethod
    def lost(grade: Grade) -> dict[str, Mark]:
        """The marks that are not full, by the test's name."""
        return {mark.name: mark for each in grade.exercises for mark in each.tests if mark.score < mark.max_score}

    def assert_only(self, grade: Grade, exercise: str) -> None:
        """No exercise but this one lost a point."""
        others = {name: score for name, score in self.scores(grade).items() if name != exercise}
        assert others == {name: points for name, points in FULL.items() if name != exercise}, self.lost(grade)

    def assert_full(self, grade: Grade) -> None:
        """No exercise lost a point."""
        assert self.scores(grade) == FULL, (self.lost(grade), grade.notes)


def build_cell(source: str) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": None}


@pytest.fixture(autouse=True)
def _store_apart(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Commands keep results in a place of each test's own, and never in this checkout."""
    monkeypatch.setenv("AUTOGRADER_STORE", str(tmp_path_factory.mktemp("store") / "grades.sqlite"))


@pytest.fixture(scope="session")
def course() -> Course:
    return load_course(ROOT)


@pytest.fixture(scope="session")
def bench(course: Course) -> Iterator[Workbench]:
    """A workbench under the course's own limits."""
    with Grader(course, ASSIGNMENT) as grader:
        yield Workbench(grader)


@pytest.fixture(scope="session")
def quick_bench(course: Course) -> Iterator[Workbench]:
    """A workbench under limits that a test can wait for."""
    with open_bench(course, QUICK_LIMITS) as bench:
        yield bench


@contextmanager
def open_bench(course: Course, limits: Mapping[str, float]) -> Iterator[Workbench]:
    """A workbench under limits of its own."""
    assignment = course.assignment(ASSIGNMENT)
    mine = assignment.limits.model_copy(update=limits)
    changed = {**course.assignments, ASSIGNMENT: assignment.model_copy(update={"limits": mine})}
    with Grader(course.model_copy(update={"assignments": changed}), ASSIGNMENT) as grader:
        yield Workbench(grader)
