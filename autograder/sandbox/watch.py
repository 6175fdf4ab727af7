"""Limits of a submission while it runs: what is left, and who looks whether it is overrun."""

import time

import msgspec

from autograder.course import Assignment
from autograder.records import Ending
from autograder.sandbox.processes import measure_tree, read_pid

_POLL_SECONDS = 0.02


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


class Watch:
    """Keeps the limits of one set of processes; looks at /proc only once it has run for a while."""

    def __init__(self, pidfd: int, budget: Budget, memory_bytes: int) -> None:
        self._budget = budget
        self._memory = memory_bytes
        self._pid = -1
        self._pidfd = pidfd
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

    @property
    def out_of_time(self) -> bool:
        """Whether the time of the whole submission is used up."""
        return time.monotonic() >= self._end

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
        # Init and student share the fork server's pages. A little more than the limit, so that a process that
        # grows alone meets its own limit first and keeps the answers that it has.
        if usage.memory_bytes - 2 * usage.root_memory_bytes > 1.05 * self._memory:
            return Ending.OUT_OF_MEMORY, f"its processes used more than {self._memory // 2**20} MiB of memory"
        if usage.cpu_seconds - self._cpu_base > budget.cell_cpu:
            return Ending.TIMEOUT, f"it used more than {budget.cell_cpu:g} s of processor time"
        if usage.cpu_seconds > budget.cpu:
            return Ending.TIMEOUT, f"the whole submission used more than its {budget.cpu:.3g} s of processor time"
        return None
