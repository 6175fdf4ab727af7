"""The runs of one submission: all exercises together, and one exercise alone. Each is made once, or taken as stored."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from autograder.course import Assignment
from autograder.intake.reach import find_assigned, find_bound, find_names_of_course, find_used
from autograder.marking.reference import InputSet
from autograder.records import CellRun, Ending, Execution, Mark, Program
from autograder.sandbox.progress import ENDED_HIDDEN, Part
from autograder.sandbox.session import Session
from autograder.sandbox.watch import CELL_CPU, Budget, build_budget

TOGETHER = ""
"""Stands for the run of all exercises where a run alone has its exercise's id."""

_QUICK, _QUICK_SECONDS = 1 / 8, 0.5
"""Of a cell's processor time, and no less than that: what the first try of the joint run gives it."""

_Place = tuple[int, int]
"""A pass, counted from 0 over the input sets, and a cell."""

_PLAIN = {
    "ArithmeticError", "AssertionError", "AttributeError", "AxisError", "FloatingPointError", "IndentationError",
    "IndexError", "KeyError", "LinAlgError", "LookupError", "NameError", "NotImplementedError", "OverflowError",
    "RecursionError", "SyntaxError", "TypeError", "UnboundLocalError", "ValueError", "ZeroDivisionError",
}  # fmt: skip
"""Exceptions that no lack of memory or of anything else that others have taken gives."""

_DIED = (Ending.TIMEOUT, Ending.KILLED, Ending.EXITED, Ending.OUT_OF_MEMORY)


class Tries(msgspec.Struct):
    """Whether a first try with little time is worth its time; kept from one submission to the next.

    Where cells of many submissions really take long, it is not.
    """

    left: int = 3

    def note(self, *, paid: bool) -> None:
        """A try met a cell that takes long, and that paid, or was in vain."""
        self.left = min(self.left + 1, 3) if paid else self.left - 1


class _Spent(msgspec.Struct, frozen=True):
    """A run of an exercise alone, the cells that it left out, and the seconds that it took."""

    execution: Execution
    skip: frozenset[int]
    wall: float
    cpu: float
    delay: float


