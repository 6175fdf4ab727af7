"""Every limit of `course.toml` holds, and the message that comes of it names the limit."""

import msgspec
import pytest

from autograder.course import Limits
from autograder.grading import Grader
from autograder.intake.notebook import parse_program
from autograder.records import Ending
from autograder.sandbox.watch import Budget, build_budget

# Times that end nothing, and the rest small.
SMALL = Limits.model_construct(
    cell_wall_seconds=60.0,
    cell_cpu_seconds=30.0,
    wall_seconds=400.0,
    cpu_seconds=200.0,
    memory_bytes=200 * 2**20,
    processes=12,
    disk_bytes=2**18,
    files=32,
    output_bytes=5000,
    answer_bytes=2**16,
)
FORKS = """
import os, time
for _ in range({children}):
    if os.fork() == 0:
        {work}
        time.sleep(30)
        os._exit(0)
time.sleep(30)
"""

FILL_SOCKETS = """
import socket

def fill():
    kept = []
    try:
        while True:
            kept += socket.socketpair()
            for each in kept[-2:]:
                each.setblocking(False)
                try:
                    while True: each.send(bytes(2**15))
                except BlockingIOError:
                    pass
    except OSError:
        return kept
"""

HITS = {
    "memory of one process": ("memory_bytes", "kept = bytearray(2**30)"),
    "an array over the memory": ("memory_bytes", "np.ones(2**28)"),
    "memory of many processes": (
        "memory_bytes",
        FORKS.format(children=4, work="kept = bytearray(b'x') * (100 * 2**20)"),
    ),
    "memory in sockets": (
        "memory_bytes",
        FILL_SOCKETS + FORKS.format(children=10, work="kept = fill()"),
    ),
    "memory in sockets, beside a first thread that has ended": (
        "memory_bytes",
        FILL_SOCKETS
        + "import ctypes, os, threading, time\ndef go_on():\n    for _ in range(10):\n        if os.fork() == 0:\n"
        "            kept = fill()\n            time.sleep(30)\n            os._exit(0)\n    time.sleep(30)\n"
        "threading.Thread(target=go_on).start()\ntime.sleep(0.1)\nexits = {'x86_64': 60, 'aarch64': 93}\n"
        "ctypes.CDLL(None).syscall(exits[os.uname().machine], 0)",
    ),
    "processes": ("processes", "import os, time\nfor _ in range(40): os.fork() or (time.sleep(5), os._exit(0))"),
    "threads": (
        "processes",
        "import threading, time\nfor _ in range(40): threading.Thread(target=time.sleep, args=(5,)).start()",
    ),
    "one large file": (
        "disk_bytes",
        "open('/tmp/large', 'wb', 0).write(bytes(2**20)); open('/tmp/b', 'wb', 0).write(b'x')",
    ),
    "several files": ("disk_bytes", "for n in range(5): open(f'/tmp/{n}', 'wb').write(bytes(2**17))"),
    "an array in a file": ("disk_bytes", "np.arange(2**20).tofile('/tmp/array')"),
    "many files": ("files", "for n in range(64): open(f'/tmp/{n}', 'wb').close()"),
    "a large answer": ("answer_bytes", "Wk_shared = K_shared = scores_shared = np.zeros((100, 1000))"),
}
SLEEP, SPIN = "import time\ntime.sleep(300)", "while True: pass"
TIMES = {
    "a cell that sleeps": ("cell_wall_seconds", Budget(wall=400, cpu=200, cell_wall=0.5, cell_cpu=100), SLEEP),
    "a cell that computes": ("cell_cpu_seconds", Budget(wall=400, cpu=200, cell_wall=300, cell_cpu=0.3), SPIN),
    "a submission that sleeps": ("wall_seconds", Budget(wall=1.5, cpu=200, cell_wall=300, cell_cpu=100), SLEEP),
    "a submission that computes": ("cpu_seconds", Budget(wall=400, cpu=1.5, cell_wall=300, cell_cpu=100), SPIN),
}


@pytest.fixture(scope="module")
def small_bench(course, bench):
    """A workbench under small limits."""
    assignment = course.assignment("qkv")
    changed = {"qkv": assignment.model_copy(update={"limits": SMALL})}
    with Grader(course.model_copy(update={"assignments": changed}), "qkv") as grader:
        yield type(bench)(grader)


@pytest.mark.parametrize(("limit", "code"), HITS.values(), ids=HITS)
def test_a_limit_that_is_hit_is_named_in_the_message(small_bench, limit, code) -> None:
    grade = small_bench.grade_codes({"shared-key": code})
    small_bench.assert_only(grade, "shared-key")
    messages = {mark.message for mark in small_bench.lost(grade).values()}
    assert any(f"limit {limit})" in message for message in messages), messages


def execute(bench, code: str, budget: Budget):
    """The solution with other code in the first exercise, run once."""
    grader = bench.grader
    inputs = [(each.seed, each.inputs) for each in grader.marking.input_sets]
    program = parse_program(bench.fill({"shared-key": code}), grader.assignment)
    return program, grader.sandbox.execute(program, inputs, budget)


@pytest.mark.parametrize(("limit", "budget", "code"), TIMES.values(), ids=TIMES)
def test_time_that_is_up_is_named_in_the_message(small_bench, limit, budget, code) -> None:
    program, execution = execute(small_bench, code, msgspec.structs.replace(budget))
    marks = small_bench.grader.marking.mark(execution, program)
    messages = {mark.message for mark in marks if mark.exercise == "shared-key"}
    assert len(messages) == 4
    assert all(f"limit {limit}" in message for message in messages), messages


def test_who_is_to_blame_when_the_time_of_all_is_up_is_told_for_no_cell(small_bench) -> None:
    for code, budget in (
        (SPIN, Budget(wall=400, cpu=0.3, cell_wall=300, cell_cpu=100)),
        (SLEEP, Budget(wall=0.5, cpu=100, cell_wall=300, cell_cpu=100)),
    ):
        _, execution = execute(small_bench, code, budget)
        ended = [run for run in execution.passes[0].runs if run.ending is Ending.TIMEOUT]
        assert len(ended) > 1, "cells that were not reached as well"
        assert all(run.unsure for run in ended)


def test_a_cell_that_uses_up_its_own_time_is_to_blame(small_bench) -> None:
    _, execution = execute(small_bench, SPIN, Budget(wall=400, cpu=200, cell_wall=300, cell_cpu=0.3))
    assert [run.unsure for run in execution.passes[0].runs if run.ending is Ending.TIMEOUT] == [False]


def test_output_over_its_limit_is_cut_with_a_word_about_the_limit(small_bench) -> None:
    code = "print('x' * 20_000)\n" + small_bench.read_source("shared-key")
    _, execution = execute(small_bench, code, build_budget(small_bench.grader.assignment))
    shown = b"".join(output.data for output in execution.outputs)
    assert len(shown) < SMALL.output_bytes + 500
    assert b"5000 bytes (limit output_bytes)" in shown


def test_every_limit_of_the_course_file_has_a_default_and_a_test_here() -> None:
    tested = {limit for limit, *_ in [*HITS.values(), *TIMES.values()]} | {"output_bytes"}
    assert tested == set(Limits.model_fields)
    assert Limits() == Limits.model_validate({})
