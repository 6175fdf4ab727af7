"""The sample class gets the marks that its list says, by the same path as a real class."""

import importlib.util
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from autograder.course import load_course
from autograder.gradebook import grade_all
from autograder.intake.layouts import find_submissions
from autograder.records import Grade

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "qkv"
CLASS: dict[str, Any] = tomllib.loads((EXAMPLES / "class.toml").read_text(encoding="utf-8"))
STUDENTS = {student["id"]: student for student in CLASS["student"]}


@pytest.fixture(scope="module")
def grades() -> dict[str, Grade]:
    sources, skipped = find_submissions([EXAMPLES / "submitted"], "qkv")
    assert skipped == []
    return {grade.student: grade for grade in grade_all(load_course(ROOT), "qkv", sources, jobs=2)}


def test_the_class_has_24_students_and_each_gets_one_result(grades: dict[str, Grade]) -> None:
    assert len(STUDENTS) == 24
    assert grades.keys() == STUDENTS.keys()


@pytest.mark.parametrize("student", STUDENTS)
def test_each_exercise_is_scored_as_the_list_says(grades: dict[str, Grade], student: str) -> None:
    wanted, grade = STUDENTS[student], grades[student]
    if "ungraded" in wanted:
        assert grade.status == "ungraded"
        assert grade.score is None
        assert grade.exercises == ()
        assert re.search(wanted["ungraded"], grade.reason or "")
        return
    assert grade.reason is None
    got = {each.id: (each.score, each.status.value) for each in grade.exercises}
    assert got == {each: (wanted[each]["score"], wanted[each]["status"]) for each in CLASS["max_score"]}
    assert {each.id: each.max_score - each.pending for each in grade.exercises} == CLASS["max_score"]


def test_the_committed_folder_is_what_the_script_builds() -> None:
    spec = importlib.util.spec_from_file_location("make_class", EXAMPLES / "make_class.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    built = script.build_class(ROOT)
    committed = {path: path.read_bytes() for path in (EXAMPLES / "submitted").rglob("*") if path.is_file()}
    assert {(EXAMPLES / "submitted" / path).resolve(): data for path, data in built.items()} == committed
