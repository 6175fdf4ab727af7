"""What known mistakes come to is kept for the next start, unless a busy machine may have decided it."""

import shutil
from pathlib import Path

import pytest

from autograder.course import Course, load_course
from autograder.grading import Grader

ROOT = Path(__file__).parents[2]
MISTAKE = """
[[mistake]]
id = "slow"
exercise = "shared-key"
title = "It takes its time"
source = "derived"
code = "import time; time.sleep({seconds}); scores_shared = 0"
loses = ["test_scores_are_recomputed"]
hint = "Take less."
"""


def copy_course(folder: Path, seconds: float) -> Course:
    """The course with one known mistake, which sleeps; a cell may take a second."""
    for name in ("solutions", "tests/hidden", "assignments"):
        shutil.copytree(ROOT / name, folder / name)
    text = (ROOT / "course.toml").read_text(encoding="utf-8")
    (folder / "course.toml").write_text(text.replace("cell_wall_seconds = 10", "cell_wall_seconds = 1"), "utf-8")
    (folder / "solutions/qkv/mistakes.toml").write_text(MISTAKE.format(seconds=seconds), "utf-8")
    return load_course(folder)


@pytest.mark.parametrize(("seconds", "kept"), [(0, 1), (5, 0)], ids=["done", "out of time"])
def test_what_ran_out_of_time_is_not_kept(tmp_path: Path, seconds: float, kept: int) -> None:
    course = copy_course(tmp_path, seconds)
    assert course.assignment("qkv").limits.cell_wall_seconds == 1
    with Grader(course, "qkv") as grader:
        (mistake,) = grader.load_known()
        assert [failure is None for failure in mistake.failures] == [bool(kept)] * 4
    assert len(list((tmp_path / ".autograder").glob("mistakes-qkv-*.msgpack"))) == kept
