"""Whose fault it is that time ran out."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.records import Ending
from autograder.sandbox import watch
from autograder.sandbox.clone import Clone
from autograder.sandbox.processes import Shared, Usage, measure_cpu, read_pid, walk_tree
from autograder.sandbox.watch import Budget, Watch

from ..fuzz.fuzz_wire import open_progress


@pytest.mark.parametrize("spent", ["wall", "cpu"])
def test_time_that_earlier_processes_have_used_up_is_no_fault_of_ours(monkeypatch, spent) -> None:
    """What is left may be less than a set of processes takes to come to its first cell."""
    budget = Budget(wall=60.0, cpu=60.0, cell_wall=60.0, cell_cpu=60.0)
    setattr(budget, spent, 0.001)
    monkeypatch.setattr(watch, "measure_tree", lambda _: Usage(0.01, 0, 1, 1))
    monkeypatch.setattr(watch, "measure_delay", lambda _: 0.0)
    pidfd = os.pidfd_open(os.getpid())
    watched = Watch(Clone(-1, -1, -1, pidfd), budget, None)
    time.sleep(0.03)
    ended = watched.check()
    os.close(pidfd)
    assert ended is not None
    assert ended[0] is Ending.TIMEOUT
    progress, _ = open_progress()
    progress.begin()
    progress.finish(ended, -9, out_of_time=watched.out_of_time)
    assert progress.steps, "nobody is blamed, and nothing is raised"


STOPPED = """
import os, subprocess, time
from autograder.sandbox.clone import Clone
from autograder.sandbox.watch import Budget, Watch
budget = Budget(wall={wall}, cpu=60.0, cell_wall={cell_wall}, cell_cpu=60.0)
began = time.monotonic()
watched = Watch(Clone(-1, -1, -1, os.pidfd_open(os.getpid())), budget, None)
subprocess.Popen(["sh", "-c", f"sleep 0.3; kill -STOP {{os.getpid()}}; sleep 2.5; kill -CONT {{os.getpid()}}"])
ended = None
while budget.wall == {wall} and ended is None and time.monotonic() < began + 10:
    time.sleep(watched.wait_seconds())
    ended = watched.check()
print(ended, budget.wall > {wall} + 2)
while ended is None:
    time.sleep(watched.wait_seconds())
    ended = watched.check()
print(ended[1])
"""


@pytest.mark.parametrize(("limit", "cell_wall", "wall"), [("cell_wall", 1.5, 60), ("wall", 60, 1.5)])
def test_time_in_which_all_stands_still_is_nobodys(limit: str, cell_wall: float, wall: float) -> None:
    """As when a virtual machine is halted and goes on."""
    program = STOPPED.format(cell_wall=cell_wall, wall=wall)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=20)
    first, second = ended.stdout.splitlines()
    assert first == "None True"
    assert f"limit {limit}_seconds" in second


SPIN = "while True: pass"
needs_schedstat = pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the kernel does not say")


@needs_schedstat
@pytest.mark.parametrize(("limit", "cell_wall", "wall"), [("cell_wall", 1.0, 60), ("wall", 60, 1.0)])
def test_time_for_which_others_keep_all_processors_busy_is_nobodys(limit: str, cell_wall: float, wall: float) -> None:
    others = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(2 * len(os.sched_getaffinity(0)))]
    watched, pidfd = start_watched(SPIN, cell_wall, wall)
    began = time.monotonic()
    try:
        text = wait_for_end(watched)
        used, took = measure_cpu(read_pid(pidfd)), time.monotonic() - began
    finally:
        end_all(others, pidfd)
    assert f"limit {limit}_seconds" in text
    # On a machine that does more besides, three seconds may not be enough for one.
    assert used > 0.6 or took > 2.5, "the second that it may take, or as much as is given back at most"


IDLE = """
import os, time
if os.fork() == 0:
    os.nice(19)
    while True: pass
