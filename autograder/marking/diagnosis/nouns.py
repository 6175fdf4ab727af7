"""The records of a diagnosis, and what its rules share: normalised cases and one way to compare them."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from autograder.course import shape_symbols
from autograder.marking.compare import is_close, is_usable
from autograder.records import Value

Array = NDArray[np.float64]

TYPED_IN = "typed-in"
"""Kind of the explanation that an answer is the same on every input set."""

LARGEST = 5_000
"""Entries of the largest array whose values are looked into; a student's huge array must not cost time."""


class Difference(msgspec.Struct, frozen=True):
    """One answer that a hidden test refused on one input set."""

    seed: int
    name: str
    kind: str
    """As `course.toml` declares it: `(B, T, hs)`, `bool`, `whole number`, ..."""
    value: Value
    """As it left the sandbox."""
    wanted: Any
    """What this check compared with: an array, a bool, a number or a text."""
    inputs: dict[str, Any]
    """The lesson's names of this input set."""
    answers: dict[str, Value]
    """All answers of this input set, as they left the sandbox."""


class Explanation(msgspec.Struct, frozen=True):
    """What is wrong, in words for the student. Never holds an expected value or anything of a hidden input set."""

    kind: str
    """A stable id such as `axes-swapped`."""
    rationale: str
    """What is wrong."""
    hint: str = ""
    """How to think about it; may be empty."""


class Case(msgspec.Struct, frozen=True):
    """One difference between arrays, ready for arithmetic. All arrays are float64."""

    name: str
    symbols: tuple[str, ...]
    published: bool
    value: Array
    """Normalised as `marking.answers` does: a missing batch axis of 1 added, a turned weight turned back."""
    wanted: Array
    sizes: dict[str, int]
    """The whole numbers among the lesson's names."""
    lesson: dict[str, Array]
    """The lesson's finite arrays that are not constant."""
    own: dict[str, Array]
    """The student's other answers of that sort."""

    @property
    def fits(self) -> bool:
        """Whether the answer has the asked shape."""
        return self.value.shape == self.wanted.shape


Cases = Sequence[Case]


def build_case(difference: Difference, published_seed: int | None) -> Case | None:
    """The case of a difference between arrays of numbers; None when it is another kind of difference."""
    symbols = shape_symbols(difference.kind)
    value, wanted = read_array(difference.value), read_array(difference.wanted)
    if symbols is None or value is None or wanted is None:
        return None
    others = {name: other for name, other in difference.answers.items() if name != difference.name}
    return Case(
        name=difference.name,
        symbols=symbols,
        published=difference.seed == published_seed,
        value=normalize_array(value, wanted.shape, symbols),
        wanted=wanted,
        sizes=read_sizes(difference.inputs),
        lesson=_read_usable(difference.inputs),
        own=_read_usable(others),
    )


def read_array(value: object) -> Array | None:
    """An array of real numbers as float64; None for anything else."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "iuf":
        return value.astype(np.float64)
    return None


def read_sizes(inputs: dict[str, Any]) -> dict[str, int]:
    """The whole numbers among the lesson's names: `{"B": 1, "T": 8, ...}`."""
    return {name: int(n) for name, n in inputs.items() if isinstance(n, int | np.integer) and not isinstance(n, bool)}


def normalize_array(value: Array, shape: tuple[int, ...], symbols: tuple[str, ...]) -> Array:
    """What marking accepts without loss: a batch axis of 1 that is missing, a weight (C, n) given as (n, C)."""
    if value.shape == shape:
        return value
    if symbols[0] == "B" and shape[:1] == (1,) and value.shape == shape[1:]:
        return value[np.newaxis]
    if symbols[0] == "C" and len(shape) == 2 and value.shape == shape[::-1]:
        return np.ascontiguousarray(value.T)
    return value


def _read_usable(values: dict[str, Any]) -> dict[str, Array]:
    arrays = {}
    for name, value in values.items():
        numbers = isinstance(value, list) and value and all(type(entry) in (int, float) for entry in value)
        array = read_array(np.asarray(value) if numbers else value)
        if array is not None and array.size <= LARGEST and is_usable(array):
            arrays[name] = array
    return arrays


def strip_ones(array: Array) -> Array:
    """The array without its leading axes of length 1, for comparing across a missing or an extra batch axis."""
    while array.ndim > 1 and array.shape[0] == 1:
        array = array[0]
    return array


def is_same(value: Array, other: Array | None) -> bool:
    """Whether two arrays agree within the tolerance of marking; one that is not usable agrees with nothing."""
    return other is not None and value.shape == other.shape and is_usable(other) and is_close(value, other)


def holds(cases: Cases, build: Callable[[Case], Array | None]) -> bool:
    """Whether the answer equals what `build` makes, on every case."""
    return all(is_same(case.value, build(case)) for case in cases)


def fit_factor(value: Array, base: Array | None) -> float | None:
    """The number c with `value == c * base`; None when there is none. At least three entries must agree."""
    if base is None or value.shape != base.shape or np.count_nonzero(base) < 3 or not is_usable(base):
        return None
    factor = float(np.vdot(base, value) / np.vdot(base, base))
    return factor if np.isfinite(factor) and factor != 0 and is_close(value, factor * base) else None


def fit_factors(cases: Cases, build: Callable[[Case], Array | None]) -> list[float] | None:
    """The factor of each case between the answer and what `build` makes; None when one case has none."""
    factors = []
    for case in cases:
        factor = fit_factor(case.value, build(case))
        if factor is None:
            return None
        factors.append(factor)
    return factors


def is_steady(numbers: Sequence[float]) -> bool:
    """Whether a number is the same on every case."""
    return all(abs(number - numbers[0]) <= 1e-5 * abs(numbers[0]) for number in numbers)


def may_show(cases: Cases) -> bool:
    """Whether a number that is the same on every case may be shown: the published input set gives it too.

    A number that only hidden sets give is never shown, or a student could have the grader print their contents.
    """
    return any(case.published for case in cases)
