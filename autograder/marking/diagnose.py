"""Explains a wrong answer to the student, from the answers alone: the rules of `diagnosis`, most specific first.

`explain` is pure. An explanation is given only when it holds on every input set that failed; when nothing is
certain, nothing is said.
"""

from collections.abc import Callable, Sequence

import numpy as np

from autograder.marking.compare import is_usable
from autograder.marking.diagnosis.changes import explain_linear_change, explain_other_change, explain_piece
from autograder.marking.diagnosis.exceptions import explain_run
from autograder.marking.diagnosis.factors import explain_factor
from autograder.marking.diagnosis.kinds import explain_kind, find_slip
from autograder.marking.diagnosis.missing import explain_missing
from autograder.marking.diagnosis.nouns import LARGEST, Case, Difference, Explanation, build_case
from autograder.marking.diagnosis.parts import (
    explain_constant,
    explain_nearness,
    explain_not_finite,
    explain_offset,
    explain_order,
    explain_part,
    explain_rounding,
    explain_same_numbers,
    explain_weights,
)
from autograder.marking.diagnosis.scalars import explain_scalar
from autograder.marking.diagnosis.shapes import explain_shape, has_right_numbers
from autograder.marking.diagnosis.sources import explain_lesson_name, explain_own_name, explain_source
from autograder.records import CellRun, Ending, Missing

__all__ = ["MOST", "Difference", "Explanation", "explain", "explain_alone", "explain_hidden"]

MOST = 2
"""Explanations that a student gets at most for one test."""

Rule = Callable[[Sequence[Case]], tuple[Explanation, ...]]

_SAME_SHAPE: tuple[Rule, ...] = (
    explain_lesson_name,
    explain_factor,
    explain_linear_change,
    explain_rounding,
    explain_other_change,
    explain_offset,
    explain_part,
    explain_order,
    explain_own_name,
    explain_source,
    explain_weights,
    explain_nearness,
)
_OTHER_SHAPE: tuple[Rule, ...] = (explain_lesson_name, explain_piece, explain_own_name, explain_source)


def explain(
    differences: Sequence[Difference],
    *,
    published_seed: int,
    errors: Sequence[CellRun] = (),
    assigned: Sequence[str] = (),
    declared: Sequence[str] = (),
) -> tuple[Explanation, ...]:
    """At most two explanations of a failed test, most specific first; none when nothing certain can be said.

    differences: the answer that was refused, one for each input set that failed. Of several answers the first one
    that was refused on all of them is explained.
    errors: how the exercise's cells ended, on any input set; their texts are never quoted.
    assigned: the names that the exercise's cells assign.
    declared: the names of all answers of the exercise.
    """
    chosen = _choose_answer(differences)
    if not chosen:
        return ()
    if any(isinstance(each.value, Missing) for each in chosen):
        if not all(isinstance(each.value, Missing) for each in chosen) and not errors:
            return ()
        return explain_missing(chosen, errors, assigned, declared)
    with np.errstate(all="ignore"):
        return _explain_value(chosen, published_seed)[:MOST]


def explain_hidden(worst: CellRun | None) -> Explanation:
    """What is said of a test that passes on the published input set: that it does, and not how it fails on others.

    Code can choose how to fail by what an input set holds. Words of their own for each way would tell it.

    worst: of the exercise's cells over all input sets, what its status tells; None where all ended well.
    """
    if worst and worst.ending is not Ending.ERROR and (ended := explain_run(worst, ())):
        return ended  # what was ended may not have got to the other inputs
    stops = " On some input your cell stops with an error." if worst else ""
    return Explanation(
        "only-published",
        f"Right for the published input, and not for every other.{stops}",
        "Is a number of the published input written down, or one length taken for another that is the same there? "
        "Take each from the lesson's variables.",
    )


def explain_alone() -> Explanation:
    """What is said of a test that is lost when an exercise is run without the others, which comes after all else.

    By then its code has seen the hidden input sets, and could choose what it gives on the published one.
    """
    return Explanation(
        "lost-alone",
        "This is lost when the exercise is run without the others, which get in its way.",
        "Restart, run the lesson and this exercise only, and compare each step with what is asked.",
    )


def _choose_answer(differences: Sequence[Difference]) -> list[Difference]:
    """The differences of the first answer that has one on every failing input set, one for each set."""
    seeds = {each.seed for each in differences}
    for name in dict.fromkeys(each.name for each in differences):
        by_seed = {each.seed: each for each in differences if each.name == name}
        if by_seed.keys() == seeds:
            return list(by_seed.values())
    return []


def _explain_value(differences: Sequence[Difference], published_seed: int) -> tuple[Explanation, ...]:
    slips = [find_slip(each) for each in differences]
    if any(slips):
        return explain_kind(differences)
    if all(not isinstance(each.wanted, np.ndarray) or each.wanted.ndim == 0 for each in differences):
        return explain_scalar(differences, published_seed)
    cases = [case for each in differences if (case := build_case(each, published_seed)) is not None]
    return explain_array(cases) if len(cases) == len(differences) else ()


def explain_array(cases: Sequence[Case]) -> tuple[Explanation, ...]:
    """Explanations of arrays of numbers: what they hold, and what is wrong with their shape."""
    small = all(max(case.value.size, case.wanted.size) <= LARGEST for case in cases)
    fits = all(case.fits for case in cases)
    shape = None if fits else explain_shape(cases)
    if shape and (shape.kind == "empty" or all(has_right_numbers(case) for case in cases)):
        return (shape,)
    found: tuple[Explanation, ...] = ()
    if small:
        found = explain_not_finite(cases) or explain_constant(cases) or explain_same_numbers(cases)
    finite = all(np.isfinite(case.value).all() for case in cases)
    if not found and small and finite and all(is_usable(case.wanted) for case in cases):
        rules = _SAME_SHAPE if fits else _OTHER_SHAPE
        found = next((said for rule in rules if (said := rule(cases))), ())
    return (*found[:1], shape) if shape else found
