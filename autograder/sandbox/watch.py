"""Limits of a submission while it runs: what is left, and who looks whether it is overrun."""

import time

import msgspec

from autograder.course import Assignment
from autograder.records import Ending
from autograder.sandbox.clone import Clone
from autograder.sandbox.processes import (
    Usage,
    measure_cpu,
    measure_delay,
    measure_mappings,
    measure_shared,
    measure_sockets,
    measure_tree,
    read_pid,
)

CELL_CPU = "limit cell_cpu_seconds"
"""Stands in the text of a cell that used up its processor time, and in no other."""

_POLL_SECONDS = 0.02
_MANY = 8
"""Processes; the mappings of fewer cannot take much."""
_MAPPING_SECONDS = 0.2
"""Between two looks at the mappings of many processes, at least."""
_MAPPING_PART = 5
"""And so many times what the last look took."""
_STOOD_SECONDS = 1.0
"""Between two checks, without work of ours: the machine, or somebody, has stopped us, and most likely all else."""
_DELAY_SECONDS = 0.05
"""Of waiting for a processor that is given back at once."""
_MOST_DELAY = 2
"""Times a limit on the clock: what is given back at most. Code can have a process that waits for it, and do nothing."""
_LONG_LOOK_SECONDS = 0.1
_MOMENT_SECONDS = 0.1
_DOUBTS = 3
"""Looks in a row that may seem too much while processes come and go."""
SLACK = 1.05
"""A little more than the limit for all processes together, so that one that grows alone meets its own limit first
and keeps the answers that it has."""


class Budget(msgspec.Struct):
    """What is left for one submission, in seconds; shrinks as its processes run."""

    wall: float
    cpu: float
    cell_wall: float
    cell_cpu: float
    delay: float = 0.0
    """How much waiting for a processor may still be given back."""
    hidden_wall: float = 0.0
    hidden_cpu: float = 0.0
    """What was left when a hidden input set was first asked for, where a run is wary of that."""


def build_budget(assignment: Assignment) -> Budget:
    """The whole budget of one submission."""
    limits = assignment.limits
    return Budget(
        limits.wall_seconds,
        limits.cpu_seconds,
        limits.cell_wall_seconds,
        limits.cell_cpu_seconds,
        _MOST_DELAY * limits.wall_seconds,
    )