class Runs:
    """Where a submission's executions come from.

    stored: runs that were made before, by exercise; `TOGETHER` for the joint one.
    released: sources of the released notebook's cells. tries: of the submissions before.
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
        tries: Tries,
        *,
        may_run: bool = True,
    ) -> None:
        self._sandbox = sandbox
        self._assignment = assignment
        self._inputs = [(each.seed, each.inputs) for each in input_sets]
        self._program = program
        self._released = released
        self._stored = stored
        self._tries = tries
        self._may_run = may_run
        self._ids = [each.id for each in assignment.exercises]
        self._left = self._build_alone()
        self._tried: dict[str, _Spent] = {}
        self._shown: Execution | None = None  # the published pass and the notebook as submitted, of a try in vain
        self._paid_wall = self._paid_cpu = 0.0
        self._thrown_away = 0.0
        self.made: dict[str, Execution] = {}
        self.wanted: list[str] = []

    def run_together(self) -> Execution:
        """The joint run. `LookupError` when it is not stored and nothing may run."""
        if TOGETHER in self._stored:
            return self._stored[TOGETHER]
        if not self._may_run:
            raise LookupError("no run of this submission is stored")
        execution = self._try_quickly()
        if execution is None:
            budget = build_budget(self._assignment)
            if self._shown is None:
                execution = self._sandbox.execute(self._program, self._inputs, budget)
            else:
                # A hidden input set was seen by now, which whatever runs from now on could tell of.
                budget.wall, budget.cpu = budget.wall - self._paid_wall, budget.cpu - self._paid_cpu
                execution = self._add_hidden(self._shown, budget)
            execution = msgspec.structs.replace(execution, cpu_seconds=execution.cpu_seconds + self._thrown_away)
        self.made[TOGETHER] = execution
        return execution

    def _try_quickly(self) -> Execution | None:
        """The joint run with little processor time for a cell; None where more may be of use.

        A cell that uses it up is run alone with all of its time, where no other exercise can be in its way. When it
        does not end there either, it is an endless loop, and is not paid for in full once more.
        """
        whole = self._assignment.limits.cell_cpu_seconds
        budget = build_budget(self._assignment)
        budget.cell_cpu = max(_QUICK_SECONDS, whole * _QUICK)
        # Where all cells together take longer, it is no matter of one.
        wall, cpu = budget.wall, budget.cpu = budget.wall / 2, budget.cpu / 2
        budget.delay /= 2
        if budget.cell_cpu >= whole or self._tries.left <= 0:
            return None
        joint = self._sandbox.execute(self._program, self._inputs, budget, part=Part.WARY)
        has_hidden = len(joint.passes) > 1
        self._paid_wall = wall - (budget.hidden_wall if has_hidden else budget.wall)
        self._paid_cpu = cpu - (budget.hidden_cpu if has_hidden else budget.cpu)
        slow = _list_slow(joint)
        if not slow and not _list_cells(joint.evidence) and len(joint.passes) == len(self._inputs):
            return joint
        endless = self._find_endless(slow, joint)
        is_paid = endless is not None
        if endless is not None:
            joint = _replace_runs(self._add_hidden(joint, budget), endless)
            is_paid = {cell for _, cell in _list_slow(joint)} <= endless.keys()
        self._tries.note(paid=is_paid)
        if is_paid:
            return joint
        self._thrown_away += joint.cpu_seconds
        if endless and not has_hidden:
            # Without a try they would have been paid for in full.
            self._paid_wall += len(endless) * (whole - budget.cell_cpu)
            self._paid_cpu += len(endless) * (whole - budget.cell_cpu)
        if len(joint.passes) > 1:
            notes = tuple(note for note in joint.notes if note != ENDED_HIDDEN)
            self._shown = msgspec.structs.replace(joint, passes=joint.passes[:1], notes=notes, cpu_seconds=0.0)
        return None

    def _add_hidden(
        self, execution: Execution, budget: Budget, skip: Collection[int] = (), *, reset: bool = False
    ) -> Execution:
        """A run on the published input set only, with the others; without the cells that were ended there."""
        if len(execution.passes) == len(self._inputs):
            return execution
        died = [run for run in execution.passes[0].runs if run.ending in _DIED]
        left_out = {*skip, *(run.cell for run in died)}
        hidden = self._sandbox.execute(
            self._program, self._inputs, budget, skip=left_out, evidence=False, reset=reset, part=Part.HIDDEN
        )
        passes = (
            msgspec.structs.replace(each, runs=tuple(sorted((*each.runs, *died), key=lambda run: run.cell)))
            for each in hidden.passes
        )
        return msgspec.structs.replace(
            execution,
            passes=(*execution.passes, *passes),
            notes=(*execution.notes, *hidden.notes),
            cpu_seconds=execution.cpu_seconds + hidden.cpu_seconds,
        )

    def _find_endless(self, slow: Mapping[_Place, CellRun], joint: Execution) -> dict[int, CellRun] | None:
        """How these cells end alone, with all of their time; None unless all are endless loops of an exercise."""
        cells = {cell for _, cell in slow}
        # What only the notebook as submitted has no time for is no loop.
        if (
            not cells
            or _list_cells(joint.evidence) - cells
            or any(not self._program.cells[cell].exercises for cell in cells)
        ):
            return None
        endless: dict[int, CellRun] = {}
        for exercise in self._ids:
            own = {place: run for place, run in slow.items() if exercise in self._program.cells[place[1]].exercises}
            if not own:
                continue
            # Without what others give it, it may well be endless, and only then.
            used = self._find_used(exercise)
            if self.is_untouched(exercise) or used is None or used & self._list_assigned_by_others(exercise):
                return None
            # A part that is its own whatever others need, so that all is as if there had been no try.
            # Nothing hidden is seen before the notebook as submitted has been run, whose outputs people see.
            part = Part.PUBLISHED if len(joint.passes) < len(self._inputs) else Part.ALL
            spent = self._spend(exercise, joint, self._build_alone(), len(self._ids), part)
            alone = _list_slow(spent.execution)
            # With more time it may end; or the machine may have stood still, but hardly in both runs.
            if any(run.unsure or _is_stopped(run, own.get(place)) for place, run in alone.items()):
                self._thrown_away += spent.execution.cpu_seconds
                return None
            is_endless = own.keys() <= alone.keys()
            if is_endless or part is Part.ALL:
                self._tried[exercise] = spent
            else:
                self._thrown_away += spent.execution.cpu_seconds
            if not is_endless:
                return None
            endless |= {cell: alone[number, cell] for number, cell in own}
        return endless

    def run_alone(self, exercise: str, joint: Execution, lost: Sequence[Mark]) -> Execution | None:
        """An exercise without the others' cells; None where that can change nothing, or may not be run.

        lost: the marks that the exercise lost in the joint run.
        """
        if self.is_untouched(exercise):
            # A helper may give its answers all the same, and another exercise may have harmed that.
            if not self._has_helpers() or all(map(self.is_untouched, self._ids)):
                return None
        elif self._was_alone(exercise, joint, lost):
            return None
        found = self._stored.get(exercise) or self.made.get(exercise)
        if found is not None:
            # Older versions have not stored that.
            return msgspec.structs.replace(found, after_hidden=True)
        if not self._may_run:
            self.wanted.append(exercise)
            return None
        parts = len(self._ids) - self._ids.index(exercise)
        spent = self._tried.get(exercise) or self._spend(exercise, joint, self._left, parts)
        share = _cut(self._left, parts)
        share.wall, share.cpu, share.delay = share.wall - spent.wall, share.cpu - spent.cpu, share.delay - spent.delay
        wall, cpu, delay = share.wall, share.cpu, share.delay
        execution = self._add_hidden(spent.execution, share, spent.skip, reset=True)
        self.made[exercise] = msgspec.structs.replace(execution, after_hidden=True)
        self._left.wall -= spent.wall + wall - share.wall
        self._left.cpu -= spent.cpu + cpu - share.cpu
        self._left.delay -= spent.delay + delay - share.delay
        return self.made[exercise]

    def _build_alone(self) -> Budget:
        """For all runs alone, shared out so that no exercise uses it up for others: as much again as the joint run has.
        For each exercise no less than a cell may use on all input sets, and once more for what is around it."""
        limits, budget = self._assignment.limits, build_budget(self._assignment)
        many = len(self._ids) * (len(self._inputs) + 1)
        wall = max(budget.wall, many * limits.cell_wall_seconds)
        budget.delay *= wall / budget.wall
        budget.wall, budget.cpu = wall, max(budget.cpu, many * limits.cell_cpu_seconds)
        return budget

    def _spend(self, exercise: str, joint: Execution, whole: Budget, parts: int, part: Part = Part.ALL) -> _Spent:
        """Run an exercise without the others' cells, within its part of a budget."""
        cells = self._program.cells
        others = {number for number, cell in enumerate(cells) if cell.exercises and exercise not in cell.exercises}
        # A helper that hangs would hang again, on the time of this exercise.
        others |= {cell for cell in self._list_first(exercise, joint) if not cells[cell].exercises}
        share = _cut(whole, parts)
        wall, cpu, delay = share.wall, share.cpu, share.delay
        execution = self._sandbox.execute(
            self._program, self._inputs, share, skip=others, evidence=False, reset=True, part=part
        )
        used = wall - share.wall, cpu - share.cpu, delay - share.delay
        return _Spent(execution, frozenset(others), *used)

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

    def _has_helpers(self) -> bool:
        """Whether there are cells of no exercise that the course has not."""
        return any(
            not cell.exercises and not cell.check and cell.source not in self._released for cell in self._program.cells
        )

    def _was_alone(self, exercise: str, joint: Execution, lost: Sequence[Mark]) -> bool:
        """Whether the joint run has shown already what a run alone would show.

        The published input set comes first, and of the cells above an exercise no other has run there yet. Where these
        are the course's own, or prove by their text that they change nothing that the exercise looks at, its cells have
        run as they would alone, and what is lost there is lost.
        """
        runs = [run for one_pass in joint.passes for run in one_pass.runs]
        if any(run.ending in _DIED for run in runs) or not all(mark.visible for mark in lost):
            return False
        cells = self._program.cells
        own = [number for number, cell in enumerate(cells) if exercise in cell.exercises]
        first = min((number for number, cell in enumerate(cells) if cell.exercises), default=0)
        last = max(own, default=-1)
        if all(
            cell.exercises == (exercise,) or (cell.check and not cell.exercises) for cell in cells[first : last + 1]
        ):
            return True
        mine = (run for run in runs if exercise in (cells[run.cell].exercises or (exercise,)))
        if any(run.ending is not Ending.OK and run.error not in _PLAIN for run in mine):
            return False
        used = self._find_used(exercise)
        if used is None:
            return False
        for cell in cells[: last + 1]:
            # A function of the lesson may look at more than the exercise that calls it.
            if not cell.exercises and not cell.check and cell.source in self._released:
                names = find_names_of_course(cell.source)
                if names is None:
                    return False
                used |= names
        return self._are_without_effect(own, used)

    def _list_assigned_by_others(self, exercise: str) -> set[str]:
        others = (cell for cell in self._program.cells if cell.exercises and exercise not in cell.exercises)
        return {name for cell in others for name in cell.assigns}

    def _find_used(self, exercise: str) -> set[str] | None:
        """The names that an exercise's cells may look at; None where it may come to others, or shares a cell."""
        used: set[str] = set()
        for cell in self._program.cells:
            if exercise in cell.exercises:
                names = find_used(cell.source)
                if names is None or cell.exercises != (exercise,):
                    return None
                used |= names
        return used

    def _are_without_effect(self, own: Sequence[int], used: Collection[str]) -> bool:
        """Whether the cells above the last of an exercise's own leave these names, and all else, as in a run alone."""
        cells = self._program.cells
        first = min(number for number, cell in enumerate(cells) if cell.exercises)
        lesson = self._inputs[0][1].keys()
        known = set(lesson)
        for number, cell in enumerate(cells[: own[-1] + 1]):
            if number in own:
                continue
            if cell.source not in self._released:
                # What stands below a cell of its own meets whatever that has made of NumPy or of the lesson's objects.
                assigned = find_assigned(cell.source, known) if cell.exercises and number < own[0] else None
                if assigned is None or not assigned.isdisjoint(used):
                    return False
                known |= assigned
                continue
            bound = find_bound(cell.source)
            # Between exercises a lesson's name that is assigned is kept in the joint run, and not always alone.
            if bound is None or (not cell.exercises and number >= first and lesson & set(cell.assigns)):
                return False
            known -= bound - lesson
        return True


