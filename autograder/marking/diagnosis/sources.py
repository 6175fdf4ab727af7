"""Which of the notebook's arrays an answer was made of. Pure.

The answer is compared with every other name: itself, a piece of it, products and mixtures of two of them.
What is found is said as it is; it needs no right answer.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations, product

import msgspec
import numpy as np

from autograder.marking.diagnosis.changes import compute_softmax
from autograder.marking.diagnosis.factors import name_factors
from autograder.marking.diagnosis.nouns import (
    Array,
    Case,
    Cases,
    Explanation,
    fit_factor,
    is_same,
    is_steady,
    may_show,
    strip_ones,
)

_STALE = "An array does not follow when something that it was made of is exchanged later. What has to be computed anew?"
_SAME = "The exercise asks for another array in its place. Which one should it be?"
_NAMES = "Compare the names in your line with those in the task, one by one."
_PARTS_HINT = "Compare each part of this with the task: which arrays belong there, and how do they stand?"
_OWN_HINT = "Is your own array in it right already? If so, compare each part of this with the task."
Build = Callable[[Case], Array | None]
Index = tuple[int | slice, ...]
_PARTS: Index = (0, 1, -1, slice(None))


def explain_lesson_name(cases: Cases) -> tuple[Explanation, ...]:
    """The answer is one of the lesson's own arrays."""
    for name in cases[0].lesson:
        if all(_equals(case, case.lesson.get(name)) for case in cases):
            answer = cases[0].name
            if not all(case.fits or case.value.shape == case.lesson[name].shape for case in cases):
                said = f"`{answer}` holds all of the lesson's `{name}`."
                return (Explanation("equals-name", said, "Which part of it is asked for?"),)
            if name == find_base(answer, cases[0].lesson):
                hint = _STALE if cases[0].symbols[0] == "B" else _SAME
                return (Explanation("unchanged-copy", f"`{answer}` is the lesson's `{name}`, unchanged.", hint),)
            return (Explanation("equals-name", f"`{answer}` is the lesson's `{name}`.", _NAMES),)
    return ()


def explain_own_name(cases: Cases) -> tuple[Explanation, ...]:
    """The answer is the same as another answer."""
    for name in cases[0].own:
        if all(_equals(case, case.own.get(name)) for case in cases):
            said = f"`{cases[0].name}` holds the same numbers as your `{name}`."
            return (
                Explanation(
                    "equals-name", said, "Two names for one array, or a copied line where one name was not exchanged?"
                ),
            )
    return ()


def find_base(answer: str, lesson: dict[str, Array]) -> str | None:
    """The lesson's name that an answer's name begins with: `K` for `K_shared`, `Wk` for `Wk6`."""
    fitting = [name for name in lesson if answer.startswith(name) and not answer[len(name) : len(name) + 1].isalpha()]
    return max(fitting, key=len, default=None)


def _equals(case: Case, other: Array | None) -> bool:
    return other is not None and case.value.size > 2 and is_same(strip_ones(case.value), strip_ones(other))


def explain_source(cases: Cases) -> tuple[Explanation, ...]:
    """The answer is a piece of another array, a multiple of it, a product or a mixture of two."""
    for words, build in _iterate_pieces(cases[0]):
        if cases[0].value.size > 2 and all(_equals(case, build(case)) for case in cases):
            return (
                Explanation(
                    "piece-of-name",
                    f"`{cases[0].name}` is {words}.",
                    "Which array is asked for, and which of its positions?",
                ),
            )
    for kind, words, build in (*_iterate_turned(cases[0]), *_iterate_products(cases[0])):
        factors = _fit(cases, build)
        if factors:
            said = f"`{cases[0].name}` is {words}{_describe_multiple(cases, factors)}."
            return (
                Explanation(
                    kind,
                    said,
                    _OWN_HINT if "your `" in words else _PARTS_HINT,
                ),
            )
    return _explain_mixture(cases)


