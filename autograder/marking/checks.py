"""What hidden tests call. Each check passes silently or raises `CheckFailed`."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from autograder.marking.answers import Answers, CheckFailed, get_sheet
from autograder.marking.compare import TOLERANCE, find_copy, is_close, is_usable

__all__ = ["check_close", "check_equal", "check_step", "is_usable", "require"]


def require(condition: bool, rationale: str, *, hint: str = "", detail: str = "") -> None:
    """Fail with these words when the condition is false."""
    if not condition:
        raise CheckFailed(rationale, hint=hint, detail=detail)


def check_equal(answers: Answers, name: str, wanted: bool | int | float | str) -> None:
    """The answer is exactly this bool, number or text."""
    value = getattr(answers, name)
    if value != wanted:
        detail = f"got {value!r}, expected {wanted!r}"
        raise CheckFailed(f"`{name}` is not right.", detail=detail, name=name, wanted=wanted)


def check_close(answers: Answers, name: str, wanted: np.ndarray, *, tolerance: float = TOLERANCE) -> None:
    """The answer is this array, within `tolerance` of its largest entry."""
    value = getattr(answers, name)
    if not is_close(value, np.asarray(wanted, np.float64), tolerance):
        raise _build_failure(name, value, wanted)


def check_step(
    answers: Answers,
    expected: SimpleNamespace,
    name: str,
    *,
    after: Sequence[str],
    own: Callable[..., Any],
    tolerance: float = TOLERANCE,
) -> None:
    """The answer is the expected one, or what follows from the student's own earlier steps.

    after: the earlier answers of its chain, in order; `own` takes exactly these by name. Earlier answers
    that are wrong but usable are handed over as they are, all others as expected. An array may equal
    either the expected or the own result; a bool, a number or a text is judged on the own steps alone
    where one of them is wrong but usable. An answer that merely equals a variable of the lesson and is
    not the right one earns nothing, unless an earlier answer of its chain is right.
    """
    value = getattr(answers, name)
    right = getattr(expected, name)
    chain = _judge_chain(answers, expected, after, tolerance)
    if isinstance(value, np.ndarray) and is_close(value, right, tolerance):
        return
    if not chain.carried:
        if isinstance(value, np.ndarray):
            check_close(answers, name, right, tolerance=tolerance)
        else:
            check_equal(answers, name, right)
        return
    mine = own(**chain.values)
    if not isinstance(value, np.ndarray):
        check_equal(answers, name, mine)
    elif is_usable(mine) and is_close(value, mine, tolerance):
        copied = find_copy(value, vars(get_sheet(answers).inputs), right, tolerance)
        if copied is not None and not chain.any_right:
            raise CheckFailed(f"`{name}` is the lesson's `{copied}`, unchanged.", name=name, wanted=right)
    else:
        raise _build_failure(name, value, mine)
    get_sheet(answers).notes.append(f"`{name}` was judged on your own `{chain.carried[-1]}`.")


class _Chain:
    """The earlier answers of a step: what to hand over, which of them are the student's own, whether any is right."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.carried: list[str] = []
        self.any_right = False


def _judge_chain(answers: Answers, expected: SimpleNamespace, after: Sequence[str], tolerance: float) -> _Chain:
    chain = _Chain()
    for name in after:
        right = getattr(expected, name)
        chain.values[name] = right
        try:
            value = getattr(answers, name)
        except CheckFailed:
            continue
        if not isinstance(value, np.ndarray):
            chain.any_right = chain.any_right or value == right
        elif is_close(value, right, tolerance):
            chain.any_right = True
        elif is_usable(value) and (
            chain.any_right or find_copy(value, vars(get_sheet(answers).inputs), right, tolerance) is None
        ):
            chain.values[name] = value
            chain.carried.append(name)
    return chain


def _build_failure(name: str, value: np.ndarray, wanted: np.ndarray) -> CheckFailed:
    detail = _describe_difference(value, wanted)
    return CheckFailed(f"`{name}` has other values than this step gives.", detail=detail, name=name, wanted=wanted)


def _describe_difference(value: np.ndarray, wanted: np.ndarray) -> str:
    """For the instructor: where the largest difference is, and the two numbers there."""
    if value.shape != wanted.shape:
        return f"shape {value.shape}, expected {wanted.shape}"
    with np.errstate(all="ignore"):
        difference = np.abs(value - wanted)
    if not np.isfinite(difference).all():
        return "it holds values that are not finite"
    place = np.unravel_index(int(difference.argmax()), difference.shape)
    where = ", ".join(str(int(index)) for index in place)
    return (
        f"largest difference {difference[place]:.3g} at [{where}]: got {value[place]:.6g}, expected {wanted[place]:.6g}"
    )
