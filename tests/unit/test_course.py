"""course.toml: every error names the file, the key and what was expected."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from autograder.course import find_course_folder, load_course, shape_symbols
from autograder.errors import CourseError

ROOT = Path(__file__).parents[2]

GOOD = """
id = "attention"
title = "Attention"

[assignments.qkv]
title = "Q, K, V"
due = 2027-01-15T23:59:00+01:00
seeds = [42, 7]

[assignments.qkv.limits]
cell_wall_seconds = 10

[assignments.qkv.late]
policy = "per-day"
percent_per_day = 10

[[assignments.qkv.exercises]]
id = "one"
title = "One"
written_points = 1
[assignments.qkv.exercises.answers]
W = "(C, hs)"
flag = "bool"

[[assignments.qkv.exercises]]
id = "two"
title = "Two"
[assignments.qkv.exercises.answers]
n = "whole number"
"""


def write(folder: Path, text: str) -> Path:
    (folder / "course.toml").write_text(text, encoding="utf-8")
    return folder


def complain(folder: Path, text: str) -> str:
    """What is said of a course.toml that must be refused, without the file's name, which must be there."""
    with pytest.raises(CourseError) as caught:
        load_course(write(folder, text))
    said = str(caught.value)
    assert said.startswith(f"{folder / 'course.toml'}: ")
    assert "pydantic" not in said
    return said.removeprefix(str(folder))


def test_a_good_course_is_read(tmp_path) -> None:
    course = load_course(write(tmp_path, GOOD))
    assert course.folder == tmp_path
    assignment = course.assignment("qkv")
    assert assignment.seeds == (42, 7)
    assert [exercise.id for exercise in assignment.exercises] == ["one", "two"]
    assert assignment.exercises[0].written_points == 1
    assert assignment.limits.cell_wall_seconds == 10
    assert assignment.limits.memory_bytes == 2**30
    assert (assignment.late.policy, assignment.late.percent_per_day) == ("per-day", 10)


def test_times_are_read_where_the_course_is_else_where_the_due_date_is(tmp_path) -> None:
    moment = datetime(2027, 7, 1)
    course = load_course(write(tmp_path, GOOD))
    assert moment.replace(tzinfo=course.zone("qkv")).utcoffset() == timedelta(hours=1)
    course = load_course(write(tmp_path, f'time_zone = "Europe/Berlin"\n{GOOD}'))
    assert moment.replace(tzinfo=course.zone("qkv")).utcoffset() == timedelta(hours=2)
    bare = GOOD[: GOOD.index("[assignments.qkv.late]")] + GOOD[GOOD.index("[[assignments") :]
    course = load_course(write(tmp_path, bare.replace("due = 2027-01-15T23:59:00+01:00\n", "")))
    assert course.zone("qkv") is None


WALL = "cell_wall_seconds = 10"
LATE = "percent_per_day = 10"

WRONG = {
    "an unknown key": ('title = "Q, K, V"', 'titel = "Q, K, V"', ["assignments.qkv.titel", "did you mean title?"]),
    "an unknown key at the top": ('id = "attention"', 'ids = "attention"', ["unknown key ids", "did you mean id?"]),
    "an unknown limit": (
        "cell_wall_seconds",
        "cell_wall_second",
        ["assignments.qkv.limits.cell_wall_second", "mean cell_wall_seconds?"],
    ),
    "an unknown key of the late policy": (LATE, "percent_day = 10", ["qkv.late.percent_day", "mean percent_per_day?"]),
    "an unknown late policy": ('"per-day"', '"per-week"', ["assignments.qkv.late.policy", "'per-day'", "'per-week'"]),
    "a policy without its percentage": (LATE, "", ["assignments.qkv.late", "percent_per_day is missing"]),
    "a percentage without a policy": ('"per-day"', '"none"', ["qkv.late", "percent_per_day does nothing", '"per-day"']),
    "more than all": (LATE, "percent_per_day = 101", ["late.percent_per_day", "100"]),
    "a percentage that is no number": (LATE, "percent_per_day = nan", ["late.percent_per_day"]),
    "grace before the deadline": (LATE, LATE + "\ngrace_minutes = -1", ["late.grace_minutes", "greater than or equal"]),
    "a policy without a due date": ("due = 2027-01-15T23:59:00+01:00", "", ["assignments.qkv", "due is missing"]),
    "an unknown time zone": (
        'id = "attention"',
        'time_zone = "Europe/Berln"\nid = "attention"',
        ["time_zone", "did you mean Europe/Berlin?"],
    ),
    "an unknown key of an exercise": (
        "written_points",
        "writen_points",
        ["exercises.0.writen_points", "did you mean written_points?"],
    ),
    "an unknown key like no other": (
        "written_points = 1",
        "zzz = 1",
        ["unknown key assignments.qkv.exercises.0.zzz\n"],
    ),
    "the key folder": ('id = "attention"', 'folder = "x"\nid = "attention"', ["unknown key folder"]),
    "a missing key": ("seeds = [42, 7]", "", ["the key assignments.qkv.seeds is missing"]),
    "a naive due date": ("23:59:00+01:00", "23:59:00", ["assignments.qkv.due", "timezone"]),
    "a due date in words": ("2027-01-15T23:59:00+01:00", '"Friday"', ["assignments.qkv.due", "'Friday'"]),
    "one seed only": ("[42, 7]", "[42]", ["assignments.qkv.seeds", "at least 2"]),
    "the same seed twice": ("[42, 7]", "[42, 42]", ["assignments.qkv", "seed 42", "twice"]),
    "a seed below zero": ("[42, 7]", "[42, -7]", ["assignments.qkv.seeds.1", "greater than or equal to 0", "-7"]),
    "a seed beyond 32 bits": ("[42, 7]", "[42, 4294967296]", ["assignments.qkv.seeds.1", "4294967296"]),
    "a seed in words": ("[42, 7]", '[42, "seven"]', ["assignments.qkv.seeds.1", "integer", "'seven'"]),
    "the same exercise twice": ('id = "two"', 'id = "one"', ["exercise id one", "twice"]),
    "the same answer twice": ("n = ", "W = ", ["answer W", "twice"]),
    "an exercise without answers": ('n = "whole number"', "", ["exercises.1.answers", "at least 1"]),
    "no exercises": (GOOD[GOOD.index("[assignments.qkv.limits]") :], "exercises = []", ["qkv.exercises", "at least 1"]),
    "an id with a space": ('id = "two"', 'id = "exercise two"', ["exercises.1.id", "'exercise two'"]),
    "an id with a slash": ('id = "two"', 'id = "../two"', ["exercises.1.id"]),
    "an answer that is no name": ("n = ", '"2n" = ', ["exercises.1.answers.2n"]),
    "points below zero": ("written_points = 1", "written_points = -1", ["exercises.0.written_points", "-1"]),
    "a time of zero": (WALL, "cell_wall_seconds = 0", ["limits.cell_wall_seconds", "greater than 0"]),
    "memory below what Python needs": (WALL, "memory_bytes = 1000", ["limits.memory_bytes", "67108864"]),
}