def _fit(cases: Cases, build: Build) -> list[float] | None:
    """The factors, where they are the same on every case or a known quantity."""
    factors: list[float] = []
    for case in cases:
        made = build(case)
        factor = None if made is None else fit_factor(strip_ones(case.value), strip_ones(made))
        if factor is None:
            return None
        factors.append(factor)
    return factors if is_steady(factors) or name_factors(cases, factors) else None


def _describe_multiple(cases: Cases, factors: list[float]) -> str:
    if all(abs(factor - 1) <= 1e-5 for factor in factors):
        return ""
    named = name_factors(cases, factors)
    if named:
        return f", times {named[0]}"
    return f", times {factors[0]:.4g}" if may_show(cases) else ", times a number"


def _take(case: Case, name: str) -> Array | None:
    lesson = case.lesson.get(name)
    return case.own.get(name) if lesson is None else lesson


def _write_name(case: Case, name: str) -> str:
    """The opening of a name in a sentence: an answer is the student's own."""
    return f"`{name}" if name in case.lesson else f"your `{name}"


def _iterate_names(case: Case) -> Iterator[str]:
    yield from (*case.lesson, *case.own)


def _iterate_pieces(case: Case) -> Iterator[tuple[str, Build]]:
    """Pieces with one to all axes indexed by 0, 1 or -1 that have the answer's shape."""
    shape = strip_ones(case.value).shape
    for name in _iterate_names(case):
        array = _take(case, name)
        if array is None or not 2 <= array.ndim <= 4:
            continue
        said = _write_name(case, name)
        for index in product(_PARTS, repeat=array.ndim):
            taken = [axis for axis, part in enumerate(index) if part != slice(None)]
            if not taken or len(taken) == array.ndim or not _is_within(array, index):
                continue
            if strip_ones(array[index]).shape == shape:
                yield f"{said}[{_write_index(index)}]`", partial(_take_piece, name=name, index=index)


def _is_within(array: Array, index: Index) -> bool:
    return all(isinstance(part, slice) or -n <= part < n for part, n in zip(index, array.shape, strict=True))


def _take_piece(case: Case, *, name: str, index: Index) -> Array | None:
    array = _take(case, name)
    return array[index] if array is not None and array.ndim == len(index) and _is_within(array, index) else None


def _write_index(index: Index) -> str:
    parts = [":" if isinstance(part, slice) else str(part) for part in index]
    while parts[-1] == ":":
        parts.pop()
    return ", ".join(parts)


def _iterate_turned(case: Case) -> Iterator[tuple[str, str, Build]]:
    for name in _iterate_names(case):
        said = f"{_write_name(case, name)}`"
        yield "equals-name", said, partial(_take, name=name)
        yield "equals-name", f"{said} with its last two axes swapped", partial(_turn, name=name)
        for axis in range(4):
            yield "summed-name", f"{said} summed over its axis number {axis}", partial(_sum_axis, name=name, axis=axis)
        yield "symmetrised", f"the mean of {said} and its transpose", partial(_symmetrize, name=name)


def _symmetrize(case: Case, *, name: str) -> Array | None:
    array, turned = _take(case, name), _turn(case, name=name)
    return (array + turned) / 2 if array is not None and turned is not None and array.shape == turned.shape else None


def _sum_axis(case: Case, *, name: str, axis: int) -> Array | None:
    array = _take(case, name)
    if array is None or not 2 <= array.ndim <= 4 or axis >= array.ndim or array.shape[axis] < 2:
        return None
    summed: Array = array.sum(axis=axis)
    return summed


def _turn(case: Case, *, name: str) -> Array | None:
    array = _take(case, name)
    return array.swapaxes(-1, -2) if array is not None and array.ndim > 1 else None


class _Form(msgspec.Struct, frozen=True):
    """One way to combine two arrays: each is prepared, then they are multiplied as matrices or entry by entry."""

    kind: str
    words: str
    left: Callable[[Array], Array] = lambda a: a
    right: Callable[[Array], Array] = lambda b: b
    entrywise: bool = False


