"""Work on many submissions over local worker processes or a cluster; results come back as they are ready."""

import ctypes
import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from itertools import islice
from multiprocessing import active_children, get_context
from multiprocessing.util import Finalize
from typing import Generic, TypeVar

from autograder.course import Course
from autograder.errors import AutograderError
from autograder.grading import Grader

Item = TypeVar("Item")
Result = TypeVar("Result")
Work = Callable[[Grader, Item], Result]
"""A module-level function that a worker calls with its own grader."""

_IN_FLIGHT = 4
"""Handed out for each worker; more would only wait in memory."""
_TOGETHER, _TOGETHER_SECONDS = 16, 0.2
"""Small items that are handed out as one, since that costs as much as what is done for one of them; and how long."""

_READY = 8
"""Workers that get ready before it is known how much there is to do; further ones do when it is their turn."""

_WRITES_TO_NOBODY = sys.version_info < (3, 11, 5)
"""Whether a pool goes on writing what its dead workers were to do, for ever where that is much. Its own end of the pipe
keeps it from finding out (https://github.com/python/cpython/issues/94777)."""

_PR_SET_PDEATHSIG = 1

_graders: dict[str, Grader] = {}
"""This worker process's graders, by assignment."""


def count_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_all(
    course: Course,
    assignment: str,
    work: Work[Item, Result],
    items: Iterable[Item],
    jobs: int,
    scheduler: str = "",
    report: Callable[[str], None] = print,
    eager: bool = False,
    workers: "Workers | None" = None,
    is_small: Callable[[Item], bool] = lambda _: False,
) -> Iterator[tuple[Item, Result | None]]:
    """Each item with what `work` made of it, in whatever order they end; None where a worker died on it twice.

    Items are taken as they are needed. `jobs` 0 means one worker for each core. With a scheduler's address the
    workers of its Dask cluster do it, and `report` is told what is odd about them. eager: see `Grader`. workers: local
    ones that have been started already. is_small: whether work on an item is so quick that a local worker gets several.
    """
    if scheduler:
        from autograder.cluster import run_on_cluster

        yield from run_on_cluster(course, assignment, work, items, scheduler, report)
        return
    waiting = _Waiting(items, is_small)
    while waiting:
        suspects: list[Item] = []
        crew = workers or Workers(count_jobs(jobs, len(items) if isinstance(items, Sized) else None))
        workers = None
        yield from _run_in_pool(course, assignment, work, waiting, crew, suspects, eager)
        for item in suspects:
            # A worker died under it or beside it: once more, in a pool of its own.
            again: list[Item] = []
            yield from _run_in_pool(course, assignment, work, _Waiting([item], is_small), Workers(1), again, eager)
            if again:
                yield item, None


def count_jobs(jobs: int, items: int | None = None) -> int:
    """Workers for so many items: as many as asked for, 0 being one for each core, and none that has nothing to do."""
    jobs = jobs or count_cores()
    return jobs if items is None else max(1, min(jobs, items))


