"""Runs the mutants of an assignment's solution by the real path and says which of them the hidden tests miss.

A mutant that keeps full marks in its exercise has survived. Either the hidden tests have a hole, or the
change alters no answer; then `solutions/<id>/equivalents.toml` records it, with the reason.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from autograder.catalogue import fill_notebook
from autograder.course import Course, shape_symbols
from autograder.errors import CourseError
from autograder.grading import Grader
from autograder.intake.notebook import parse_program
from autograder.marking.answers import CheckFailed
from autograder.marking.compare import is_close
from autograder.marking.session import MarkingSession, build_cases
from autograder.mutation import Mutant, derive_mutants
from autograder.records import Ending, Execution, Program, Value
from autograder.sandbox.watch import build_budget

FRESH_SEEDS = tuple(range(900_001, 900_051))
"""Input sets that no assignment marks with; an equivalent must equal the reference on each of them."""

DRAWN_TOLERANCE = 0.15
"""How far drawn answers may be from the solution's, pooled over fresh input sets, in parts of their size."""


class Equivalent(BaseModel):
    """Why some mutants of one exercise are no mistakes. `changes` are `Mutant.change` texts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    exercise: str
    reason: str
    changes: tuple[str, ...]


class _Equivalents(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    equivalent: tuple[Equivalent, ...] = ()


class Job(msgspec.Struct, frozen=True):
    """One mutant to be judged, by whatever worker."""

    exercise: str
    mutant: Mutant


class ExerciseMutants(msgspec.Struct, frozen=True):
    """What became of one exercise's mutants."""

    exercise: str
    count: int
    killed: int
    survivors: tuple[Mutant, ...]
    """Full marks, and not recorded as equivalent."""
    equivalents: tuple[Mutant, ...]
    """Full marks, and recorded."""
    unused: tuple[str, ...]
    """Recorded changes that no longer survive, or that no mutant makes."""

    @property
    def kill_rate(self) -> float:
        """Killed mutants, as a part of those that are not recorded as equivalent; 1 where there is none."""
        counted = self.count - len(self.equivalents)
        return self.killed / counted if counted else 1.0


class MutationReport(msgspec.Struct, frozen=True):
    """All exercises of an assignment, in order."""

    exercises: tuple[ExerciseMutants, ...]

    @property
    def complete(self) -> bool:
        """Whether every mutant is killed or recorded, and no record is out of date."""
        return not any(each.survivors or each.unused for each in self.exercises)


def run_mutants(grader: Grader, course: Course, name: str) -> MutationReport:
    """Judge every mutant in this process. `CourseError` when the course files are wrong."""
    jobs = list_jobs(course, name, grader.marking)
    lost = [judge_code(grader, job.exercise, job.mutant.code) for job in jobs]
    return build_report(course, name, jobs, lost)


def list_jobs(course: Course, name: str, marking: MarkingSession) -> tuple[Job, ...]:
    """The mutants of every exercise's solution cell; the same in every process."""
    notebook = course.solution_notebook(name).read_bytes()
    lesson = marking.input_sets[0].inputs
    kinds = {key: _name_kind(value) for key, value in lesson.items()}
    jobs = []
    for exercise in course.assignment(name).exercises:
        answers = {key: "array" if shape_symbols(kind) else kind for key, kind in exercise.answers.items()}
        source = read_solution_cell(notebook, exercise.id)
        for mutant in derive_mutants(source, tuple(lesson), {**kinds, **answers}):
            jobs.append(Job(exercise.id, mutant))
    return tuple(jobs)


def _name_kind(value: object) -> str:
    if isinstance(value, np.ndarray):
        return "array"
    if isinstance(value, bool):
        return "bool"
    return "whole number" if isinstance(value, int) else type(value).__name__


def read_solution_cell(notebook: bytes, exercise: str) -> str:
    """The source of the cell that answers an exercise, found by its nbgrader `grade_id`."""
    for cell in json.loads(notebook)["cells"]:
        if cell.get("metadata", {}).get("nbgrader", {}).get("grade_id") == exercise:
            return "".join(cell["source"])
    raise CourseError(f"the solution notebook has no cell with the grade_id {exercise}")


def judge_code(grader: Grader, exercise: str, code: str) -> tuple[str, ...]:
    """The hidden tests of an exercise that a cell with this code loses; none when it keeps full marks.

    Only the exercise's own cell runs after the prelude: a mutant is never graded better for running alone.
    """
    execution = _execute(grader, exercise, code)
    marks = grader.marking.mark(execution)
    return tuple(mark.name for mark in marks if mark.exercise == exercise and mark.outcome != "passed")


def _execute(grader: Grader, exercise: str, code: str | None) -> Execution:
    """Run one exercise of the solution notebook, with other code in its cell unless it is None."""
    notebook = grader.course.solution_notebook(grader.name).read_bytes()
    filled = notebook if code is None else fill_notebook(notebook, {exercise: code})
    program = parse_program(filled, grader.assignment)
    inputs = [(each.seed, each.inputs) for each in grader.marking.input_sets]
    budget = build_budget(grader.assignment)
    return grader.sandbox.execute(program, inputs, budget, skip=_find_others(program, exercise), evidence=False)


def _find_others(program: Program, exercise: str) -> set[int]:
    cells = enumerate(program.cells)
    return {at for at, cell in cells if cell.check or (cell.exercises and exercise not in cell.exercises)}


