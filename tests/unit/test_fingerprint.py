"""A digest changes with whatever can change a result, and with nothing else."""

import ast
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autograder import fingerprint, mistakes
from autograder.course import load_course
from autograder.fingerprint import describe_environment, describe_marking, list_differences

ROOT = Path(__file__).parents[2]


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course of one's own."""
    for part in ("solutions", "assignments", "tests/hidden"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "course.toml", tmp_path)
    return tmp_path


def replace(file: str, old: str, new: str) -> Callable[[Path], None]:
    def change(course: Path) -> None:
        text = (course / file).read_text(encoding="utf-8")
        assert old in text
        (course / file).write_text(text.replace(old, new), encoding="utf-8")

    return change


def add(file: str, text: str = "x") -> Callable[[Path], None]:
    def change(course: Path) -> None:
        (course / file).write_text(text, encoding="utf-8")

    return change


def swap_exercises(course: Path) -> None:
    """Markers name them by their place."""
    file = course / "course.toml"
    head, first, *others, last = file.read_text(encoding="utf-8").split("[[assignments.qkv.exercises]]\n")
    parts = (head, f"{last}\n", *others, first)
    file.write_text("[[assignments.qkv.exercises]]\n".join(parts), encoding="utf-8")


# What is changed, and which parts of the environment and of the marking it must change.
CHANGES = {
    "a limit": (replace("course.toml", "processes = 32", "processes = 31"), ["limits"], []),
    "a seed": (replace("course.toml", "seeds = [42, ", "seeds = [42, 77, "), ["inputs"], []),
    "written points": (replace("course.toml", "written_points = 1", "written_points = 2"), [], ["exercises"]),
    "the order of the exercises": (swap_exercises, ["answers"], ["exercises"]),
    "the title of the course": (replace("course.toml", "Attention from scratch", "Attention"), [], []),
    "the due date": (replace("course.toml", "due = ", "due = 2031-01-01T00:00:00Z # "), [], []),
    "a hidden test": (
        replace("tests/hidden/qkv/test_head_size.py", "points(1)", "points(2)"), [], ["hidden tests"],
    ),
    "a file beside the hidden tests": (add("tests/hidden/qkv/values.csv"), [], ["hidden tests"]),
    "a hint": (replace("solutions/qkv/mistakes.toml", "hint = ", "hint = ''#"), [], ["catalogue"]),
    "a variant": (add("solutions/qkv/variants.toml", ""), [], []),
    "a file that the reference may read": (add("solutions/qkv/table.npy"), [], ["reference"]),
    "what the reference expects": (add("solutions/qkv/helper.py"), [], ["reference"]),
    "the released notebook": (add("assignments/qkv/qkv.ipynb", "{}"), ["released notebook"], []),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_seen_where_it_matters_and_only_there(course: Path, name: str) -> None:
    change, environment, marking = CHANGES[name]
    before = [each(load_course(course), "qkv") for each in (describe_environment, describe_marking)]
    change(course)
    after = [each(load_course(course), "qkv") for each in (describe_environment, describe_marking)]
    seen = [list_differences(old.description, new.description) for old, new in zip(before, after, strict=True)]
    assert seen == [environment, marking]
    assert [old.digest != new.digest for old, new in zip(before, after, strict=True)] == [
        bool(environment), bool(marking),
    ]  # fmt: skip


# What these say is in the fingerprint as values, or changes none.
OTHERS = {
    "clock.py", "course.py", "records.py", "errors.py", "temporary.py", "machine.py", "intake/files.py",
    "marking/reference.py",
}  # fmt: skip


@pytest.mark.parametrize("parts", [fingerprint._RUNNING, mistakes._RUNNING], ids=["runs", "known mistakes"])
def test_what_decides_an_answer_stands_on_nothing_that_is_not_watched(parts: tuple[str, ...]) -> None:
    """Modules of ours that the watched ones import are watched as well."""
    package = ROOT / "autograder"
    watched = {file for part in parts for file in sorted((package / part).glob("*.py")) or [package / part]}
    imported = {file for each in watched for file in list_imported(each, package)}
    assert {str(file.relative_to(package)) for file in imported - watched} <= OTHERS


def list_imported(file: Path, package: Path) -> Iterator[Path]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "autograder":
            whole = package.parent / (node.module or "").replace(".", "/")
            names = [whole / f"{alias.name}.py" for alias in node.names]
            found = [each for each in (*names, whole.with_suffix(".py")) if each.is_file()]
            assert found, (file, node.module)
            yield from found
