"""Many submissions over local worker processes; results come back as they are ready."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import get_context
from multiprocessing.util import Finalize
from pathlib import Path

from autograder.course import load_course
from autograder.grading import Grader
from autograder.intake.layouts import Source
from autograder.records import Grade

_IN_FLIGHT = 4
"""Submissions handed out for each worker; more would only wait in memory."""

_worker: dict[str, Grader] = {}


def count_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def grade_all(course_folder: Path, assignment: str, sources: Sequence[Source], jobs: int) -> Iterator[Grade]:
    """Grade every source once, in whatever order they end. `jobs` 0 means one worker for each core."""
    jobs = min(jobs or count_cores(), len(sources))
    if jobs <= 1:
        yield from _grade_here(course_folder, assignment, sources)
        return
    lost: list[Source] = []
    yield from _grade_in_pool(course_folder, assignment, sources, jobs, lost)
    for source in lost:
        # A worker died under it or beside it: once more, in a pool of its own.
        again: list[Source] = []
        yield from _grade_in_pool(course_folder, assignment, [source], 1, again)
        if again:
            reason = "the grader's own process ended twice while it worked on this file; please report it"
            yield Grade(source.student, source.shown, "", "ungraded", reason=reason)


def _grade_here(course_folder: Path, assignment: str, sources: Sequence[Source]) -> Iterator[Grade]:
    if not sources:
        return
    with Grader(load_course(course_folder), assignment) as grader:
        for source in sources:
            yield grader.grade_source(source)


def _grade_in_pool(
    course_folder: Path, assignment: str, sources: Sequence[Source], jobs: int, lost: list[Source]
) -> Iterator[Grade]:
    """Grade in worker processes; sources whose worker died are added to `lost`."""
    waiting = iter(sources)
    running: dict[Future[Grade], Source] = {}
    # Forked before any thread of ours exists, so that no worker pays for imports.
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("fork"))
    try:
        while True:
            for source in islice(waiting, jobs * _IN_FLIGHT - len(running)):
                running[pool.submit(_grade_in_worker, course_folder, assignment, source)] = source
            if not running:
                break
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                source = running.pop(future)
                try:
                    yield future.result()
                except BrokenProcessPool:
                    lost.append(source)
    except BrokenProcessPool:
        lost.extend([*running.values(), *waiting])
    finally:
        pool.shutdown(cancel_futures=True)


def _grade_in_worker(course_folder: Path, assignment: str, source: Source) -> Grade:
    if assignment not in _worker:
        grader = Grader(load_course(course_folder), assignment).__enter__()
        _worker[assignment] = grader
        Finalize(grader, grader.__exit__, args=(None, None, None), exitpriority=10)
    return _worker[assignment].grade_source(source)