@pytest.mark.parametrize(("old", "new", "named"), WRONG.values(), ids=WRONG.keys())
def test_an_error_names_the_key_and_what_was_expected(tmp_path, old, new, named) -> None:
    assert old in GOOD
    said = complain(tmp_path, GOOD.replace(old, new)) + "\n"
    for words in named:
        assert words in said


@pytest.mark.parametrize(
    "kind", ["(B T)", "B, T", "()", "(B, , T)", "(B, -1)", "(B, T", "array", "float", "(2B,)", "(B+1,)", ""]
)
def test_a_kind_that_is_no_shape_is_refused_with_an_example(tmp_path, kind) -> None:
    said = complain(tmp_path, GOOD.replace("(C, hs)", kind))
    assert "exercises.0.answers" in said
    assert '"(B, T, hs)"' in said
    assert "whole number" in said


@pytest.mark.parametrize(
    ("kind", "symbols"),
    [
        ("(B, T, 6)", ("B", "T", "6")),
        ("(hs,)", ("hs",)),
        ("( B,T )", ("B", "T")),
        ("(C)", ("C",)),
        ("bool", None),
        ("whole number", None),
    ],
)
def test_a_shape_is_read_into_its_symbols(kind, symbols) -> None:
    assert shape_symbols(kind) == symbols


def test_several_errors_are_told_together(tmp_path) -> None:
    said = complain(tmp_path, GOOD.replace("title", "titel"))
    assert len(said.splitlines()) >= 4


def test_no_toml_and_no_text_are_refused_by_line(tmp_path) -> None:
    assert "line 3" in complain(tmp_path, 'id = "a"\n\ntitle =\n')
    (tmp_path / "course.toml").write_bytes(b'title = "\xff"')
    with pytest.raises(CourseError, match="not valid TOML"):
        load_course(tmp_path)


def test_a_missing_file_is_named_with_what_to_do(tmp_path) -> None:
    with pytest.raises(CourseError, match="--course DIR") as caught:
        load_course(tmp_path / "nowhere")
    assert "nowhere" in str(caught.value)


def test_an_unknown_assignment_is_answered_with_a_near_one(tmp_path) -> None:
    course = load_course(write(tmp_path, GOOD))
    with pytest.raises(CourseError, match=r"no assignment 'qvk' \(did you mean qkv\?\); it has qkv"):
        course.assignment("qvk")
    with pytest.raises(CourseError) as caught:
        course.assignment("softmax")
    assert "did you mean" not in str(caught.value)


def test_the_nearest_course_above_is_found(tmp_path) -> None:
    write(tmp_path, GOOD)
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert find_course_folder(deep) == tmp_path
    write(tmp_path / "a", GOOD)
    assert find_course_folder(deep) == tmp_path / "a"
    with pytest.raises(CourseError, match="--course DIR"):
        find_course_folder(Path("/usr/share"))


def test_the_files_of_an_assignment_stand_where_the_course_says() -> None:
    course = load_course(ROOT)
    for name in course.assignments:
        for path in (course.solution_notebook, course.released_notebook, course.reference):
            assert path(name).is_file()
        assert list(course.hidden_tests(name).glob("test_*.py"))
