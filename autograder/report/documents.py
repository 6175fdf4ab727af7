"""A graded batch as a JSON document or as CSV. Pure."""

import csv
import io
from collections import Counter
from collections.abc import Sequence

import msgspec

from autograder.course import Assignment
from autograder.records import Grade, Mark, Skipped

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def build_document(course_id: str, assignment: str, grades: Sequence[Grade], skipped: Sequence[Skipped]) -> bytes:
    """The complete JSON document of a batch, indented, ending with a newline."""
    document = {
        "course": course_id,
        "assignment": assignment,
        "results": [_build_result(grade) for grade in grades],
        "skipped": [{"path": each.path, "reason": each.reason} for each in skipped],
        "explanations": [
            {"exercise": exercise, "kind": kind, "students": count}
            for (exercise, kind), count in count_explanations(grades)
        ],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def count_explanations(grades: Sequence[Grade]) -> list[tuple[tuple[str, str], int]]:
    """How many students lost a mark for each reason, by exercise and kind, the most frequent first.

    A reason counts once for a student and exercise. `mistake:<id>` is an entry of the catalogue.
    """
    counted = Counter(
        (exercise.id, kind)
        for grade in grades
        for exercise in grade.exercises
        for kind in sorted({mark.explanations[0] for mark in exercise.tests if mark.explanations})
    )
    return counted.most_common()


def _build_result(grade: Grade) -> dict[str, object]:
    return {
        "student": grade.student,
        "path": grade.path,
        "sha256": grade.sha256,
        "status": grade.status,
        "reason": grade.reason,
        "notes": grade.notes,
        "score": grade.score,
        "max_score": grade.max_score,
        "pending": grade.pending,
        "exercises": [
            {
                "id": exercise.id,
                "status": exercise.status,
                "score": exercise.score,
                "max_score": exercise.max_score,
                "pending": exercise.pending,
                "tests": [_build_test(mark) for mark in exercise.tests],
            }
            for exercise in grade.exercises
        ],
    }


def _build_test(mark: Mark) -> dict[str, object]:
    return {
        "name": mark.name,
        "score": mark.score,
        "max_score": mark.max_score,
        "outcome": mark.outcome,
        "message": mark.message,
        "hint": mark.hint,
        "explanations": mark.explanations,
        "detail": mark.detail,
    }


def build_csv(assignment: Assignment, grades: Sequence[Grade]) -> str:
    """One row a submission: student, status, each exercise, score, max_score, pending, reason, path.

    A field that a spreadsheet would take for a formula gets an apostrophe before it.
    """
    ids = [exercise.id for exercise in assignment.exercises]
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\r\n")
    writer.writerow(["student", "status", *ids, "score", "max_score", "pending", "reason", "path"])
    for grade in grades:
        scores = {exercise.id: exercise.score for exercise in grade.exercises}
        row = [grade.student, grade.status, *(scores.get(name) for name in ids)]
        row += [grade.score, grade.max_score, grade.pending, grade.reason, grade.path]
        writer.writerow([_defuse(field) for field in row])
    return table.getvalue()


def _defuse(field: object) -> object:
    if field is None:
        return ""
    if isinstance(field, float):
        return f"{field:g}"
    text = str(field)
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
