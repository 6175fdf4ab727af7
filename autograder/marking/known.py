"""Known mistakes with the answers that they give, and which of them a submission's answers equal. Pure."""

import math
import re
from collections.abc import Collection, Iterable, Sequence

import msgspec
import numpy as np

from autograder.marking.compare import TOLERANCE
from autograder.records import Answers, CellRun, Ending, Missing, Value

Failure = tuple[str, str]
"""Type and text of the exception that a cell ended with."""


class KnownMistake(msgspec.Struct, frozen=True):
    """One entry of the catalogue as it came out of the sandbox.

    answers: of its exercise, one set for each input set, in the order of the seeds.
    failures: how its cell ended on each input set; None where it ended well.
    """

    id: str
    exercise: str
    title: str
    hint: str
    loses: tuple[str, ...]
    answers: tuple[Answers, ...]
    failures: tuple[Failure | None, ...]


class Match(msgspec.Struct, frozen=True):
    """A known mistake that a student's answers equal. `certain`: no other one with another title does."""

    mistake: KnownMistake
    certain: bool


def find_mistake(
    known: Sequence[KnownMistake],
    test: str,
    read: Collection[str],
    answers: Sequence[Answers],
    failures: Sequence[Failure | None],
) -> Match | None:
    """The known mistake that explains a lost test: its answers and exceptions are the student's on every input set.

    All answers of the exercise are compared first; then those alone that the test has read, where every
    mistake that equals them says the same to the student.
    """
    candidates = [each for each in known if test in each.loses and each.failures == tuple(failures)]
    full = [each for each in candidates if equal_everywhere(answers, each.answers)]
    if full:
        return _build_match(full)
    if not any(name in mine and not isinstance(mine[name], Missing) for mine in answers for name in read):
        return None  # that nothing is there fits too much
    near = [each for each in candidates if equal_everywhere(answers, each.answers, read)]
    return _build_match(near) if len({each.hint for each in near}) == 1 else None


def _build_match(equal: Sequence[KnownMistake]) -> Match:
    # An exception says where a cell stopped, not how it came there.
    alone = len({each.title for each in equal}) == 1 and not any(equal[0].failures)
    return Match(equal[0], alone)


def find_failure(runs: Iterable[CellRun]) -> Failure | None:
    """The first exception among an exercise's cells in one pass; addresses in its text are left out."""
    for run in runs:
        if run.ending is not Ending.OK:
            return run.error or run.ending.value, re.sub(r"0x[0-9a-f]+", "0x", run.text)
    return None


def equal_everywhere(left: Sequence[Answers], right: Sequence[Answers], names: Collection[str] | None = None) -> bool:
    """Whether two sets of answers, input set by input set, hold the same under these names, or under all."""
    return all(
        equal_values(mine.get(name, Missing()), other.get(name, Missing()))
        for mine, other in zip(left, right, strict=True)
        for name in (mine.keys() | other.keys() if names is None else names)
    )


def equal_values(left: Value, right: Value) -> bool:
    """Whether two answers are the same: arrays up to rounding and with NaN where the other has it, all else exactly."""
    if not isinstance(left, np.ndarray) or not isinstance(right, np.ndarray):
        both_nan = isinstance(left, float) and isinstance(right, float) and math.isnan(left) and math.isnan(right)
        return both_nan or (type(left) is type(right) and left == right)
    if left.shape != right.shape or left.dtype.kind in "c" or right.dtype.kind in "c":
        return left.shape == right.shape and np.array_equal(left, right)
    with np.errstate(invalid="ignore"):  # a NaN that signals, or numbers that are beyond all floats
        left, right = left.astype(np.float64), right.astype(np.float64)
    finite = np.isfinite(left)
    if not np.array_equal(finite, np.isfinite(right)):
        return False
    if not np.array_equal(left[~finite], right[~finite], equal_nan=True):
        return False
    scale = np.abs(right[finite]).max(initial=0.0)
    return bool(np.abs(left[finite] - right[finite]).max(initial=0.0) <= TOLERANCE * scale)
