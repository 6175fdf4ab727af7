"""Work over local processes: everything is done once, whatever becomes of a worker."""

import os
import signal
import threading
import time
from collections.abc import Collection, Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

from autograder.batch import Workers, _Waiting, run_all
from autograder.course import Course
from autograder.grading import Grader
from autograder.sandbox.processes import walk_tree

ASSIGNMENT = "qkv"


def note_worker(grader: Grader, item: tuple[Any, ...]) -> int:
    """The item's number; leaves the number of the process behind."""
    number, folder, *_ = item
    Path(folder, str(os.getpid())).touch()
    return number


def die_once(grader: Grader, item: tuple[Any, ...]) -> int:
    """As `note_worker`, but the first process that meets number 5 dies."""
    if item[0] == 5 and not Path(item[1], "died").exists():
        Path(item[1], "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return note_worker(grader, item)


def die_always(grader: Grader, item: tuple[int, str]) -> int:
    """As `note_worker`, but number 5 kills whoever meets it."""
    if item[0] == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return note_worker(grader, item)


def test_a_worker_that_dies_costs_what_it_had_in_hand_a_second_try_and_nobody_else(
    course: Course, tmp_path: Path
) -> None:
    items = [(number, str(tmp_path)) for number in range(60)]
    done = sorted(result for _, result in run_all(course, ASSIGNMENT, die_once, items, 2) if result is not None)
    assert done == list(range(60))
    # Two at first, one for each of the at most eight that were in hand, two for the rest.
    assert len([name for name in os.listdir(tmp_path) if name.isdigit()]) <= 12


@pytest.mark.parametrize("end", ["a worker dies", "it is interrupted"])
def test_work_that_waits_to_be_handed_out_holds_up_nothing(course: Course, tmp_path: Path, end: str) -> None:
    """More than a pipe holds, when there is nobody any more who takes it. Each Python writes it in its own way."""
    items = [(number, str(tmp_path), "x" * 10**6) for number in range(12)]
    if end == "a worker dies":
        assert sorted(result for _, result in run_all(course, ASSIGNMENT, die_once, items, 2)) == list(range(12))
    else:
        workers = Workers(2)
        for _ in range(8):
            workers.pool.submit(time.sleep, 30)
        for item in items:
            workers.pool.submit(len, item[2])
        time.sleep(0.3)
        workers.__exit__(KeyboardInterrupt, None, None)


@pytest.mark.parametrize("small", [(), (4, 5, 6, 7), range(30)], ids=["none small", "some small", "all small"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_item_that_kills_two_workers_is_reported_and_the_rest_is_done(
    course: Course, tmp_path: Path, jobs: int, small: Collection[int]
) -> None:
    items = [(number, str(tmp_path)) for number in range(30)]
    done = run_all(course, ASSIGNMENT, die_always, items, jobs, is_small=lambda item: item[0] in small)
    results = {item[0]: result for item, result in done}
    assert results == {number: None if number == 5 else number for number in range(30)}


def test_items_are_taken_as_they_are_needed(course: Course, tmp_path: Path) -> None:
    taken = 0

    def give() -> Iterator[tuple[int, str]]:
        nonlocal taken
        for number in range(1000):
            taken += 1
            yield number, str(tmp_path)

    results = run_all(course, ASSIGNMENT, note_worker, give(), 2)
    next(results)
    assert taken <= 10
    results.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("busy", [True, False])
def test_a_pool_that_is_ended_leaves_no_thread_that_races_with_the_interpreters_end(busy: bool) -> None:
    began = time.monotonic()
    workers = Workers(2)
    futures = [workers.pool.submit(time.sleep, 30 if busy else 0) for _ in range(8)]
    time.sleep(0.2)
    workers.__exit__(KeyboardInterrupt, None, None)
    assert not [each for each in threading.enumerate() if "Executor" in type(each).__name__]
    assert all(future.done() for future in futures)
    assert time.monotonic() - began < 10


def test_workers_of_whom_one_died_are_ended_by_whoever_used_and_by_whoever_started_them(
    course: Course, tmp_path: Path
) -> None:
    items = [(number, str(tmp_path)) for number in range(12)]
    with Workers(2) as workers:
        done = list(run_all(course, ASSIGNMENT, die_once, items, 2, workers=workers))
        assert workers.is_broken
    assert sorted(result for _, result in done if result is not None) == list(range(12))


def test_small_items_are_handed_out_together_and_others_are_not(course: Course, tmp_path: Path) -> None:
    large = {0, 5, 6, 25}
    handed: list[int] = []
    jobs = _Waiting([(number, str(tmp_path)) for number in range(28)], lambda item: item[0] not in large)
    while jobs:
        handed.append(len(jobs.take()))
    assert handed == [1, 4, 1, 1, 16, 2, 1, 2]


def look_beside(grader: Grader, item: tuple[int, str]) -> bool:
    """Whether another worker has something to do meanwhile."""
    mine = Path(item[1], f"busy-{item[0]}")
    mine.touch()
    time.sleep(0.4)
    beside = len(list(Path(item[1]).glob("busy-*"))) > 1
    mine.unlink()
    return beside


def test_small_items_that_take_long_are_shared_out(course: Course, tmp_path: Path) -> None:
    items = [(number, str(tmp_path)) for number in range(8)]
    done = dict(run_all(course, ASSIGNMENT, look_beside, items, 2, is_small=lambda _: True))
    assert done.keys() == set(items)
    assert sum(map(bool, done.values())) >= 4, "after the first of them, two at a time"


def test_workers_of_which_one_is_killed_while_they_get_ready_are_replaced(course: Course, tmp_path: Path) -> None:
    items = [(number, str(tmp_path)) for number in range(6)]
    with Workers(2) as workers:
        with pytest.raises(BrokenProcessPool):
            workers.pool.submit(os._exit, 1).result()
        workers.get_ready(course, ASSIGNMENT, eager=True)
        done = sorted(number for _, number in run_all(course, ASSIGNMENT, note_worker, items, 2, workers=workers))
    assert done == list(range(6))


def get_ready_in_vain(course: Course, before: set[int]) -> None:
    """Two workers with their sandboxes, and then nothing for them to do."""
    with Workers(2) as workers:
        workers.get_ready(course, ASSIGNMENT, eager=True)
        deadline = time.monotonic() + 20
        while len({*walk_tree(os.getpid())} - before) < 6 and time.monotonic() < deadline:
            time.sleep(0.05)
        raise ValueError("refused")


def test_workers_that_got_ready_in_vain_leave_no_process(course: Course) -> None:
    before = {*walk_tree(os.getpid())}
    with pytest.raises(ValueError, match="refused"):
        get_ready_in_vain(course, before)
    deadline = time.monotonic() + 20
    while (left := {*walk_tree(os.getpid())} - before) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left
