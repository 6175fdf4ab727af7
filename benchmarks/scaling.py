"""This product alone: large classes, one worker and two, stored answers marked again, endless loops."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import msgspec

from autograder.course import Course
from benchmarks.classes import write_class
from benchmarks.meter import Cost
from benchmarks.product import copy_course, grade_class, read_scores, regrade_class


class Run(msgspec.Struct, frozen=True):
    """One command on a class of so many submissions."""

    size: int
    cost: Cost


class Bench:
    """A prepared course, and classes made from it in a working folder."""

    def __init__(self, course: Course, assignment: str, template: bytes, work: Path) -> None:
        self.course, self.assignment, self.template, self.work = course, assignment, template, work

    def make_class(self, size: int, *, loops: int = 0, wrong: bool = True) -> Path:
        folder = self.work / f"class-{size}-{loops}-{wrong}"
        if not folder.is_dir():
            write_class(folder, self.course, self.assignment, self.template, size, loops=loops, wrong=wrong)
        return folder

    def make_course(self) -> Path:
        folder = self.work / "course"
        shutil.rmtree(folder, ignore_errors=True)
        copy_course(self.course.folder, folder)
        return folder

    def grade(self, size: int, *, loops: int = 0, jobs: int = 0) -> Cost:
        """From nothing; `SystemExit` unless everything was graded."""
        course = self.make_course()
        cost = grade_class(course, self.assignment, self.make_class(size, loops=loops), jobs=jobs)
        if len(read_scores(course)) != size:
            raise SystemExit(f"{size} submissions went in, {len(read_scores(course))} came out")
        return cost


def measure_scaling(bench: Bench, sizes: Sequence[int]) -> Iterator[Run]:
    """One run for each size; the files of a size are removed when it is done."""
    for size in sizes:
        yield Run(size, bench.grade(size))
        shutil.rmtree(bench.make_class(size))


def measure_workers(bench: Bench, size: int, repeats: int) -> dict[int, float]:
    """Wall seconds of the same class with one worker and with two."""
    return {jobs: median(bench.grade(size, jobs=jobs).wall_seconds for _ in range(repeats)) for jobs in (1, 2)}


def measure_loops(bench: Bench, size: int, loops: int, repeats: int) -> tuple[Cost, Cost]:
    """A class in which nobody loops forever, and the same with so many who do; the run of median wall time of each."""

    def run(loops: int) -> Cost:
        return find_median([bench.grade(size, loops=loops) for _ in range(repeats)])

    return run(0), run(loops)


class Regrade(msgspec.Struct, frozen=True):
    """Seconds of wall time and of processor time that a class takes: graded, once more unchanged, marked again."""

    size: int
    graded: Cost
    unchanged: Cost
    regraded: Cost


def measure_regrade(bench: Bench, sizes: Sequence[int], repeats: int) -> Iterator[Regrade]:
    """Classes graded, the same command once more, and stored answers marked again; the median of each in turns."""
    for size in sizes:
        rounds = [_measure_round(bench, size) for _ in range(repeats)]
        yield Regrade(size, *(find_median(costs) for costs in zip(*rounds, strict=True)))


def _measure_round(bench: Bench, size: int) -> tuple[Cost, Cost, Cost]:
    course, submitted = bench.make_course(), bench.make_class(size)
    graded = grade_class(course, bench.assignment, submitted)
    unchanged = grade_class(course, bench.assignment, submitted)
    return graded, unchanged, regrade_class(course, bench.assignment)


def find_median(costs: Sequence[Cost]) -> Cost:
    """The cost of median wall time."""
    return sorted(costs, key=lambda each: each.wall_seconds)[len(costs) // 2]
