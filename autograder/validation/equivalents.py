"""Mutants that are no mistakes: their records, and the proof that they answer as the reference does.

`solutions/<id>/equivalents.toml` holds the records. Each recorded mutant must equal the reference on fresh
input sets, which no submission is marked on.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from autograder.course import Course
from autograder.errors import CourseError
from autograder.grading import Grader
from autograder.marking.answers import Answers, CheckFailed
from autograder.marking.cases import build_cases
from autograder.marking.compare import is_close
from autograder.records import Ending, Execution, Value
from autograder.solution import execute_codes

FRESH_SEEDS = tuple(range(900_001, 900_051))

DRAWN_TOLERANCE = 0.15
"""How far drawn answers may be from the solution's, pooled over fresh input sets, in parts of their size."""

_Values = list[dict[str, Value]]
"""The answers of one exercise, input set by input set."""


class Equivalent(BaseModel):
    """Why some mutants of one exercise are no mistakes. `changes` are `Mutant.change` texts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    exercise: str
    reason: str
    changes: tuple[str, ...]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    equivalent: tuple[Equivalent, ...] = ()


def load_equivalents(course: Course, name: str) -> tuple[Equivalent, ...]:
    """The recorded equivalents of an assignment; none without a file. `CourseError` names file and entry."""
    file = course.solution_notebook(name).parent / "equivalents.toml"
    if not file.is_file():
        return ()
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CourseError(f"{file}: is not valid TOML: {error}") from error
    try:
        entries = _File.model_validate(data).equivalent
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        raise CourseError(f"{file}: {_name_place(data, problem['loc'])}: {problem['msg'].lower()}") from error
    _check_entries(file, entries, {exercise.id for exercise in course.assignment(name).exercises})
    return entries


def _name_place(data: Mapping[str, Any], place: tuple[int | str, ...]) -> str:
    """The entry and the key of a validation error."""
    if len(place) < 2 or not isinstance(place[1], int):
        return f"key {place[0]}"
    entry = data["equivalent"][place[1]]
    name = entry.get("id", place[1]) if isinstance(entry, dict) else place[1]
    key = ".".join(str(part) for part in place[2:])
    return f"entry {name}, key {key}" if key else f"entry {name}"


def _check_entries(file: Path, entries: Sequence[Equivalent], exercises: set[str]) -> None:
    ids: set[str] = set()
    changes: set[tuple[str, str]] = set()
    for each in entries:
        if each.exercise not in exercises:
            raise CourseError(f"{file}: entry {each.id}: there is no exercise {each.exercise}")
        if each.id in ids:
            raise CourseError(f"{file}: entry {each.id} stands there twice")
        ids.add(each.id)
        for change in each.changes:
            if (each.exercise, change) in changes:
                raise CourseError(f"{file}: entry {each.id}: the change {change!r} stands there twice")
            changes.add((each.exercise, change))


def run_codes(grader: Grader, codes: Mapping[str, str]) -> Execution:
    """Run the solution with other code in some exercises, on a grader's input sets."""
    return execute_codes(grader.course, grader.name, grader.sandbox, grader.marking.input_sets, codes)[1]


def read_solution_cell(notebook: bytes, exercise: str) -> str:
    """The source of the cell that answers an exercise, found by its nbgrader `grade_id`."""
    for cell in json.loads(notebook)["cells"]:
        if cell.get("metadata", {}).get("nbgrader", {}).get("grade_id") == exercise:
            return "".join(cell["source"])
    raise CourseError(f"the solution notebook has no cell with the grade_id {exercise}")


def build_fresh_grader(course: Course, name: str, seeds: Sequence[int] = FRESH_SEEDS) -> Grader:
    """A grader of the same assignment on other input sets; a context manager."""
    assignment = course.assignment(name).model_copy(update={"seeds": tuple(seeds)})
    return Grader(course.model_copy(update={"assignments": {**course.assignments, name: assignment}}), name)


def equals_reference(course: Course, name: str, exercise: str, code: str, seeds: Sequence[int] = FRESH_SEEDS) -> bool:
    """Whether an exercise's cell with this code answers as the reference does, on each of these input sets."""
    with build_fresh_grader(course, name, seeds) as grader:
        return Equality(grader).compare({exercise: code})[exercise]


