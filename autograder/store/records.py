"""What goes into the store and comes out of it."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from autograder.records import Grade


class Received(msgspec.Struct, frozen=True):
    """One student's bytes for one assignment, as they were handed in."""

    assignment: str
    student: str
    sha256: str
    data: bytes
    path: str
    attempt: int = 0
    """The attempt's place among the student's, from 1; 0 where nobody counts."""
    received: datetime | None = None
    """When the LMS received it, with its time zone."""
    late: bool | None = None
    """What the LMS says; None where it says nothing."""
    lms_id: str = ""
    """What the LMS knows the student by."""
    notes: tuple[str, ...] = ()
    lms: str = ""
    """Which LMS that is."""


class StoredSubmission(msgspec.Struct, frozen=True):
    """A submission as it stands in the store; its bytes are asked for with `Store.find_contents`."""

    assignment: str
    student: str
    sha256: str
    path: str
    attempt: int
    received: datetime | None
    late: bool | None
    lms_id: str
    notes: tuple[str, ...]
    recorded: datetime
    """When the store first got it."""
    current: bool
    """Whether it is the one that counts for the student."""
    forgotten: bool = False
    """Whether the person was erased; the student's name is a random one then."""
    lms: str | None = None
    """As of `Received`; None where an older version stored it."""


class Result(msgspec.Struct, frozen=True):
    """What a submission came to under an environment and a marking.

    executions: for each exercise that was run alone, and for the joint run under "", the packed execution
    (`packing.pack_execution`) and its CPU time in seconds. Empty when stored answers were marked again.
    """

    assignment: str
    sha256: str
    environment: str
    """Digest of what decides what code gives."""
    marking: str
    """Digest of what decides what an answer earns."""
    grade: Grade
    """Its student and path are not stored here; they belong to the submission."""
    executions: Mapping[str, tuple[bytes, float]] = {}


class StoredGrade(msgspec.Struct, frozen=True):
    """The result of a submission that counts, and where it comes from."""

    submission: StoredSubmission
    grade: Grade
    environment: str
    marking: str
    graded: datetime


class Forgotten(msgspec.Struct, frozen=True):
    """What was erased or made anonymous for a person, counted."""

    submissions: int = 0
    """Made anonymous: student, path, digest and notes are gone; points stay."""
    contents: int = 0
    """Erased: submitted bytes that nobody else handed in."""
    executions: int = 0
    """Erased, with answers and outputs."""
    decisions: int = 0
    """Made anonymous: student, who and why are gone; points stay."""
