"""This product, measured as people run it: the command line, on a copy of the course with a store of its own."""

import csv
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.meter import Cost, measure_command

AUTOGRADER = Path(sys.executable).parent / "autograder"
COURSE_FILES = ("course.toml", "nbgrader_config.py", "solutions", "assignments", "tests/hidden")


def copy_course(course: Path, target: Path) -> None:
    """The course's files, and what was prepared in them once for all (`.autograder`), with no grade stored."""
    for name in COURSE_FILES:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (course / name).is_dir() else shutil.copy
        copy(course / name, target / name)
    if (course / ".autograder").is_dir():
        shutil.copytree(course / ".autograder", target / ".autograder", ignore=shutil.ignore_patterns("*sqlite*"))


def grade_class(course: Path, assignment: str, submitted: Path, *, jobs: int = 0, watch: bool = False) -> Cost:
    """`autograder grade` on a folder of submissions, with a store in the course's folder."""
    command = ["grade", str(submitted), "--jobs", str(jobs), "--csv", str(course / "grades.csv")]
    return _run_command(course, assignment, command, watch=watch)


def read_scores(course: Path) -> dict[str, float]:
    """The points by student that the last run wrote. `SystemExit` when a submission was not graded."""
    with (course / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["status"] != "graded":
            raise SystemExit(f"{row['path']} was not graded: {row['reason']}")
    return {row["student"]: float(row["score"]) for row in rows}


def count_agreeing(scores: Mapping[str, float], lost: Mapping[str, int], full: float) -> int:
    """Students whose points are the full points without those that the catalogue says they must lose."""
    return sum(scores.get(student) == full - points for student, points in lost.items())


def regrade_class(course: Path, assignment: str) -> Cost:
    """`autograder regrade` after a hidden test has changed (by a comment), so that every answer is marked again."""
    file = next((course / "tests/hidden" / assignment).glob("test_*.py"))
    with file.open("a", encoding="utf-8") as tests:
        tests.write("# changed\n")
    return _run_command(course, assignment, ["regrade"])


def _run_command(course: Path, assignment: str, command: Sequence[str], *, watch: bool = False) -> Cost:
    store = course / ".autograder" / "grades.sqlite"
    options = ["-a", assignment, "--course", str(course), "--store", str(store)]
    return measure_command([str(AUTOGRADER), *command, *options], course, watch=watch)
