"""The runs of one submission: all exercises together, and one exercise alone. Each is made once, or taken as stored."""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from autograder.course import Assignment
from autograder.marking.reference import InputSet
from autograder.records import Ending, Execution, Mark, Program
from autograder.sandbox.session import Session
from autograder.sandbox.watch import build_budget

TOGETHER = ""
"""Stands for the run of all exercises where a run alone has its exercise's id."""

_DIED = (Ending.TIMEOUT, Ending.KILLED, Ending.EXITED, Ending.OUT_OF_MEMORY)


class Runs:
    """Where a submission's executions come from.

    stored: runs that were made before, by exercise; `TOGETHER` for the joint one.
    released: sources of the released notebook's cells.
    may_run: whether student code may run. Where not, `wanted` gathers the exercises that lack a run alone.
    `made` holds what was run.
    """

    def __init__(
        self,
        sandbox: Session,
        assignment: Assignment,
        input_sets: Sequence[InputSet],
        program: Program,
        released: Collection[str],
        stored: Mapping[str, Execution],
        *,
        may_run: bool = True,
    ) -> None:
        self._sandbox = sandbox
        self._assignment = assignment
        self._inputs = [(each.seed, each.inputs) for each in input_sets]
        self._program = program
        self._released = released
        self._stored = stored
        self._may_run = may_run
        # As much again as the joint run has, shared out, so that no exercise uses it up for others.
        self._left = build_budget(assignment)
        self.made: dict[str, Execution] = {}
        self.wanted: list[str] = []

    def run_together(self) -> Execution:
        """The joint run. `LookupError` when it is not stored and nothing may run."""
        if TOGETHER in self._stored:
            return self._stored[TOGETHER]
        if not self._may_run:
            raise LookupError("no run of this submission is stored")
        execution = self._sandbox.execute(self._program, self._inputs, build_budget(self._assignment))
        self.made[TOGETHER] = execution
        return execution

    def run_alone(self, exercise: str, joint: Execution, lost: Sequence[Mark]) -> Execution | None:
        """An exercise without the others' cells; None where that can change nothing, or may not be run.

        lost: the marks that the exercise lost in the joint run.
        """
        if self.is_untouched(exercise) or self._was_alone(exercise, joint, lost):
            return None
        if exercise in self._stored:
            return self._stored[exercise]
        if not self._may_run:
            self.wanted.append(exercise)
            return None
        cells = self._program.cells
        others = {number for number, cell in enumerate(cells) if cell.exercises and exercise not in cell.exercises}
        # A helper that hangs would hang again, on the time of this exercise.
        others |= {cell for cell in self._list_first(exercise, joint) if not cells[cell].exercises}
        whole = self._assignment.limits.cell_cpu_seconds
        # An endless loop is not paid for twice, where nothing else can have made it one.
        again = any(exercise in cells[cell].exercises for cell in self._list_first(exercise, joint))
        self._left.cell_cpu = max(0.5, whole / 8) if again else whole
        self.made[exercise] = self._spend_share(exercise, others)
        return self.made[exercise]

    def _list_first(self, exercise: str, joint: Execution) -> set[int]:
        """Cells that ended their process before any other exercise had run there.

        Of all others it is not known whether they are to blame: an exercise may leave a thread that ends whatever runs
        later, or a function that hangs, also in the passes after the first. A cell as it was released leaves nothing.
        """
        cells = self._program.cells
        foreign = (
            number
            for number, cell in enumerate(cells)
            if set(cell.exercises) - {exercise} and cell.source not in self._released
        )
        first = next(foreign, len(cells))
        runs = joint.passes[0].runs
        return {run.cell for run in runs if run.ending in _DIED and not run.unsure and run.cell < first}

    def is_untouched(self, exercise: str) -> bool:
        """Whether an exercise's cells are as they were released, or gone."""
        return all(cell.source in self._released for cell in self._program.cells if exercise in cell.exercises)

    def _was_alone(self, exercise: str, joint: Execution, lost: Sequence[Mark]) -> bool:
        """Whether the joint run has shown already what a run alone would show.

        The published input set comes first. When the exercise comes first, too, its cells have run there as they
        would alone, and what is lost there is lost.
        """
        runs = [run for one_pass in joint.passes for run in one_pass.runs]
        if any(run.ending in _DIED for run in runs) or not all(mark.visible for mark in lost):
            return False
        cells = self._program.cells
        last = max((number for number, cell in enumerate(cells) if exercise in cell.exercises), default=-1)
        first = min((number for number, cell in enumerate(cells) if cell.exercises), default=0)
        return all(
            cell.exercises == (exercise,) or (cell.check and not cell.exercises) for cell in cells[first : last + 1]
        )

    def _spend_share(self, exercise: str, skip: Collection[int]) -> Execution:
        """Run within this exercise's share of what is left, and take off what was used."""
        ids = [each.id for each in self._assignment.exercises]
        share = 1 / (len(ids) - ids.index(exercise))
        mine = msgspec.structs.replace(self._left, wall=self._left.wall * share, cpu=self._left.cpu * share)
        wall, cpu = mine.wall, mine.cpu
        execution = self._sandbox.execute(self._program, self._inputs, mine, skip=skip, evidence=False, reset=True)
        self._left.wall -= wall - mine.wall
        self._left.cpu -= cpu - mine.cpu
        return execution
