"""Answers that are not there: never tried, under another name, or after a cell that stopped. Pure."""

import re
from collections.abc import Collection, Sequence

from autograder.marking.diagnosis.exceptions import explain_run, find_near
from autograder.marking.diagnosis.nouns import Difference, Explanation
from autograder.records import CellRun, Ending, Missing

_STEM = re.compile(r"[A-Za-z]+")


def explain_missing(
    differences: Sequence[Difference],
    errors: Sequence[CellRun],
    assigned: Sequence[str],
    declared: Sequence[str] = (),
) -> tuple[Explanation, ...]:
    """Why an answer has no value, at most two reasons: a near name first, then what stopped the cell."""
    first = differences[0]
    known = dict.fromkeys((*first.inputs, *first.answers, first.name, *assigned))
    found = []
    near = find_misspelled(first, assigned, declared)
    if near:
        said = f"You assigned `{near}`; the asked name is `{first.name}`."
        found.append(
            Explanation("not-assigned-near-match", said, "Answers are found by their names, letter by letter.")
        )
    stopped = next((why for run in _order_runs(errors) if (why := explain_run(run, known))), None)
    if stopped:
        found.append(stopped)
    if not found:
        found.append(_explain_untouched(first, assigned))
    return tuple(found[:2])


def _order_runs(errors: Sequence[CellRun]) -> list[CellRun]:
    """Earlier cells first: what follows is often a consequence."""
    return sorted((run for run in errors if run.ending is not Ending.OK), key=lambda run: run.cell)


def find_misspelled(difference: Difference, assigned: Sequence[str], declared: Sequence[str] = ()) -> str | None:
    """The assigned name that was meant to be the answer: close to it, no name of its own right, closest to this one."""
    if difference.name in assigned:
        return None  # it is written there, and its cell did not get to it
    taken = {*difference.inputs, *difference.answers, *declared, difference.name}
    for name in assigned:
        if name in taken or _stand_apart(name, difference.name, difference.inputs):
            continue
        if find_near(name, [*difference.answers, *declared, difference.name]) == difference.name:
            return name
    return None


def _stand_apart(name: str, answer: str, lesson: Collection[str]) -> bool:
    """Whether two names begin with two different names of the lesson: `Q_shared` is no slip of the pen for "
    "`K_shared`."""
    stems = [match[0] if (match := _STEM.match(word)) else "" for word in (name, answer)]
    return stems[0] != stems[1] and all(stem in lesson for stem in stems)


def _explain_untouched(difference: Difference, assigned: Sequence[str]) -> Explanation:
    name = difference.name
    stem = max((word for word in difference.inputs if _is_stem(word, name)), key=len, default=None)
    if stem is not None and stem in assigned:
        said = f"You gave the lesson's `{stem}` a new value; the answer is read from `{name}`, which has none."
        return Explanation(
            "lesson-name-overwritten",
            said,
            "Use the names that the exercise asks for, and leave the lesson's as they are.",
        )
    others = any(not isinstance(value, Missing) for value in difference.answers.values())
    if others or any(word not in difference.answers for word in assigned):
        said = f"`{name}` was not given a value."
        return Explanation(
            "not-assigned",
            said,
            "What is only printed, compared with `==`, or kept under another name is not handed in.",
        )
    said = f"`{name}` was not attempted: it has no value."
    return Explanation("not-attempted", said, "What is only printed is not handed in.")


def _is_stem(word: str, answer: str) -> bool:
    return answer.startswith(word) and not answer[len(word) : len(word) + 1].isalpha() and answer != word
