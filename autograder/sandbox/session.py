"""Runs submissions behind the wall: sends passes, keeps deadlines, ends what overruns, reads claims.

A student's failure comes back as an `Ending`; an exception from here is our fault or the machine's.
"""

import os
import select
import signal
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from autograder.course import Assignment
from autograder.errors import SandboxError
from autograder.guest import wire
from autograder.records import Ending, Execution, Missing, Opaque, Output, Pass, Program
from autograder.records import CellRun as Run
from autograder.sandbox.plan import build_job
from autograder.sandbox.processes import measure_tree, read_pid
from autograder.sandbox.server import Clone, ForkServer

InputSet = tuple[int, Mapping[str, Any]]
"""A seed and the lesson's names with their values."""

_POLL_SECONDS = 0.02
_SETUP_FAILED = 125


class Budget(msgspec.Struct):
    """What is left for one submission, in seconds; shrinks as its processes run."""

    wall: float
    cpu: float
    cell_wall: float
    cell_cpu: float


def build_budget(assignment: Assignment) -> Budget:
    """The whole budget of one submission."""
    limits = assignment.limits
    return Budget(limits.wall_seconds, limits.cpu_seconds, limits.cell_wall_seconds, limits.cell_cpu_seconds)


class Session:
    """One sandbox for one assignment; runs one submission at a time. A context manager."""

    def __init__(self, course_folder: Path, assignment: Assignment) -> None:
        self._folder = course_folder
        self._assignment = assignment
        self._server: ForkServer | None = None

    def __enter__(self) -> "Session":
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.__exit__()
            self._server = None

    def _start(self) -> ForkServer:
        if self._server is None:
            self._server = ForkServer(self._folder, self._assignment.limits, self._assignment.preload)
        return self._server

    def execute(
        self,
        program: Program,
        input_sets: Sequence[InputSet],
        budget: Budget,
        *,
        skip: Collection[int] = (),
        evidence: bool = True,
    ) -> Execution:
        """Run a program on all input sets, the first of which is the published one.

        skip: indices of cells that are left out altogether. With `evidence` the notebook is also run as
        submitted. After a death the rest is run again without the cell that was running. The budget
        shrinks by what was used. `SandboxError` when the sandbox itself fails.
        """
        lesson = input_sets[0][1].keys()
        run = _Run(self._assignment, program, input_sets, frozenset(skip), evidence)
        job = build_job(program, self._assignment, lesson)
        while run.steps and budget.wall > 0 and budget.cpu > 0:
            began = time.monotonic()
            try:
                cpu = self._run_once(run, job, budget)
            except SandboxError:
                self.__exit__()
                raise
            budget.wall -= time.monotonic() - began
            budget.cpu -= cpu
            run.cpu += cpu
        return run.build_execution()

    def _run_once(self, run: "_Run", job: wire.Job, budget: Budget) -> float:
        """One set of walled processes for the steps that are left; the CPU seconds that it used."""
        server = self._start()
        clone = server.clone()
        try:
            run.begin()
            watch = _Watch(clone, budget, run.limits.memory_bytes)
            ended = _exchange(clone, run, job, watch)
            code, cpu = server.read_status()
            run.finish(ended or _read_ending(code, cpu, budget), code)
            # The kernel's sum leaves out processes that were killed before anyone waited for them.
            return max(cpu, watch.cpu_seconds)
        finally:
            for fd in (clone.request, clone.reply, clone.pidfd):
                if fd >= 0:
                    os.close(fd)


def _read_ending(code: int, cpu: float, budget: Budget) -> tuple[Ending, str]:
    """How processes ended that the host did not end, from the init's exit code (`guest.walls`)."""
    number = code - 64 if code > 64 else -code if code < 0 else 0
    if number and cpu >= budget.cpu:
        return Ending.TIMEOUT, f"it used more than {budget.cpu:g} s of processor time"
    if number:
        return Ending.KILLED, f"the process was ended by signal {_name_signal(number)}"
    return Ending.EXITED, "the process ended itself"


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


