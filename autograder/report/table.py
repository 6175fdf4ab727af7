"""A graded batch as a table for the terminal."""

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from autograder.course import Assignment
from autograder.records import Ending, ExerciseGrade, Grade, Skipped


def build_table(title: str, assignment: Assignment, grades: Sequence[Grade]) -> Table:
    """One row a submission, one column an exercise: autograded points and how the exercise ended."""
    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column("Student", no_wrap=True)
    for exercise in assignment.exercises:
        table.add_column(exercise.id, no_wrap=True)
    table.add_column("Written", justify="right", no_wrap=True)
    table.add_column("Score", justify="right", no_wrap=True)
    for grade in grades:
        student = Text(show_safely(grade.student))
        if grade.status != "graded":
            blanks = [Text("-", style="dim")] * len(assignment.exercises)
            table.add_row(student, *blanks, "", Text("ungraded", style="bold magenta"))
            continue
        cells = [_build_cell(exercise) for exercise in grade.exercises]
        written = f"{grade.pending:g} pending" if grade.pending else ""
        table.add_row(student, *cells, written, f"{grade.score:g} / {grade.max_score:g}")
    return table


def _build_cell(exercise: ExerciseGrade) -> Text:
    full = exercise.max_score - exercise.pending
    style = "green" if exercise.score == full else "yellow" if exercise.score else "red"
    cell = Text(f"{exercise.score:g}/{full:g}", style=style)
    if exercise.status is not Ending.OK:
        cell.append(f" {exercise.status.value}", style="dim")
    return cell


def build_summary(grades: Sequence[Grade], skipped: Sequence[Skipped], seconds: float) -> RenderableType:
    """What was graded, what was not and why, what was left out."""
    graded = sum(grade.status == "graded" for grade in grades)
    lines = [Text(f"{graded} graded, {len(grades) - graded} ungraded, {len(skipped)} skipped in {seconds:.1f} s")]
    for grade in grades:
        if grade.status != "graded":
            lines.append(
                Text(f"ungraded  {show_safely(grade.path)}: {show_safely(grade.reason or '')}", style="magenta")
            )
    for reason, count in Counter(each.reason for each in skipped).most_common():
        paths = [show_safely(each.path) for each in skipped if each.reason == reason]
        more = f" and {count - 3} more" if count > 3 else ""
        lines.append(Text(f"skipped   {', '.join(paths[:3])}{more}: {show_safely(reason)}", style="dim"))
    return Group(*lines)


def build_details(grades: Iterable[Grade]) -> RenderableType:
    """For each submission, what it lost and why, and what was noted."""
    lines: list[Text] = []
    for grade in grades:
        lost = [(exercise, mark) for exercise in grade.exercises for mark in exercise.tests if mark.outcome != "passed"]
        if not lost and not grade.notes:
            continue
        lines.append(Text(f"\n{show_safely(grade.student)}", style="bold"))
        lines += [Text(f"  note: {show_safely(note)}", style="dim") for note in grade.notes]
        for exercise, mark in lost:
            lines.append(Text(f"  {exercise.id}, {mark.max_score:g} lost: {show_safely(mark.message)}"))
            if mark.hint:
                lines.append(Text(f"    hint: {show_safely(mark.hint)}", style="cyan"))
            if mark.detail:
                lines.append(Text(f"    for you: {show_safely(mark.detail)}", style="dim"))
    return Group(*lines)


def show_safely(text: str) -> str:
    """A text from outside without what would steer a terminal or turn the reading direction."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in text)