time.sleep(60)
"""


@needs_schedstat
@pytest.mark.parametrize(("limit", "cell_wall", "wall"), [("cell_wall", 1.0, 60), ("wall", 60, 1.0)])
def test_a_process_that_waits_for_a_processor_holds_no_other_for_ever(limit, cell_wall, wall) -> None:
    others = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(2 * len(os.sched_getaffinity(0)))]
    watched, pidfd = start_watched(IDLE, cell_wall, wall)
    began = time.monotonic()
    try:
        text = wait_for_end(watched)
        took = time.monotonic() - began
    finally:
        children = list(walk_tree(read_pid(pidfd)))[1:]
        end_all(others, pidfd)
        for pid in children:
            os.kill(pid, signal.SIGKILL)
    assert f"limit {limit}_seconds" in text
    assert took < 4.5, "three times the limit"


@pytest.mark.parametrize(("limit", "cell_wall", "wall"), [("cell_wall", 1.0, 60), ("wall", 60, 1.0)])
def test_who_waits_of_its_own_will_gains_nothing_where_processors_are_busy(
    limit: str, cell_wall: float, wall: float
) -> None:
    others = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(4 * len(os.sched_getaffinity(0)))]
    watched, pidfd = start_watched("import time; time.sleep(60)", cell_wall, wall)
    began = time.monotonic()
    try:
        text = wait_for_end(watched)
    finally:
        end_all(others, pidfd)
    assert f"limit {limit}_seconds" in text
    assert time.monotonic() - began < 10


def start_watched(code: str, cell_wall: float, wall: float) -> tuple[Watch, int]:
    child = subprocess.Popen([sys.executable, "-S", "-c", code])
    pidfd = os.pidfd_open(child.pid)
    budget = Budget(wall, 60.0, cell_wall, 60.0, delay=2 * wall)
    return Watch(Clone(-1, -1, -1, pidfd), budget, None), pidfd


def wait_for_end(watched: Watch) -> str:
    ended, deadline = None, time.monotonic() + 20
    while ended is None and time.monotonic() < deadline:
        time.sleep(watched.wait_seconds())
        ended = watched.check()
    assert ended is not None
    return ended[1]


def end_all(others: list[subprocess.Popen[bytes]], pidfd: int) -> None:
    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    os.close(pidfd)
    for other in others:
        other.kill()
        other.wait()


@pytest.mark.parametrize("limit", ["cell_cpu", "cpu"])
def test_a_limit_on_processor_time_waits_for_no_look_at_memory(monkeypatch, limit) -> None:
    """Which takes seconds where many processes share much memory and keep the processors busy."""
    seconds = iter([0.01, 0.02])
    asked = []

    def look(root: int, enough: float, is_over: Callable[[], bool]) -> Shared:
        time.sleep(0.15)
        asked.append(is_over())
        return Shared(2**40, 1, 0) if not asked[-1] else Shared(0, 1, 0)

    monkeypatch.setattr(watch, "measure_tree", lambda _: Usage(next(seconds, 9.0), 2**40, 31, 31))
    monkeypatch.setattr(watch, "measure_mappings", lambda *_: 0)
    monkeypatch.setattr(watch, "measure_shared", look)
    monkeypatch.setattr(watch, "measure_cpu", lambda _: 9.0)
    pidfd = os.pidfd_open(os.getpid())
    budget = Budget(60.0, 60.0, 60.0, 60.0)
    setattr(budget, limit, 5.0)
    watched = Watch(Clone(-1, -1, -1, pidfd), budget, 2**30)
    ended = []
    for _ in range(3):
        time.sleep(0.03)
        ended.append(watched.check())
    os.close(pidfd)
    assert asked == [True, True], "the third look comes to the processor time first"
    assert [each and each[0] for each in ended] == [None, None, Ending.TIMEOUT]


@pytest.mark.parametrize("spent", ["wall", "cpu"])
def test_what_is_left_of_the_time_is_in_no_message(monkeypatch, spent) -> None:
    """How much earlier processes have used, a student's code can choose by a hidden input set."""
    monkeypatch.setattr(watch, "measure_tree", lambda _: Usage(0.01, 0, 1, 1))
    monkeypatch.setattr(watch, "measure_delay", lambda _: 0.0)
    pidfd = os.pidfd_open(os.getpid())
    texts = set()
    for left in (0.001, 0.002):
        budget = Budget(wall=60.0, cpu=60.0, cell_wall=60.0, cell_cpu=60.0)
        setattr(budget, spent, left)
        watched = Watch(Clone(-1, -1, -1, pidfd), budget, None)
        time.sleep(0.03)
        texts.add(watched.check())
    os.close(pidfd)
    ((_, text),) = texts
    assert f"limit {spent}_seconds" in text


def test_mappings_of_processes_that_are_gone_are_in_nobodys_way(monkeypatch) -> None:
    """Another exercise runs by then."""
    running = [20, 20, 1]
    monkeypatch.setattr(watch, "measure_tree", lambda _: Usage(0.0, 2**20, running.pop(0), 1))
    monkeypatch.setattr(watch, "measure_mappings", lambda *_: 2**31)
    monkeypatch.setattr(watch, "measure_shared", lambda *_: Shared(2**20, 1, 0))
    pidfd = os.pidfd_open(os.getpid())
    watched = Watch(Clone(-1, -1, -1, pidfd), Budget(60.0, 60.0, 60.0, 60.0), 2**30)
    seen = []
    for _ in tuple(running):
        time.sleep(0.03)
        seen.append(watched.check())
    os.close(pidfd)
    assert [each and each[0] for each in seen] == [Ending.OUT_OF_MEMORY, Ending.OUT_OF_MEMORY, None]
