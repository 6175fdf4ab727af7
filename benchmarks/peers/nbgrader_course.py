"""A course folder for nbgrader, whose source notebook is the course's own with the checks as hidden tests."""

import json
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

from autograder.course import Course
from benchmarks.peers.install import build_environment
from benchmarks.peers.source import CHECKS_OF, build_text

CONFIG = """
c = get_config()
c.CourseDirectory.course_id = "bench"
c.ClearSolutions.code_stub = {"python": "# Write your code here"}
c.ClearSolutions.text_stub = "Write your answer here."
"""
HIDDEN = "### BEGIN HIDDEN TESTS\n{}\n### END HIDDEN TESTS"
PREPARE = """
import types
hidden_checks = types.ModuleType("hidden_checks")
exec({source!r}, vars(hidden_checks))
"""


def build_source(course: Course, assignment: str) -> bytes:
    """The solution notebook with one hidden, automatically graded cell for each check below its exercise."""
    notebook = json.loads(course.solution_notebook(assignment).read_bytes())
    cells: list[dict[str, Any]] = []
    for cell in notebook["cells"]:
        cells.append(cell)
        exercise = cell["metadata"].get("nbgrader", {}).get("grade_id", "").removesuffix("-check")
        if exercise not in CHECKS_OF or cell["id"] == exercise:
            continue
        if exercise == next(iter(CHECKS_OF)):
            cells.append(build_test_cell("hidden-checks", PREPARE.format(source=build_text(course, assignment)), 0))
        for check in CHECKS_OF[exercise]:
            name = check.replace("_", "-")
            cells.append(build_test_cell(name, f"hidden_checks.{check}(globals())", 1))
    return json.dumps({**notebook, "cells": cells}, indent=1).encode()


def build_test_cell(name: str, code: str, points: int) -> dict[str, Any]:
    """A locked cell that nbgrader grades; its code is in no student's notebook."""
    marks = {"grade": True, "grade_id": name, "locked": True, "points": points, "schema_version": 3}
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": name,
        "metadata": {"nbgrader": {**marks, "solution": False, "task": False}},
        "outputs": [],
        "source": HIDDEN.format(code.strip()),
    }


def make_nbgrader_course(folder: Path, source: bytes, assignment: str, commands: Path) -> bytes:
    """A course folder in which nbgrader has released the assignment; returns the released notebook."""
    notebook = folder / "source" / assignment / f"{assignment}.ipynb"
    notebook.parent.mkdir(parents=True)
    notebook.write_bytes(source)
    (folder / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    command = [str(commands / "nbgrader"), "generate_assignment", assignment]
    done = subprocess.run(command, cwd=folder, env=build_environment(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"nbgrader generate_assignment failed: {done.stderr[-2000:]}")
    return (folder / "release" / assignment / notebook.name).read_bytes()


def copy_nbgrader_course(course: Path, target: Path, submitted: Path) -> None:
    """The released course once more, with a class of submissions and nothing graded."""
    shutil.copytree(course, target)
    shutil.copytree(submitted, target / "submitted")


def read_nbgrader_scores(course: Path) -> dict[str, float]:
    """The points of the checks by student, from nbgrader's database."""
    query = """
        select submitted_assignment.student_id, sum(coalesce(grade.auto_score, 0))
        from grade join submitted_notebook on grade.notebook_id = submitted_notebook.id
        join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id
        group by submitted_assignment.student_id
    """
    database = sqlite3.connect(course / "gradebook.db")
    try:
        return dict(database.execute(query).fetchall())
    finally:
        database.close()
