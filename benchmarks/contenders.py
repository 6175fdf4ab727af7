"""The graders that are compared: how each is started on a folder of submissions, and where its points stand."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.meter import Cost, measure_command
from benchmarks.peers.install import build_environment
from benchmarks.peers.nbgrader_course import copy_nbgrader_course, read_nbgrader_scores
from benchmarks.peers.otter_autograder import read_otter_scores
from benchmarks.product import copy_course, grade_class, read_scores


class Contender(NamedTuple):
    """name: as it stands in the table. grade: (empty folder, folder of submissions, watch) -> cost and points.
    peer: whether it is another product; those are slower and get smaller classes."""

    name: str
    grade: Callable[[Path, Path, bool], tuple[Cost, dict[str, float]]]
    peer: bool


def build_product(course: Path, assignment: str, jobs: int) -> Contender:
    """This product with so many workers; 0 is its default, one for each core."""

    def grade(folder: Path, submitted: Path, watch: bool) -> tuple[Cost, dict[str, float]]:
        copy_course(course, folder)
        return grade_class(folder, assignment, submitted, jobs=jobs, watch=watch), read_scores(folder)

    return Contender(f"`autograder grade`{f' --jobs {jobs}' if jobs else ''}", grade, peer=False)


def build_nbgrader(course: Path, assignment: str, commands: Path) -> Contender:
    """`nbgrader autograde` over a whole class in one command. course: an nbgrader course with a release."""

    def grade(folder: Path, submitted: Path, watch: bool) -> tuple[Cost, dict[str, float]]:
        folder.rmdir()
        copy_nbgrader_course(course, folder, submitted)
        command = [str(commands / "nbgrader"), "autograde", assignment]
        return measure_command(command, folder, environment=build_environment(), watch=watch), read_nbgrader_scores(
            folder
        )

    return Contender("`nbgrader autograde`", grade, peer=True)


def build_otter(archive: Path, commands: Path, *, one_process: bool) -> Contender:
    """`otter run` once for each notebook, or otter's own Python function for all of them in one process."""
    each = [str(commands / "python"), str(Path(__file__).parent / "peers" / "otter_loop.py")]
    loop = [sys.executable, str(Path(__file__).parent / "peers" / "otter_runs.py"), str(commands / "otter")]

    def grade(folder: Path, submitted: Path, watch: bool) -> tuple[Cost, dict[str, float]]:
        command = [*(each if one_process else loop), str(archive), str(submitted), str(folder)]
        return measure_command(command, folder, environment=build_environment(), watch=watch), read_otter_scores(folder)

    return Contender("otter's `grade_submission`, one process" if one_process else "`otter run`", grade, peer=True)
