"""Wrong truth values, numbers, counts and texts of the right kind. Pure."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from autograder.marking.diagnosis.nouns import Difference, Explanation, read_sizes

FROM_SEVERAL = frozenset({"rounded", "sign-flipped", "scaled-by", "other-count"})
"""Kinds of explanations of one number that take several input sets to be sure. Few of them fit what one set gives."""

_COUNT_HINT = "What is counted here, how many of these arrays are there, and which lengths does each of them have?"


def explain_scalar(differences: Sequence[Difference], published_seed: int | None) -> tuple[Explanation, ...]:
    """A truth value, a number, a count or a text of the right kind with a wrong value."""
    kind = differences[0].kind
    if kind == "bool":
        return explain_bool(differences)
    if kind == "text":
        return explain_text(differences)
    numbers = [read_number(difference.value) for difference in differences]
    wanted = [read_number(difference.wanted) for difference in differences]
    if None in numbers or None in wanted:
        return ()
    pairs = [
        (value, right) for value, right in zip(numbers, wanted, strict=True) if value is not None and right is not None
    ]
    name = differences[0].name
    if kind == "whole number":
        return explain_count(differences, pairs, published_seed)
    return _explain_real(name, pairs) if any(each.seed == published_seed for each in differences) else ()


def read_number(value: object) -> float | None:
    """A number, also one in an array of one entry; None for anything else."""
    if isinstance(value, np.ndarray | np.generic) and value.size == 1:
        value = value.item()
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            return None
        return number if math.isfinite(number) else None
    return None


def explain_bool(differences: Sequence[Difference]) -> tuple[Explanation, ...]:
    """The opposite truth value, on every failing input set."""
    values = [_read_bool(difference.value) for difference in differences]
    if any(value is None or value == bool(each.wanted) for value, each in zip(values, differences, strict=True)):
        return ()
    said = f"`{differences[0].name}` has the wrong truth value."
    hint = (
        "If the arrays that it compares are wrong, put these right first. Otherwise: compare exactly what the question "
        "names, all entries, along the right axes, and with room for rounding; `is` compares objects, not numbers."
    )
    return (Explanation("opposite-bool", said, hint),)


def _read_bool(value: object) -> bool | None:
    if isinstance(value, np.ndarray) and value.dtype.kind == "b" and value.size == 1:
        return bool(value.item())
    return value if isinstance(value, bool) else None


def explain_text(differences: Sequence[Difference]) -> tuple[Explanation, ...]:
    """A text that differs in capitals or blanks only."""
    pairs = [(str(each.value), str(each.wanted)) for each in differences]
    name = differences[0].name
    if all(value.split() == right.split() for value, right in pairs):
        return (
            Explanation(
                "text-blanks",
                f"`{name}` has the right words and other blanks or line ends.",
                "Look for blanks at the ends.",
            ),
        )
    if all(value.casefold().split() == right.casefold().split() for value, right in pairs):
        return (
            Explanation(
                "text-capitals", f"`{name}` differs in capital and small letters.", "Compare letter by letter."
            ),
        )
    return ()


def _explain_real(name: str, pairs: Sequence[tuple[float, float]]) -> tuple[Explanation, ...]:
    if len(pairs) < 2 or len({right for _, right in pairs}) < 2 or any(right == 0 for _, right in pairs):
        return ()
    for digits in range(9):
        if all(abs(value - round(right, digits)) <= 1e-3 * 10.0**-digits for value, right in pairs):
            hint = "Rounding is for the eye: print a rounded number, hand in the one that was computed."
            return (Explanation("rounded", f"`{name}` is the right number, but rounded.", hint),)
    ratios = [value / right for value, right in pairs]
    if any(abs(ratio - ratios[0]) > 1e-6 * abs(ratios[0]) for ratio in ratios) or ratios[0] == 0:
        return ()
    if abs(ratios[0] + 1) <= 1e-6:
        return (
            Explanation(
                "sign-flipped", f"`{name}` has the wrong sign.", "Look for a difference taken the wrong way round."
            ),
        )
    said = f"`{name}` is {ratios[0]:.4g} times what it should be, on every input."
    return (Explanation("scaled-by", said, "Which number was multiplied in, or left out?"),)


def explain_count(
    differences: Sequence[Difference], pairs: Sequence[tuple[float, float]], published_seed: int | None
) -> tuple[Explanation, ...]:
    """A count that follows from the right one by one slip: another number of arrays, another length, a bias.

    The right count is read as so many arrays of one shape, a shape that the notebook has; each slip changes one
    part of it. Nothing is said when more than two slips come to the same number.
    """
    name = differences[0].name
    values = [value for value, _ in pairs]
    found = dict.fromkeys(
        words for words, counts in _iterate_slips(differences, pairs, published_seed) if counts == values
    )
    if found and len(found) <= 2:
        said = f"`{name}` comes out like this when {', or when '.join(found)}."
        return (Explanation("other-count", said, _COUNT_HINT),)
    for other in _find_arrays_of_size(differences, values):
        said = f"`{name}` is the number of entries of {other} alone."
        return (Explanation("other-count", said, _COUNT_HINT),)
    if all(value == 0 for value, _ in pairs):
        return (Explanation("constant", f"`{name}` is 0.", _COUNT_HINT),)
    if all(value == -right for value, right in pairs):
        return (Explanation("sign-flipped", f"`{name}` has the wrong sign.", "A count is never below zero."),)
    return ()


def _find_arrays_of_size(differences: Sequence[Difference], counts: list[float]) -> Iterator[str]:
    """Arrays of the notebook with as many entries as counted, on every case."""
    for name in (*differences[0].inputs, *differences[0].answers):
        arrays = [each.inputs.get(name, each.answers.get(name)) for each in differences]
        if [array.size if isinstance(array, np.ndarray) else None for array in arrays] == counts:
            yield f"`{name}`" if name in differences[0].inputs else f"your `{name}`"


def _iterate_slips(
    differences: Sequence[Difference], pairs: Sequence[tuple[float, float]], published_seed: int | None
) -> Iterator[tuple[str, list[float]]]:
    """Words for a slip, and the counts that it gives on the cases."""
    lengths = _collect_lengths(differences)
    readings = _read_as_arrays(differences, lengths, [right for _, right in pairs])
    if len(readings) != 1:
        return
    many, (rows, columns) = readings[0]
    one = _multiply(lengths[rows], lengths[columns])
    if many > 1:
        yield "a single array is counted", one
        for other in range(2, many):
            yield f"only {other} arrays are counted", [other * size for size in one]
        yield "one array too many is counted", [(many + 1) * size for size in one]
        yield "the sizes of the arrays are multiplied with each other instead of added", [size**many for size in one]
    yield "biases are counted too", [many * (size + bias) for size, bias in zip(one, lengths[columns], strict=True)]
    for left_out, kept in ((rows, columns), (columns, rows)):
        shown = left_out.isidentifier() or any(each.seed == published_seed for each in differences)
        yield f"{f'the length {left_out}' if shown else 'one length'} is left out", [many * n for n in lengths[kept]]
        for name, numbers in lengths.items():
            if name not in (rows, columns) and name.isidentifier() and numbers != lengths[left_out]:
                counts = [many * size for size in _multiply(numbers, lengths[kept])]
                yield f"the length {name} stands where another one belongs", counts


def _multiply(left: list[float], right: list[float]) -> list[float]:
    return [a * b for a, b in zip(left, right, strict=True)]


def _collect_lengths(differences: Sequence[Difference]) -> dict[str, list[float]]:
    """Lengths above 1 by name, one for each case: the lesson's, and the exercise's own from axes of the answers."""
    sizes = [read_sizes(difference.inputs) for difference in differences]
    names = [name for name in sizes[0] if all(size.get(name, 0) > 1 for size in sizes)]
    lengths = {name: [float(size[name]) for size in sizes] for name in names}
    if len(differences) > 1:
        shapes = _collect_shapes(differences)
        steady = {
            n for by_case in shapes for axis in zip(*by_case, strict=True) for n in axis[:1] if len(set(axis)) == 1
        }
        known = {int(numbers[0]) for numbers in lengths.values()}
        lengths |= {str(n): [float(n)] * len(sizes) for n in sorted(steady - known) if 1 < n <= 1024}
    return lengths


def _collect_shapes(differences: Sequence[Difference]) -> list[tuple[tuple[int, int], ...]]:
    """For each answer that is a matrix on every case: its shape on each case."""
    shapes = []
    for name in differences[0].answers:
        values = [difference.answers.get(name) for difference in differences]
        arrays = [value for value in values if isinstance(value, np.ndarray) and value.ndim == 2]
        if len(arrays) == len(values):
            shapes.append(tuple((array.shape[0], array.shape[1]) for array in arrays))
    return shapes


def _read_as_arrays(
    differences: Sequence[Difference], lengths: dict[str, list[float]], wanted: list[float]
) -> list[tuple[int, tuple[str, str]]]:
    """How many matrices of which shape the right count is, on every case."""
    names = {tuple(numbers): name for name, numbers in reversed(lengths.items())}
    readings = set()
    for by_case in _collect_shapes(differences):
        rows, columns = (names.get(tuple(float(n) for n in axis)) for axis in zip(*by_case, strict=True))
        if rows is None or columns is None:
            continue
        many = {right / size for right, size in zip(wanted, _multiply(lengths[rows], lengths[columns]), strict=True)}
        if len(many) == 1 and (number := many.pop()).is_integer() and 1 <= number <= 12:
            readings.add((int(number), (rows, columns)))
    return sorted(readings)
