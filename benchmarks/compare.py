"""This product beside others on the same notebooks: marginal cost, time to the first result, memory."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import msgspec

from autograder.course import Course
from benchmarks.classes import write_class
from benchmarks.contenders import Contender
from benchmarks.meter import Cost
from benchmarks.product import count_agreeing


class Sizes(msgspec.Struct, frozen=True):
    """Submissions in the small and the large class, for this product and for others, and runs of each."""

    small: int = 20
    large: int = 200
    peer_small: int = 3
    peer_large: int = 13
    repeats: int = 3


class Comparison(msgspec.Struct, frozen=True):
    """Of one grader. wall, cpu: seconds that one more submission costs. first: seconds from the start of the command
    to its end with one submission. tree_bytes: peak memory with the large class. agreeing: of `size` submissions,
    those that got the points that the catalogue says."""

    name: str
    wall: float
    cpu: float
    first: float
    tree_bytes: int
    small: int
    size: int
    agreeing: int


def compare_graders(
    contenders: Sequence[Contender],
    course: Course,
    assignment: str,
    template: bytes,
    full: float,
    sizes: Sizes,
    work: Path,
) -> Iterator[Comparison]:
    """Each grader in turn. full: the points of a right submission. work: an empty folder."""
    for contender in contenders:
        small, large = (sizes.peer_small, sizes.peer_large) if contender.peer else (sizes.small, sizes.large)
        classes, lost = {}, {}
        for size in (1, small, large):
            classes[size] = work / f"class-{size}"
            shutil.rmtree(classes[size], ignore_errors=True)
            lost[size] = write_class(classes[size], course, assignment, template, size)
        runs: dict[int, list[Cost]] = {size: [] for size in classes}
        for _ in range(sizes.repeats):
            for size, costs in runs.items():
                costs.append(run_once(contender, work, classes[size])[0])
        watched, scores = run_once(contender, work, classes[large], watch=True)
        more = large - small
        pairs = list(zip(runs[small], runs[large], strict=True))
        yield Comparison(
            contender.name,
            wall=median((high.wall_seconds - low.wall_seconds) / more for low, high in pairs),
            cpu=median((high.cpu_seconds - low.cpu_seconds) / more for low, high in pairs),
            first=median(each.wall_seconds for each in runs[1]),
            tree_bytes=watched.tree_bytes,
            small=small,
            size=large,
            agreeing=count_agreeing(scores, lost[large], full),
        )


def run_once(
    contender: Contender, work: Path, submitted: Path, *, watch: bool = False
) -> tuple[Cost, dict[str, float]]:
    """One run in a folder of its own, from nothing."""
    folder = work / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return contender.grade(folder, submitted, watch)
