"""Work on many submissions over local worker processes or a cluster; results come back as they are ready."""

import ctypes
import os
import signal
import sys
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
"""Items handed out for each worker; more would only wait in memory."""

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
) -> Iterator[tuple[Item, Result | None]]:
    """Each item with what `work` made of it, in whatever order they end; None where a worker died on it twice.

    Items are taken as they are needed. `jobs` 0 means one worker for each core. With a scheduler's address the
    workers of its Dask cluster do it, and `report` is told what is odd about them. eager: see `Grader`. workers: local
    ones that have been started already.
    """
    if scheduler:
        from autograder.cluster import run_on_cluster

        yield from run_on_cluster(course, assignment, work, items, scheduler, report)
        return
    waiting = _Waiting(items)
    while waiting:
        suspects: list[Item] = []
        crew = workers or Workers(count_jobs(jobs, len(items) if isinstance(items, Sized) else None))
        workers = None
        yield from _run_in_pool(course, assignment, work, waiting, crew, suspects, eager)
        for item in suspects:
            # A worker died under it or beside it: once more, in a pool of its own.
            again: list[Item] = []
            yield from _run_in_pool(course, assignment, work, _Waiting([item]), Workers(1), again, eager)
            if again:
                yield item, None


def count_jobs(jobs: int, items: int | None = None) -> int:
    """Workers for so many items: as many as asked for, 0 being one for each core, and none that has nothing to do."""
    jobs = jobs or count_cores()
    return jobs if items is None else max(1, min(jobs, items))


class Workers:
    """Local worker processes. A context manager; on an exception what they are busy with is not waited for."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        # Forked before any thread of ours exists, so that no worker pays for imports.
        self.pool = ProcessPoolExecutor(
            jobs, mp_context=get_context("fork"), initializer=_die_with_parent, initargs=(os.getpid(),)
        )

    def get_ready(self, course: Course, assignment: str) -> None:
        """Let them start, and their sandboxes, beside what comes next here."""
        for _ in range(self.jobs):
            self.pool.submit(_get_ready, course, assignment)

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.pool.shutdown()
            return
        for worker in active_children():
            worker.kill()
        self.pool.shutdown(wait=False, cancel_futures=True)


class _Waiting(Generic[Item]):
    """Items that nobody works on yet; taken one at a time."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = iter(items)
        self._back: list[Item] = []

    def __bool__(self) -> bool:
        if not self._back:
            self._back += islice(self._items, 1)
        return bool(self._back)

    def take(self) -> Item:
        """The next one; there must be one."""
        return self._back.pop() if self else next(self._items)

    def put_back(self, item: Item) -> None:
        """It was taken and nobody has worked on it."""
        self._back.append(item)


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
    running: dict[Future[Result], Item] = {}
    with workers:
        while True:
            while not suspects and len(running) < workers.jobs * _IN_FLIGHT and waiting:
                item = waiting.take()
                try:
                    running[workers.pool.submit(_run_in_worker, course, assignment, work, item, eager)] = item
                except BrokenProcessPool:
                    waiting.put_back(item)
                    break
            if not running:
                break
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                item = running.pop(future)
                try:
                    yield item, future.result()
                except BrokenProcessPool:
                    suspects.append(item)


def _die_with_parent(parent: int) -> None:
    """A worker whose parent was killed must not live on; what it runs behind the wall ends with it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it was killed before this worker could ask for that
        os._exit(1)


def _run_in_worker(course: Course, assignment: str, work: Work[Item, Result], item: Item, eager: bool) -> Result:
    return work(_find_grader(course, assignment, eager), item)


def _find_grader(course: Course, assignment: str, eager: bool) -> Grader:
    if assignment not in _graders:
        grader = Grader(course, assignment, eager=eager).__enter__()
        _graders[assignment] = grader
        Finalize(grader, grader.__exit__, args=(None, None, None), exitpriority=10)
    return _graders[assignment]


def _get_ready(course: Course, assignment: str) -> None:
    """What is wrong is told by the first item."""
    with suppress(AutograderError):
        _find_grader(course, assignment, eager=True)
