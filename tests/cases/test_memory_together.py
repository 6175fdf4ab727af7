"""Memory of all processes of a submission together: what they share counts once, what they have counts whole."""

import math
import mmap
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autograder.sandbox.processes import measure_mappings, measure_shared, measure_tree, read_memory

MIB = 2**20
WORKERS = """
import multiprocessing, time
big = np.ones({mib} * 2**17)
def work():
    {work}
    time.sleep(0.4)
    assert float(big.sum()) == big.size
workers = [multiprocessing.Process(target=work) for _ in range({workers})]
for worker in workers: worker.start()
for worker in workers: worker.join()
assert [worker.exitcode for worker in workers] == [0] * {workers}
for worker in workers: worker.close()
"""


def test_twenty_workers_that_share_an_array_are_not_out_of_memory(bench) -> None:
    code = WORKERS.format(mib=40, workers=20, work="pass") + bench.read_source("head-size")
    bench.assert_full(bench.grade_codes({"head-size": code}))


def test_workers_that_change_their_copies_are_out_of_memory(bench) -> None:
    code = WORKERS.format(mib=150, workers=12, work="big[:] = 1.0") + bench.read_source("head-size")
    grade = bench.grade_codes({"head-size": code})
    bench.assert_only(grade, "head-size")
    assert bench.status(grade, "head-size") == "out-of-memory"


def test_what_one_run_keeps_in_a_function_is_free_in_the_next(bench) -> None:
    """Four runs, each with 60 per cent of the limit behind a function that refers to its own namespace."""
    mib = bench.grader.assignment.limits.memory_bytes * 6 // 10 // MIB
    code = f"big = np.ones({mib} * 2**17)\ndef look(big=big):\n    return big, X\n" + bench.read_source("head-size")
    bench.assert_full(bench.grade_codes({"head-size": code}))


@pytest.fixture
def family():
    """A process of this user with 100 MiB, and three forked children that share them."""
    ready, tell = os.pipe()
    root = os.fork()
    if root == 0:
        try:
            kept = mmap.mmap(-1, 100 * MIB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            for start in range(0, 100 * MIB, 4096):
                kept[start] = 1
            for _ in range(3):
                if os.fork() == 0:
                    break
            os.write(tell, b"x")
            time.sleep(60)
        finally:
            os._exit(0)
    os.close(tell)
    with os.fdopen(ready, "rb") as file:
        assert file.read(4) == b"xxxx"
    yield root
    family = [root]
    for pid in family:
        family += [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    for pid in family:
        os.kill(pid, signal.SIGKILL)
    os.waitpid(root, 0)


def test_pages_that_four_processes_share_count_once(family) -> None:
    alone = read_memory(os.getpid())
    shared, plain = measure_shared(family).memory_bytes, measure_tree(family).memory_bytes
    assert plain >= 400 * MIB
    assert 90 * MIB < shared < 200 * MIB + alone


def test_a_tree_that_is_gone_has_no_memory() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    assert measure_shared(pid).memory_bytes == 0


HEADLESS = """
import ctypes, mmap, os, threading, time
kept = [mmap.mmap(-1, 4096, prot=1 + n % 2 * 2) for n in range(5000)]
threading.Thread(target=time.sleep, args=(60,)).start()
print("ready", flush=True)
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)
"""


def test_mappings_count_where_the_first_thread_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", HEADLESS], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            end = time.monotonic() + 10
            while Path(f"/proc/{process.pid}/maps").read_bytes() and time.monotonic() < end:
                time.sleep(0.01)
            assert not Path(f"/proc/{process.pid}/maps").read_bytes()
            assert measure_mappings(process.pid, math.inf) > 5000 * 200
        finally:
            process.kill()
