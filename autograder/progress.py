"""How far an assignment is, and one submission's whole story; read from the store."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from autograder.course import Course
from autograder.errors import UsageError, suggest_near
from autograder.finals import Finals
from autograder.fingerprint import describe_environment, describe_marking, list_differences
from autograder.gradebook import build_stored_entry
from autograder.records import Decision, FinalGrade
from autograder.roster import Roster
from autograder.runs import TOGETHER
from autograder.store.database import Store
from autograder.store.records import StoredGrade, StoredSubmission
from autograder.turnout import Claim, find_turnout


class Ungraded(msgspec.Struct, frozen=True):
    """A submission without a grade, and why."""

    student: str
    path: str
    reason: str


class Progress(msgspec.Struct, frozen=True):
    """How far an assignment is. Numbers of submissions that count, but for the students at the end."""

    submitted: int
    executed: int
    """Run in this environment."""
    marked: int
    """Marked with the hidden tests as they are now."""
    graded: int
    late: int
    overridden: int
    """With points by hand in place of autograded ones."""
    pending: int
    """With a written part that waits for a person."""
    ungraded: tuple[Ungraded, ...]
    missing: tuple[str, ...]
    """Students of the roster for whom nothing counts; empty without a roster."""
    unmatched: tuple[str, ...]
    """Submissions that belong to nobody of the roster, with the reason."""
    roster: int
    """Students of the roster; 0 without one."""


def build_progress(course: Course, name: str, store: Store, finals: Finals, roster: Roster | None) -> Progress:
    """Count what the store holds of an assignment."""
    environment = describe_environment(course, name).digest
    marking = describe_marking(course, name).digest
    submissions = store.list_submissions(name)
    executed = store.find_executed(name, environment)
    counts: Counter[str] = Counter()
    ungraded = []
    seen = set()
    for stored in store.latest_grades(name):
        seen.add(stored.submission.student)
        final = finals.compute(stored.grade, build_stored_entry(stored.submission))
        counts["marked"] += (stored.environment, stored.marking) == (environment, marking)
        counts["graded"] += final.status == "graded"
        counts["late"] += bool(final.late and (final.late.days or (final.late.days is None and stored.submission.late)))
        counts["overridden"] += any(each.override is not None for each in final.exercises)
        counts["pending"] += bool(final.pending)
        if final.status != "graded":
            ungraded.append(Ungraded(stored.submission.student, stored.submission.path, final.reason or ""))
    ungraded += [
        Ungraded(each.student, each.path, "it has not been graded yet; run autograder grade")
        for each in submissions
        if each.student not in seen
    ]
    turnout = find_turnout(roster, [_build_claim(each) for each in submissions]) if roster else None
    return Progress(
        submitted=len(submissions),
        executed=sum(TOGETHER in executed.get(each.sha256, ()) for each in submissions),
        marked=counts["marked"],
        graded=counts["graded"],
        late=counts["late"],
        overridden=counts["overridden"],
        pending=counts["pending"],
        ungraded=tuple(ungraded),
        missing=tuple(f"{each.id} {each.name}".strip() for each in turnout.missing) if turnout else (),
        unmatched=tuple(reason for _, reason in turnout.unmatched) if turnout else (),
        roster=len(roster.students) if roster else 0,
    )


def _build_claim(each: StoredSubmission) -> Claim:
    return Claim(each.student, each.lms_id, each.received)


class Story(msgspec.Struct, frozen=True):
    """One student's submission, with all that led to its grade."""

    student: str
    """The id in the roster, or the name that the submission has."""
    sharers: tuple[str, ...]
    """Others for whom it counts."""
    submissions: tuple[StoredSubmission, ...]
    """Oldest first; the one that counts is `current`."""
    stored: StoredGrade | None
    final: FinalGrade | None
    environment: dict[str, Any]
    marking: dict[str, Any]
    outdated: tuple[str, ...]
    """What has changed since it was run and marked."""
    executed: tuple[str, ...]
    """Exercises that were run alone besides."""
    decisions: tuple[Decision, ...]


def read_story(course: Course, name: str, store: Store, finals: Finals, roster: Roster | None, student: str) -> Story:
    """The story of a student, or of the submission of a student's group. `UsageError` when there is nothing."""
    everything = store.list_submissions(name, current_only=False)
    known = {each.student for each in everything}
    person, label, sharers = _find_submission(student, [each for each in everything if each.current], finals, roster)
    if label is None:
        near = suggest_near(student, known)
        raise UsageError(f"there is nothing of {student} for {name}{near}; autograder status says who has handed in")
    own = sorted((each for each in everything if each.student == label), key=lambda each: each.recorded)
    stored = next(iter(store.latest_grades(name, label)), None)
    final = finals.compute(stored.grade, build_stored_entry(stored.submission), person, sharers) if stored else None
    about = {label, person, *sharers}
    environment = (store.find_description(stored.environment) if stored else None) or {}
    marking = (store.find_description(stored.marking) if stored else None) or {}
    executed = store.find_executed(name, stored.environment).get(stored.submission.sha256, ()) if stored else ()
    return Story(
        student=person,
        sharers=tuple(sharers),
        submissions=tuple(own),
        stored=stored,
        final=final,
        environment=environment,
        marking=marking,
        outdated=tuple(_list_outdated(course, name, environment, marking)),
        executed=tuple(sorted(each for each in executed if each != TOGETHER)),
        decisions=tuple(
            each
            for each in store.list_decisions(name)
            if each.student in about or finals.find_student(each.student) in about
        ),
    )


def _find_submission(
    student: str, current: Sequence[StoredSubmission], finals: Finals, roster: Roster | None
) -> tuple[str, str | None, Collection[str]]:
    """For a student or the name of a submission: who that is, the name of the submission, who shares it."""
    names = {each.student: finals.find_student(each.student, each.lms_id) for each in current}
    person = names.get(student) or finals.find_student(student)
    if roster is None or roster.find(person) is None:
        return person, student if student in names else None, ()
    turnout = find_turnout(roster, [_build_claim(each) for each in current])
    place = {**turnout.own, **turnout.shared}.get(person)
    if place is None:
        return person, student if student in names else None, ()
    return person, current[place].student, turnout.sharers.get(person, ())


def _list_outdated(course: Course, name: str, environment: dict[str, Any], marking: dict[str, Any]) -> list[str]:
    return [
        *list_differences(environment, describe_environment(course, name).description),
        *list_differences(marking, describe_marking(course, name).description),
    ]
