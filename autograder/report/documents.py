"""A graded batch as a JSON document or as CSV; written result by result, however large the class is."""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import BinaryIO, TextIO

import msgspec

from autograder.course import Assignment
from autograder.intake.files import make_showable
from autograder.records import ExerciseGrade, FinalExercise, FinalGrade, Grade, LateLine, Mark, Skipped

# At the start of a cell, also where a semicolon begins one, as it does in some countries, behind quotes too; wide signs
# count as well.
_FORMULA = re.compile("(^|;)(?=['\"\\s]*[=+\\-@\uff1d\uff0b\uff0d\uff20])")
# What steers a terminal, turns the reading direction or hides; msgspec escapes only what JSON itself forbids.
_STEERING = re.compile("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")


Result = tuple[Grade, FinalGrade]
"""A grade as the hidden tests gave it, and what counts."""


def write_document(
    file: BinaryIO, course_id: str, assignment: str, results: Iterable[Result], skipped: Sequence[Skipped]
) -> None:
    """Write the complete JSON document of a batch, ending with a newline. Results are taken one at a time."""
    reasons = Reasons()
    file.write(b'{\n "course": ' + msgspec.json.encode(course_id))
    file.write(b',\n "assignment": ' + msgspec.json.encode(assignment) + b',\n "results": [')
    comma = b"\n"
    for grade, final in results:
        reasons.add(grade)
        file.write(comma + encode_json(_build_result(grade, final)))
        comma = b",\n"
    rest = {
        "skipped": [{"path": each.path, "reason": each.reason} for each in skipped],
        "explanations": [
            {"exercise": exercise, "kind": kind, "students": count} for (exercise, kind), count in reasons.list_most()
        ],
    }
    file.write(b"\n ],\n" + encode_json(rest).removeprefix(b"{\n") + b"\n")


def encode_json(value: object) -> bytes:
    """Indented JSON, without a newline at its end, in which nothing steers whoever looks at it."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=1).decode()
    return _STEERING.sub(lambda match: json.dumps(match[0])[1:-1], text).encode()


class Reasons:
    """How many students lost a mark for each reason, by exercise and kind.

    A reason counts once for a student and exercise. `mistake:<id>` is an entry of the catalogue.
    """

    def __init__(self) -> None:
        self._counted: Counter[tuple[str, str]] = Counter()

    def add(self, grade: Grade) -> None:
        """Count one student's."""
        self._counted.update(
            (exercise.id, kind)
            for exercise in grade.exercises
            for kind in sorted({mark.explanations[0] for mark in exercise.tests if mark.explanations})
        )

    def list_most(self) -> list[tuple[tuple[str, str], int]]:
        """The most frequent first; equally frequent ones by name, since a batch comes in any order."""
        return sorted(self._counted.items(), key=lambda each: (-each[1], each[0]))


def _build_result(grade: Grade, final: FinalGrade) -> dict[str, object]:
    parts = {exercise.id: exercise for exercise in grade.exercises}
    return {
        "student": grade.student,
        "path": grade.path,
        "sha256": grade.sha256,
        "status": final.status,
        "reason": final.reason,
        "notes": (*grade.notes, *final.notes),
        "score": final.total,
        "max_score": final.max_score if final.status == "graded" else None,
        "pending": final.pending,
        "late": _build_late(final.late),
        "exercises": [
            _build_exercise(exercise, parts.get(exercise.id))
            for exercise in final.exercises
            if final.status == "graded"
        ],
    }


def _build_exercise(final: FinalExercise, automatic: ExerciseGrade | None) -> dict[str, object]:
    return {
        "id": final.id,
        "status": automatic.status if automatic else "error",
        "score": final.points,
        "max_score": final.max_score,
        "pending": final.pending,
        "automatic": final.automatic,
        "override": final.override,
        "written": final.written,
        "tests": [_build_test(mark) for mark in automatic.tests] if automatic else [],
    }


def _build_late(late: LateLine | None) -> dict[str, object] | None:
    """What lateness took; None where nothing is known of a deadline or nothing is to be said."""
    if late is None or not (late.days or late.taken):
        return None
    return {
        "deadline": late.deadline,
        "received": late.received,
        "days": late.days,
        "percent": late.percent,
        "taken": late.taken,
        "extended": late.extended,
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


def write_csv(file: TextIO, assignment: Assignment, results: Iterable[Result]) -> None:
    """One row a submission: student, status, each exercise, score, max_score, pending, late, reason, path.

    `late` are the points taken off; the score is what is left. A field that a spreadsheet would take for a formula
    gets an apostrophe before it, and line breaks become spaces.
    """
    ids = [exercise.id for exercise in assignment.exercises]
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(["student", "status", *ids, "score", "max_score", "pending", "late", "reason", "path"])
    for grade, final in results:
        graded = final.status == "graded"
        points = {exercise.id: exercise.points for exercise in final.exercises if graded}
        taken = final.late.taken if final.late and final.late.taken else None
        row = [grade.student, final.status, *(points.get(name) for name in ids), final.total]
        row += [final.max_score if graded else None, final.pending, taken, final.reason, grade.path]
        writer.writerow([_defuse(field) for field in row])


def _defuse(field: object) -> object:
    if field is None:
        return ""
    if isinstance(field, float):
        return f"{field:g}"
    return _FORMULA.sub(r"\1'", make_showable(" ".join(str(field).splitlines())))
