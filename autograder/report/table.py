"""A graded batch as a table for the terminal."""

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from autograder.course import Assignment
from autograder.records import Ending, ExerciseGrade, Grade, Skipped
from autograder.report.documents import count_explanations

_LONGEST_NAME = 40


def build_table(title: str, assignment: Assignment, grades: Sequence[Grade]) -> Table:
    """One row a submission, one column an exercise: autograded points and how the exercise ended."""
    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column("Student", no_wrap=True)
    for exercise in assignment.exercises:
        table.add_column(exercise.id, no_wrap=True)
    table.add_column("Written", justify="right", no_wrap=True)
    table.add_column("Score", justify="right", no_wrap=True)
    for grade in grades:
        name = show_safely(grade.student)
        student = Text(name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}...")
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
    ungraded = [(grade.path, grade.reason or "") for grade in grades if grade.status != "graded"]
    lines += _list_by_reason("ungraded", ungraded, "magenta")
    lines += _list_by_reason("skipped ", [(each.path, each.reason) for each in skipped], "dim")
    return Group(*lines)


def _list_by_reason(label: str, pairs: Sequence[tuple[str, str]], style: str) -> list[Text]:
    """Paths with their reason; those that share one stand in one line."""
    lines = []
    for reason in dict.fromkeys(reason for _, reason in pairs):
        paths = [show_safely(path) for path, own in pairs if own == reason]
        more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
        lines.append(Text(f"{label}  {', '.join(paths[:3])}{more}: {show_safely(reason)}", style=style))
    return lines


def build_reasons(grades: Sequence[Grade], most: int = 12) -> RenderableType:
    """Why this class lost marks, and how many students each time."""
    counted = count_explanations(grades)
    if not counted:
        return Group()
    table = Table(title="Why marks were lost", title_justify="left", box=None, pad_edge=False, header_style="bold")
    table.add_column("Students", justify="right")
    table.add_column("Exercise")
    table.add_column("Reason")
    for (exercise, kind), count in counted[:most]:
        table.add_row(str(count), exercise, kind.removeprefix("mistake:").replace("-", " "))
    if len(counted) > most:
        table.caption = f"and {len(counted) - most} more reasons, which --json lists"
        table.caption_justify = "left"
    return table


def build_details(grades: Iterable[Grade]) -> RenderableType:
    """For each submission, what it lost and why, and what was noted."""
    lines: list[Text] = []
    for grade in grades:
        lost = [exercise for exercise in grade.exercises if any(mark.outcome != "passed" for mark in exercise.tests)]
        if not lost and not grade.notes:
            continue
        lines.append(Text(f"\n{show_safely(grade.student)}", style="bold"))
        lines += [Text(f"  note: {show_safely(note)}", style="dim") for note in grade.notes]
        for exercise in lost:
            lines += _describe_lost(exercise)
    return Group(*lines)


def _describe_lost(exercise: ExerciseGrade) -> list[Text]:
    """An exercise's lost marks; a hint that several of them share stands once, below them."""
    lines = []
    lost = [mark for mark in exercise.tests if mark.outcome != "passed"]
    if all(mark.explanations == ("not-attempted",) for mark in lost):
        points = sum(mark.max_score for mark in lost)
        return [Text(f"  {exercise.id}, {points:g} lost: {show_safely(lost[0].message)}")]
    for number, mark in enumerate(lost):
        lines.append(Text(f"  {exercise.id}, {mark.max_score:g} lost: {show_safely(mark.message)}"))
        if mark.detail:
            lines.append(Text(f"    for you: {show_safely(mark.detail)}", style="dim"))
        following = lost[number + 1].hint if number + 1 < len(lost) else ""
        if mark.hint and mark.hint != following:
            lines.append(Text(f"    hint: {show_safely(mark.hint)}", style="cyan"))
    return lines


def show_safely(text: str) -> str:
    """A text from outside without what would steer a terminal or turn the reading direction."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in text)