def _cut(budget: Budget, parts: int) -> Budget:
    """One of so many parts."""
    return msgspec.structs.replace(budget, wall=budget.wall / parts, cpu=budget.cpu / parts, delay=budget.delay / parts)


def _list_slow(execution: Execution) -> dict[_Place, CellRun]:
    """Cells that ran out of time, by pass and cell."""
    return {
        (number, run.cell): run
        for number, one_pass in enumerate(execution.passes)
        for run in one_pass.runs
        if run.ending is Ending.TIMEOUT
    }


def _list_cells(runs: Iterable[CellRun]) -> set[int]:
    return {run.cell for run in runs if run.ending is Ending.TIMEOUT}


def _is_stopped(run: CellRun, before: CellRun | None) -> bool:
    """Whether a cell has waited too long that did not before; so it may have waited for the machine."""
    return CELL_CPU not in run.text and (before is None or CELL_CPU in before.text)


def _replace_runs(execution: Execution, better: Mapping[int, CellRun]) -> Execution:
    """The same with other words on how some cells ended that ran out of time."""

    def replace(runs: Sequence[CellRun]) -> tuple[CellRun, ...]:
        return tuple(better.get(run.cell, run) if run.ending is Ending.TIMEOUT else run for run in runs)

    passes = tuple(msgspec.structs.replace(each, runs=replace(each.runs)) for each in execution.passes)
    return msgspec.structs.replace(execution, passes=passes, evidence=replace(execution.evidence))
