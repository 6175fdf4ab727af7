"""What has become of one submission: claims of the guest checked against what may come, deaths put on a cell."""

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Any

import msgspec

from autograder.course import Assignment
from autograder.errors import SandboxError
from autograder.guest import wire
from autograder.records import CellRun, Ending, Execution, Output, Pass, Program
from autograder.sandbox.values import build_wire_input, read_value
from autograder.sandbox.watch import Watch

InputSet = tuple[int, Mapping[str, Any]]
"""A seed and the lesson's names with their values."""

_OUTPUT_COST = 256
"""Bytes that an output counts beside its data, so that many empty ones are no way around the limit."""

ENDED_HIDDEN = "A cell of no exercise was ended on a hidden input set; what it defines is missing there."


class Part(Enum):
    """Which of the input sets a program is run on."""

    ALL = auto()
    WARY = auto()
    """As all; but no hidden one where a cell, or everything, ran out of time before: then the record has one pass."""
    PUBLISHED = auto()
    HIDDEN = auto()


class _Step(msgspec.Struct):
    """One pass that is still to be run: the evidence, or an input set by its place."""

    number: int
    seed: int
    graded: bool


class Progress:
    """What has become of one submission so far, over all sets of processes that it took."""

    def __init__(
        self,
        assignment: Assignment,
        program: Program,
        input_sets: Sequence[InputSet],
        skip: frozenset[int],
        evidence: bool,
        part: Part = Part.ALL,
    ) -> None:
        self.limits = assignment.limits
        self.cpu = 0.0
        self._program = program
        self._input_sets = input_sets
        self._never = skip
        self._died: dict[int, CellRun] = {}
        self._died_hidden: set[int] = set()
        self._answers_by_number = [name for exercise in assignment.exercises for name in exercise.answers]
        self.frame_cap = self.limits.answer_bytes + 2**16
        self.total_cap = len(input_sets) * self.limits.answer_bytes + 2 * self.limits.output_bytes + 2**20
        graded = [_Step(number, seed, True) for number, (seed, _) in enumerate(input_sets)]
        # The notebook as submitted runs before a hidden input set enters the process, so that its
        # outputs, which people see, can hold nothing of one.
        shown = [_Step(len(input_sets), graded[0].seed, False)] if evidence else []
        visible = [] if part is Part.HIDDEN else [graded[0], *shown]
        self.steps = visible if part is Part.PUBLISHED else visible + graded[1:]
        self.is_wary = part is Part.WARY
        self._numbers = [step.number for step in self.steps if step.graded]
        self._runs: dict[int, list[CellRun]] = {step.number: [] for step in self.steps}
        self._answers: dict[int, dict[str, Any]] = {step.number: {} for step in self.steps}
        self._outputs: list[Output] = []
        self._done = 0
        self._asked = 0
        self._has_doubted = False

    @property
    def is_done(self) -> bool:
        """All steps of this set of processes are finished."""
        return self._done == len(self.steps)

    def begin(self) -> None:
        """A new set of processes starts on the steps that are left."""
        self._done = self._asked = 0
        self._running = -1
        self._last = self._place = -1
        self._began = False
        self._fault: wire.Fault | None = None
        for step in self.steps:
            self._runs[step.number] = []
            self._answers[step.number] = {}
            if not step.graded:
                self._outputs = []
                self._shown = 0

    def take_requests(self) -> bytes:
        """Requests that may be sent now: nothing hidden before the evidence is in."""
        frames = b""
        while self._asked < len(self.steps):
            step = self.steps[self._asked]
            before = self.steps[self._done : self._asked]
            if any(not each.graded for each in before):
                break
            if self.is_wary and step.graded and step.number:
                if any(not each.number for each in before):
                    break
                if self._has_run_out():
                    del self.steps[self._asked :]
                    break
                self.is_wary = False
            values = self._input_sets[step.number][1] if step.graded else {}
            message = wire.RunPass(
                step.number,
                step.seed,
                step.graded,
                {name: build_wire_input(value) for name, value in values.items()},
                tuple(self._never | self._died.keys()),
            )
            frames += wire.build_frame(message)
            self._asked += 1
        return frames

    def _has_run_out(self) -> bool:
        """Whether a cell has run out of time."""
        runs = [*self._died.values(), *(run for own in self._runs.values() for run in own)]
        return any(run.ending is Ending.TIMEOUT for run in runs)

    def take(self, reply: wire.Reply, watch: Watch) -> None:
        """Check one claim against what may come now, and keep it. `WireError` when it may not."""
        if isinstance(reply, wire.Fault):
            if self._began:
                raise wire.WireError("a fault after the start")
            self._fault = reply
            return
        if self._done >= self._asked:
            raise wire.WireError("a reply to nothing that was asked")
        step = self.steps[self._done]
        if isinstance(reply, wire.Shown):
            self._check(not step.graded and self._is_running(reply.cell), "an output out of place")
            self._shown += len(reply.data) + _OUTPUT_COST
            self._check(self._shown <= 2 * self.limits.output_bytes + 2**16, "more outputs than there may be")
            self._outputs.append(Output(reply.cell, reply.mime[:100], reply.data))
            return
        self._check(reply.pass_number == step.number, "a reply of another pass")
        if isinstance(reply, wire.Began):
            self._begin_cell(reply.cell)
            self._began = True
            watch.progress()
        elif isinstance(reply, wire.Ran):
            self._check(step.graded and self._began and len(reply.cells) > 0, "cells out of place")
            for cell in reply.cells:
                self._begin_cell(cell)
                self._runs[step.number].append(CellRun(cell, Ending.OK))
                self._running = -1
            watch.progress()
        elif isinstance(reply, wire.Ended):
            self._check(self._is_running(reply.cell), "an end of a cell that is not running")
            self._check(max(len(reply.error), len(reply.text)) <= wire.MAX_TEXT, "a text over its length")
            self._runs[step.number].append(CellRun(reply.cell, Ending(reply.ending), reply.error, reply.text))
            self._running = -1
            watch.progress()
        elif isinstance(reply, wire.Answered):
            self._check(step.graded and reply.answer in range(len(self._answers_by_number)), "an answer out of place")
            name = self._answers_by_number[reply.answer]
            self._check(name not in self._answers[step.number], "an answer twice")
            self._answers[step.number][name] = read_value(reply.value)
        else:
            self._check(self._running < 0, "a pass that ends within a cell")
            self._last = self._place = -1
            self._done += 1
            watch.progress()

    def _begin_cell(self, cell: int) -> None:
        known = range(self._last + 1, len(self._program.cells))
        self._check(self._running < 0 and cell in known and not self._is_left_out(cell), "a cell out of order")
        self._running = self._last = cell

    def _is_running(self, cell: int) -> bool:
        """Whether a claim is about the cell that runs; -1 stands for none, and is no cell."""
        return 0 <= cell == self._running

    @staticmethod
    def _check(right: bool, text: str) -> None:
        if not right:
            raise wire.WireError(text)

    def take_place(self, number: int, cell: int) -> bool:
        """Where the processes say they are; in a graded pass that may be further than their last reply.

        Returns whether a further cell has begun, which can be said once of each.
        """
        if self._done >= self._asked or number != self.steps[self._done].number or not self.steps[self._done].graded:
            return False
        known = range(max(self._place, self._last) + 1, len(self._program.cells))
        if cell not in known or self._is_left_out(cell):
            return False
        self._began = True
        self._place = cell
        return True

    def forget_place(self) -> None:
        """Only replies say which cell ran when one of them was refused; the processes have gone on since."""
        self._place = -1

    def _is_left_out(self, cell: int) -> bool:
        return cell in self._never or cell in self._died

    def finish(
        self,
        ended: tuple[Ending, str],
        code: int,
        *,
        out_of_time: bool = False,
        is_doubtful: bool = False,
        is_unsure: bool = False,
    ) -> None:
        """The processes are gone: drop the steps that are done, blame a cell for one that is not.

        out_of_time: the time of the whole submission is used up, so that no cell is to blame for what did not start.
        is_unsure: see `CellRun`.
        is_doubtful: somebody else may have ended them; the first time nobody is blamed, and what is left runs again.
        """
        if not self._began and (code == wire.SETUP_FAILED or self._fault is not None):
            where = (
                f"{self._fault.stage[:100]}: {self._fault.text[: wire.MAX_TEXT]}" if self._fault else "no reason given"
            )
            raise SandboxError(f"the sandbox could not build its inner wall ({where}); see `autograder doctor`")
        self._last = max(self._last, self._place)
        done, self.steps = self.steps[: self._done], self.steps[self._done :]
        if not self.steps:
            return
        if is_doubtful and not self._has_doubted:
            self._has_doubted = True
            return
        if self._last < 0 and not done and ended[0] is Ending.TIMEOUT and out_of_time:
            return
        if self._last < 0 and not done:
            raise SandboxError(f"a submission's process ended before it ran a cell ({ended[1]})")
        ending, reason = ended
        cell = self._find_blamed(done)
        if cell is None:
            self.steps = []
            return
        blamed = CellRun(cell, ending, text=reason, unsure=is_unsure)
        step = self.steps[0]
        if step.graded:
            self._died[cell] = blamed
            if step.number:
                self._died_hidden.add(cell)
        else:
            self._runs[step.number] = [run for run in self._runs[step.number] if run.cell != cell] + [blamed]
            self.steps = [] if self.is_wary and ending is Ending.TIMEOUT else self.steps[1:]

    def _find_blamed(self, done: Sequence[_Step]) -> int | None:
        """The cell that was running or ran last; where none did, the next that would. None when all are blamed."""
        if self._last >= 0:
            return self._last
        if done and self._runs[done[-1].number]:
            return max(run.cell for run in self._runs[done[-1].number])
        left = (n for n in range(len(self._program.cells)) if n not in self._never and n not in self._died)
        return next(left, None)

    def _list_notes(self) -> list[str]:
        """Which cells of no exercise were ended. Where and how they end on a hidden input set is their own choice, by
        which they could tell what it holds: that there were any is all that is said of them."""
        ended = [number for number in self._died if not self._program.cells[number].exercises]
        notes = [
            f"Cell {self._program.cells[number].index + 1} was ended ({self._died[number].text}); "
            "what it defines is missing."
            for number in ended
            if number not in self._died_hidden
        ]
        if self._died_hidden.intersection(ended):
            notes.append(ENDED_HIDDEN)
        return notes

    def _list_died(self, number: int) -> list[CellRun]:
        """Cells that a pass has left out or met its end in; of the published input set none that a hidden one ended."""
        return [run for cell, run in self._died.items() if number or cell not in self._died_hidden]

    def build_execution(self) -> Execution:
        """The record, with a cell that ended its process marked so in each pass that left it out."""
        left = {step.number for step in self.steps}
        passes = []
        # Nobody has asked for a hidden one yet, for whatever reason.
        for number in self._numbers[:1] if self.is_wary else self._numbers:
            runs = {run.cell: run for run in (*self._list_died(number), *self._runs[number])}
            if number in left:
                missing = set(range(len(self._program.cells))) - self._never - runs.keys()
                runs |= {
                    cell: CellRun(
                        cell,
                        Ending.TIMEOUT,
                        text="the time of the whole submission was used up (limit wall_seconds or cpu_seconds)",
                        unsure=True,
                    )
                    for cell in missing
                }
            passes.append(
                Pass(self._input_sets[number][0], tuple(runs[cell] for cell in sorted(runs)), self._answers[number])
            )
        evidence = {run.cell: run for run in (*self._list_died(0), *self._runs.get(len(self._input_sets), ()))}
        return Execution(
            notes=tuple(self._list_notes()),
            passes=tuple(passes),
            outputs=tuple(self._outputs),
            evidence=tuple(evidence[cell] for cell in sorted(evidence)),
            cpu_seconds=self.cpu,
        )
