"""Marks -> scores. Pure."""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from autograder.course import Assignment
from autograder.records import CellRun, Ending, Execution, ExerciseGrade, Mark, Missing, Program, worst_ending


def find_status(exercise: str, answers: Sequence[str], program: Program, execution: Execution) -> Ending:
    """The worst ending of the exercise's cells over the input sets; `not-attempted` when nothing was tried."""
    cells = {number for number, cell in enumerate(program.cells) if exercise in cell.exercises and not cell.check}
    runs: list[CellRun] = [run for one_pass in execution.passes for run in one_pass.runs if run.cell in cells]
    ending = worst_ending(run.ending for run in runs)
    given = any(
        not isinstance(one_pass.answers.get(name, Missing()), Missing)
        for one_pass in execution.passes
        for name in answers
    )
    return Ending.NOT_ATTEMPTED if ending is Ending.OK and not given else ending


def total_exercises(
    assignment: Assignment, marks: Sequence[Mark], statuses: Mapping[str, Ending], untouched: Collection[str] = ()
) -> tuple[ExerciseGrade, ...]:
    """One grade for each exercise; the written part is pending until a person marks it.

    untouched: exercises whose cells are as they were released, or gone.
    """
    grades = []
    for exercise in assignment.exercises:
        own = [mark for mark in marks if mark.exercise == exercise.id]
        if statuses[exercise.id] is Ending.NOT_ATTEMPTED:
            own = [_settle(mark, exercise.id in untouched) for mark in own]
        grades.append(
            ExerciseGrade(
                id=exercise.id,
                status=statuses[exercise.id],
                score=sum(mark.score for mark in own),
                max_score=sum(mark.max_score for mark in own) + exercise.written_points,
                pending=exercise.written_points,
                tests=tuple(own),
            )
        )
    return tuple(grades)


def _settle(mark: Mark, untouched: bool) -> Mark:
    """A mark of an exercise that was not attempted: its test has met nothing. Where work was done, why is said."""
    if mark.outcome != "failed":
        return mark
    if not untouched:
        return msgspec.structs.replace(mark, outcome="not-run")
    said = "This exercise was not attempted."
    return msgspec.structs.replace(mark, outcome="not-run", message=said, hint="", explanations=("not-attempted",))
