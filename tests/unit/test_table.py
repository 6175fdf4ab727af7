"""The table for the terminal: what an instructor sees of a class."""

import io
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, Group, RenderableType

from autograder.course import Assignment, Exercise
from autograder.policy import Reception, compute_final
from autograder.records import Ending, ExerciseGrade, FinalGrade, Grade, LateLine, Mark, Skipped
from autograder.report.documents import Reasons
from autograder.report.table import MOST_ROWS, Overview, build_reasons, describe_result, show_safely

ASSIGNMENT = Assignment(
    title="An assignment", seeds=(1, 2), exercises=(Exercise(id="one", title="One", answers={"x": "number"}),)
)


def show(renderable: RenderableType) -> str:
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(renderable)
    return console.export_text()


def build_lost(name: str, *explanations: str, hint: str = "Look again.") -> Mark:
    return Mark(name, "one", 0, 1, "failed", message=f"Asked: {name}", hint=hint, explanations=explanations)


def build_grade(student: str, *marks: Mark, score: float = 0) -> Grade:
    exercise = ExerciseGrade("one", Ending.OK, score, 5, 0, tuple(marks))
    return Grade(
        student, f"{student}.ipynb", "0" * 64, "graded", score=score, max_score=5, pending=0, exercises=(exercise,)
    )


def settle(grade: Grade) -> FinalGrade:
    return compute_final(grade, ASSIGNMENT, {}, Reception(), zone=UTC)


def show_class(grades: Sequence[Grade], skipped: Sequence[Skipped] = ()) -> str:
    overview = Overview("A course", ASSIGNMENT, len(grades))
    for grade in grades:
        overview.add(grade, settle(grade))
    return show(overview.build(skipped, f"in all: {overview.count()}"))


def test_a_reason_counts_once_for_a_student_however_many_marks_it_cost() -> None:
    grades = [
        build_grade("ada", build_lost("a", "mistake:no-scale", "scaled-by"), build_lost("b", "mistake:no-scale")),
        build_grade("bob", build_lost("a", "mistake:no-scale"), build_lost("b", "transposed")),
    ]
    reasons = Reasons()
    for grade in grades:
        reasons.add(grade)
    lines = [line.split() for line in show(build_reasons(reasons)).splitlines()]
    assert ["2", "one", "no", "scale"] in lines
    assert ["1", "one", "transposed"] in lines
    assert not any("scaled" in line for line in lines)


def test_a_hint_that_marks_share_stands_once_below_them() -> None:
    grade = build_grade("ada", build_lost("a"), build_lost("b"), build_lost("c", hint="Other."))
    text = show(Group(*describe_result(grade, settle(grade), ASSIGNMENT)))
    assert text.count("Look again.") == 1
    assert text.index("Asked: b") < text.index("Look again.") < text.index("Asked: c") < text.index("Other.")


def test_files_that_share_a_reason_stand_in_one_line() -> None:
    grades = [Grade(f"s{n}", f"s{n}.ipynb", "", "ungraded", reason="It is empty.") for n in range(5)]
    text = show_class(grades, [Skipped("x.pdf", "no notebook")])
    assert text.count("It is empty.") == 1
    assert "and 2 more" in text
    assert "x.pdf: no notebook" in text
    assert "in all: (0, 5)" in text


def test_a_class_that_is_too_large_for_a_table_gets_its_range() -> None:
    text = show_class([build_grade(f"s{n}", score=n % 5) for n in range(MOST_ROWS + 1)])
    assert "lowest 0, median 2, highest 4 points" in text
    assert "s17" not in text


def test_the_column_of_lateness_is_there_where_somebody_was_late() -> None:
    grade = build_grade("ada", score=4)
    late = LateLine(datetime(2027, 1, 1, tzinfo=UTC), datetime(2027, 1, 2, tzinfo=UTC), 1, 10.0, 0.4)
    final = msgspec.structs.replace(settle(grade), late=late, total=3.6)
    assert "Late" not in show_class([grade])
    overview = Overview("A course", ASSIGNMENT, 1)
    overview.add(grade, final)
    text = show(overview.build([], ""))
    assert "Late" in text
    assert "-0.4" in text
    assert "3.6 / " in text


def test_what_steers_a_terminal_or_turns_the_reading_direction_is_not_shown() -> None:
    shown = show_safely("a\x1b[31mb\u202ec\u0007d\ne")
    assert shown == "a\ufffd[31mb\ufffdc\ufffdd\ne"


@given(st.text())
def test_a_text_that_is_shown_keeps_its_lines_and_nothing_that_hides(text) -> None:
    shown = show_safely(text)
    assert shown.count("\n") == text.count("\n")
    assert not [c for c in shown if c != "\n" and unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"}]
    assert not {"\u202e", "\u2066", "\u200b", "\ufeff"} & set(shown)
    assert show_safely(shown) == shown


@pytest.mark.parametrize("name", ["\u0645\u06cc\u200c\u0646", "\U0001f469\u200d\U0001f4bb", "Zo\u00eb", "\u5f20\u4f1f"])
def test_joiners_that_spell_a_name_or_an_emoji_are_kept(name) -> None:
    assert show_safely(name) == name


@pytest.mark.parametrize("hidden", ["\u200c", "\u200d", "\u200b", "\u00ad", "\u2060", "\ufeff", "\u3164", "\U000e0041"])
def test_two_names_that_differ_in_what_nobody_sees_look_different(hidden) -> None:
    assert show_safely(f"ze{hidden}ro") == "ze\ufffdro"


def test_accents_do_not_climb_over_other_lines() -> None:
    assert len(show_safely("e" + "\u0301" * 500)) <= 4
