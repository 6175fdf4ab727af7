"""Runs submissions behind the wall: sends passes, keeps deadlines, ends what overruns, reads claims.

A student's failure comes back as an `Ending`; an exception from here is our fault or the machine's.
"""

import contextlib
import signal
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import msgspec

from autograder.course import Assignment, Limits
from autograder.errors import SandboxError, SandboxUnavailable
from autograder.guest import wire
from autograder.records import Ending, Execution, Program
from autograder.sandbox.cgroup import Groups
from autograder.sandbox.exchange import Exchange
from autograder.sandbox.modes import UNWALLED, SandboxMode, read_mode
from autograder.sandbox.plan import build_job
from autograder.sandbox.processes import read_pid
from autograder.sandbox.progress import InputSet, Part, Progress
from autograder.sandbox.seccomp import build_filter
from autograder.sandbox.server import Server, start_server
from autograder.sandbox.watch import Budget, Watch, tell_cpu, tell_memory


class Session:
    """One sandbox for one assignment; runs one submission at a time. A context manager.

    cells: sources of the released notebook, compiled once, since most submissions carry them unchanged.
    lesson: the names that an input set gives.
    mode: how student code is kept apart; else what the environment says (`modes.read_mode`).
    """

    def __init__(
        self,
        course_folder: Path,
        assignment: Assignment,
        cells: Sequence[str] = (),
        lesson: Sequence[str] = (),
        mode: SandboxMode | None = None,
    ) -> None:
        self._folder = course_folder
        self._assignment = assignment
        self._cells = tuple(cells)
        self._lesson = tuple(lesson)
        self._mode = mode or read_mode()
        self._servers: dict[tuple[str, ...], Future[Server]] = {}
        """By the modules that a server has imported before any submission is there."""
        self._starter: ThreadPoolExecutor | None = None
        self._groups: Groups | None = None

    def __enter__(self) -> "Session":
        self._start(self._find_preload(self._cells))
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the servers; the next run starts a new one."""
        with contextlib.ExitStack() as stack:
            if self._starter is not None:
                stack.callback(self._starter.shutdown)
            for starting in self._servers.values():
                stack.callback(_close, starting)
            self._servers, self._starter = {}, None

    @property
    def pids(self) -> list[int]:
        """The processes under which everything of it lives.

        Waits for a server that starts, and raises what it raises.
        """
        return [starting.result().pid for starting in self._servers.values()]

    def begin(self) -> None:
        """Let a server start beside what comes next; whether it could is told by the first run that needs it."""
        self._begin(self._find_preload(self._cells))

    def try_preload(self) -> None:
        """Start what has imported all that the course preloads. `SandboxUnavailable` when it cannot."""
        self._start(self._assignment.preload)

    def _find_preload(self, sources: Iterable[str]) -> tuple[str, ...]:
        """The course's `preload` for cells that name a package of it. Others need not wait for what they do not use."""
        packages = {module.partition(".")[0] for module in self._assignment.preload}
        return self._assignment.preload if any(name in source for source in sources for name in packages) else ()

    def _begin(self, preload: tuple[str, ...]) -> Future[Server]:
        if preload not in self._servers:
            if self._mode is not SandboxMode.NONE:
                # It imports, which is not to happen while another thread looks at what is imported.
                with contextlib.suppress(SandboxUnavailable):
                    build_filter()
            # Its thread lives as long as the servers, which end with the thread that started them.
            self._starter = self._starter or ThreadPoolExecutor(1, thread_name_prefix="sandbox")
            self._servers[preload] = self._starter.submit(
                start_server, self._mode, self._folder, self._assignment, preload, self._cells, self._lesson
            )
        return self._servers[preload]

    def _start(self, preload: tuple[str, ...]) -> Server:
        starting = self._begin(preload)
        try:
            return starting.result()
        except Exception:
            self._servers.pop(preload, None)  # so that the next run tries again
            raise

    def execute(
        self,
        program: Program,
        input_sets: Sequence[InputSet],
        budget: Budget,
        *,
        skip: Collection[int] = (),
        evidence: bool = True,
        reset: bool = False,
        part: Part = Part.ALL,
    ) -> Execution:
        """Run a program on all input sets, the first of which is the published one, or on a part of them.

        skip: indices of cells that are left out altogether. With `evidence` the notebook is also run as
        submitted; for `reset` see `plan.build_job`. After a death the rest is run again without the cell that
        was running. The budget shrinks by what was used. `SandboxError` when the sandbox itself fails.
        """
        lesson = input_sets[0][1].keys()
        progress = Progress(self._assignment, program, input_sets, frozenset(skip), evidence, part)
        job = build_job(program, self._assignment, lesson, self._cells, reset=reset)
        preload = self._find_preload(cell.source for cell in program.cells)
        is_first = True
        while progress.steps and budget.wall > 0 and budget.cpu > 0:
            try:
                # On nobody's time: who comes first would have less than the others.
                server = self._start(preload)
                cpu = self._run_once(server, progress, job, budget, is_first=is_first)
            except Exception:
                self.close()  # also after a fault of ours: the next submission starts anew
                raise
            is_first = False
            budget.cpu -= cpu
            progress.cpu += cpu
        execution = progress.build_execution()
        if self._mode is SandboxMode.NONE:
            return msgspec.structs.replace(execution, notes=(UNWALLED, *execution.notes))
        return execution

    def _run_once(self, server: Server, progress: Progress, job: wire.Job, budget: Budget, *, is_first: bool) -> float:
        """One set of walled processes for the steps that are left; the CPU seconds that it used."""
        # What comes before and after is ours; not so where a cell has made a further set necessary.
        with contextlib.nullcontext() if is_first else _charge(budget):
            clone = server.clone()
        limits = self._assignment.limits
        self._groups = self._groups or Groups()
        try:
            with self._groups.confine(read_pid(clone.pidfd), limits) as group:
                progress.begin()
                watch = Watch(clone, budget, limits.memory_bytes if group is None else None)
                exchange = Exchange(clone, progress, job, watch)
                with _charge(budget):
                    ended = exchange.run()
                if exchange.was_refused:
                    progress.forget_place()
                else:
                    progress.take_place(*clone.read_place())
                if ended is None and group is not None and group.is_out_of_memory():
                    ended = tell_memory(limits.memory_bytes)
                    clone.was_ended = True  # the root too
            code, cpu = server.read_status(clone)
            if code == wire.SWEEP_FAILED:
                raise SandboxError("what a submission left behind cannot be ended or removed")
            ending = ended or _read_ending(code, cpu, budget, limits)
            # Students can do this to themselves; so can the machine, when its memory runs out, or a person.
            is_doubtful = ended is None and ending[0] is Ending.KILLED and _read_signal(code) == signal.SIGKILL
            # What the kernel ends for its time has used up that of the whole submission.
            is_unsure = watch.is_unsure or (ended is None and ending[0] is Ending.TIMEOUT)
            progress.finish(ending, code, out_of_time=watch.out_of_time, is_doubtful=is_doubtful, is_unsure=is_unsure)
            # The kernel's sum leaves out processes that were killed before anyone waited for them.
            return max(cpu, watch.cpu_seconds)
        finally:
            clone.close()


@contextlib.contextmanager
def _charge(budget: Budget) -> Iterator[None]:
    began = time.monotonic()
    try:
        yield
    finally:
        budget.wall -= time.monotonic() - began


def _close(starting: Future[Server]) -> None:
    try:
        server = starting.result()
    except Exception:
        return  # told to whoever needed it
    server.close()


def _read_ending(code: int, cpu: float, budget: Budget, limits: Limits) -> tuple[Ending, str]:
    """How processes ended that the host did not end, from the exit code of their root (`guest.minder`)."""
    if code == wire.DISK_FULL:
        return Ending.KILLED, (
            f"its files took more than {limits.disk_bytes // 2**20} MiB (limit disk_bytes) or were more than "
            f"{limits.files} (limit files)"
        )
    number = _read_signal(code)
    if number and cpu >= budget.cpu:
        return tell_cpu()
    if number:
        return Ending.KILLED, f"the process was ended by signal {_name_signal(number)}"
    return Ending.EXITED, "the process ended itself"


def _read_signal(code: int) -> int:
    """The signal that ended the student's process or the init, 0 where none did."""
    return code - 64 if code > 64 else -code if code < 0 else 0


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
