"""The nouns of the product: frozen, slotted, serialisable records without behaviour of their own.

Who makes what: `intake` makes `Submission`, `Skipped` and `Program`; `sandbox` makes `Execution`;
`marking` makes `Mark`; `grading` makes `Grade`.
"""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Literal

import msgspec
import numpy as np


class Ending(StrEnum):
    """How a cell, and by its worst cell an exercise, ended. Listed from harmless to worst."""

    OK = "ok"
    NOT_ATTEMPTED = "not-attempted"
    ERROR = "error"
    OUT_OF_MEMORY = "out-of-memory"
    EXITED = "exited"
    KILLED = "killed"
    TIMEOUT = "timeout"


_SEVERITY = {ending: rank for rank, ending in enumerate(Ending)}


def worst_ending(endings: Iterable[Ending]) -> Ending:
    """The most severe of some endings; `Ending.OK` when there are none."""
    return max(endings, key=_SEVERITY.__getitem__, default=Ending.OK)


class Submission(msgspec.Struct, frozen=True):
    """One student's bytes for one assignment, known by their SHA-256."""

    student: str
    path: str
    data: bytes
    sha256: str
    received: datetime | None = None
    """When it was handed in, in UTC; None where nothing that is trusted says so."""
    late: bool | None = None
    """What the LMS says of it; None where the LMS says nothing."""
    attempt: int = 0
    """The attempt's place among those found for the student, from 1; 0 outside of LMS downloads."""


class Skipped(msgspec.Struct, frozen=True):
    """A file that was found and is no submission, with the reason."""

    path: str
    reason: str


class Cell(msgspec.Struct, frozen=True):
    """One code cell, or one part of it where a cell carries several exercise markers."""

    index: int
    """Position of the notebook cell, counted from 0 over cells of every type."""
    source: str
    exercises: tuple[str, ...] = ()
    """The exercises that this cell belongs to; several when it answers several without a marker."""
    assigns: tuple[str, ...] = ()
    """Names that the cell assigns at module level, as far as its text shows."""
    check: bool = False
    """A visible check of the released notebook (nbgrader: grade and locked)."""


class Program(msgspec.Struct, frozen=True):
    """What is run: the code cells in notebook order, and what had to be repaired to read them."""

    cells: tuple[Cell, ...]
    notes: tuple[str, ...] = ()


class Missing(msgspec.Struct, frozen=True):
    """An answer that is not there: never assigned, or `...` left standing."""


class Opaque(msgspec.Struct, frozen=True):
    """An answer of a kind that cannot leave the sandbox; only its type's name does."""

    type_name: str


Value = bool | int | float | str | None | np.ndarray | Missing | Opaque
"""An answer outside the sandbox: plain data that the host rebuilt. Arrays are base-class arrays."""

Answers = dict[str, Value]
"""Answers of one pass by name."""


class CellRun(msgspec.Struct, frozen=True):
    """How one cell ended in one pass. `error` is the exception's type name, `text` its message."""

    cell: int
    """Index into `Program.cells`."""
    ending: Ending
    error: str = ""
    text: str = ""
    unsure: bool = False
    """Other cells may be to blame for this end: their threads or processes were there, or they used up the time."""


class Output(msgspec.Struct, frozen=True):
    """One captured output of the pass that runs the notebook as submitted."""

    cell: int
    """Index into `Program.cells`."""
    mime: str
    """`stream/stdout`, `stream/stderr`, or the MIME type of shown data."""
    data: bytes


class Pass(msgspec.Struct, frozen=True):
    """One run of the program on one input set."""

    seed: int
    runs: tuple[CellRun, ...]
    answers: Answers


class Execution(msgspec.Struct, frozen=True):
    """The outcome of running a submission on all input sets, in the order of the assignment's seeds."""

    passes: tuple[Pass, ...]
    outputs: tuple[Output, ...] = ()
    evidence: tuple[CellRun, ...] = ()
    """How the cells ended when the notebook ran as submitted, top to bottom."""
    notes: tuple[str, ...] = ()
    cpu_seconds: float = 0.0
    """User and system time of every process of the submission, as the kernel counted it."""
    after_hidden: bool = False
    """Its code had seen the hidden input sets before this run began. What it gives on the published one can tell of
    them, so that nothing is said of it but which tests are lost."""


