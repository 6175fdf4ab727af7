"""Grade, a person's decisions and the late policy -> the grade that counts. Pure; nothing of it is ever stored."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta, tzinfo

import msgspec

from autograder.clock import count_days_late
from autograder.course import Assignment, Exercise, Late
from autograder.decisions import Kind, Maxima
from autograder.records import Decision, ExerciseGrade, FinalExercise, FinalGrade, Grade, LateLine

Chosen = Mapping[tuple[str, Kind], Decision]
"""By exercise and kind: the decision that counts."""

_MINUTE = "%Y-%m-%d %H:%M"


class Reception(msgspec.Struct, frozen=True):
    """When a submission came, and the student's own deadline."""

    received: datetime | None = None
    late: bool | None = None
    """What the LMS says of it."""
    extended: datetime | None = None
    """The student's own deadline (`Student.deadlines`)."""


def choose_decisions(
    decisions: Iterable[Decision], assignment: str, student: str, sharers: Collection[str] = ()
) -> Chosen:
    """The decisions that count for a student: of each exercise and kind the last one, unless it withdraws.

    decisions: in the order in which they were made. sharers: the others for whom the same submission counts. Points for
    a written part are for the text, and so count for all of them where a student has none of his or her own; an
    override may have a personal reason, and counts for nobody else.
    """
    last: dict[tuple[str, str, Kind], Decision] = {}
    for decision in decisions:
        if decision.assignment == assignment:
            # Taken out first, so that the order becomes that of the last decisions.
            last.pop((decision.student, decision.exercise, decision.kind), None)
            if decision.points is not None:
                last[decision.student, decision.exercise, decision.kind] = decision
    chosen: dict[tuple[str, Kind], Decision] = {}
    for decision in last.values():
        if decision.student in sharers and decision.kind == "written":
            chosen[decision.exercise, decision.kind] = decision
    for decision in last.values():
        if decision.student == student:
            chosen[decision.exercise, decision.kind] = decision
    return chosen


def compute_final(
    grade: Grade,
    assignment: Assignment,
    chosen: Chosen,
    reception: Reception,
    *,
    zone: tzinfo | None,
    maxima: Maxima | None = None,
) -> FinalGrade:
    """Put together what counts for one student.

    zone: where days begin (`Course.zone`). maxima: needed for a submission that could not be graded, since only a
    graded one says what the hidden tests are worth.
    """
    notes: list[str] = []
    graded = {exercise.id: exercise for exercise in grade.exercises} if grade.status == "graded" else {}
    exercises = tuple(_settle(each, graded.get(each.id), chosen, maxima or {}, notes) for each in assignment.exercises)
    known = {exercise.id for exercise in assignment.exercises}
    notes += [
        f"A decision about {name} counts no more: there is no such exercise." for name, _ in chosen if name not in known
    ]
    points = _add(exercise.points for exercise in exercises)
    max_score = _add(exercise.max_score for exercise in exercises)
    automatic = _add(exercise.automatic for exercise in exercises)
    if points is None and any(exercise.override is not None for exercise in exercises):
        missing = ", ".join(exercise.id for exercise in exercises if exercise.points is None)
        notes.append(f"It could not be graded, and a person has not given points for {missing}; so there is no score.")
    late = _judge_lateness(assignment, reception, points, max_score, zone, notes)
    return FinalGrade(
        student=grade.student,
        status="ungraded" if points is None else "graded",
        reason=grade.reason if points is None else None,
        automatic=automatic,
        exercises=exercises,
        points=points,
        pending=None if points is None else sum(exercise.pending for exercise in exercises),
        late=late,
        total=points if points is None or late is None else _round(points - (late.taken or 0)),
        max_score=max_score,
        notes=tuple(notes),
    )


def _settle(
    exercise: Exercise, graded: ExerciseGrade | None, chosen: Chosen, maxima: Maxima, notes: list[str]
) -> FinalExercise:
    """One exercise with its decisions."""
    worth = graded.max_score - graded.pending if graded is not None else maxima.get(exercise.id)
    automatic = graded.score if graded is not None else None
    override = _cap(chosen.get((exercise.id, "override")), worth, notes)
    written = _cap(chosen.get((exercise.id, "written")), exercise.written_points, notes)
    own = automatic if override is None else override
    return FinalExercise(
        id=exercise.id,
        automatic=automatic,
        override=override,
        written=written,
        points=None if own is None else _round(own + (written or 0)),
        pending=exercise.written_points if written is None else 0,
        max_score=None if worth is None else worth + exercise.written_points,
    )


