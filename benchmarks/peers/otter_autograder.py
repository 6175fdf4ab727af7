"""An autograder archive for otter-grader with the same checks, one test file for each exercise."""

import json
import zipfile
from pathlib import Path

from autograder.course import Course
from benchmarks.peers.source import CHECKS_OF, build_text

HEADER = """
from otter.test_files import test_case
OK_FORMAT = False
name = {name!r}
points = {points}
"""
CASE = """
@test_case(points=1, hidden=True)
def test_{check}(env):
    {check}(env)
"""
CONFIG = {"logo": False, "print_summary": False, "show_hidden": True}


def make_otter_archive(file: Path, course: Course, assignment: str) -> None:
    """Write the archive that `otter run -a` takes."""
    source = build_text(course, assignment)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("otter_config.json", json.dumps(CONFIG))
        for exercise, checks in CHECKS_OF.items():
            name = exercise.replace("-", "_")
            cases = "".join(CASE.format(check=check) for check in checks)
            text = source + HEADER.format(name=name, points=len(checks)) + cases
            archive.writestr(f"tests/{name}.py", text)
        archive.writestr("requirements.txt", "")


def read_otter_scores(results: Path) -> dict[str, float]:
    """The points by student, from the folder `<student>/results.json`."""
    scores = {}
    for file in results.glob("*/results.json"):
        tests = json.loads(file.read_bytes())["tests"]
        scores[file.parent.name] = float(sum(each.get("score") or 0 for each in tests))
    return scores
