"""A verdict -> a mark with its message: what is wrong, by the catalogue and by the numbers. Pure.

A student reads `message` and `hint`; neither holds an expected value, a hidden input or a test's code. The
instructor also reads `detail`.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

import msgspec
import numpy as np

from autograder.course import Assignment
from autograder.marking.answers import CheckFailed, get_sheet
from autograder.marking.cases import Case, Verdict
from autograder.marking.diagnose import MOST, explain, explain_alone, explain_hidden
from autograder.marking.diagnosis.nouns import TYPED_IN, Difference, Explanation
from autograder.marking.diagnosis.scalars import FROM_SEVERAL
from autograder.marking.known import KnownMistake, Match, find_failure, find_mistake
from autograder.records import CellRun, Ending, Execution, Mark, Missing, Program, worst_ending

_MOST_NAMES = 500
"""Names of one exercise that explanations look through; a megabyte of code may assign a hundred thousand."""

Known = Callable[[], Sequence[KnownMistake] | None]
"""Gives the known mistakes of the assignment, or None when they cannot be had; asked only when a mark is lost."""


class HiddenTest(msgspec.Struct, frozen=True):
    """What is known of a hidden test before it runs. `claim` is the sentence that the student reads.

    is_pure: it reads our fixtures alone, so that equal answers get equal verdicts.
    """

    name: str
    exercise: str
    points: float
    claim: str
    is_pure: bool = False


class Attempt(msgspec.Struct, frozen=True):
    """What a student did for the exercises, beside the answers' verdicts."""

    errors: Mapping[str, Sequence[Sequence[CellRun]]]
    """By exercise: the cells that did not end well, on each input set."""
    assigned: Mapping[str, Sequence[str]]
    """By exercise: names that its cells assign."""
    answers: Mapping[str, Sequence[str]]
    """By exercise: names of its answers."""
    show_hints: bool
    after_hidden: bool
    """As of `Execution`."""


def build_attempt(execution: Execution, program: Program, assignment: Assignment) -> Attempt:
    """What the explanations need of an execution."""
    errors: dict[str, list[list[CellRun]]] = {}
    assigned: dict[str, list[str]] = {}
    for exercise in assignment.exercises:
        cells = [n for n, cell in enumerate(program.cells) if exercise.id in cell.exercises]
        names = dict.fromkeys(name for n in cells for name in program.cells[n].assigns)
        assigned[exercise.id] = list(islice(names, _MOST_NAMES))
        errors[exercise.id] = [
            [run for run in one_pass.runs if run.cell in cells and run.ending is not Ending.OK]
            for one_pass in execution.passes
        ]
    answers = {exercise.id: tuple(exercise.answers) for exercise in assignment.exercises}
    return Attempt(errors, assigned, answers, assignment.show_hints, execution.after_hidden)


def build_mark(
    test: HiddenTest,
    verdict: Verdict,
    cases: Sequence[Case],
    attempt: Attempt | None = None,
    known: Known | None = None,
) -> Mark:
    """The mark that a verdict over these cases gives; with the attempt, what explains it when it is lost."""
    mark = Mark(
        name=test.name,
        exercise=test.exercise,
        score=test.points if verdict.passed else 0.0,
        max_score=test.points,
        outcome="passed" if verdict.passed else "failed",
        notes=tuple(verdict.notes),
        visible=verdict.failures[0] is not None,
    )
    if verdict.passed:
        return mark
    failure = next(failure for failure in verdict.failures if failure is not None)
    if attempt is None:
        return msgspec.structs.replace(
            mark, message=build_message(test.claim, failure.rationale), hint=failure.hint, detail=failure.detail
        )
    found = _explain_numbers(test, verdict, cases, attempt)
    told = _choose_told(found, test, verdict, cases, attempt)
    match = _find_known(test, verdict, cases, attempt, known) if known and not attempt.after_hidden else None
    certain = match is not None and match.certain and _is_telling(failure, verdict, cases)
    mistake = match.mistake if match else None
    rationale, hint = _choose(failure, mistake, told, certain=certain)
    if not attempt.show_hints:
        hint = ""
    kinds = list(dict.fromkeys(each.kind for each in (*told, *found)))[:MOST]
    message = build_message(test.claim, rationale)
    words = [each.rationale for each in found]
    if attempt.after_hidden or not mark.visible:
        words.insert(0, failure.rationale)
    return msgspec.structs.replace(
        mark,
        message=message,
        hint=hint,
        detail=_add_untold(failure.detail, words, message),
        explanations=tuple([f"mistake:{mistake.id}", *kinds] if mistake else kinds),
    )


def build_message(claim: str, rationale: str) -> str:
    """What a student reads of a lost mark: what was asked, and what was found."""
    return f"Asked: {claim} Found: {rationale}" if rationale else f"Asked: {claim}"


