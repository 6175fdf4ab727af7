"""Arrays of a wrong shape, in the exercise's own symbols. Pure.

Numbers are named for the published input set only; lengths of a hidden set never are.
"""

from collections import Counter

import numpy as np

from autograder.marking.diagnosis.nouns import Array, Case, Cases, Explanation, may_show, strip_ones

_RESHAPE = "Reshaping keeps the numbers in reading order and only cuts the rows elsewhere; rows do not become columns."
_ORDINALS = ("first", "second", "third", "fourth")


def explain_shape(cases: Cases) -> Explanation | None:
    """What is wrong with the shape; all cases must have a wrong one, or one and the same on inputs of other lengths."""
    if is_fixed(cases):
        name = cases[0].name
        return Explanation(
            "fixed-length",
            f"`{name}` has the same shape for every input, but the shape "
            f"{describe_symbols(cases[0].symbols)} depends on it.",
            "Is a length written down as a number somewhere? Take it from the data instead.",
        )
    if any(case.fits for case in cases):
        return None
    if all(case.value.size == 0 for case in cases):
        return Explanation(
            "empty", f"`{cases[0].name}` is an array without entries.", "Which slice, loop or filter left nothing over?"
        )
    yours, asked = symbolize_shape(cases), cases[0].symbols
    kind, verdict, hint = _classify(yours, asked, cases)
    right = ""
    if all(has_right_numbers(case) for case in cases):
        right = " The numbers themselves are right."
    elif kind in ("axes-swapped", "axes-moved", "reshaped", "flattened") and all(_reads_right(case) for case in cases):
        kind, right, hint = "reshaped", " The numbers stand in the right order and are cut into other rows.", _RESHAPE
    return Explanation(kind, f"{_describe_both(cases, yours)}{verdict}.{right}", hint)


def is_fixed(cases: Cases) -> bool:
    """Whether the shape is right for the published input and stays like that while the asked shape changes.

    Where the published input set is not among the cases, all axes that should not change must be right.
    """
    if len({case.value.shape for case in cases}) > 1 or len({case.wanted.shape for case in cases}) == 1:
        return False
    published = next((case for case in cases if case.published), None)
    if published is not None:
        return published.fits
    steady = [
        axis
        for axis, lengths in enumerate(zip(*(case.wanted.shape for case in cases), strict=True))
        if len(set(lengths)) == 1
    ]
    value, wanted = cases[0].value, cases[0].wanted
    return value.ndim == wanted.ndim and all(value.shape[axis] == wanted.shape[axis] for axis in steady)


def has_right_numbers(case: Case) -> bool:
    """Whether the answer holds the right numbers, with its axes in another order or with extra axes of length 1."""
    value, wanted = strip_ones(case.value.squeeze()), strip_ones(case.wanted.squeeze())
    if not 1 <= value.ndim == wanted.ndim <= 4:
        return False
    scale = np.abs(wanted).max(initial=0.0)
    return any(_agrees(value.transpose(order), wanted, scale) for order in _list_orders(value.ndim))


def _reads_right(case: Case) -> bool:
    """Whether the answer holds the right numbers in reading order."""
    return _agrees(case.value.ravel(), case.wanted.ravel(), np.abs(case.wanted).max(initial=0.0))


def _list_orders(axes: int) -> list[tuple[int, ...]]:
    plain = tuple(range(axes))
    swapped = (*plain[:-2], *plain[:-3:-1]) if axes > 1 else plain
    return [plain, swapped, plain[::-1], (*plain[1:], plain[0]), (plain[-1], *plain[:-1])]


def _agrees(value: Array, wanted: Array, scale: float) -> bool:
    return value.shape == wanted.shape and scale > 0 and bool((np.abs(value - wanted) <= 1e-5 * scale).all())


def symbolize_shape(cases: Cases) -> tuple[str, ...]:
    """The answer's shape in symbols that fit on every case; `?` for an axis that has none.

    Empty when the number of axes differs between the cases.
    """
    if len({case.value.ndim for case in cases}) != 1:
        return ()
    return tuple(_symbolize_axis(cases, axis) for axis in range(cases[0].value.ndim))


def _symbolize_axis(cases: Cases, axis: int) -> str:
    asked = cases[0].symbols
    lengths = [case.value.shape[axis] for case in cases]
    here = asked[axis : axis + 1] if cases[0].value.ndim == len(asked) else ()
    for symbol in (*here, *asked, *cases[0].sizes):
        known = [int(symbol) if symbol.isdigit() else case.sizes.get(symbol, -1) for case in cases]
        if known == lengths and (lengths[0] > 1 or symbol in asked):
            return symbol
    steady = len(set(lengths)) == 1 and (may_show(cases) or lengths[0] == 1)
    return str(lengths[0]) if steady else "?"


def describe_symbols(symbols: tuple[str, ...]) -> str:
    """`("B", "T")` -> `(B, T)`, and `(hs,)` for a single axis."""
    return f"({symbols[0]},)" if len(symbols) == 1 else f"({', '.join(symbols)})"


def _describe_both(cases: Cases, yours: tuple[str, ...]) -> str:
    name, asked = cases[0].name, describe_symbols(cases[0].symbols)
    published = next((case for case in cases if case.published), None)
    if published is not None:
        return (
            f"`{name}`: expected {asked}, on the published input {published.wanted.shape}; "
            f"yours is {published.value.shape}"
        )
    seen = f"; yours is {describe_symbols(yours)}" if yours and "?" not in yours else "; yours is another"
    return f"`{name}`: expected {asked}{seen}"