class Equality:
    """Compares code with the reference on every input set of a grader.

    Equal code ends without an error and keeps full marks. Beyond that an answer must be the reference's
    itself, within the tolerance of marking: what merely follows from a student's own earlier step is not
    equal. Where the solution's own answer differs from the reference's, it was drawn at random and no single
    number is right. Full marks then say that the answers fit each other; besides, they must be distributed as
    the solution's: over all input sets together each has the same mean and root mean square, and any two
    of one shape have the same correlation. So the proof does not rest on the hidden tests alone.
    """

    def __init__(self, grader: Grader) -> None:
        self._grader = grader
        notebook = grader.course.solution_notebook(grader.name).read_bytes()
        exercises = [exercise.id for exercise in grader.assignment.exercises]
        codes = {exercise: read_solution_cell(notebook, exercise) for exercise in exercises}
        execution = run_codes(grader, codes)
        self._solution = {exercise: self._read(exercise, execution) for exercise in exercises}

    def compare(self, codes: Mapping[str, str]) -> dict[str, bool]:
        """Whether each exercise's code equals the reference; one code for each exercise at a time."""
        execution = run_codes(self._grader, codes)
        if any(run.ending is not Ending.OK for one_pass in execution.passes for run in one_pass.runs):
            # Which of them failed shows when each runs alone.
            return {each: len(codes) > 1 and self.compare({each: codes[each]})[each] for each in codes}
        lost = {mark.exercise for mark in self._grader.marking.mark(execution) if mark.outcome != "passed"}
        return {each: each not in lost and self._is_equal(each, execution) for each in codes}

    def _is_equal(self, exercise: str, execution: Execution) -> bool:
        mine, solution = self._read(exercise, execution), self._solution[exercise]
        expected = [each.expected for each in self._grader.marking.input_sets]
        drawn = []
        for name in mine[0]:
            if not all(_is_same(theirs[name], right[name]) for theirs, right in zip(solution, expected, strict=True)):
                drawn.append(name)
            elif not all(_is_same(own[name], right[name]) for own, right in zip(mine, expected, strict=True)):
                return False
        return _are_drawn_alike(_pool(mine, drawn), _pool(solution, drawn))

    def _read(self, exercise: str, execution: Execution) -> _Values:
        """An exercise's answers as hidden tests see them; None for one that is missing or of a wrong kind."""
        grader = self._grader
        names = next(tuple(each.answers) for each in grader.assignment.exercises if each.id == exercise)
        cases = build_cases(grader.course, grader.name, grader.marking.input_sets, execution)
        return [{name: _read_answer(case.answers, name) for name in names} for case in cases]


def _read_answer(answers: Answers, name: str) -> Value:
    try:
        return getattr(answers, name)  # type: ignore[no-any-return]  # read by name, so mypy sees no kind
    except CheckFailed:
        return None


def _is_same(value: Value, expected: Value) -> bool:
    if isinstance(value, np.ndarray) and isinstance(expected, np.ndarray):
        return is_close(value, expected.astype(np.float64))
    return not isinstance(value, np.ndarray) and not isinstance(expected, np.ndarray) and bool(value == expected)


def _pool(values: _Values, names: Sequence[str]) -> dict[str, np.ndarray]:
    """All entries of each answer over all input sets, in one row."""
    return {name: np.concatenate([np.ravel(np.asarray(each[name], np.float64)) for each in values]) for name in names}


def _are_drawn_alike(mine: Mapping[str, np.ndarray], solution: Mapping[str, np.ndarray]) -> bool:
    for name, right in solution.items():
        left = mine[name]
        size = _measure(right)
        # Written so that NaN is never alike.
        if not max(abs(_measure(left) - size), abs(left.mean() - right.mean())) <= DRAWN_TOLERANCE * size:
            return False
    pairs = [(a, b) for a in solution for b in solution if a < b and solution[a].shape == solution[b].shape]
    return all(abs(_correlate(mine, *pair) - _correlate(solution, *pair)) <= DRAWN_TOLERANCE for pair in pairs)


def _measure(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def _correlate(pools: Mapping[str, np.ndarray], first: str, second: str) -> float:
    return float(np.corrcoef(pools[first], pools[second])[0, 1])
