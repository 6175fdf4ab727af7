"""Which submission counts for which student of the roster, and who has handed in nothing. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from autograder.roster import Roster, Student

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Claim(msgspec.Struct, frozen=True):
    """What is known of a submission's student."""

    label: str
    """The student as the intake names it."""
    lms_id: str = ""
    received: datetime | None = None


class Turnout(msgspec.Struct, frozen=True):
    """Submissions by their place in the list that was given."""

    own: dict[str, int]
    """By student: what he or she handed in, alone or together with others."""
    shared: dict[str, int]
    """By student without one of his or her own: the newest of the group."""
    missing: tuple[Student, ...]
    """Those for whom nothing counts."""
    unmatched: tuple[tuple[int, str], ...]
    """Submissions that belong to nobody of the roster, with the reason."""
    replaced: tuple[tuple[int, int], ...]
    """Submissions of a student that do not count, and the newer one that does."""
    sharers: dict[str, tuple[str, ...]]
    """By student: the others for whom the same submission counts; no entry without any."""


def find_names(roster: Roster | None, claims: Sequence[Claim], student: str) -> tuple[set[str], set[str]]:
    """Every name under which a student has something: alone, and together with others.

    student: such a name, or what the roster knows the student by. A name that fits nobody or several stands for itself.
    """
    if roster is None:
        return {student}, set()

    def find_ids(claim: Claim) -> frozenset[str]:
        return frozenset(each.id for each in roster.match(claim.label, claim.lms_id).students)

    found = [(claim.label, find_ids(claim)) for claim in claims]
    called = [ids for label, ids in found if label == student]
    meant = {ids for ids in called if ids} or ({frozenset[str]()} if called else {find_ids(Claim(student))})
    person = frozenset[str]().union(*meant)
    if len(person) != 1:
        return {student}, set()
    alone = {label for label, ids in found if ids == person}
    return {student, *person, *alone}, {label for label, ids in found if person < ids} - alone


def find_turnout(roster: Roster, claims: Sequence[Claim]) -> Turnout:
    """Match submissions to students.

    Of several submissions of a student, and of a group, the one received last counts. One whose time is not known is
    older than any other; of two that are equal the later in the list counts.
    """

    def get_age(place: int) -> tuple[datetime, int]:
        return claims[place].received or _LONG_AGO, place

    by_student: dict[str, list[int]] = {}
    unmatched = []
    for place, claim in enumerate(claims):
        match = roster.match(claim.label, claim.lms_id)
        if not match.students:
            unmatched.append((place, match.reason))
        for student in match.students:
            by_student.setdefault(student.id, []).append(place)
    own = {student: max(places, key=get_age) for student, places in by_student.items()}
    by_group: dict[str, list[int]] = {}
    for student in roster.students:
        if student.group and student.id in own:
            by_group.setdefault(student.group, []).append(own[student.id])
    shared = {
        student.id: max(by_group[student.group], key=get_age)
        for student in roster.students
        if student.id not in own and student.group in by_group
    }
    counting = set(own.values())
    by_place: dict[int, list[str]] = {}
    for student_id, place in {**own, **shared}.items():
        by_place.setdefault(place, []).append(student_id)
    replaced = {
        place: own[student] for student, places in by_student.items() for place in places if place not in counting
    }
    return Turnout(
        own=own,
        shared=shared,
        missing=tuple(each for each in roster.students if each.id not in own and each.id not in shared),
        unmatched=tuple(unmatched),
        replaced=tuple(sorted(replaced.items())),
        sharers={
            one: tuple(each for each in together if each != one)
            for together in by_place.values()
            for one in together
            if len(together) > 1
        },
    )