class Mark(msgspec.Struct, frozen=True):
    """Points for one hidden test. `message` says what is wrong, `hint` how to think about it."""

    name: str
    exercise: str
    score: float
    max_score: float
    outcome: str
    """`passed`, `failed` or `not-run`."""
    message: str = ""
    hint: str = ""
    detail: str = ""
    """Numbers for the instructor; never shown to a student."""
    explanations: tuple[str, ...] = ()
    """Kinds of what explains a lost mark, the most specific first; `mistake:<id>` for a known mistake."""
    notes: tuple[str, ...] = ()
    visible: bool = False
    """Whether a lost mark is lost on the published input set too, where the student can see why."""


class ExerciseGrade(msgspec.Struct, frozen=True):
    """One exercise of one submission. `max_score` includes the pending points."""

    id: str
    status: Ending
    score: float
    max_score: float
    pending: float
    tests: tuple[Mark, ...]


class Grade(msgspec.Struct, frozen=True):
    """One submission's result. `ungraded` has a reason, no score and no exercises."""

    student: str
    path: str
    sha256: str
    status: str
    """`graded` or `ungraded`."""
    reason: str | None = None
    notes: tuple[str, ...] = ()
    """For the instructor."""
    score: float | None = None
    max_score: float | None = None
    pending: float | None = None
    exercises: tuple[ExerciseGrade, ...] = ()


class Decision(msgspec.Struct, frozen=True):
    """What a person decided about one exercise of one student. The last of its kind counts; none is ever changed.

    An `override` replaces the autograded points of the exercise, `written` gives the points for its written part;
    without points an earlier decision of that kind is withdrawn.
    """

    assignment: str
    student: str
    exercise: str
    kind: Literal["override", "written"]
    points: float | None
    who: str
    why: str
    when: datetime
    """With its time zone."""


class FinalExercise(msgspec.Struct, frozen=True):
    """One exercise with what a person decided about it. Points are None where there are none yet."""

    id: str
    automatic: float | None
    """What the hidden tests gave; None where the submission could not be graded."""
    override: float | None
    """What a person gave in place of it."""
    written: float | None
    """What a person gave for the written part."""
    points: float | None
    """What counts: the override or the automatic points, and the written ones."""
    pending: float
    """Written points that wait for a person."""
    max_score: float | None
    """With the written points; None where it is not known what the hidden tests are worth."""


class LateLine(msgspec.Struct, frozen=True):
    """When a submission came, against its deadline, and what that costs."""

    deadline: datetime
    """The due date, or the student's own."""
    received: datetime | None
    days: int | None
    """Days begun after the deadline and the grace; 0 when it is in time, None when that is not known."""
    percent: float
    """What the policy takes off for that; of the maximum or of what was earned, as the course has it."""
    taken: float | None
    """Points taken off; None where there is no score to take them from."""
    extended: bool = False
    """The deadline is the student's own."""
    used_grace: bool = False
    """It came after the deadline and is in time by the minutes of grace alone."""
    too_late: bool = False
    """It came after the last day that counts."""


class FinalGrade(msgspec.Struct, frozen=True):
    """A grade with everything a person decided and the late policy. Computed, never stored."""

    student: str
    status: str
    """`graded` or `ungraded`; a person's points for every exercise make any submission graded."""
    reason: str | None
    """Why it is ungraded."""
    automatic: float | None
    """The hidden tests' points together."""
    exercises: tuple[FinalExercise, ...]
    points: float | None
    """The exercises together, before what lateness takes."""
    pending: float | None
    late: LateLine | None
    """None where the assignment has no due date."""
    total: float | None
    """What counts. None, never 0, for a submission that could not be graded."""
    max_score: float | None
    notes: tuple[str, ...] = ()
    """What a person should look at."""
