"""Right in a part, right but for rounding, or no numbers at all: what the entries themselves show. Pure."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from autograder.marking.compare import TOLERANCE, is_close, is_usable
from autograder.marking.diagnosis.nouns import TYPED_IN, Array, Case, Cases, Explanation, is_steady, may_show

Mask = NDArray[np.bool_]

_MASK_HINT = "A mask hides later positions from earlier ones. Is one asked for here?"


def explain_constant(cases: Cases) -> tuple[Explanation, ...]:
    """Every entry is the same number while the right ones differ."""
    name = cases[0].name
    if not all(case.value.size > 1 and is_usable(case.wanted) and np.ptp(case.value) == 0 for case in cases):
        return ()
    numbers = {float(case.value.flat[0]) for case in cases}
    if numbers == {0.0}:
        hint = "Is an array of zeros waiting to be filled, or were small numbers cut down to whole ones?"
        return (Explanation("constant", f"Every entry of `{name}` is 0.", hint),)
    return (
        Explanation(
            "constant",
            f"All entries of `{name}` are the same number.",
            "The answer depends on the input; compute it from there.",
        ),
    )


def explain_same_numbers(cases: Cases) -> tuple[Explanation, ...]:
    """The same numbers on every input set while the right ones change."""
    first = cases[0]
    if not any(not is_close(case.wanted, first.wanted) for case in cases[1:]):
        return ()
    if not all(case.value.size > 1 and np.array_equal(case.value, first.value) for case in cases):
        return ()
    return (
        Explanation(
            TYPED_IN,
            f"`{first.name}` holds the same numbers for every input, and does not follow the lesson's variables.",
            "Which variables does this answer depend on? Use these, so that it is right for every input.",
        ),
    )


def explain_not_finite(cases: Cases) -> tuple[Explanation, ...]:
    """NaN or infinity, and where; a mask of minus infinity is told by its shape."""
    if any(np.isfinite(case.value).all() for case in cases):
        return ()
    name = cases[0].name
    if all(case.fits and _is_above_diagonal(case.value, np.isneginf(case.value)) for case in cases):
        said = f"`{name}` is minus infinity above the diagonal: a causal mask was laid on."
        return (Explanation("causal-mask", said, _MASK_HINT),)
    has_nan = all(np.isnan(case.value).any() for case in cases)
    what = (
        "not a number (NaN)"
        if has_nan
        else "infinite"
        if all(np.isinf(case.value).any() for case in cases)
        else "not finite"
    )
    hint = (
        "NaN comes from 0/0, from infinity minus infinity, from roots and logarithms of negative numbers."
        if has_nan
        else "Infinity comes from a division by 0, from the exponential of a large number, or from a mask."
    )
    return (Explanation("not-finite", f"`{name}` is {what} in {_locate_bad(cases)}.", hint),)


def _locate_bad(cases: Cases) -> str:
    places: tuple[tuple[str, Callable[[Array], Mask]], ...] = (
        ("all entries", lambda a: np.ones(a.shape, np.bool_)),
        ("the entries on the diagonal", lambda a: np.broadcast_to(np.eye(*a.shape[-2:], dtype=np.bool_), a.shape)),
        ("the entries above the diagonal", lambda a: np.broadcast_to(~np.tri(*a.shape[-2:], dtype=np.bool_), a.shape)),
        ("the entries below the diagonal", lambda a: _above(a.swapaxes(-1, -2)).swapaxes(-1, -2)),
    )
    for words, build in places:
        if all(
            (words == "all entries" or case.value.ndim > 1)
            and np.array_equal(~np.isfinite(case.value), build(case.value))
            for case in cases
        ):
            return words
    return "some entries"


def _is_above_diagonal(value: Array, mask: Mask) -> bool:
    return value.ndim > 1 and value.shape[-1] == value.shape[-2] > 1 and np.array_equal(mask, _above(value))


def _above(value: Array) -> Mask:
    return np.broadcast_to(~np.tri(*value.shape[-2:], dtype=np.bool_), value.shape)


def explain_rounding(cases: Cases) -> tuple[Explanation, ...]:
    """The right numbers, rounded to some digits after the point, or kept in half precision."""
    name = cases[0].name
    for digits in range(9):
        if all(_is_rounded(case, digits) for case in cases):
            much = "a whole number" if digits == 0 else f"{digits} digit{'s' * (digits > 1)} after the point"
            said = f"`{name}` holds the right numbers, rounded to {much}."
            return (
                Explanation(
                    "rounded", said, "Rounding is for the eye: print rounded numbers, hand in those that were computed."
                ),
            )
    if all(_is_half(case) for case in cases):
        hint = "Half precision (float16) keeps about three digits. Leave the numbers as they were computed."
        return (Explanation("rounded", f"`{name}` holds the right numbers in half precision.", hint),)
    return ()


def _is_rounded(case: Case, digits: int) -> bool:
    rounded = np.round(case.wanted, digits)
    return is_usable(rounded) and bool((np.abs(case.value - rounded) <= 1e-3 * 10.0**-digits).all())


def _is_half(case: Case) -> bool:
    half = case.wanted.astype(np.float16).astype(np.float64)
    return is_usable(half) and not is_close(half, case.wanted) and is_close(case.value, half, 1e-7)


def explain_nearness(cases: Cases) -> tuple[Explanation, ...]:
    """Off by less than a thousandth of the spread: something on the way was rounded."""
    if not all(np.abs(case.value - case.wanted).max() <= 1e-3 * np.ptp(case.wanted) for case in cases):
        return ()
    said = f"`{cases[0].name}` is nearly right: every entry is off by less than a thousandth of their range."
    return (
        Explanation(
            "nearly",
            said,
            "Were rounded or typed numbers, or half precision, used on the way? Keep all digits until the end.",
        ),
    )


def explain_offset(cases: Cases) -> tuple[Explanation, ...]:
    """A number added to every entry, or a row of numbers added to every row (a bias)."""
    name = cases[0].name
    gaps = [case.value - case.wanted for case in cases]
    limits = [
        TOLERANCE * max(np.abs(case.wanted).max(), np.abs(gap).max()) for case, gap in zip(cases, gaps, strict=True)
    ]
    if all(gap.size > 3 and np.ptp(gap) <= limit for gap, limit in zip(gaps, limits, strict=True)):
        offsets = [float(gap.mean()) for gap in gaps]
        steady = is_steady(offsets) and may_show(cases)
        much = (
            f"{abs(offsets[0]):.4g} too {'large' if offsets[0] > 0 else 'small'}"
            if steady
            else "off by one and the same number"
        )
        return (
            Explanation("offset", f"Every entry of `{name}` is {much}.", "What was added that does not belong there?"),
        )
    for axis, words in ((-2, "row"), (-1, "column")):
        if all(
            gap.ndim > 1 and gap.shape[axis] > 2 and np.ptp(gap, axis=axis).max() <= limit
            for gap, limit in zip(gaps, limits, strict=True)
        ):
            said = f"The same {words} of numbers was added to every {words} of `{name}`."
            return (Explanation("offset", said, "Is there a bias, or a mean, that does not belong there?"),)
    return ()


def explain_order(cases: Cases) -> tuple[Explanation, ...]:
    """The right rows or columns in another order, or the right entries in other places."""
    name = cases[0].name
    for axis, words in ((-2, "rows"), (-1, "columns")):
        if all(_is_reordered(case, axis) for case in cases):
            hint = (
                f"Follow the order of the {words} through each step: sorting, sets, shuffles and fancy "
                "indexing change it."
            )
            return (Explanation("permuted", f"`{name}` has the right {words} in another order.", hint),)
    if all(_holds_same_entries(case) for case in cases):
        hint = (
            "Reshaping, turning and sorting move numbers without changing them. Which of them is used, and "
            "is it the right one?"
        )
        return (Explanation("permuted", f"`{name}` holds the right numbers in the wrong places.", hint),)
    return ()


def _is_reordered(case: Case, axis: int) -> bool:
    if case.wanted.ndim < 2 or not 2 <= case.wanted.shape[axis] <= 64:
        return False
    value, wanted = (np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1) for array in (case.value, case.wanted))
    if value.shape[1] < 2:
        return False
    gaps = np.abs(value[:, np.newaxis] - wanted[np.newaxis]).max(axis=-1)
    order = gaps.argmin(axis=1)
    fits = gaps[np.arange(len(order)), order] <= TOLERANCE * np.abs(wanted).max()
    return bool(fits.all()) and sorted(order) == list(range(len(order)))


def _holds_same_entries(case: Case) -> bool:
    value, wanted = np.sort(case.value, axis=None), np.sort(case.wanted, axis=None)
    return len(np.unique(wanted)) >= 4 and is_close(value, wanted)


def explain_part(cases: Cases) -> tuple[Explanation, ...]:
    """Right in one part of the array and wrong in all the rest."""
    for words, hint, build in _iterate_parts(cases[0]):
        if all(_is_right_exactly_on(case, build(case.wanted)) for case in cases):
            said = f"`{cases[0].name}` is right {words}."
            if words == _BELOW and all(_is_hidden_above(case) for case in cases):
                said = f"`{cases[0].name}` is right up to the diagonal and masked above it: a causal mask was laid on."
                return (Explanation("causal-mask", said, _MASK_HINT),)
            return (Explanation("partly-right", said, hint),)
    return ()


_BELOW = "up to the diagonal only, and wrong above it"
Part = tuple[str, str, Callable[[Array], Mask]]


def _iterate_parts(case: Case) -> Iterator[Part]:
    square = case.wanted.ndim > 1 and case.wanted.shape[-1] == case.wanted.shape[-2] > 2
    if square:
        hint = "Do rows and columns both run over all positions?"
        yield _BELOW, hint, lambda a: ~_above(a)
        yield "above the diagonal only, and wrong from there on down", hint, _above
        yield (
            "but for its diagonal",
            "What was done to the diagonal?",
            lambda a: np.broadcast_to(~np.eye(*a.shape[-2:], dtype=np.bool_), a.shape),
        )
        yield "on its diagonal only", hint, lambda a: np.broadcast_to(np.eye(*a.shape[-2:], dtype=np.bool_), a.shape)
        ends = "Does the loop reach the ends of both axes?"
        yield "but for its last row and its last column", ends, partial(_mark_inner, index=-1)
        yield "but for its first row and its first column", ends, partial(_mark_inner, index=0)
    for symbol, size in case.sizes.items():
        if 0 < size < case.wanted.shape[-1]:
            hint = "Where do the columns that are wrong come from?"
            yield f"in its first {symbol} columns only", hint, partial(_mark_columns, stop=size, inside=True)
            yield f"but for its first {symbol} columns", hint, partial(_mark_columns, stop=size, inside=False)
    for axis in range(case.wanted.ndim):
        if case.wanted.shape[axis] > 2:
            yield from _iterate_slices(axis, f"along its {_name_axis(case, axis)}")


def _name_axis(case: Case, axis: int) -> str:
    symbol = case.symbols[axis]
    if case.symbols.count(symbol) == 1:
        return f"axis {symbol}"
    return "last axis" if axis == len(case.symbols) - 1 else f"axis number {axis + 1} of {len(case.symbols)}"


def _iterate_slices(axis: int, along: str) -> Iterator[Part]:
    loop = "Look at where the loop or the slice begins and ends."
    ends = (
        (0, True, "for the first entry only"),
        (-1, True, "for the last entry only"),
        (0, False, "but for the first entry"),
        (-1, False, "but for the last entry"),
    )
    for index, inside, words in ends:
        yield f"{words} {along}", loop, partial(_mark_slice, axis=axis, index=index, inside=inside)
    yield f"for every second entry {along} only", "Look for a step of 2.", lambda a: _mark_every_second(a, axis)


def _mark_slice(array: Array, *, axis: int, index: int, inside: bool) -> Mask:
    mask = np.full(array.shape, not inside)
    np.moveaxis(mask, axis, 0)[index] = inside
    return mask


def _mark_inner(array: Array, *, index: int) -> Mask:
    mask = np.ones(array.shape, np.bool_)
    mask[..., index, :] = mask[..., index] = False
    return mask


def _mark_columns(array: Array, *, stop: int, inside: bool) -> Mask:
    mask = np.full(array.shape, not inside)
    mask[..., :stop] = inside
    return mask


def _mark_every_second(array: Array, axis: int) -> Mask:
    mask = np.zeros(array.shape, np.bool_)
    np.moveaxis(mask, axis, 0)[::2] = True
    return mask


def _is_right_exactly_on(case: Case, mask: Mask) -> bool:
    """Whether the answer is right on the mask and nearly nowhere else: at least three entries, not all alike."""
    right = np.abs(case.value - case.wanted) <= TOLERANCE * np.abs(case.wanted).max()
    if not right[mask].all() or np.ptp(case.wanted[mask]) == 0 or mask.sum() < 3:
        return False
    wrong = ~mask & ~right
    return bool(wrong.any()) and right[~mask].mean() <= 0.1


def _is_hidden_above(case: Case) -> bool:
    above = case.value[_above(case.value)]
    return bool((above == 0).all() or (above < -100 * np.abs(case.wanted).max()).all())


def explain_weights(cases: Cases) -> tuple[Explanation, ...]:
    """Positive numbers whose rows sum to 1 while the right ones do not: weights in place of scores."""
    for axis, words in ((-1, "row"), (-2, "column")):
        if all(_sums_to_one(case.value, axis) and not _sums_to_one(case.wanted, axis) for case in cases):
            said = f"Each {words} of `{cases[0].name}` is positive and sums to 1, as after a softmax."
            return (
                Explanation(
                    "softmaxed",
                    said,
                    "These are attention weights. Are the weights asked for here, or the scores that they are made of?",
                ),
            )
    return ()


def _sums_to_one(array: Array, axis: int) -> bool:
    if array.ndim < 2 or array.shape[axis] < 2 or array.size < 6 or (array < 0).any():
        return False
    return bool((np.abs(array.sum(axis=axis) - 1) <= 1e-5).all())
