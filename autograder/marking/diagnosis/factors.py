"""Right but for a factor: the factor in the lesson's own quantities, such as √hs. Pure."""

from collections.abc import Iterator, Sequence

import numpy as np

from autograder.marking.diagnosis.nouns import (
    Case,
    Cases,
    Explanation,
    fit_factor,
    fit_factors,
    is_same,
    is_steady,
    may_show,
)

_HINT = "Look at every division and every root on the way: which length belongs there, and how often?"
_CLOSE = 1e-5


def explain_factor(cases: Cases) -> tuple[Explanation, ...]:
    """The answer is a number times the right one, the same number for all entries of an input set."""
    factors = fit_factors(cases, lambda case: case.wanted)
    return describe_factors(cases, factors) if factors else ()


def describe_factors(cases: Cases, factors: Sequence[float]) -> tuple[Explanation, ...]:
    """Words for the factors of the cases: a wrong sign, a wrong size, or both. Nothing when they are 1."""
    found = []
    if all(factor < 0 for factor in factors):
        found.append(
            Explanation(
                "sign-flipped",
                f"Every entry of `{cases[0].name}` has the wrong sign.",
                "Look for a difference taken the wrong way round, or for a minus that does not belong there.",
            )
        )
        factors = [-factor for factor in factors]
    if any(factor < 0 for factor in factors):
        return ()
    if any(abs(factor - 1) > _CLOSE for factor in factors):
        found.append(_describe_size(cases, factors))
    return tuple(found)


def _describe_size(cases: Cases, factors: Sequence[float]) -> Explanation:
    every = f"Every entry of `{cases[0].name}`"
    names = name_factors(cases, factors)
    reason = _find_reason(cases, factors)
    if names and (reason or not is_steady(factors) or not may_show(cases)):
        return Explanation("scaled-by", f"{every} is {' or '.join(names)} times what it should be{reason}.", _HINT)
    if not is_steady(factors):
        return Explanation(
            "scaled-by",
            f"{every} is wrong by one common factor, and this factor changes from input to input.",
            "Something that belongs to the input at hand was used as a scale. Which quantity should stand there?",
        )
    much = "is wrong by the same factor"
    if may_show(cases):
        # A root says more than its digits; a number such as 2 may have been meant as it is.
        plain = [name for name in names if "(" not in name]
        root = f" ({' or '.join(plain)})" if plain and abs(factors[0] * 720 - round(factors[0] * 720)) > 1e-6 else ""
        much = f"is {factors[0]:.4g}{root} times what it should be"
    return Explanation(
        "scaled-by",
        f"{every} {much}, on every input{reason}.",
        _HINT if reason else "Which number was multiplied in, or left out?",
    )


def _find_reason(cases: Cases, factors: Sequence[float]) -> str:
    """What was done with the scale, where it can be told from the product that the right answer is made of."""
    lengths = collect_lengths(cases)
    right = _find_scale(cases)
    if right is None:
        return ""
    done = [factor * scale for factor, scale in zip(factors, right, strict=True)]
    roots = [name for name, n in lengths.items() if _agree(n**-0.5, right)]
    if not roots:
        last = cases[0].symbols[-1]
        early = (
            all(abs(scale - 1) <= _CLOSE for scale in right) and last in lengths and _agree(lengths[last] ** -0.5, done)
        )
        return f", as if it were divided by √{last}" if early else ""
    root = roots[0]
    if all(abs(number - 1) <= _CLOSE for number in done):
        return f", as if the division by √{root} were missing"
    if _agree(lengths[root] ** -1, done):
        return f", as if it were divided by √{root} twice, or by {root} without the root"
    words = [f"divided by √{name}" for name, n in lengths.items() if _agree(n**-0.5, done)]
    words = words or [f"divided by {name}" for name, n in lengths.items() if _agree(1 / n, done)]
    words = words or [f"multiplied by √{name}" for name, n in lengths.items() if _agree(n**0.5, done)]
    return f", as if it were {' or '.join(words)}, not divided by √{root}" if 1 <= len(words) <= 2 else ""


def _agree(quantity: np.ndarray, numbers: Sequence[float]) -> bool:
    return bool((np.abs(quantity / np.asarray(numbers) - 1) <= _CLOSE).all())


