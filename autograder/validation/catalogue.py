"""Runs the catalogue by the real path: what each known mistake and each accepted variant really loses."""

import re
from collections.abc import Sequence
from itertools import combinations

import msgspec

from autograder.catalogue import Mistake, Variant, fill_notebook
from autograder.course import Course
from autograder.grading import Grader
from autograder.intake.notebook import parse_program
from autograder.marking.known import equal_everywhere
from autograder.records import Answers, CellRun, Ending
from autograder.sandbox.watch import build_budget


class JudgedEntry(msgspec.Struct, frozen=True):
    """What an entry of the catalogue came to, and what is wrong with that.

    lost: hidden tests of all exercises that it lost, in the order of the tests.
    answers: of its exercise, one set for each input set.
    """

    entry: Mistake | Variant
    lost: tuple[str, ...]
    answers: tuple[Answers, ...]
    problems: tuple[str, ...]


def judge_entry(grader: Grader, entry: Mistake | Variant) -> JudgedEntry:
    """Run the solution notebook with an entry's code in its exercise, on all input sets, and mark it."""
    source = grader.course.solution_notebook(grader.name).read_bytes()
    before = {entry.exercise: entry.before} if isinstance(entry, Variant) and entry.before else None
    program = parse_program(fill_notebook(source, {entry.exercise: entry.code}, before), grader.assignment)
    inputs = [(each.seed, each.inputs) for each in grader.marking.input_sets]
    execution = grader.sandbox.execute(program, inputs, build_budget(grader.assignment), evidence=False)
    lost = tuple(mark.name for mark in grader.marking.mark(execution) if mark.outcome != "passed")
    own = {n for n, cell in enumerate(program.cells) if entry.exercise in cell.exercises}
    failures = [
        run for each in execution.passes for run in each.runs if run.cell in own and run.ending is not Ending.OK
    ]
    wanted = next(each.answers for each in grader.assignment.exercises if each.id == entry.exercise)
    answers = tuple({k: v for k, v in each.answers.items() if k in wanted} for each in execution.passes)
    return JudgedEntry(entry, lost, answers, tuple(_find_problems(entry, lost, failures)))


def _find_problems(entry: Mistake | Variant, lost: Sequence[str], failures: Sequence[CellRun]) -> list[str]:
    declared = entry.loses if isinstance(entry, Mistake) else ()
    problems = [f"loses {name}, which is not declared" for name in lost if name not in declared]
    problems += [f"does not lose {name}, which is declared" for name in declared if name not in lost]
    raises = entry.raises if isinstance(entry, Mistake) else None
    if raises is None and failures:
        problems.append(f"ends with {failures[0].error or failures[0].ending}: {failures[0].text}")
    elif raises is not None and not any(
        run.error == raises.type and re.search(raises.message, run.text) for run in failures
    ):
        problems.append(f"does not end with {raises.type}: {raises.message}")
    return problems


def find_ambiguous(judged: Sequence[JudgedEntry]) -> list[tuple[Mistake, Mistake]]:
    """Pairs of mistakes that give the same answers on all input sets and say different things to the student."""
    mistakes = [each for each in judged if isinstance(each.entry, Mistake)]
    pairs = []
    for one, other in combinations(mistakes, 2):
        first, second = one.entry, other.entry
        if not isinstance(first, Mistake) or not isinstance(second, Mistake):
            continue
        alike = first.exercise == second.exercise and first.raises == second.raises
        if alike and first.hint != second.hint and equal_everywhere(one.answers, other.answers):
            pairs.append((first, second))
    return pairs


def list_unknown_tests(course: Course, name: str, entries: Sequence[Mistake], known: set[str]) -> list[str]:
    """Names in `loses` that are no hidden test."""
    return [
        f"{course.solution_notebook(name).parent / 'mistakes.toml'}: entry {entry.id}: there is no hidden test {test}"
        for entry in entries
        for test in entry.loses
        if test not in known
    ]
