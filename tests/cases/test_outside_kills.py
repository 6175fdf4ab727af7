"""Somebody else ends a process behind the wall: that is no fault of the student, and costs no mark."""

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.course import Course, load_course
from autograder.errors import SandboxError, SandboxUnavailable
from autograder.records import Cell, Ending, Program
from autograder.sandbox.processes import read_parent
from autograder.sandbox.session import Session
from autograder.sandbox.started import StartedGuest
from autograder.sandbox.watch import build_budget

ROOT = Path(__file__).parents[2]
OTHERS: set[int] = set()
"""Sandboxes of other tests in this process, which are left alone."""
SLEEPS = "import time\ntime.sleep(1)\nK_shared = 1"


def execute_while(course: Course, strike: Callable[[], None], code: str):
    """A cell's run on the published input set; `strike` is called in a thread of its own beside it."""
    assignment = course.assignment("qkv")
    OTHERS.clear()
    OTHERS.update(pid for pid, _ in list_descendants(os.getpid()))
    faults: list[BaseException] = []

    def strike_and_tell() -> None:
        try:
            strike()
        except AssertionError as fault:
            faults.append(fault)

    thread = threading.Thread(target=strike_and_tell)
    thread.start()
    try:
        with Session(course.folder, assignment) as session:
            execution = session.execute(Program((Cell(0, code),)), [(1, {})], build_budget(assignment), evidence=False)
    finally:
        thread.join()
        assert not faults
    (run,) = execution.passes[0].runs
    return run


def list_descendants(root: int) -> list[tuple[int, int]]:
    """A process, and those below it, each with its depth."""
    found = [(root, 0)]
    for pid, depth in found:
        try:
            tasks = os.listdir(f"/proc/{pid}/task")
            texts = [Path(f"/proc/{pid}/task/{task}/children").read_text(encoding="ascii") for task in tasks]
        except OSError:
            continue
        found += [(int(child), depth + 1) for text in texts for child in text.split()]
    return found


def kill_first(depth: int) -> None:
    """Kill the first process of a sandbox that appears so many forks below this one; an error when none does."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for pid, found in list_descendants(os.getpid()):
            # Looking for the library of the system call filter starts processes, too.
            if found == depth and pid not in OTHERS and is_of_a_sandbox(pid):
                os.kill(pid, signal.SIGKILL)
                return
        time.sleep(0.002)
    raise AssertionError(f"no process of a sandbox at depth {depth}")


def list_orphans() -> set[int]:
    """Processes of a sandbox that have lost their parent."""
    found = {int(name) for name in os.listdir("/proc") if name.isdigit() and is_of_a_sandbox(int(name))}
    return {pid for pid in found if read_parent(pid) == 1}


def is_of_a_sandbox(pid: int) -> bool:
    try:
        return b"guest.server" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_a_process_of_a_student_that_is_killed_once_from_outside_runs_again() -> None:
    # bubblewrap, its init, the fork server, the student, who is the init of its namespace.
    run = execute_while(load_course(ROOT), lambda: kill_first(4), SLEEPS)
    assert run.ending is Ending.OK


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_sandbox_that_is_killed_while_it_starts_is_no_machine_that_cannot_run_one(depth, monkeypatch) -> None:
    wait = StartedGuest._wait_until_ready

    def kill_and_wait(guest: StartedGuest) -> None:
        end = time.monotonic() + 60
        while not (found := [pid for pid, at in list_descendants(guest.process.pid) if at == depth - 1]):
            assert time.monotonic() < end, f"no process of the sandbox at depth {depth}"
        os.kill(found[0], signal.SIGKILL)
        wait(guest)

    monkeypatch.setattr(StartedGuest, "_wait_until_ready", kill_and_wait)
    before = list_orphans()
    for _ in range(8):  # at its start, bubblewrap has a child for a moment that does not know of its death
        with pytest.raises(SandboxError, match="killed") as caught:
            execute_while(load_course(ROOT), lambda: None, "x = 1")
        assert not isinstance(caught.value, SandboxUnavailable)
    end = time.monotonic() + 10
    while (left := list_orphans() - before) and time.monotonic() < end:
        time.sleep(0.05)
    assert not left


def test_a_process_that_kills_itself_is_blamed_though_it_gets_a_second_run() -> None:
    code = "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass"
    run = execute_while(load_course(ROOT), lambda: None, code)
    assert (run.ending, run.text) == (Ending.KILLED, "the process was ended by signal SIGKILL")
