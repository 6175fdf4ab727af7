"""The table for the terminal: what an instructor sees of a class."""

import io

from rich.console import Console, RenderableType

from autograder.records import Ending, ExerciseGrade, Grade, Mark, Skipped
from autograder.report.table import build_details, build_reasons, build_summary, show_safely


def show(renderable: RenderableType) -> str:
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(renderable)
    return console.export_text()


def build_lost(name: str, *explanations: str, hint: str = "Look again.") -> Mark:
    return Mark(name, "one", 0, 1, "failed", message=f"Asked: {name}", hint=hint, explanations=explanations)


def build_grade(student: str, *marks: Mark) -> Grade:
    exercise = ExerciseGrade("one", Ending.OK, 0, len(marks), 0, tuple(marks))
    return Grade(
        student, f"{student}.ipynb", "0" * 64, "graded", score=0, max_score=1, pending=0, exercises=(exercise,)
    )


def test_a_reason_counts_once_for_a_student_however_many_marks_it_cost() -> None:
    grades = [
        build_grade("ada", build_lost("a", "mistake:no-scale", "scaled-by"), build_lost("b", "mistake:no-scale")),
        build_grade("bob", build_lost("a", "mistake:no-scale"), build_lost("b", "transposed")),
    ]
    lines = [line.split() for line in show(build_reasons(grades)).splitlines()]
    assert ["2", "one", "no", "scale"] in lines
    assert ["1", "one", "transposed"] in lines
    assert not any("scaled" in line for line in lines)


def test_a_hint_that_marks_share_stands_once_below_them() -> None:
    text = show(build_details([build_grade("ada", build_lost("a"), build_lost("b"), build_lost("c", hint="Other."))]))
    assert text.count("Look again.") == 1
    assert text.index("Asked: b") < text.index("Look again.") < text.index("Asked: c") < text.index("Other.")


def test_files_that_share_a_reason_stand_in_one_line() -> None:
    grades = [Grade(f"s{n}", f"s{n}.ipynb", "", "ungraded", reason="It is empty.") for n in range(5)]
    text = show(build_summary(grades, [Skipped("x.pdf", "no notebook")], 1.0))
    assert text.count("It is empty.") == 1
    assert "and 2 more" in text
    assert "x.pdf: no notebook" in text
    assert "0 graded, 5 ungraded, 1 skipped" in text


def test_what_steers_a_terminal_or_turns_the_reading_direction_is_not_shown() -> None:
    shown = show_safely("a\x1b[31mb\u202ec\u0007d\ne")
    assert shown == "a\ufffd[31mb\ufffdc\ufffdd\ne"
