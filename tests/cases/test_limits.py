"""Every limit of `course.toml` holds, and the message that comes of it names the limit."""

import pytest

from autograder.course import Limits
from autograder.grading import Grader
from autograder.intake.notebook import parse_program
from autograder.records import Cell, Program
from autograder.sandbox.watch import build_budget

SMALL = Limits.model_construct(
    cell_wall_seconds=1.0,
    cell_cpu_seconds=0.5,
    wall_seconds=6.0,
    cpu_seconds=2.5,
    memory_bytes=200 * 2**20,
    processes=12,
    disk_bytes=2**18,
    files=32,
    output_bytes=5000,
    answer_bytes=2**16,
)
SPIN = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass\n"
FORKS = """
import os, time
for _ in range({children}):
    if os.fork() == 0:
        {work}
        time.sleep(30)
        os._exit(0)
time.sleep(30)
"""

HITS = {
    "memory of one process": ("memory_bytes", "kept = bytearray(2**30)"),
    "an array over the memory": ("memory_bytes", "np.ones(2**28)"),
    "memory of many processes": (
        "memory_bytes",
        FORKS.format(children=4, work="kept = bytearray(b'x') * (100 * 2**20)"),
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
    "a cell that sleeps": ("cell_wall_seconds", "import time\ntime.sleep(30)"),
    "a cell that computes": ("cell_cpu_seconds", "while True: pass"),
}


@pytest.fixture(scope="module")
def small(course):
    """The workbench's class under small limits."""
    assignment = course.assignment("qkv")
    changed = {"qkv": assignment.model_copy(update={"limits": SMALL})}
    with Grader(course.model_copy(update={"assignments": changed}), "qkv") as grader:
        yield grader


@pytest.fixture(scope="module")
def small_bench(small, bench):
    return type(bench)(small)


@pytest.mark.parametrize(("limit", "code"), HITS.values(), ids=HITS)
def test_a_limit_that_is_hit_is_named_in_the_message(small_bench, limit, code) -> None:
    grade = small_bench.grade_codes({"shared-key": code})
    small_bench.assert_only(grade, "shared-key")
    messages = {mark.message for mark in small_bench.lost(grade).values()}
    assert any(f"limit {limit})" in message for message in messages), messages


def test_output_over_its_limit_is_cut_with_a_word_about_the_limit(small_bench) -> None:
    grader = small_bench.grader
    inputs = [(each.seed, each.inputs) for each in grader.marking.input_sets]
    code = "print('x' * 20_000)\n" + small_bench.read_source("shared-key")
    program = parse_program(small_bench.fill({"shared-key": code}), grader.assignment)
    execution = grader.sandbox.execute(program, inputs, build_budget(grader.assignment))
    shown = b"".join(output.data for output in execution.outputs)
    assert len(shown) < SMALL.output_bytes + 500
    assert b"5000 bytes (limit output_bytes)" in shown


def run_cells(small, source: str, count: int):
    """A notebook of many equal cells of the first exercise, run once."""
    cells = tuple(Cell(number, source, ("shared-key",)) for number in range(count))
    inputs = [(each.seed, each.inputs) for each in small.marking.input_sets]
    return small.sandbox.execute(Program(cells), inputs, build_budget(small.assignment))


@pytest.mark.parametrize(
    ("limit", "code"),
    [("wall_seconds", "import time\ntime.sleep(0.8)"), ("cpu_seconds", SPIN.format(0.35))],
    ids=["wall", "processor"],
)
def test_time_of_the_whole_submission_that_is_used_up_is_named(small, limit, code) -> None:
    execution = run_cells(small, code, 12)
    texts = {run.text for each in execution.passes for run in each.runs if run.ending == "timeout"}
    assert texts
    assert all(limit in text for text in texts), texts


def test_every_limit_of_the_course_file_has_a_default_and_a_test_here() -> None:
    tested = {limit for limit, _ in HITS.values()} | {"output_bytes", "wall_seconds", "cpu_seconds"}
    assert tested == set(Limits.model_fields)
    assert Limits() == Limits.model_validate({})