def build_report(course: Course, name: str, jobs: Sequence[Job], lost: Sequence[Sequence[str]]) -> MutationReport:
    """The report on judged mutants: `lost` holds for each job the hidden tests that it lost."""
    recorded = load_equivalents(course, name)
    known = {(each.exercise, change) for each in recorded for change in each.changes}
    reports = []
    for exercise in course.assignment(name).exercises:
        own = [(job.mutant, tests) for job, tests in zip(jobs, lost, strict=True) if job.exercise == exercise.id]
        survived = [mutant for mutant, tests in own if not tests]
        equivalents = tuple(each for each in survived if (exercise.id, each.change) in known)
        used = {each.change for each in equivalents}
        reports.append(
            ExerciseMutants(
                exercise=exercise.id,
                count=len(own),
                killed=len(own) - len(survived),
                survivors=tuple(each for each in survived if each not in equivalents),
                equivalents=equivalents,
                unused=tuple(change for owner, change in sorted(known) if owner == exercise.id and change not in used),
            )
        )
    return MutationReport(tuple(reports))


def load_equivalents(course: Course, name: str) -> tuple[Equivalent, ...]:
    """The recorded equivalents of an assignment; none without a file. `CourseError` names file and entry."""
    file = course.solution_notebook(name).parent / "equivalents.toml"
    if not file.is_file():
        return ()
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
        entries = _Equivalents.model_validate(data).equivalent
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CourseError(f"{file}: is not valid TOML: {error}") from error
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        raise CourseError(f"{file}: {_name_place(data, problem['loc'])}: {problem['msg'].lower()}") from error
    _check_entries(file, entries, {exercise.id for exercise in course.assignment(name).exercises})
    return entries


def _name_place(data: Mapping[str, Any], place: tuple[int | str, ...]) -> str:
    """The entry and the key of a validation error."""
    key = ".".join(str(part) for part in place[2:])
    if len(place) < 2 or not isinstance(place[1], int):
        return f"key {place[0]}"
    entry = data["equivalent"][place[1]]
    name = entry.get("id", place[1]) if isinstance(entry, dict) else place[1]
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


def build_fresh_grader(course: Course, name: str, seeds: Sequence[int] = FRESH_SEEDS) -> Grader:
    """A grader of the same assignment on other input sets; a context manager."""
    assignment = course.assignment(name).model_copy(update={"seeds": tuple(seeds)})
    return Grader(course.model_copy(update={"assignments": {**course.assignments, name: assignment}}), name)


def equals_reference(
    course: Course, name: str, exercise: str, code: str, seeds: Sequence[int] = FRESH_SEEDS
) -> bool:
    """Whether an exercise's cell with this code answers as the reference does, on each of these input sets."""
    with build_fresh_grader(course, name, seeds) as grader:
        return equals_reference_here(grader, exercise, code)


def equals_reference_here(grader: Grader, exercise: str, code: str) -> bool:
    """Whether code answers as the reference does, on every input set of this grader.

    It must end without an error and keep full marks. Beyond that an answer must be the reference's itself,
    within the tolerance of marking: what merely follows from a student's own earlier step is not equal.
    Where the solution's own answer differs from the reference's, it was drawn at random, and no single number
    is right. Such answers must be distributed as the solution's: over all input sets together each has the
    same mean and root mean square, and any two of one shape have the same correlation.
    """
    execution = _execute(grader, exercise, code)
    runs = [run for one_pass in execution.passes for run in one_pass.runs]
    if any(run.ending is not Ending.OK for run in runs):
        return False
    if any(mark.outcome != "passed" for mark in grader.marking.mark(execution) if mark.exercise == exercise):
        return False
    mine, solution = _read_answers(grader, exercise, execution), _read_answers(grader, exercise, _execute(grader, exercise, None))
    expected = [each.expected for each in grader.marking.input_sets]
    drawn = []
    for answer in mine[0]:
        columns = [[values[answer] for values in source] for source in (mine, solution, expected)]
        if all(map(_is_same, columns[1], columns[2])):
            if not all(map(_is_same, columns[0], columns[2])):
                return False
        else:
            drawn.append(answer)
    return _are_drawn_alike(mine, solution, drawn)


def _read_answers(grader: Grader, exercise: str, execution: Execution) -> list[dict[str, Value]]:
    """An exercise's answers as hidden tests see them, input set by input set."""
    names = next(tuple(each.answers) for each in grader.assignment.exercises if each.id == exercise)
    cases = build_cases(grader.course, grader.name, grader.marking.input_sets, execution)
    try:
        return [{name: getattr(case.answers, name) for name in names} for case in cases]
    except CheckFailed:
        return [dict.fromkeys(names) for _ in cases]


def _is_same(value: Value, expected: Value) -> bool:
    if isinstance(value, np.ndarray) and isinstance(expected, np.ndarray):
        return is_close(value, expected.astype(np.float64))
    return not isinstance(value, np.ndarray) and not isinstance(expected, np.ndarray) and bool(value == expected)


def _are_drawn_alike(
    mine: Sequence[Mapping[str, Value]], solution: Sequence[Mapping[str, Value]], names: Sequence[str]
) -> bool:
    pools: list[dict[str, np.ndarray]] = []
    for source in (mine, solution):
        arrays = {name: [values[name] for values in source] for name in names}
        if not all(isinstance(value, np.ndarray) for values in arrays.values() for value in values):
            return False
        pools.append({name: np.concatenate([np.ravel(np.asarray(each)) for each in arrays[name]]) for name in names})
    left, right = pools
    for name in names:
        size = np.sqrt(np.mean(np.square(right[name])))
        gaps = (
            np.sqrt(np.mean(np.square(left[name]))) - size,
            np.mean(left[name]) - np.mean(right[name]),
        )
        if not np.abs(gaps).max() <= DRAWN_TOLERANCE * size:
            return False
    pairs = [(a, b) for a in names for b in names if a < b and right[a].shape == right[b].shape]
    return all(
        abs(np.corrcoef(left[a], left[b])[0, 1] - np.corrcoef(right[a], right[b])[0, 1]) <= DRAWN_TOLERANCE
        for a, b in pairs
    )