class Watch:
    """Keeps the limits of one set of processes; looks at /proc only once it has run for a while.

    memory_bytes: None where the kernel keeps the limit (`cgroup.py`).
    `is_unsure`: other threads or processes have been seen beside the cell that runs, or other cells have used up the
    time of the whole submission.
    """

    def __init__(self, clone: Clone, budget: Budget, memory_bytes: int | None) -> None:
        self._budget = budget
        self._memory = memory_bytes
        self._pid = -1
        self._clone = clone
        self._began = now = time.monotonic()
        self._end = now + budget.wall
        self._next_poll = now + _POLL_SECONDS
        self._cpu_base = 0.0
        self._doubts = 0
        self._mappings = 0
        self._next_mappings = now
        self._is_spent = False
        self._seen, self._worked = now, time.thread_time()
        self._delay = 0.0
        self._looked = now
        self.cpu_seconds = 0.0
        self.progress()

    def progress(self) -> None:
        """A cell has begun or ended."""
        self._cell_end = time.monotonic() + self._budget.cell_wall
        self._cell_delay = _MOST_DELAY * self._budget.cell_wall
        self._fresh = True
        self.is_unsure = False

    def note_hidden(self) -> None:
        """What comes from now on is for hidden input sets."""
        took = time.monotonic() - self._began
        # To measure costs more than what there can be after a moment.
        used = measure_cpu(self._pid) - self._clone.cpu_before if took > _MOMENT_SECONDS and self._find_pid() else took
        self._budget.hidden_wall = self._end - time.monotonic()
        self._budget.hidden_cpu = self._budget.cpu - used

    @property
    def out_of_time(self) -> bool:
        """Whether the time of the whole submission is used up, on the clock or of the processor."""
        return self._is_spent or time.monotonic() >= self._end

    @property
    def is_due(self) -> bool:
        """Whether the next look may find a limit broken."""
        return time.monotonic() >= min(self._next_poll, self._cell_end)

    def wait_seconds(self) -> float:
        """How long nothing needs to be looked at."""
        return max(0.0, min(self._next_poll, self._cell_end, self._end) - time.monotonic())

    def check(self) -> tuple[Ending, str] | None:
        """The limit that is broken, if any."""
        now = time.monotonic()
        budget = self._budget
        self._give_back(now)
        if now >= min(self._end, self._cell_end):
            self._give_back_delay()
        if now >= self._end:
            self.is_unsure = True
            return Ending.TIMEOUT, "the time of the whole submission was used up (limit wall_seconds)"
        if now >= self._cell_end:
            return Ending.TIMEOUT, f"it ran longer than {budget.cell_wall:g} s (limit cell_wall_seconds)"
        if now < self._next_poll:
            return None
        broken = self._look()
        # From now on, so that looking takes its turns even where it takes long.
        self._next_poll = time.monotonic() + _POLL_SECONDS
        return broken

    def _give_back(self, now: float) -> None:
        """Time in which everything stood still is no time of the submission's."""
        worked = time.thread_time()
        stood = now - self._seen - (worked - self._worked)
        self._seen, self._worked = now, worked
        if stood > _STOOD_SECONDS:
            self._extend(stood)

    def _give_back_delay(self) -> None:
        """Nor is time in which it would have run, had others not kept the processors busy: they may have meant to."""
        if not self._find_pid():
            return
        found = measure_delay(self._pid)
        delay = min(found - self._delay, self._cell_delay, self._budget.delay)
        if delay > _DELAY_SECONDS:
            self._delay = found
            self._cell_delay -= delay
            self._budget.delay -= delay
            self._extend(delay)

    def _extend(self, seconds: float) -> None:
        self._budget.wall += seconds
        self._end += seconds
        self._cell_end += seconds

    def _find_pid(self) -> bool:
        """Whether there is still a process to be looked at."""
        if self._pid < 0:
            self._pid = read_pid(self._clone.pidfd)
        return self._pid >= 0

    def _look(self) -> tuple[Ending, str] | None:
        budget = self._budget
        if not self._find_pid():
            return None
        usage = measure_tree(self._pid)
        self.is_unsure = self.is_unsure or usage.threads > self._clone.first
        cpu_seconds = usage.cpu_seconds - self._clone.cpu_before
        self.cpu_seconds = max(self.cpu_seconds, cpu_seconds)
        if self._fresh:
            self._fresh, self._cpu_base = False, cpu_seconds
        if cpu_seconds - self._cpu_base > budget.cell_cpu:
            return Ending.TIMEOUT, f"it used more than {budget.cell_cpu:g} s of processor time ({CELL_CPU})"
        if cpu_seconds > budget.cpu:
            self.is_unsure = self._is_spent = True
            return tell_cpu()
        # Last, since it takes long where many processes keep the processors busy.
        self._looked = time.monotonic()
        if self._memory is not None and self._is_over(usage, SLACK * self._memory):
            return tell_memory(self._memory)
        return None

    def _is_cpu_over(self) -> bool:
        """Whether a limit on processor time was broken while memory was looked at; then the next look comes first."""
        if time.monotonic() < self._looked + _LONG_LOOK_SECONDS:
            return False
        self._looked = time.monotonic()
        cpu_seconds = measure_cpu(self._pid) - self._clone.cpu_before
        return cpu_seconds - self._cpu_base > self._budget.cell_cpu or cpu_seconds > self._budget.cpu

    def _is_over(self, usage: Usage, allowed: float) -> bool:
        """Whether the processes have more memory than that, beside what was there before they began."""
        if self._clone.network_pid:
            allowed -= measure_sockets(self._clone.network_pid)
        allowed -= self._measure_mappings(usage, allowed)
        # The first processes share the fork server's pages.
        before = self._clone.memory_before
        if usage.memory_bytes - self._clone.first * before <= allowed:
            return False
        # So do the student's own children with the student: a second look, which is dear, counts such pages once.
        look = measure_shared(self._pid, allowed + before, self._is_cpu_over)
        if not look.ended:
            self._doubts = 0
            return look.memory_bytes - before > allowed
        # Processes that end while others are looked at blur the sum; those that do so all the time hide something.
        self._doubts = self._doubts + 1 if look.likely_bytes - before > allowed else 0
        return self._doubts >= _DOUBTS or look.memory_bytes > 2 * allowed

    def _measure_mappings(self, usage: Usage, allowed: float) -> int:
        """What mappings of many processes take; looked at so seldom that looking takes a small part of the time."""
        if usage.processes <= _MANY:
            self._mappings = 0
        elif (began := time.monotonic()) >= self._next_mappings:
            self._mappings = measure_mappings(self._pid, allowed, self._is_cpu_over)
            took = time.monotonic() - began
            self._next_mappings = time.monotonic() + max(_MAPPING_SECONDS, _MAPPING_PART * took)
        return self._mappings


def tell_memory(memory_bytes: int) -> tuple[Ending, str]:
    """The ending of processes that had too much memory together."""
    return (
        Ending.OUT_OF_MEMORY,
        f"its processes used more than {memory_bytes // 2**20} MiB of memory (limit memory_bytes)",
    )


def tell_cpu() -> tuple[Ending, str]:
    """The ending of a submission whose processor time is used up; how much it was is no one number, see `runs.py`."""
    return Ending.TIMEOUT, "the processor time of the whole submission was used up (limit cpu_seconds)"