def _classify(yours: tuple[str, ...], asked: tuple[str, ...], cases: Cases) -> tuple[str, str, str]:
    """A kind, what to say of the two shapes (it follows both), and a hint."""
    same_axes = Counter(yours) == Counter(asked)
    if same_axes and yours == (*asked[:-2], *asked[:-3:-1]):
        return "axes-swapped", ": the last two axes are swapped", "What should a row stand for, and what a column?"
    if same_axes and yours == asked[::-1]:
        hint = "On a stack of matrices `.T` turns around all axes, the batch axis too. Which two should change places?"
        return "axes-reversed", ": all axes are in reverse order", hint
    if same_axes:
        return (
            "axes-moved",
            ": the axes are in another order",
            "Name each axis of your array, then compare with what is asked.",
        )
    for compare in (_find_outer, _find_extra, _find_missing, _find_other_length):
        found = compare(yours, asked)
        if found:
            return found
    return _find_short_axis(cases) or _compare_sizes(cases, yours)


def _find_extra(yours: tuple[str, ...], asked: tuple[str, ...]) -> tuple[str, str, str] | None:
    if len(yours) == len(asked) + 1:
        for axis, symbol in enumerate(yours):
            if yours[:axis] + yours[axis + 1 :] != asked or symbol not in ("1", "B"):
                continue
            if axis == 0:
                return (
                    "extra-batch-axis",
                    ": there is one axis too many in front",
                    "Which of the arrays that you used has a batch axis, and does this answer need one?",
                )
            return (
                "extra-axis",
                ": there is one axis of length 1 too many",
                "Index it away, or do not make it: look at `newaxis`, `keepdims` and slices.",
            )
    return None


def _find_missing(yours: tuple[str, ...], asked: tuple[str, ...]) -> tuple[str, str, str] | None:
    if yours and len(yours) == len(asked) - 1:
        for axis, symbol in enumerate(asked):
            if asked[:axis] + asked[axis + 1 :] != yours:
                continue
            if axis == 0 and symbol == "B":
                return (
                    "missing-batch-axis",
                    ": the batch axis is missing",
                    "Keep all sequences of the batch together instead of picking one.",
                )
            return (
                "missing-axis",
                f": the axis {symbol} is missing",
                "It was summed or indexed away. Which step should have kept it?",
            )
    return None


def _find_outer(yours: tuple[str, ...], asked: tuple[str, ...]) -> tuple[str, str, str] | None:
    if len(yours) <= len(asked) or yours[0] != "B" or "B" not in yours[2:-1]:
        return None
    hint = (
        "On stacks of matrices `np.dot` and `np.tensordot` pair every matrix of one stack with every matrix of the "
        "other. A matrix product pairs them one by one."
    )
    return "outer-axes", ": there is an axis too many in the middle, as `np.dot` makes it of stacks of matrices", hint


def _find_other_length(yours: tuple[str, ...], asked: tuple[str, ...]) -> tuple[str, str, str] | None:
    if len(yours) != len(asked):
        return None
    wrong = [axis for axis in range(len(asked)) if yours[axis] != asked[axis]]
    if len(wrong) != 1 or yours[wrong[0]] == "?":
        return None
    axis = wrong[0]
    where = "last" if axis == len(asked) - 1 else _ORDINALS[min(axis, 3)]
    said = f": the {where} axis is {yours[axis]} where {asked[axis]} is asked"
    return "wrong-axis-length", said, "Which of the arrays that went in brought this length along?"


def _find_short_axis(cases: Cases) -> tuple[str, str, str] | None:
    """One axis that is too short or too long by one on every case."""
    if any(case.value.ndim != case.wanted.ndim for case in cases):
        return None
    gaps = {tuple(a - b for a, b in zip(case.value.shape, case.wanted.shape, strict=True)) for case in cases}
    gap = gaps.pop()
    if gaps or sorted(map(abs, gap)) != [0] * (len(gap) - 1) + [1]:
        return None
    axis = next(axis for axis, by in enumerate(gap) if by)
    said = f": the axis {cases[0].symbols[axis]} is too {'long' if gap[axis] > 0 else 'short'} by one"
    return "wrong-axis-length", said, "Look at where the slice or the loop begins and ends."


def _compare_sizes(cases: Cases, yours: tuple[str, ...]) -> tuple[str, str, str]:
    if all(case.value.size == case.wanted.size for case in cases):
        if all(case.value.ndim == 1 for case in cases):
            return "flattened", ": all entries stand in one row", "Which call took the rows apart?"
        return (
            "reshaped",
            ": as many entries, cut into other rows",
            "Reshaping cuts the numbers anew; it does not compute or turn anything.",
        )
    more = "more" if all(case.value.ndim > case.wanted.ndim for case in cases) else ""
    less = "fewer" if all(case.value.ndim < case.wanted.ndim for case in cases) else ""
    said = f": it has {more or less} axes" if more or less else ""
    if not said and yours and all(symbol.isidentifier() for symbol in yours):
        said = f", that is {describe_symbols(yours)}"
    return "wrong-shape", said, "Write the shape of every array in the line that makes it, and follow the axes through."
