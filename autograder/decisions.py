"""What a person decides about exercises: which points are possible, and a CSV of them -> decisions. Pure."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Literal

import msgspec

from autograder.course import Assignment
from autograder.errors import UsageError, suggest_near
from autograder.records import Decision, Grade
from autograder.roster import Roster
from autograder.sheets import Row, parse_sheet

Kind = Literal["override", "written"]
Maxima = Mapping[str, float]
"""By exercise: the points that its hidden tests can give together."""

_COLUMNS = {
    "student": ("id", "student id", "name"),
    "exercise": (),
    "points": ("score", "mark"),
    "why": ("reason", "comment"),
    "kind": (),
}
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?", re.ASCII)
_WITHDRAW = "withdraw"
_MAX_SUGGESTIONS = 20


class Marked(msgspec.Struct, frozen=True):
    """What a CSV holds: decisions, and how many lines have no points yet."""

    decisions: tuple[Decision, ...]
    blank: int


def find_maxima(grades: Iterable[Grade]) -> dict[str, float]:
    """What the hidden tests of each exercise are worth, by the first submission that was graded; empty without one."""
    graded = next((grade for grade in grades if grade.status == "graded"), None)
    return {exercise.id: exercise.max_score - exercise.pending for exercise in graded.exercises} if graded else {}


def find_limit(assignment: Assignment, exercise: str, kind: Kind, maxima: Maxima) -> float:
    """The most points that a decision of this kind can give. `UsageError` when it can give none at all."""
    known = {each.id: each for each in assignment.exercises}
    if exercise not in known:
        raise UsageError(
            f"there is no exercise {exercise}{suggest_near(exercise, known)}; it is one of {', '.join(known)}"
        )
    if kind == "written":
        if not known[exercise].written_points:
            raise UsageError(f"{exercise} has no written part; to replace its points, make it an override")
        return known[exercise].written_points
    if exercise not in maxima:
        raise UsageError(
            f"it is not known yet what the hidden tests of {exercise} are worth; grade at least one submission first"
        )
    return maxima[exercise]


def check_decision(decision: Decision, assignment: Assignment, maxima: Maxima) -> None:
    """`UsageError` when there is no such exercise, the points are not possible, or an override has no reason."""
    limit = find_limit(assignment, decision.exercise, decision.kind, maxima)
    # Written so that NaN is refused too.
    if decision.points is not None and not 0 <= decision.points <= limit:
        what = "the written part" if decision.kind == "written" else "the autograded part"
        raise UsageError(
            f"{decision.points:g} points for {decision.exercise}: {what} can have 0 to {limit:g}"
            + ("; to replace the autograded points, make it an override" if decision.kind == "written" else "")
        )
    if decision.kind == "override" and not decision.why.strip():
        raise UsageError(f"the override of {decision.exercise} has no reason; say why")


class Desk(msgspec.Struct, frozen=True):
    """Who decides, about what, and what is known of it.

    students: those that have submissions; a roster's are known besides, also by name.
    """

    assignment_id: str
    assignment: Assignment
    students: Collection[str]
    maxima: Maxima
    who: str
    when: datetime
    roster: Roster | None = None


def build_decision(student: str, exercise: str, points: str, kind: Kind, why: str, desk: Desk) -> Decision:
    """One decision from the words of a command line. `UsageError` says which of them is wrong."""
    found = _build_finder(desk.students, desk.roster)(student)
    decision = Decision(desk.assignment_id, found, exercise, kind, _read_points(points), desk.who, why, desk.when)
    check_decision(decision, desk.assignment, desk.maxima)
    return decision


def parse_decisions(data: bytes, name: str, desk: Desk) -> Marked:
    """Read a CSV with the columns student, exercise, points, why and, where one likes, kind.

    name: the file, for errors. Without a kind, points are for the written part where the exercise has one, else they
    override. `withdraw` in place of points takes an earlier decision back; a line without points is not yet marked and
    is counted only. `UsageError` lists every line that is wrong, and then nothing counts.
    """
    sheet = parse_sheet(data, _COLUMNS, ["student", "exercise", "points"])
    problems = list(sheet.problems)
    decisions: list[Decision] = []
    seen: dict[tuple[str, str, str], int] = {}
    blank = 0
    find_student = _build_finder(desk.students, desk.roster)
    for row in sheet.rows if {"student", "exercise", "points"} <= set(sheet.columns) else ():
        if not row.fields["points"]:
            blank += 1
            continue
        try:
            kind = _read_kind(row, desk.assignment)
            student, points = find_student(row.fields["student"]), _read_points(row.fields["points"])
            exercise, why = row.fields["exercise"], row.fields.get("why", "")
            decision = Decision(desk.assignment_id, student, exercise, kind, points, desk.who, why, desk.when)
            check_decision(decision, desk.assignment, desk.maxima)
        except UsageError as error:
            problems.append(f"line {row.line}: {error}")
            continue
        first = seen.setdefault((student, exercise, kind), row.line)
        if first != row.line:
            problems.append(f"line {row.line}: line {first} decides the same ({student}, {exercise}, {kind})")
        decisions.append(decision)
    if problems:
        listed = "\n".join(f"{name}: {problem}" for problem in problems)
        raise UsageError(f"{listed}\nnothing of {name} was applied; correct these lines and give it again")
    return Marked(tuple(decisions), blank)


def _build_finder(students: Collection[str], roster: Roster | None) -> Callable[[str], str]:
    known = dict.fromkeys(students)
    # Looking for near names takes long among many; a file with more such lines has another fault.
    suggested = 0

    def find_student(text: str) -> str:
        nonlocal suggested
        if text in known or (roster is not None and roster.find(text) is not None):
            return text
        if not text:
            raise UsageError("the student is missing")
        if roster is not None:
            match = roster.match(text)
            if len(match.students) == 1:
                return match.students[0].id
            if match.students or match.fitting:
                raise UsageError(match.reason or f"{text} is several students; give each a line")
        suggested += 1
        near = suggest_near(text, known) if suggested <= _MAX_SUGGESTIONS else ""
        where = "is not in the roster and has no submission" if roster is not None else "has no submission"
        raise UsageError(f"{text} {where}{near}")

    return find_student


def _read_kind(row: Row, assignment: Assignment) -> Kind:
    kind = row.fields.get("kind", "").lower()
    if kind == "override":
        return "override"
    if kind == "written":
        return "written"
    if kind:
        raise UsageError(f"the kind {kind} is not known{suggest_near(kind, ['override', 'written'])}")
    written = {exercise.id for exercise in assignment.exercises if exercise.written_points}
    known = {exercise.id for exercise in assignment.exercises}
    return "override" if row.fields["exercise"] in known - written else "written"


def _read_points(text: str) -> float | None:
    if text.lower() == _WITHDRAW:
        return None
    if not _NUMBER.fullmatch(text):
        raise UsageError(
            f"the points {text} are no number from 0 on; write {_WITHDRAW} to take an earlier decision back"
        )
    return float(text.replace(",", "."))
