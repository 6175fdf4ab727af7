"""Program -> the guest's job: which cell begins, answers and ends which exercise. Pure."""

from collections.abc import Collection, Iterable

from autograder.course import Assignment
from autograder.guest.wire import Job, PlannedCell
from autograder.records import Program


def build_job(program: Program, assignment: Assignment, lesson: Collection[str]) -> Job:
    """The job for a program. `lesson` are the names that an input set gives."""
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
    cells = []
    for number, cell in enumerate(program.cells):
        between = not cell.exercises and number > start
        cells.append(
            PlannedCell(
                number=number,
                source=cell.source,
                prelude=number < start or (opens and number == start),
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


def _join(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(name for group in groups for name in group)
