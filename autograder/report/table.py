"""A graded batch as a table for the terminal."""

from collections.abc import Sequence
from statistics import median

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from autograder.course import Assignment
from autograder.intake.files import make_lines_showable
from autograder.policy import describe_lateness
from autograder.records import Ending, ExerciseGrade, FinalExercise, FinalGrade, Grade, Skipped
from autograder.report.documents import Reasons

MOST_ROWS = 400
"""A longer table nobody reads."""
_LONGEST_NAME = 40
_LATE = -2
"""Where a row says what lateness took."""


class Overview:
    """What an instructor sees of a class on the terminal; fed with one result at a time.

    size: how many there will be. A table that nobody would read is left out.
    """

    def __init__(self, title: str, assignment: Assignment, size: int, *, details: bool = False) -> None:
        self._reasons = Reasons()
        self._ungraded: list[tuple[str, str]] = []
        self._totals: list[float] = []
        self._details: list[Text] | None = [] if details else None
        self._title = title
        self._assignment = assignment
        self._rows: list[list[Text]] | None = [] if size <= MOST_ROWS else None

    def add(self, grade: Grade, final: FinalGrade) -> None:
        """Take one result in."""
        self._reasons.add(grade)
        if final.status != "graded":
            self._ungraded.append((grade.path, final.reason or ""))
        elif final.total is not None:
            self._totals.append(final.total)
        if self._rows is not None:
            self._rows.append(_build_row(grade, final, self._assignment))
        if self._details is not None:
            self._details += describe_result(grade, final, self._assignment)

    def build(self, skipped: Sequence[Skipped], summary: str) -> RenderableType:
        """Everything that is to be printed."""
        table = self._build_distribution() if self._rows is None else self._build_table(self._rows)
        parts: list[RenderableType] = [table]
        lines = [Text(summary)]
        lines += list_by_reason("ungraded", self._ungraded, "magenta")
        lines += list_by_reason("skipped ", [(each.path, each.reason) for each in skipped], "dim")
        parts += [Group(*lines), build_reasons(self._reasons), Group(*(self._details or ()))]
        return Group(*parts)

    def count(self) -> tuple[int, int]:
        """How many are graded, and how many are not."""
        return len(self._totals), len(self._ungraded)

    def _build_table(self, rows: Sequence[Sequence[Text]]) -> Table:
        """One row a submission, one column an exercise: autograded points and how the exercise ended."""
        table = Table(title=self._title, title_justify="left", header_style="bold")
        table.add_column("Student", no_wrap=True)
        for exercise in self._assignment.exercises:
            table.add_column(exercise.id, no_wrap=True)
        late = any(row[_LATE] for row in rows)
        for name in ("Written", "Late", "Score") if late else ("Written", "Score"):
            table.add_column(name, justify="right", no_wrap=True)
        for row in rows:
            table.add_row(*(row if late else [cell for number, cell in enumerate(row) if number != len(row) + _LATE]))
        return table

    def _build_distribution(self) -> RenderableType:
        said = f"{self._title}: too many for a table; --csv and --json list them all, autograder show STUDENT one"
        if not self._totals:
            return Text(said, style="bold")
        low, middle, high = min(self._totals), median(self._totals), max(self._totals)
        return Group(Text(said, style="bold"), Text(f"lowest {low:g}, median {middle:g}, highest {high:g} points"))


def _build_row(grade: Grade, final: FinalGrade, assignment: Assignment) -> list[Text]:
    name = show_safely(grade.student)
    student = Text(name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}...")
    if final.status != "graded" or final.total is None:
        blanks = [Text("-", style="dim")] * len(assignment.exercises)
        return [student, *blanks, Text(""), Text(""), Text("ungraded", style="bold magenta")]
    parts = {exercise.id: exercise for exercise in grade.exercises}
    cells = [_build_cell(exercise, parts.get(exercise.id)) for exercise in final.exercises]
    given = [exercise.written for exercise in final.exercises if exercise.written is not None]
    written = f"{sum(given):g}" if given else ""
    if final.pending:
        written = f"{written} + {final.pending:g} pending".removeprefix(" + ")
    taken = final.late.taken if final.late else None
    score = f"{final.total:g} / {final.max_score:g}"
    return [student, *cells, Text(written), Text(f"-{taken:g}" if taken else "", style="red"), Text(score)]


def _build_cell(exercise: FinalExercise, automatic: ExerciseGrade | None) -> Text:
    points = exercise.automatic if exercise.override is None else exercise.override
    if automatic is None or points is None:
        return Text(f"{points or 0:g} by hand", style="cyan")
    full = automatic.max_score - automatic.pending
    style = "green" if points == full else "yellow" if points else "red"
    cell = Text(f"{points:g}/{full:g}", style=style)
    if exercise.override is not None:
        cell.append(" by hand", style="cyan")
    elif automatic.status is not Ending.OK:
        cell.append(f" {automatic.status.value}", style="dim")
    return cell


def list_by_reason(label: str, pairs: Sequence[tuple[str, str]], style: str) -> list[Text]:
    """Paths with their reason; those that share one stand in one line."""
    lines = []
    for reason in dict.fromkeys(reason for _, reason in pairs):
        paths = [show_safely(path) for path, own in pairs if own == reason]
        more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
        lines.append(Text(f"{label}  {', '.join(paths[:3])}{more}: {show_safely(reason)}", style=style))
    return lines


def build_reasons(reasons: Reasons, most: int = 12) -> RenderableType:
    """Why this class lost marks, and how many students each time."""
    counted = reasons.list_most()
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


def describe_result(grade: Grade, final: FinalGrade, assignment: Assignment) -> list[Text]:
    """What a submission lost and why, what was noted, what a person decided; nothing where all is well."""
    lost = [exercise for exercise in grade.exercises if any(mark.outcome != "passed" for mark in exercise.tests)]
    late = describe_lateness(final.late, assignment.late) if final.late and final.late.days else ""
    decided = [each for each in final.exercises if each.override is not None or each.written is not None]
    notes = (*grade.notes, *final.notes)
    if not lost and not notes and not late and not decided:
        return []
    lines = [Text(f"\n{show_safely(grade.student)}", style="bold")]
    lines += [Text(f"  note: {show_safely(note)}", style="dim") for note in notes]
    lines += [Text(f"  late: {show_safely(late)}", style="red")] if late else []
    for each in decided:
        if each.override is not None:
            lines.append(
                Text(f"  {each.id}: {each.override:g} by hand in place of {each.automatic or 0:g}", style="cyan")
            )
        if each.written is not None:
            lines.append(Text(f"  {each.id}: {each.written:g} for the written part", style="cyan"))
    for exercise in lost:
        lines += _describe_lost(exercise)
    return lines


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
    return make_lines_showable(text)
