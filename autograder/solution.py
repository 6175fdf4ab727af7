"""Runs an assignment's solution notebook with other code in some of its answer cells."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Protocol, TypeVar

from autograder.catalogue import fill_notebook
from autograder.course import Course
from autograder.intake.notebook import parse_program
from autograder.marking.reference import InputSet
from autograder.records import Ending, Execution, Program
from autograder.sandbox.session import Session
from autograder.sandbox.watch import build_budget


class _OfExercise(Protocol):
    @property
    def exercise(self) -> str: ...


Item = TypeVar("Item", bound=_OfExercise)


def execute_codes(
    course: Course, name: str, sandbox: Session, sets: Sequence[InputSet], codes: Mapping[str, str]
) -> tuple[Program, Execution]:
    """Run the solution notebook with other code in the cells of some exercises, and of its exercises these only.

    codes: by exercise id. The exercises cannot disturb each other: the lesson's names are bound anew between
    them. Visible checks are left out.
    """
    assignment = course.assignment(name)
    program = parse_program(fill_notebook(course.solution_notebook(name).read_bytes(), codes), assignment)
    others = {
        number
        for number, cell in enumerate(program.cells)
        if cell.check or (cell.exercises and not set(cell.exercises) & codes.keys())
    }
    inputs = [(each.seed, each.inputs) for each in sets]
    return program, sandbox.execute(program, inputs, build_budget(assignment), skip=others, evidence=False)


def is_shared_safely(execution: Execution) -> bool:
    """Whether no exercise of an execution can have cost another its answers: no process died or ran out of time."""
    endings = {run.ending for one_pass in execution.passes for run in one_pass.runs}
    return endings <= {Ending.OK, Ending.ERROR}


def batch_by_exercise(items: Iterable[Item]) -> Iterator[tuple[Item, ...]]:
    """Items that can share one execution: one for each exercise at a time."""
    by_exercise: dict[str, list[Item]] = {}
    for item in items:
        by_exercise.setdefault(item.exercise, []).append(item)
    for row in zip_longest(*by_exercise.values()):
        yield tuple(item for item in row if item is not None)