def _swap(array: Array) -> Array:
    return array.swapaxes(-1, -2)


def _scale_rows(array: Array) -> Array:
    scaled: Array = array / np.sqrt((array**2).sum(axis=-1, keepdims=True))
    return scaled


FORMS = (
    _Form("product-of-names", "the product of {a} and {b}"),
    _Form("product-of-names", "the product of {a} and {b}, with the axes of {b} swapped", right=_swap),
    _Form("product-of-names", "the product of {a}, with its axes swapped, and {b}", left=_swap),
    _Form(
        "reshaped",
        "the product of {a} and {b}, where {b} was reshaped and not transposed",
        right=lambda b: b.reshape(_swap(b).shape),
    ),
    _Form(
        "cosine",
        "the product of {a} and {b}, with each of their vectors first scaled to length 1",
        left=_scale_rows,
        right=lambda b: _swap(_scale_rows(b)),
    ),
    _Form("entrywise-product", "{a} times {b}, entry by entry", entrywise=True),
    _Form("after-attention", "{b} mixed with the attention weights of {a}", left=lambda a: compute_softmax(a, -1)),
)


def _iterate_products(case: Case) -> Iterator[tuple[str, str, Build]]:
    for form, first, second in product(FORMS, _iterate_names(case), _iterate_names(case)):
        if form.entrywise and first > second:
            continue
        yield (
            form.kind,
            form.words.format(a=f"{_write_name(case, first)}`", b=f"{_write_name(case, second)}`"),
            partial(_combine, first=first, second=second, form=form),
        )


def _combine(case: Case, *, first: str, second: str, form: _Form) -> Array | None:
    """Two arrays combined, where their shapes allow it and the result has as many entries as the answer."""
    left, right = _take(case, first), _take(case, second)
    if left is None or right is None or left.ndim < 2 or right.ndim < 2:
        return None
    left, right = form.left(left), form.right(right)
    if form.entrywise:
        return left * right if left.shape == right.shape and left.size == case.value.size else None
    if left.shape[-1] != right.shape[-2] or (left.ndim > 2 and right.ndim > 2 and left.shape[:-2] != right.shape[:-2]):
        return None
    stacks = max(left.size // (left.shape[-1] * left.shape[-2]), right.size // (right.shape[-1] * right.shape[-2]))
    return left @ right if stacks * left.shape[-2] * right.shape[-1] == case.value.size else None


def _explain_mixture(cases: Cases) -> tuple[Explanation, ...]:
    """The answer is a sum of multiples of two arrays; one may be the right answer itself."""
    names = [name for name in cases[0].lesson if cases[0].lesson[name].shape == cases[0].value.shape]
    pairs = [*combinations(names, 2), *((None, name) for name in names)]
    for first, second in pairs:
        weights = [_solve_mixture(case, first, second) for case in cases]
        if all(weight is not None for weight in weights):
            firsts, seconds = zip(*(weight for weight in weights if weight is not None), strict=True)
            if is_steady(firsts) and is_steady(seconds):
                of = f"of `{first}` and `{second}`" if first else f"of the right numbers and `{second}`"
                hint = (
                    "One array should take the place of another. Look for a sum, a mean, or for `+=` on an "
                    "array that is still in use."
                )
                return (Explanation("mixture", f"`{cases[0].name}` is a mixture {of}.", hint),)
    return ()


def _solve_mixture(case: Case, first: str | None, second: str) -> tuple[float, float] | None:
    left, right = case.wanted if first is None else case.lesson.get(first), case.lesson.get(second)
    if left is None or right is None or not left.shape == right.shape == case.value.shape or left.size < 6:
        return None
    columns = np.stack([left.ravel(), right.ravel()], axis=1)
    weights, _, rank, _ = np.linalg.lstsq(columns, case.value.ravel())
    if rank < 2 or np.abs(weights).min() < 1e-3:
        return None
    return (
        (float(weights[0]), float(weights[1])) if is_same(case.value, (columns @ weights).reshape(left.shape)) else None
    )
