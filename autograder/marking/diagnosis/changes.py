"""The right numbers, changed in one known way: transposed, masked, put through a softmax, summed up. Pure."""

from collections.abc import Callable
from functools import partial

import msgspec
import numpy as np

from autograder.marking.compare import is_close
from autograder.marking.diagnosis.factors import describe_factors, name_factors
from autograder.marking.diagnosis.nouns import (
    Array,
    Case,
    Cases,
    Explanation,
    fit_factors,
    holds,
    is_same,
    is_steady,
    strip_ones,
)


class Change(msgspec.Struct, frozen=True):
    """One way to change an array. `said` follows "`name` ..."."""

    kind: str
    apply: Callable[[Array], Array]
    said: str
    hint: str
    axes: int = 1
    """The fewest axes that it needs."""


def compute_softmax(array: Array, axis: int) -> Array:
    """Exponentials along an axis, scaled to sum to 1."""
    weights = np.exp(array - array.max(axis=axis, keepdims=True))
    scaled: Array = weights / weights.sum(axis=axis, keepdims=True)
    return scaled


def _center(array: Array, axis: int | None) -> Array:
    centred: Array = array - array.mean(axis=axis, keepdims=True)
    return centred


def _standardize(array: Array, axis: int | None) -> Array:
    scaled: Array = _center(array, axis) / array.std(axis=axis, keepdims=True)
    return scaled


def _scale_to_length_one(array: Array, axis: int) -> Array:
    scaled: Array = array / np.sqrt((array**2).sum(axis=axis, keepdims=True))
    return scaled


def _swap(array: Array) -> Array:
    return array.swapaxes(-1, -2)


def _symmetrize(array: Array) -> Array:
    return (array + _swap(array)) / 2 if array.shape[-1] == array.shape[-2] else array


_TURN = "What does a row stand for here, and what a column? Then look at which factor comes first and which is turned."
_MASK = "A mask hides later positions from earlier ones. Is one asked for here?"
_RAW = "You went a step too far. Hand in the numbers as this step gives them."
_REVERSE = "Look for a slice with a step of -1, or for a loop that runs backwards."
_SHIFT = "Look for an index that starts one too early or one too late, or for a roll."
_RESHAPE = "Reshaping keeps the numbers in reading order and only cuts the rows elsewhere; rows do not become columns."

LINEAR = (
    Change("transposed", _swap, "is transposed: rows and columns have changed places", _TURN, 2),
    Change(
        "reshaped",
        lambda a: _swap(a).reshape(a.shape),
        "holds the right numbers in the wrong places, as if it were reshaped where it has to be transposed",
        _RESHAPE,
        2,
    ),
    Change("reversed", lambda a: a[..., ::-1], "has the right numbers in reverse order along its last axis", _REVERSE),
    Change("reversed", lambda a: a[..., ::-1, :], "has the right rows in reverse order", _REVERSE, 2),
    Change(
        "reversed",
        lambda a: a[..., ::-1, ::-1],
        "has the right numbers with rows and columns in reverse order",
        _REVERSE,
        2,
    ),
    Change("shifted", lambda a: np.roll(a, 1, -1), "has the right columns, all moved by one place", _SHIFT),
    Change("shifted", lambda a: np.roll(a, -1, -1), "has the right columns, all moved by one place", _SHIFT),
    Change("shifted", lambda a: np.roll(a, 1, -2), "has the right rows, all moved by one place", _SHIFT, 2),
    Change("shifted", lambda a: np.roll(a, -1, -2), "has the right rows, all moved by one place", _SHIFT, 2),
    Change("causal-mask", np.tril, "is right up to the diagonal and 0 above it: a causal mask was laid on", _MASK, 2),
    Change("masked", np.triu, "is right from the diagonal on and 0 below it: a mask was laid on", _MASK, 2),
    Change("masked", lambda a: a * (1 - np.eye(*a.shape[-2:])), "is right but for the diagonal, which is 0", _MASK, 2),
    Change(
        "masked",
        lambda a: a * np.eye(*a.shape[-2:]),
        "is right on the diagonal and 0 everywhere else",
        "Every position has to meet every other one, not itself alone.",
        2,
    ),
)
"""Changes that a wrong factor may come on top of."""

_SOFTMAX = "These are attention weights. Are the weights asked for here, or the scores that they are made of?"
_SIGN = "Squares and absolute values lose the sign. Is that meant?"
_CENTER = "Something had its mean taken away on the way. Work on the numbers as they are, or on a copy."
_WHOLE = "Look for `//`, `int`, `astype(int)` or a rounding call: they throw the fraction away."

