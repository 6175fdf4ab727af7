"""The kernel keeps the limits of a submission where a control group is delegated; skipped elsewhere with the reason."""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from autograder.course import Limits
from autograder.grading import Grader
from autograder.sandbox.cgroup import Groups, look_here
from autograder.sandbox.modes import SandboxMode

ROOT = Path(__file__).parents[2]
HERE = look_here()
MIB = 2**20

pytestmark = pytest.mark.skipif(
    HERE.folder is None, reason=f"no control group is delegated to the tests: {HERE.reason}"
)

LIMITS = {
    "memory_bytes": 256 * MIB,
    "cell_wall_seconds": 60,
    "cell_cpu_seconds": 30,
    "wall_seconds": 400,
    "cpu_seconds": 200,
}
FORKS = """
import os, socket, time
def hoard():
    {hoard}
for _ in range({children}):
    if os.fork() == 0:
        kept = hoard()
        time.sleep(300)
        os._exit(0)
time.sleep(300)
"""
SOCKETS = """
    pairs = [socket.socketpair() for _ in range(60)]
    for end in (end for pair in pairs for end in pair):
        end.setblocking(False)
        try:
            while True: end.send(bytes(2**16))
        except BlockingIOError: pass
    return pairs
"""
HOARDS = {
    "private memory": FORKS.format(children=8, hoard="return bytearray(b'x') * (60 * 2**20)"),
    "socket buffers, which /proc does not show": FORKS.format(children=24, hoard=SOCKETS.strip()),
}


@pytest.fixture(scope="module", params=[SandboxMode.AUTO, SandboxMode.SINGLE])
def roomy(request, course, bench):
    """A workbench whose time limits end nothing, so that only the kernel can."""
    assignment = course.assignment("qkv")
    limits = assignment.limits.model_copy(update=LIMITS)
    changed = {"qkv": assignment.model_copy(update={"limits": limits})}
    with Grader(course.model_copy(update={"assignments": changed}), "qkv", request.param) as grader:
        yield type(bench)(grader)


def list_groups() -> list[str]:
    return [folder.name for folder in HERE.folder.glob("submission-*")]


def test_an_honest_submission_runs_in_a_group_and_leaves_none(roomy) -> None:
    roomy.assert_full(roomy.grade(roomy.source))
    assert roomy.grader.sandbox._groups.in_use
    assert list_groups() == []


@pytest.mark.parametrize("code", HOARDS.values(), ids=HOARDS)
def test_memory_of_many_processes_is_ended_by_the_kernel_and_named(roomy, code) -> None:
    grade = roomy.grade_codes({"shared-key": code})
    roomy.assert_only(grade, "shared-key")
    assert roomy.status(grade, "shared-key") == "out-of-memory"
    assert {"limit memory_bytes" in mark.message for mark in roomy.lost(grade).values()} == {True}
    assert list_groups() == []


def test_a_process_that_grows_alone_meets_its_own_limit_and_keeps_its_answers(roomy) -> None:
    code = roomy.read_source("shared-key") + "\nkept = []\nwhile True: kept.append(bytearray(b'x') * 2**22)\n"
    grade = roomy.grade_codes({"shared-key": code})
    roomy.assert_full(grade)
    assert roomy.status(grade, "shared-key") == "out-of-memory"


def test_all_descendants_are_moved_counted_and_ended() -> None:
    # Outside the sandbox, where no other limit on processes stands in the way.
    code = """
import os, sys, time
for _ in range(3):
    if os.fork() == 0:
        time.sleep(300)
print("ready", flush=True)
sys.stdin.readline()
made = 0
try:
    for _ in range(50):
        if os.fork() == 0:
            time.sleep(300)
        made += 1
except BlockingIOError:
    pass
print(made, flush=True)
time.sleep(300)
"""
    groups = Groups()
    command = [sys.executable, "-c", code]
    with ExitStack() as stack:
        tree = stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        stack.callback(tree.kill)
        assert tree.stdout.readline() == "ready\n"
        with groups.confine(tree.pid, Limits(processes=10)) as group:
            assert group is not None
            members = (group._folder / "cgroup.procs").read_text().split()
            assert len(members) == 4
            tree.stdin.write("go\n")
            tree.stdin.flush()
            assert int(tree.stdout.readline()) == 10
            assert group.count_refused_processes() == 1
            assert not group.is_out_of_memory()
        assert tree.wait(20) == -9
    assert list_groups() == []


def test_a_fault_of_the_groups_is_no_fault_of_the_submission(roomy) -> None:
    groups = roomy.grader.sandbox._groups
    kept = groups._home
    groups._home = kept / "taken-away"
    try:
        roomy.assert_full(roomy.grade(roomy.source))
        assert not groups.in_use
        grade = roomy.grade_codes({"shared-key": HOARDS["private memory"]})
        assert roomy.status(grade, "shared-key") == "out-of-memory"
    finally:
        groups._home = kept


def test_a_process_that_is_gone_costs_the_groups_nothing() -> None:
    gone = os.fork()
    if gone == 0:
        os._exit(0)
    os.waitpid(gone, 0)
    groups = Groups()
    with groups.confine(gone, Limits()):
        assert groups.in_use
    assert list_groups() == []


def test_what_a_killed_run_left_behind_is_removed_by_the_next() -> None:
    gone = os.fork()
    if gone == 0:
        os._exit(0)
    os.waitpid(gone, 0)
    (HERE.folder / f"submission-{gone}-abcd").mkdir()
    (mine := HERE.folder / f"submission-{os.getpid()}-abcd").mkdir()
    Groups()
    assert list_groups() == [mine.name]
    mine.rmdir()


def test_workers_that_start_together_all_use_groups(tmp_path, bench) -> None:
    for number in range(4):
        code = f"import time\ntime.sleep(1)  # {number}\n"
        (tmp_path / f"s{number}.ipynb").write_bytes(bench.fill({"head-size": code}))
    command = [sys.executable, "-m", "autograder", "grade", str(tmp_path), "--jobs", "2", "--course", str(ROOT)]
    seen: set[str] = set()
    said = tmp_path / "stderr"
    with open(said, "wb") as errors, subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors) as running:
        while running.poll() is None:
            seen |= {name.split("-")[1] for name in list_groups()}
    assert running.returncode == 0, said.read_text()
    assert len(seen) == 2
    assert list_groups() == []