def _find_scale(cases: Cases) -> list[float] | None:
    """What the right answer is, as a multiple of a product of two arrays of the notebook; None when it is no product.

    An array of the lesson that is asked for as it is has no scale.
    """
    first = cases[0]
    if any(is_same(first.wanted, array) for array in first.lesson.values()):
        return None
    for left in _iterate_stacks(first):
        for right in _iterate_stacks(first):
            for turned in (True, False):
                scales = [_fit_product(case, left, right, turned=turned) for case in cases]
                if None not in scales:
                    return [scale for scale in scales if scale is not None]
    return None


def _iterate_stacks(case: Case) -> Iterator[str]:
    for name, array in (*case.lesson.items(), *case.own.items()):
        if 2 <= array.ndim <= 3:
            yield name


def _fit_product(case: Case, first: str, second: str, *, turned: bool) -> float | None:
    arrays = {**case.own, **case.lesson}
    left, right = arrays.get(first), arrays.get(second)
    if left is None or right is None or not 2 <= left.ndim <= 3 or not 2 <= right.ndim <= 3:
        return None
    right = right.swapaxes(-1, -2) if turned else right
    if left.shape[-1] != right.shape[-2] or (left.shape[-2], right.shape[-1]) != case.wanted.shape[-2:]:
        return None
    if left.ndim == right.ndim == 3 and left.shape[0] != right.shape[0]:
        return None
    return fit_factor(case.wanted, left @ right)


def name_factors(cases: Cases, factors: Sequence[float]) -> list[str]:
    """The simplest quantities of the lesson that equal the factors on every case.

    Empty when there is none, or when more than two are equally simple: then none can be named in earnest.
    """
    lengths = collect_lengths(cases)
    for level in (_iterate_roots, _iterate_plain, _iterate_compound):
        found = [
            label for label, quantity in level(lengths) if _agree(quantity, factors) and not _agree(quantity, [1.0])
        ]
        if found:
            return found if len(found) <= 2 else []
    return []


def collect_lengths(cases: Cases) -> dict[str, np.ndarray]:
    """Lengths by name, one number for each case: the lesson's whole numbers, and the numbers of the exercise itself.

    The exercise's own numbers (6 where `(B, T, 6)` is asked) are read from the declared shape, and from axes of the
    answers that have one length on all cases and are none of the lesson's.
    """
    names = [name for name in cases[0].sizes if all(case.sizes.get(name, 0) > 1 for case in cases)]
    lengths = {name: np.array([case.sizes[name] for case in cases], float) for name in names}
    written = {int(symbol) for symbol in cases[0].symbols if symbol.isdigit()}
    if may_show(cases):
        axes = [{n for array in case.own.values() for n in array.shape} - set(case.sizes.values()) for case in cases]
        written |= set.intersection(*axes)
    for number in sorted(number for number in written if 1 < number <= 1024):
        lengths[str(number)] = np.full(len(cases), float(number))
    return lengths


Quantities = Iterator[tuple[str, np.ndarray]]


def _iterate_roots(lengths: dict[str, np.ndarray]) -> Quantities:
    for name, n in lengths.items():
        yield f"√{name}", n**0.5
        yield f"1/√{name}", n**-0.5


def _iterate_plain(lengths: dict[str, np.ndarray]) -> Quantities:
    for name, n in lengths.items():
        yield name, n
        yield f"1/{name}", 1 / n
        for other, m in lengths.items():
            if other != name:
                yield f"√({name}/{other})", (n / m) ** 0.5


def _iterate_compound(lengths: dict[str, np.ndarray]) -> Quantities:
    for name, n in lengths.items():
        yield f"{name}²", n**2
        yield f"1/{name}²", n**-2
        yield f"{name}·√{name}", n**1.5
        yield f"1/({name}·√{name})", n**-1.5
        for other, m in lengths.items():
            if other == name:
                continue
            if name < other:
                yield f"√({name}·{other})", (n * m) ** 0.5
                yield f"1/√({name}·{other})", (n * m) ** -0.5
            yield f"{name}/{other}", n / m
            yield f"√{name}/{other}", n**0.5 / m
            yield f"{name}/√{other}", n / m**0.5
