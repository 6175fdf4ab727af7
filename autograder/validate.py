"""Proves that an assignment marks as it must: reference and solution in full, the stub with nothing."""

from collections.abc import Iterator

import msgspec

from autograder.course import Course
from autograder.errors import NotebookError
from autograder.grading import Grader
from autograder.intake.layouts import Source, read_submission
from autograder.marking.session import MarkingSession
from autograder.records import Execution, Grade, Mark, Pass


class Finding(msgspec.Struct, frozen=True):
    """One thing that was proved, or what is wrong with it."""

    subject: str
    ok: bool
    text: str


def validate_assignment(course: Course, name: str) -> Iterator[Finding]:
    """Try what must hold of an assignment, by the real path. `CourseError` when it cannot be tried."""
    with Grader(course, name) as grader:
        full = sum(test.points for test in grader.marking.tests)
        yield _validate_reference(grader.marking, full)
        solution = course.solution_notebook(name)
        grade = _grade(grader, Source("solution", solution, str(solution)))
        yield _judge("solution notebook", grade, full)
        stub = course.released_notebook(name)
        yield _judge("student notebook", _grade(grader, Source("stub", stub, str(stub))), 0.0)


def _validate_reference(marking: MarkingSession, full: float) -> Finding:
    passes = tuple(Pass(each.seed, (), dict(each.expected)) for each in marking.input_sets)
    marks = marking.mark(Execution(passes))
    seeds = ", ".join(str(each.seed) for each in marking.input_sets)
    score = sum(mark.score for mark in marks)
    text = f"{score:g} of {full:g} points on the seeds {seeds}{_list_lost(marks)}"
    return Finding("reference", score == full, text)


def _grade(grader: Grader, source: Source) -> Grade:
    try:
        return grader.grade_submission(read_submission(source))
    except NotebookError as error:
        return Grade(source.student, source.shown, "", "ungraded", reason=str(error))


def _judge(subject: str, grade: Grade, wanted: float) -> Finding:
    if grade.status != "graded":
        return Finding(subject, False, f"ungraded: {grade.reason}")
    marks = [mark for exercise in grade.exercises for mark in exercise.tests]
    text = f"{grade.score:g} points, {wanted:g} expected, {grade.pending:g} pending"
    return Finding(subject, grade.score == wanted, text + (_list_lost(marks) if wanted else ""))


def _list_lost(marks: "list[Mark] | tuple[Mark, ...]") -> str:
    lost = [f"\n    {mark.name}: {mark.message} {mark.detail}" for mark in marks if mark.outcome != "passed"]
    return "".join(lost)
