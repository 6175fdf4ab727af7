"""Runs the mutants of an assignment's solution by the real path and says which of them the hidden tests miss.

A mutant that keeps full marks in its exercise has survived. Either the hidden tests have a hole, or the
change alters no answer; then `solutions/<id>/equivalents.toml` records it, with the reason.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from autograder.course import Course, shape_symbols
from autograder.errors import CourseError
from autograder.grading import Grader
from autograder.marking.session import MarkingSession
from autograder.solution import batch_by_exercise, is_shared_safely
from autograder.validation.equivalents import Equality, load_equivalents, read_solution_cell, run_codes
from autograder.validation.mutation import Mutant, derive_mutants


class Job(msgspec.Struct, frozen=True):
    """One mutant to be judged, by whatever worker."""

    exercise: str
    mutant: Mutant


class Judged(msgspec.Struct, frozen=True):
    """A mutant with the hidden tests of its exercise that it lost."""

    exercise: str
    mutant: Mutant
    lost: tuple[str, ...]


class ExerciseMutants(msgspec.Struct, frozen=True):
    """What became of one exercise's mutants."""

    exercise: str
    count: int
    killed: int
    survivors: tuple[Mutant, ...]
    """Full marks, and not recorded as equivalent."""
    equivalents: tuple[Mutant, ...]
    """Full marks, and recorded."""
    refuted: tuple[Mutant, ...]
    """Recorded, but killed here. Exact comparisons may be killed on one machine and survive on another."""
    unused: tuple[str, ...]
    """Recorded changes that no mutant makes."""

    @property
    def kill_rate(self) -> float:
        """Killed mutants, as a part of all but the recorded survivors; 1 where there is none."""
        counted = self.count - len(self.equivalents)
        return self.killed / counted if counted else 1.0


class MutationReport(msgspec.Struct, frozen=True):
    """All exercises of an assignment, in order."""

    exercises: tuple[ExerciseMutants, ...]

    @property
    def complete(self) -> bool:
        """Whether every mutant is killed or recorded, and every record is of a mutant."""
        return not any(each.survivors or each.unused for each in self.exercises)


def run_mutants(grader: Grader, course: Course, name: str) -> MutationReport:
    """Judge every mutant in this process. `CourseError` when the course files are wrong."""
    batches = batch_by_exercise(list_jobs(course, name, grader.marking))
    return build_report(course, name, [judged for batch in batches for judged in judge_batch(grader, batch)])


def list_jobs(course: Course, name: str, marking: MarkingSession) -> tuple[Job, ...]:
    """The mutants of every exercise's solution cell; the same in every process."""
    try:
        notebook = course.solution_notebook(name).read_bytes()
    except OSError as error:
        raise CourseError(f"{course.solution_notebook(name)}: cannot be read ({error.strerror})") from error
    lesson = marking.input_sets[0].inputs
    kinds = {key: _name_kind(value) for key, value in lesson.items()}
    jobs = []
    for exercise in course.assignment(name).exercises:
        answers = {key: _name_declared_kind(kind) for key, kind in exercise.answers.items()}
        source = read_solution_cell(notebook, exercise.id)
        try:
            mutants = derive_mutants(source, tuple(lesson), {**kinds, **answers})
        except SyntaxError as error:
            where = course.solution_notebook(name)
            raise CourseError(f"{where}: the cell of {exercise.id} is not plain Python: {error.msg}") from error
        jobs += [Job(exercise.id, mutant) for mutant in mutants]
    return tuple(jobs)


def _name_kind(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"array {value.ndim}"
    if isinstance(value, bool):
        return "bool"
    return "whole number" if isinstance(value, int) else type(value).__name__


def _name_declared_kind(kind: str) -> str:
    symbols = shape_symbols(kind)
    return kind if symbols is None else f"array {len(symbols)}"


def judge_batch(grader: Grader, batch: Sequence[Job]) -> tuple[Judged, ...]:
    """Judge one job for each exercise at the cost of one execution."""
    lost = judge_codes(grader, {job.exercise: job.mutant.code for job in batch})
    return tuple(Judged(job.exercise, job.mutant, lost[job.exercise]) for job in batch)


def judge_code(grader: Grader, exercise: str, code: str) -> tuple[str, ...]:
    """The hidden tests of an exercise that a cell with this code loses; none when it keeps full marks."""
    return judge_codes(grader, {exercise: code})[exercise]


def judge_codes(grader: Grader, codes: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """For each exercise with its code the hidden tests that it loses."""
    execution = run_codes(grader, codes)
    if len(codes) > 1 and not is_shared_safely(execution):
        return {exercise: judge_code(grader, exercise, code) for exercise, code in codes.items()}
    failed = [mark for mark in grader.marking.mark(execution) if mark.outcome != "passed"]
    return {exercise: tuple(mark.name for mark in failed if mark.exercise == exercise) for exercise in codes}


def build_report(course: Course, name: str, judged: Iterable[Judged]) -> MutationReport:
    """The report on judged mutants, in whatever order they come."""
    recorded: dict[str, set[str]] = {}
    for entry in load_equivalents(course, name):
        recorded.setdefault(entry.exercise, set()).update(entry.changes)
    by_exercise: dict[str, list[Judged]] = {exercise.id: [] for exercise in course.assignment(name).exercises}
    for each in judged:
        by_exercise[each.exercise].append(each)
    exercises = (_report_exercise(own, each, recorded.get(own, set())) for own, each in by_exercise.items())
    return MutationReport(tuple(exercises))


def _report_exercise(exercise: str, judged: Sequence[Judged], recorded: set[str]) -> ExerciseMutants:
    ordered = sorted(judged, key=lambda each: (each.mutant.line, each.mutant.id))
    survived = [each.mutant for each in ordered if not each.lost]
    killed = [each.mutant for each in ordered if each.lost]
    return ExerciseMutants(
        exercise=exercise,
        count=len(ordered),
        killed=len(killed),
        survivors=tuple(mutant for mutant in survived if mutant.change not in recorded),
        equivalents=tuple(mutant for mutant in survived if mutant.change in recorded),
        refuted=tuple(mutant for mutant in killed if mutant.change in recorded),
        unused=tuple(sorted(recorded - {each.mutant.change for each in ordered})),
    )


def list_equivalents(report: MutationReport) -> tuple[Job, ...]:
    """The survivors that are recorded as equivalent."""
    return tuple(Job(each.exercise, mutant) for each in report.exercises for mutant in each.equivalents)


def find_unequal(equality: Equality, batch: Sequence[Job]) -> tuple[Job, ...]:
    """Those of a batch that do not equal the reference after all. `equality` stands on fresh input sets."""
    equal = equality.compare({job.exercise: job.mutant.code for job in batch})
    return tuple(job for job in batch if not equal[job.exercise])