class _Watch:
    """Keeps the limits of one set of processes; looks at /proc only once it has run for a while."""

    def __init__(self, clone: Clone, budget: Budget, memory_bytes: int) -> None:
        self._budget = budget
        self._memory = memory_bytes
        self._pid = -1
        self._pidfd = clone.pidfd
        now = time.monotonic()
        self._end = now + budget.wall
        self._next_poll = now + _POLL_SECONDS
        self._cpu_base = 0.0
        self.cpu_seconds = 0.0
        self._fresh = True
        self.progress()

    def progress(self) -> None:
        """A cell has begun or ended."""
        self._cell_end = time.monotonic() + self._budget.cell_wall
        self._fresh = True

    def wait_seconds(self) -> float:
        """How long nothing needs to be looked at."""
        return max(0.0, min(self._next_poll, self._cell_end, self._end) - time.monotonic())

    def check(self) -> tuple[Ending, str] | None:
        """The limit that is broken, if any."""
        now = time.monotonic()
        budget = self._budget
        if now >= self._end:
            return Ending.TIMEOUT, f"the whole submission ran longer than its {budget.wall:.3g} s"
        if now >= self._cell_end:
            return Ending.TIMEOUT, f"it ran longer than {budget.cell_wall:g} s"
        if now < self._next_poll:
            return None
        self._next_poll = now + _POLL_SECONDS
        if self._pid < 0:
            self._pid = read_pid(self._pidfd)
            if self._pid < 0:
                return None
        usage = measure_tree(self._pid)
        self.cpu_seconds = max(self.cpu_seconds, usage.cpu_seconds)
        if self._fresh:
            self._fresh, self._cpu_base = False, usage.cpu_seconds
        if usage.memory_bytes > self._memory:
            return Ending.OUT_OF_MEMORY, f"its processes used more than {self._memory // 2**20} MiB of memory"
        if usage.cpu_seconds - self._cpu_base > budget.cell_cpu:
            return Ending.TIMEOUT, f"it used more than {budget.cell_cpu:g} s of processor time"
        if usage.cpu_seconds > budget.cpu:
            return Ending.TIMEOUT, f"the whole submission used more than its {budget.cpu:.3g} s of processor time"
        return None


def _exchange(clone: Clone, run: "_Run", job: wire.Job, watch: _Watch) -> tuple[Ending, str] | None:
    """Talk until all steps are done or the processes are gone; how the host ended them, if it did."""
    outgoing = bytearray(wire.build_frame(job) + run.take_requests())
    reader = wire.FrameReader(run.frame_cap)
    poll = select.poll()
    poll.register(clone.pidfd, select.POLLIN)
    poll.register(clone.reply, select.POLLIN)
    poll.register(clone.request, select.POLLOUT)
    ended: tuple[Ending, str] | None = None
    closed = dead = False
    received = 0
    give_up = 0.0
    while not (dead and closed):
        timeout = give_up - time.monotonic() if ended else watch.wait_seconds()
        if ended and timeout <= 0:
            raise SandboxError("processes of a submission do not end after they were killed")
        for fd, event in poll.poll(timeout * 1000 + 1):
            if fd == clone.pidfd:
                dead = True
                poll.unregister(clone.pidfd)
            elif fd == clone.request:
                if event & select.POLLOUT and outgoing:
                    outgoing = _write_some(clone.request, outgoing)
                if not outgoing or event & (select.POLLERR | select.POLLHUP):
                    poll.unregister(clone.request)
            elif not closed:
                data = _read_some(clone.reply)
                closed = data == b""
                received += len(data or b"")
                if closed:
                    poll.unregister(clone.reply)
                elif data and ended is None:
                    try:
                        if received > run.total_cap:
                            raise wire.WireError("more bytes than all answers and outputs may have")
                        for body in reader.feed(data):
                            run.take(wire.parse_reply(body), watch)
                    except wire.WireError as error:
                        ended = Ending.KILLED, f"its replies were refused: {error}"
                        give_up = _kill(clone)
        more = run.take_requests() if ended is None else b""
        if more:
            outgoing += more
            poll.register(clone.request, select.POLLOUT)
        if run.is_done and clone.request >= 0:
            os.close(clone.request)
            clone.request = -1
        if ended is None and not dead:
            ended = watch.check()
            if ended is not None:
                give_up = _kill(clone)
    return ended


