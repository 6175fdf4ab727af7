"""A whole class: what is stored, what has to be done, and who got what."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from autograder.batch import run_all
from autograder.course import Course
from autograder.errors import NotebookError
from autograder.grading import Grader
from autograder.intake.layouts import Source, find_submissions, read_submission
from autograder.records import Grade

_LOST = "the grader's own process ended twice while it worked on this file; please report it"


def grade(course: Course, assignment: str, paths: Sequence[str | Path], jobs: int = 0) -> list[Grade]:
    """Grade notebooks, folders and downloads, and store nothing; results in the order in which they were found."""
    sources, _ = find_submissions([Path(path) for path in paths], assignment)
    order = {(source.student, source.shown): number for number, source in enumerate(sources)}
    return sorted(grade_all(course, assignment, sources, jobs), key=lambda each: order[each.student, each.path])


def grade_all(course: Course, assignment: str, sources: Sequence[Source], jobs: int) -> Iterator[Grade]:
    """Grade every source once, in whatever order they end, and store nothing."""
    for source, result in run_all(course, assignment, _grade_source, sources, jobs):
        yield add_notes(result or Grade(source.student, source.shown, "", "ungraded", reason=_LOST), source.notes)


def _grade_source(grader: Grader, source: Source) -> Grade:
    try:
        return grader.grade_submission(read_submission(source))
    except NotebookError as error:
        return Grade(source.student, source.shown, "", "ungraded", reason=str(error))


def add_notes(grade: Grade, notes: Sequence[str]) -> Grade:
    """A grade with what intake noted about its file, said first."""
    return msgspec.structs.replace(grade, notes=(*notes, *grade.notes)) if notes else grade