class Workers:
    """Local worker processes. A context manager; on an exception what they are busy with is not waited for.

    Nor is it when they were given nothing to do, or one of them has died (`is_broken`).
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.has_worked = False
        self.is_broken = False
        # Forked before any thread of ours exists; what is imported by then, no worker pays for.
        self.pool = ProcessPoolExecutor(
            jobs, mp_context=get_context("fork"), initializer=_die_with_parent, initargs=(os.getpid(),)
        )

    def get_ready(self, course: Course, assignment: str, *, eager: bool) -> None:
        """Let them start beside what comes next here; eager: and their sandboxes."""
        # Where one was killed meanwhile, the first items find out, and get others.
        with suppress(BrokenProcessPool):
            for _ in range(min(self.jobs, _READY)):
                self.pool.submit(_get_ready, course, assignment, eager)

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self.has_worked and not self.is_broken:
            self.pool.shutdown()
            return
        for worker in active_children():
            worker.kill()
        # A pool that was shut down has none any more: whoever started them ends them once more.
        if _WRITES_TO_NOBODY and (calls := self.pool._call_queue) is not None:  # type: ignore[attr-defined]
            calls._reader.close()
        # They are dead, so that there is nothing to wait for but the pool's own thread. At the interpreter's end it
        # would still close what the main thread writes to, which prints a traceback now and then.
        self.pool.shutdown(cancel_futures=True)


class _Waiting(Generic[Item]):
    """Items that nobody works on yet."""

    def __init__(self, items: Iterable[Item], is_small: Callable[[Item], bool]) -> None:
        self._items = iter(items)
        self._is_small = is_small
        self._back: list[Item] = []
        self._most = _TOGETHER

    def __bool__(self) -> bool:
        if not self._back:
            self._back += islice(self._items, 1)
        return bool(self._back)

    def take(self) -> list[Item]:
        """The next one, which must be there, or some small ones."""
        taken = [self._back.pop() if self else next(self._items)]
        while self._is_small(taken[-1]) and len(taken) < self._most and self and self._is_small(self._back[-1]):
            taken.append(self._back.pop())
        return taken

    def put_back(self, items: list[Item]) -> None:
        """They were taken and nobody has worked on them."""
        self._back += reversed(items)

    def share_out(self, items: list[Item]) -> None:
        """They were taken and there was no time for them: from now on each goes to whoever has nothing to do."""
        self.put_back(items)
        self._most = 1


def _run_in_pool(
    course: Course,
    assignment: str,
    work: Work[Item, Result],
    waiting: _Waiting[Item],
    workers: Workers,
    suspects: list[Item],
    eager: bool,
) -> Iterator[tuple[Item, Result]]:
    """Results from worker processes, until nothing waits or a worker has died.

    Then `suspects` gets all that was in hand, since nobody knows under which of them it died.
    """
    running: dict[Future[list[Result]], list[Item]] = {}
    with workers:
        while True:
            while not suspects and len(running) < workers.jobs * _IN_FLIGHT and waiting:
                items = waiting.take()
                workers.has_worked = True
                try:
                    running[workers.pool.submit(_run_in_worker, course, assignment, work, items, eager)] = items
                except BrokenProcessPool:
                    workers.is_broken = True
                    waiting.put_back(items)
                    break
            if not running:
                break
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                items = running.pop(future)
                try:
                    results = future.result()
                except BrokenProcessPool:
                    workers.is_broken = True
                    suspects += items
                else:
                    if len(results) < len(items):
                        waiting.share_out(items[len(results) :])
                    yield from zip(items, results, strict=False)


def _die_with_parent(parent: int) -> None:
    """A worker whose parent was killed must not live on; what it runs behind the wall ends with it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it was killed before this worker could ask for that
        os._exit(1)


def _run_in_worker(
    course: Course, assignment: str, work: Work[Item, Result], items: list[Item], eager: bool
) -> list[Result]:
    """What came of the first items, at least of one: of those that turn out to take long, others may do the rest."""
    grader = _find_grader(course, assignment, eager)
    end = time.monotonic() + _TOGETHER_SECONDS
    results = [work(grader, items[0])]
    for item in items[1:]:
        if time.monotonic() >= end:
            break
        results.append(work(grader, item))
    return results


def _find_grader(course: Course, assignment: str, eager: bool) -> Grader:
    if assignment not in _graders:
        grader = Grader(course, assignment, eager=eager).__enter__()
        _graders[assignment] = grader
        gc.freeze()  # what is there by now stays, and need not be looked through again and again
        Finalize(grader, grader.__exit__, args=(None, None, None), exitpriority=10)
    return _graders[assignment]


def _get_ready(course: Course, assignment: str, eager: bool) -> None:
    """What is wrong is told by the first item."""
    with suppress(AutograderError):
        _find_grader(course, assignment, eager)