def _cap(decision: Decision | None, limit: float | None, notes: list[str]) -> float | None:
    """A decision's points; no more than there are now, should the exercise have become worth less since."""
    if decision is None or decision.points is None:
        return None
    if limit is None or decision.points <= limit:
        return decision.points
    notes.append(
        f"{decision.points:g} points were given for {decision.exercise} ({decision.kind}), worth {limit:g} now. "
        f"So {limit:g} count until a person decides again."
    )
    return limit


def _judge_lateness(
    assignment: Assignment,
    reception: Reception,
    points: float | None,
    max_score: float | None,
    zone: tzinfo | None,
    notes: list[str],
) -> LateLine | None:
    """The late line; adds to the notes what a person should look at."""
    late, received = assignment.late, reception.received
    if assignment.due is None:
        return None
    deadline = reception.extended or assignment.due
    zone = zone or assignment.due.tzinfo
    assert zone is not None  # course.toml takes no due date without one
    line = LateLine(deadline.astimezone(zone), received, 0, 0.0, None, extended=reception.extended is not None)
    if received is None:
        if reception.late:
            line = msgspec.structs.replace(line, days=None)
            said = "The LMS says that it was late, but not when it was handed in; nothing was taken off."
            own = f" The student has an extension until {line.deadline:{_MINUTE}}." if line.extended else ""
            notes.append(said + own)
        elif reception.late is None:
            line = msgspec.structs.replace(line, days=None)
        return _take(line, late, points, max_score)
    graced = deadline + timedelta(minutes=late.grace_minutes)
    days = count_days_late(graced, received, zone)
    used_grace = days == 0 and received > deadline
    if reception.late and not days and not used_grace and not line.extended:
        notes.append("The LMS says that it was late, but by its time it was not; nothing was taken off.")
    return _take(msgspec.structs.replace(line, days=days, used_grace=used_grace), late, points, max_score)


def _take(line: LateLine, late: Late, points: float | None, max_score: float | None) -> LateLine:
    """The late line with what the policy takes."""
    if late.policy == "none" or late.percent_per_day is None or not line.days:
        return msgspec.structs.replace(line, taken=None if points is None else 0.0)
    if late.latest_days is not None and line.days > late.latest_days:
        return msgspec.structs.replace(line, percent=100.0, taken=points, too_late=True)
    percent = min(line.days * late.percent_per_day, late.max_percent or 100.0, 100.0)
    base = max_score if late.percent_of == "maximum" else points
    if points is None or base is None:
        return msgspec.structs.replace(line, percent=percent)
    # A hundredth of a point is the least that is taken; nobody falls below 0.
    return msgspec.structs.replace(line, percent=percent, taken=min(points, round(base * percent / 100, 2)))


def describe_lateness(line: LateLine, late: Late) -> str:
    """The late line as one sentence for people; empty for what came in time without further ado."""
    until = f"{line.deadline:{_MINUTE}}" + (", the student's own deadline" if line.extended else "")
    if line.days is None:
        return "When it was handed in is not known; nothing was taken off."
    if line.days == 0:
        if line.used_grace:
            return f"Handed in within the {late.grace_minutes:g} minutes of grace after {until}."
        return f"Handed in by {until}." if line.extended else ""
    days = "1 day" if line.days == 1 else f"{line.days} days"
    if line.too_late:
        return f"Handed in {days} late ({until}): after {late.latest_days} days nothing counts."
    if not line.percent:
        return f"Handed in {days} late ({until}); nothing is taken off for that."
    what = "of the points possible" if late.percent_of == "maximum" else "of the points earned"
    taken = "" if line.taken is None else f", {line.taken:g} points off"
    return f"Handed in {days} late ({until}): {line.percent:g} % {what}{taken}."


def _add(numbers: Iterable[float | None]) -> float | None:
    """The sum; None when one of them is not known."""
    total = 0.0
    for number in numbers:
        if number is None:
            return None
        total += number
    return _round(total)


def _round(points: float) -> float:
    """Without what adding fractions leaves behind."""
    return round(points, 6)