OTHER = (
    Change("softmaxed", lambda a: compute_softmax(a, -1), "went through a softmax: each row sums to 1", _SOFTMAX),
    Change("softmaxed", lambda a: compute_softmax(a, -2), "went through a softmax along the columns", _SOFTMAX, 2),
    Change("softmaxed", lambda a: np.log(compute_softmax(a, -1)), "went through the logarithm of a softmax", _SOFTMAX),
    Change(
        "softmaxed",
        lambda a: compute_softmax(np.tril(a) - 1e300 * (1 - np.tri(*a.shape[-2:])), -1),
        "was masked and went through a softmax",
        _SOFTMAX,
        2,
    ),
    Change("absolute", np.abs, "holds the absolute values: all signs are lost", _SIGN),
    Change("squared", np.square, "holds the squares of the right numbers", _SIGN),
    Change("whole-numbers", np.floor, "holds the right numbers rounded down to whole ones", _WHOLE),
    Change("whole-numbers", np.ceil, "holds the right numbers rounded up to whole ones", _WHOLE),
    Change("whole-numbers", np.trunc, "holds the right numbers with their fractions cut off", _WHOLE),
    Change("exponential", np.exp, "holds the exponentials of the right numbers", _RAW),
    Change("activated", np.tanh, "went through a tanh", _RAW),
    Change("activated", lambda a: np.maximum(a, 0), "has 0 in place of every negative number", _RAW),
    Change("activated", lambda a: 1 / (1 + np.exp(-a)), "went through a sigmoid", _RAW),
    Change(
        "inverted",
        lambda a: 1 / a,
        "holds 1 divided by the right numbers",
        "Which of the two should be divided by the other?",
    ),
    Change("signs-only", np.sign, "holds the signs only", _RAW),
    Change("centred", lambda a: _center(a, -1), "is the right array with the mean of each row taken away", _CENTER),
    Change(
        "centred", lambda a: _center(a, -2), "is the right array with the mean of each column taken away", _CENTER, 2
    ),
    Change("centred", lambda a: _center(a, None), "is the right array with its mean taken away", _CENTER),
    Change(
        "centred",
        lambda a: a - a.max(-1, keepdims=True),
        "is the right array with the largest number of each row taken away",
        _RAW,
    ),
    Change("normalised", lambda a: _standardize(a, -1), "has each row scaled to mean 0 and spread 1", _RAW),
    Change("normalised", lambda a: _standardize(a, -2), "has each column scaled to mean 0 and spread 1", _RAW, 2),
    Change("normalised", lambda a: _standardize(a, None), "was scaled to mean 0 and spread 1", _RAW),
    Change("normalised", lambda a: _scale_to_length_one(a, -1), "has each row scaled to length 1", _RAW),
    Change("normalised", lambda a: a / a.sum(-1, keepdims=True), "has each row divided by its sum", _RAW),
    Change(
        "summed-up",
        lambda a: np.cumsum(a, -1),
        "adds up the entries along each row",
        "A running sum is not asked for here.",
    ),
    Change(
        "summed-up",
        lambda a: np.cumsum(a, -2),
        "adds up the rows one after the other",
        "A running sum is not asked for; mind `+=` in a loop.",
        2,
    ),
    Change(
        "sorted",
        lambda a: np.sort(a, -1),
        "is sorted by size along its last axis",
        "Sorting loses which position a number belongs to.",
    ),
    Change(
        "sorted",
        lambda a: np.sort(a, -2),
        "has each column sorted by size",
        "Sorting loses which position a number belongs to.",
        2,
    ),
    Change(
        "symmetrised",
        _symmetrize,
        "is the mean of the right array and its transpose",
        "It is made symmetric by force. Compute it, then look whether it is.",
        2,
    ),
)

_AWAY = "An axis was summed, averaged or indexed away. Which entries does the answer need?"

PIECES = (
    Change(
        "diagonal-only",
        lambda a: np.diagonal(a, axis1=-2, axis2=-1),
        "is the diagonal of the right array only",
        "Each position was paired with itself. Every position has to meet every other one.",
        2,
    ),
    Change(
        "first-only",
        lambda a: a[..., 0, :],
        "is the first row of the right array only",
        "What has to happen for all the other rows?",
        2,
    ),
    Change(
        "last-only",
        lambda a: a[..., -1, :],
        "is the last row of the right array only",
        "Does a loop overwrite its result on every round?",
        2,
    ),
    Change("first-only", lambda a: a[..., 0], "is the first column of the right array only", _AWAY, 2),
    Change("last-only", lambda a: a[..., -1], "is the last column of the right array only", _AWAY, 2),
    Change("summed-away", lambda a: a.sum(-1), "is the right array summed along its rows", _AWAY, 2),
    Change("summed-away", lambda a: a.sum(-2), "is the right array summed along its columns", _AWAY, 2),
    Change("averaged", lambda a: a.mean(-1), "is the right array averaged along its rows", _AWAY, 2),
    Change("averaged", lambda a: a.mean(-2), "is the right array averaged along its columns", _AWAY, 2),
)
"""Changes after which the array has fewer axes."""


def explain_linear_change(cases: Cases) -> tuple[Explanation, ...]:
    """Right but for one change of place, perhaps with a wrong factor on top."""
    for change in LINEAR:
        factors = fit_factors(cases, partial(_apply, change))
        if factors and (is_steady(factors) or name_factors(cases, factors)):
            return (_describe(change, cases), *describe_factors(cases, factors))
    return ()


def explain_other_change(cases: Cases) -> tuple[Explanation, ...]:
    """Right but for one step too many, or one that loses something."""
    for change in OTHER:
        if holds(cases, partial(_apply, change)):
            return (_describe(change, cases),)
    return ()


def explain_piece(cases: Cases) -> tuple[Explanation, ...]:
    """The answer is a part or a sum of the right array."""
    for change in PIECES:
        if all(case.value.size > 2 and _is_piece(change, case) for case in cases):
            return (_describe(change, cases),)
    return ()


def _is_piece(change: Change, case: Case) -> bool:
    made = _apply(change, case)
    return made is not None and is_same(strip_ones(case.value), strip_ones(made))


def _apply(change: Change, case: Case) -> Array | None:
    """What the change makes of the right array; None where it needs more axes or changes nothing."""
    if case.wanted.ndim < change.axes:
        return None
    made = np.asarray(change.apply(case.wanted), np.float64)
    return None if is_close(made, case.wanted) else made


def _describe(change: Change, cases: Cases) -> Explanation:
    return Explanation(change.kind, f"`{cases[0].name}` {change.said}.", change.hint)