def _find_known(
    test: HiddenTest, verdict: Verdict, cases: Sequence[Case], attempt: Attempt, known: Known
) -> Match | None:
    wanted = attempt.answers[test.exercise]
    sheets = [get_sheet(case.answers) for case in cases]
    answers = [{name: sheet.raw[name] for name in wanted if name in sheet.raw} for sheet in sheets]
    mistakes = [each for each in known() or () if each.exercise == test.exercise]
    read = [name for name in verdict.read if name in wanted]
    failures = [find_failure(runs) for runs in attempt.errors[test.exercise]]
    return find_mistake(mistakes, test.name, read, answers, failures)


def _choose_told(
    found: Sequence[Explanation], test: HiddenTest, verdict: Verdict, cases: Sequence[Case], attempt: Attempt
) -> Sequence[Explanation]:
    """What the student reads of the explanations that were found over all input sets.

    Code could choose by what a hidden set holds which of them comes out. So its words must be those that the
    published set alone gives; the others only decide whether they are said. Some say what one set cannot give.
    """
    if attempt.after_hidden:
        return (explain_alone(),)
    published = verdict.failures[0]
    if published is None:
        runs = [run for own in attempt.errors[test.exercise] for run in own]
        worst = worst_ending(run.ending for run in runs)
        return (explain_hidden(next((run for run in runs if run.ending is worst), None)),)
    if not published.name:
        return ()
    alone = _explain_numbers(test, verdict, cases[:1], attempt)
    is_array = isinstance(published.wanted, np.ndarray) and published.wanted.ndim
    further = {TYPED_IN} if is_array else FROM_SEVERAL
    return [each for each in found if each in alone or each.kind in further]


def _explain_numbers(
    test: HiddenTest, verdict: Verdict, cases: Sequence[Case], attempt: Attempt
) -> Sequence[Explanation]:
    """What is wrong on these input sets, the first of which is the published one, as far as their answers say it."""
    wanted = attempt.answers[test.exercise]
    failures = verdict.failures[: len(cases)]
    differences = [
        _build_difference(case, failure, wanted)
        for case, failure in zip(cases, failures, strict=True)
        if failure is not None and failure.name
    ]
    if not differences or len({each.name for each in differences}) > 1:
        return ()
    return explain(
        differences,
        published_seed=cases[0].seed,
        errors=next((runs for runs in attempt.errors[test.exercise][: len(cases)] if runs), ()),
        assigned=attempt.assigned[test.exercise],
        declared=attempt.answers[test.exercise],
    )


def _build_difference(case: Case, failure: CheckFailed, names: Sequence[str]) -> Difference:
    sheet = get_sheet(case.answers)
    return Difference(
        seed=case.seed,
        name=failure.name,
        kind=sheet.kinds.get(failure.name, ""),
        value=sheet.raw.get(failure.name, Missing()),
        wanted=failure.wanted,
        inputs=vars(case.inputs),
        answers={name: sheet.raw[name] for name in names if name in sheet.raw},
    )


def _add_untold(detail: str, words: Sequence[str], message: str) -> str:
    """The instructor's words, with those that are not told to the student."""
    untold = " ".join(each for each in words if each and each not in message)
    return f"{detail} Not told to the student: {untold}".strip() if untold else detail


def _is_telling(failure: CheckFailed, verdict: Verdict, cases: Sequence[Case]) -> bool:
    """Whether what was refused can hardly have come about in another way: an array cannot, a truth value can."""
    names = [failure.name] if failure.name else list(verdict.read)
    sheets = [get_sheet(case.answers) for case in cases]
    return bool(names) and all(isinstance(sheet.raw.get(name), np.ndarray) for sheet in sheets for name in names)


def _choose(
    failure: CheckFailed, mistake: KnownMistake | None, explanations: Sequence[Explanation], *, certain: bool
) -> tuple[str, str]:
    """Rationale and hint: the catalogue before the numbers, the numbers before the test's own words; at most two.

    Where many ways lead to what the student has, what the mistake is called is a guess, and only its hint is given.
    """
    rationales = [each.rationale for each in explanations]
    hints = [each.hint for each in explanations if each.hint]
    if mistake is not None and not certain:
        return " ".join(rationales[:2] or [failure.rationale]), mistake.hint
    if mistake is not None:
        return " ".join([_as_sentence(mistake.title), *rationales[:1]]), mistake.hint
    if explanations and explanations[0].kind == "opposite-bool":
        return rationales[0], failure.hint or explanations[0].hint
    if rationales:
        return " ".join(rationales[:2]), hints[0] if hints else failure.hint
    return failure.rationale, failure.hint


def _as_sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
