"""Program -> the guest's job: which cell begins, answers and ends which exercise. Pure."""

import ast
import contextlib
import functools
import hashlib
from collections.abc import Collection, Iterable

from autograder.course import Assignment
from autograder.guest.wire import Job, PlannedCell
from autograder.records import Program
from autograder.syntax import parse_python

_MAX_PARSED_CHARS = 100_000
"""Of all cells together that may be copies. Of some megabytes Python's parser makes gigabytes, here on the host."""


def build_job(
    program: Program,
    assignment: Assignment,
    lesson: Collection[str],
    given: Collection[str] = (),
    *,
    reset: bool = False,
) -> Job:
    """The job for a program. `lesson` are the names that an input set gives, `given` the released cells.

    A released cell that assigns lesson's names is of the prelude wherever it stands, since a copy of it is no
    choice of the student's. With `reset` a released cell between two exercises also ends what was assigned
    above it, as it does when the notebook is run in Jupyter.
    """
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for number, cell in enumerate(program.cells):
        for exercise in cell.exercises:
            first.setdefault(exercise, number)
            last[exercise] = number
    answers = {exercise.id: tuple(exercise.answers) for exercise in assignment.exercises}
    start = min(first.values(), default=len(program.cells))
    # A notebook without the template may hold the prelude and the first answers in one cell.
    opens = start < len(program.cells) and 2 * len(set(program.cells[start].assigns) & set(lesson)) > len(lesson)
    copies = _find_copies(program, lesson, given)
    cells = []
    for number, cell in enumerate(program.cells):
        copied = number in copies
        between = (
            not cell.exercises and number > start and not copied and not (reset and _is_reset(program, number, given))
        )
        cells.append(
            PlannedCell(
                number=number,
                source=cell.source,
                prelude=number < start or copied or (opens and number == start),
                bind_before=any(first[exercise] == number for exercise in cell.exercises),
                collect=_join(answers[exercise] for exercise in cell.exercises),
                ends=_join(answers[exercise] for exercise in cell.exercises if last[exercise] == number),
                keep=tuple(name for name in cell.assigns if name in lesson) if between else (),
            )
        )
    return Job(
        cells=tuple(cells),
        answers=_join(answers.values()),
        output_bytes=assignment.limits.output_bytes,
        answer_bytes=assignment.limits.answer_bytes,
    )


def _find_copies(program: Program, lesson: Collection[str], given: Collection[str]) -> set[int]:
    """Cells of no exercise that assign lesson's names and are released cells, as far as so much text is read."""
    found: set[int] = set()
    left = _MAX_PARSED_CHARS
    for number, cell in enumerate(program.cells):
        if cell.exercises or not any(name in lesson for name in cell.assigns):
            continue
        if cell.source in given:
            found.add(number)
        elif len(cell.source) <= left:
            left -= len(cell.source)
            if normalise_source(cell.source) in {normalise_source(source) for source in given}:
                found.add(number)
    return found


@functools.lru_cache(maxsize=256)
def normalise_source(source: str) -> str:
    """A cell's code without what changes nothing: spaces, comments, the kind of quotes. To be compared only."""
    tree = parse_python(source)
    with contextlib.suppress(ValueError, RecursionError, MemoryError):
        if tree is not None:
            return hashlib.sha256(ast.dump(tree).encode("utf-8", "surrogatepass")).hexdigest()
    return source.strip()


def _is_reset(program: Program, number: int, given: Collection[str]) -> bool:
    """Whether a released cell stands between this cell and the next exercise."""
    for cell in program.cells[number + 1 :]:
        if cell.exercises:
            return False
        if cell.source in given and not cell.check:
            return True
    return False


def _join(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(name for group in groups for name in group)
