"""A real scheduler and real worker processes on this machine."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from autograder.catalogue import fill_notebook
from autograder.course import Course, load_course
from autograder.intake.layouts import Source, find_submissions
from autograder.mistakes import load_catalogue

ROOT = Path(__file__).parents[2]
ASSIGNMENT = "qkv"
DASK = Path(sys.executable).with_name("dask")
START_SECONDS = 60


class Cluster:
    """A scheduler, and workers that are started and ended one by one."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._count = 0
        self._file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "scheduler", "--host", "127.0.0.1", "--port", "0")
        # It appears before it is written to its end.
        self._wait(
            lambda: self._file.is_file() and self._file.read_text().rstrip().endswith("}"),
            "the scheduler does not start",
        )
        self.address: str = json.loads(self._file.read_text())["address"]

    def _start(
        self, name: str, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        with open(self._folder / f"{name}.log", "wb") as log:
            process = subprocess.Popen(
                [str(DASK), *arguments, "--no-dashboard", "--scheduler-file", str(self._file)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **(environment or {})},
                cwd=self._folder,
                start_new_session=True,
            )
        self._stack.callback(end_group, process)
        return process

    def add_worker(
        self, environment: Mapping[str, str] | None = None, *, nanny: bool = False
    ) -> subprocess.Popen[bytes]:
        """Start a worker, without a nanny one that stays away when it is killed; returns when it is there."""
        self._count += 1
        name = f"worker-{self._count}"
        kind = "--nanny" if nanny else "--no-nanny"
        process = self._start(name, "worker", "--nthreads", "1", kind, "--name", name, environment=environment)
        log = self._folder / f"{name}.log"
        self._wait(lambda: b"Registered to" in log.read_bytes(), f"{name} does not start")
        return process

    @staticmethod
    def _wait(is_there: Callable[[], bool], complaint: str) -> None:
        end = time.monotonic() + START_SECONDS
        while not is_there():
            assert time.monotonic() < end, complaint
            time.sleep(0.05)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and what it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(tmp_path, stack)


@pytest.fixture(scope="session")
def course() -> Course:
    return load_course(ROOT)


@pytest.fixture(scope="session")
def sources(course: Course, tmp_path_factory: pytest.TempPathFactory) -> list[Source]:
    """A class of 24: right ones and known mistakes, each with bytes of its own."""
    folder = tmp_path_factory.mktemp("class")
    solution = course.solution_notebook(ASSIGNMENT).read_bytes()
    mistakes = load_catalogue(course, ASSIGNMENT).mistakes
    for number in range(24):
        codes = {} if number % 3 == 0 else {(each := mistakes[5 * number]).exercise: each.code}
        data = fill_notebook(solution, codes) + b" " * number
        (folder / f"student-{number:02}.ipynb").write_bytes(data)
    found, _ = find_submissions([folder], ASSIGNMENT)
    return found
