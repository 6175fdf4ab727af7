"""Whose fault it is that time ran out."""

import os
import subprocess
import sys
import time

import pytest

from autograder.records import Ending
from autograder.sandbox import watch
from autograder.sandbox.clone import Clone
from autograder.sandbox.processes import Shared, Usage
from autograder.sandbox.watch import Budget, Watch

from ..fuzz.fuzz_wire import open_progress


@pytest.mark.parametrize("spent", ["wall", "cpu"])
def test_time_that_earlier_processes_have_used_up_is_no_fault_of_ours(monkeypatch, spent) -> None:
    """What is left may be less than a set of processes takes to come to its first cell."""
    budget = Budget(wall=60.0, cpu=60.0, cell_wall=60.0, cell_cpu=60.0)
    setattr(budget, spent, 0.001)
    monkeypatch.setattr(watch, "measure_tree", lambda _: Usage(0.01, 0, 1, 1))
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
subprocess.Popen(["sh", "-c", f"kill -STOP {{os.getpid()}}; sleep 2.5; kill -CONT {{os.getpid()}}"])
while time.monotonic() < began + 2.5:
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


@pytest.mark.parametrize("spent", ["wall", "cpu"])
def test_what_is_left_of_the_time_is_in_no_message(monkeypatch, spent) -> None:
    """How much earlier processes have used, a student's code can choose by a hidden input set."""
    monkeypatch.setattr(watch, "measure_tree", lambda _: Usage(0.01, 0, 1, 1))
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
