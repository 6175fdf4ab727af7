"""Known mistakes with the answers that they give, and which of them a submission's answers equal. Pure."""

import re
from collections.abc import Collection, Sequence

import msgspec
import numpy as np

from autograder.marking.compare import TOLERANCE
from autograder.records import Answers, CellRun, Missing, Value


class KnownMistake(msgspec.Struct, frozen=True):
    """One entry of the catalogue as it came out of the sandbox.

    answers: of its exercise, one set for each input set, in the order of the seeds.
    raises: type and pattern of the exception that its code ends with; empty when it ends well.
    """

    id: str
    exercise: str
    title: str
    hint: str
    loses: tuple[str, ...]
    answers: tuple[Answers, ...]
    raises: tuple[str, str] | None = None


def find_mistake(
    known: Sequence[KnownMistake],
    test: str,
    read: Collection[str],
    answers: Sequence[Answers],
    errors: Sequence[CellRun],
) -> KnownMistake | None:
    """The known mistake that explains a lost test: its answers, or its exception, are the student's on every input set.

    All answers of the exercise are compared first; then those alone that the test has read, where every
    mistake that equals them says the same to the student.
    """
    candidates = [each for each in known if test in each.loses and _fits_error(each, errors)]
    for each in candidates:
        if equal_everywhere(answers, each.answers):
            return each
    if errors and any(each.raises for each in candidates):
        candidates = [each for each in candidates if each.raises]
    if not any(name in mine and not isinstance(mine[name], Missing) for mine in answers for name in read):
        return None  # that nothing is there fits too much
    near = [each for each in candidates if read and equal_everywhere(answers, each.answers, read)]
    return near[0] if len({each.hint for each in near}) == 1 else None


def _fits_error(mistake: KnownMistake, errors: Sequence[CellRun]) -> bool:
    if mistake.raises is None:
        return not errors
    kind, pattern = mistake.raises
    return any(error.error == kind and re.search(pattern, error.text) for error in errors)


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
        return type(left) is type(right) and left == right
    if left.shape != right.shape or left.dtype.kind in "c" or right.dtype.kind in "c":
        return left.shape == right.shape and np.array_equal(left, right)
    left, right = left.astype(np.float64), right.astype(np.float64)
    finite = np.isfinite(left)
    if not np.array_equal(finite, np.isfinite(right)):
        return False
    if not np.array_equal(left[~finite], right[~finite], equal_nan=True):
        return False
    scale = np.abs(right[finite]).max(initial=0.0)
    return bool(np.abs(left[finite] - right[finite]).max(initial=0.0) <= TOLERANCE * scale)