def _kill(clone: Clone) -> float:
    """End everything; the moment after which it counts as stuck."""
    signal.pidfd_send_signal(clone.pidfd, signal.SIGKILL)
    return time.monotonic() + 10


def _write_some(fd: int, data: bytearray) -> bytearray:
    try:
        del data[: os.write(fd, data[: 2**16])]
    except BlockingIOError:
        pass
    except BrokenPipeError:
        data.clear()
    return data


def _read_some(fd: int) -> bytes | None:
    try:
        return os.read(fd, 2**18)
    except BlockingIOError:
        return None


class _Step(msgspec.Struct):
    """One pass that is still to be run: the evidence, or an input set by its place."""

    number: int
    seed: int
    graded: bool


class _Run:
    """What has become of one submission so far, over all sets of processes that it took."""

    def __init__(
        self,
        assignment: Assignment,
        program: Program,
        input_sets: Sequence[InputSet],
        skip: frozenset[int],
        evidence: bool,
    ) -> None:
        self.limits = assignment.limits
        self.cpu = 0.0
        self._program = program
        self._input_sets = input_sets
        self._never = skip
        self._died: dict[int, Run] = {}
        self._answers_by_number = [name for exercise in assignment.exercises for name in exercise.answers]
        self.frame_cap = self.limits.answer_bytes + 2**16
        self.total_cap = len(input_sets) * self.limits.answer_bytes + 2 * self.limits.output_bytes + 2**20
        graded = [_Step(number, seed, True) for number, (seed, _) in enumerate(input_sets)]
        # The notebook as submitted runs before a hidden input set enters the process, so that its
        # outputs, which people see, can hold nothing of one.
        shown = [_Step(len(input_sets), graded[0].seed, False)] if evidence else []
        self.steps = [graded[0], *shown, *graded[1:]]
        self._runs: dict[int, list[Run]] = {step.number: [] for step in self.steps}
        self._answers: dict[int, dict[str, Any]] = {step.number: {} for step in self.steps}
        self._outputs: list[Output] = []
        self._done = 0
        self._asked = 0

    @property
    def is_done(self) -> bool:
        """All steps of this set of processes are finished."""
        return self._done == len(self.steps)

    def begin(self) -> None:
        """A new set of processes starts on the steps that are left."""
        self._done = self._asked = 0
        self._running = -1
        self._last = -1
        self._began = False
        self._fault: wire.Fault | None = None
        for step in self.steps:
            self._runs[step.number] = []
            self._answers[step.number] = {}
            if not step.graded:
                self._outputs = []

    def take_requests(self) -> bytes:
        """Requests that may be sent now: nothing hidden before the evidence is in."""
        frames = b""
        while self._asked < len(self.steps):
            if any(not step.graded for step in self.steps[self._done : self._asked]):
                break
            step = self.steps[self._asked]
            values = self._input_sets[step.number][1] if step.graded else {}
            message = wire.RunPass(
                step.number,
                step.seed,
                step.graded,
                {name: _build_input(value) for name, value in values.items()},
                tuple(self._never | self._died.keys()),
            )
            frames += wire.build_frame(message)
            self._asked += 1
        return frames

    def take(self, reply: wire.Reply, watch: _Watch) -> None:
        """Check one claim against what may come now, and keep it. `WireError` when it may not."""
        if isinstance(reply, wire.Fault):
            if self._began:
                raise wire.WireError("a fault after the start")
            self._fault = reply
            return
        if self._done >= len(self.steps):
            raise wire.WireError("a reply after the last")
        step = self.steps[self._done]
        if isinstance(reply, wire.Shown):
            self._check(not step.graded and reply.cell == self._running, "an output out of place")
            self._outputs.append(Output(reply.cell, reply.mime[:100], reply.data))
            return
        self._check(reply.pass_number == step.number, "a reply of another pass")
        if isinstance(reply, wire.Began):
            known = range(self._last + 1, len(self._program.cells))
            skipped = reply.cell in self._never or reply.cell in self._died
            self._check(self._running < 0 and reply.cell in known and not skipped, "a cell out of order")
            self._began = True
            self._running = self._last = reply.cell
            watch.progress()
        elif isinstance(reply, wire.Ended):
            self._check(self._running == reply.cell, "an end of a cell that is not running")
            self._check(max(len(reply.error), len(reply.text)) <= wire.MAX_TEXT, "a text over its length")
            self._runs[step.number].append(Run(reply.cell, Ending(reply.ending), reply.error, reply.text))
            self._running = -1
            watch.progress()
        elif isinstance(reply, wire.Answered):
            self._check(step.graded and reply.answer in range(len(self._answers_by_number)), "an answer out of place")
            name = self._answers_by_number[reply.answer]
            self._check(name not in self._answers[step.number], "an answer twice")
            self._answers[step.number][name] = _read_value(reply.value)
        else:
            self._check(self._running < 0, "a pass that ends within a cell")
            self._last = -1
            self._done += 1
            watch.progress()

    @staticmethod
    def _check(right: bool, text: str) -> None:
        if not right:
            raise wire.WireError(text)

    def finish(self, ended: tuple[Ending, str], code: int) -> None:
        """The processes are gone: drop the steps that are done, blame a cell for one that is not."""
        if not self._began and (code == _SETUP_FAILED or self._fault is not None):
            where = f"{self._fault.stage}: {self._fault.text}" if self._fault else "no reason given"
            raise SandboxError(f"the sandbox could not build its inner wall ({where}); see `autograder doctor`")
        done, self.steps = self.steps[: self._done], self.steps[self._done :]
        if not self.steps:
            return
        if self._last < 0 and not done:
            raise SandboxError(f"a submission's process ended before it ran a cell ({ended[1]})")
        ending, reason = ended
        cell = self._last if self._last >= 0 else max(run.cell for run in self._runs[done[-1].number])
        blamed = Run(cell, ending, text=reason)
        step = self.steps[0]
        if step.graded:
            self._died[cell] = blamed
        else:
            self._runs[step.number] = [run for run in self._runs[step.number] if run.cell != cell] + [blamed]
            self.steps = self.steps[1:]

    def build_execution(self) -> Execution:
        """The record, with a cell that ended its process marked so in each pass that left it out."""
        left = {step.number for step in self.steps}
        passes = []
        for number, (seed, _) in enumerate(self._input_sets):
            runs = {run.cell: run for run in (*self._runs[number], *self._died.values())}
            if number in left:
                missing = set(range(len(self._program.cells))) - self._never - runs.keys()
                runs |= {cell: Run(cell, Ending.TIMEOUT, text="the time of the whole submission was used up") for cell in missing}
            passes.append(Pass(seed, tuple(runs[cell] for cell in sorted(runs)), self._answers[number]))
        evidence = {run.cell: run for run in (*self._died.values(), *self._runs.get(len(self._input_sets), ()))}
        return Execution(
            passes=tuple(passes),
            outputs=tuple(self._outputs),
            evidence=tuple(evidence[cell] for cell in sorted(evidence)),
            cpu_seconds=self.cpu,
        )


def _build_input(value: Any) -> Any:
    return wire.build_array(value) if isinstance(value, np.ndarray) else value


def _read_value(value: wire.WireValue) -> Any:
    if isinstance(value, wire.Plain):
        if isinstance(value.value, str):
            return value.value[: wire.MAX_TEXT]
        return value.value
    if isinstance(value, wire.Array):
        return wire.read_array(value)
    if isinstance(value, wire.Other):
        return Opaque(value.type_name[:200])
    return Missing()
