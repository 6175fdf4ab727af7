"""How far an assignment is, for the terminal."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from autograder.progress import Progress
from autograder.report.table import list_by_reason, show_safely

_MOST_NAMES = 20


def build_overview(title: str, progress: Progress) -> RenderableType:
    """The numbers, and below them who is missing or ungraded."""
    table = Table(title=title, title_justify="left", box=None, show_header=False, pad_edge=False)
    table.add_column(justify="right")
    table.add_column()
    of_roster = f" of {progress.roster} students in the roster" if progress.roster else ""
    for count, said in (
        (progress.submitted, f"submitted{of_roster}"),
        (progress.executed, "run in this environment"),
        (progress.marked, "marked with the hidden tests as they are now"),
        (progress.graded, "graded"),
        (len(progress.ungraded), "ungraded"),
        (progress.pending, "with a written part that waits for a person"),
        (progress.overridden, "with points by hand in place of autograded ones"),
        (progress.late, "late"),
    ):
        table.add_row(str(count), said)
    lines = list_by_reason("ungraded", [(each.student, each.reason) for each in progress.ungraded], "magenta")
    lines += _list_names("missing", progress.missing)
    lines += _list_names("not in the roster", progress.unmatched)
    return Group(table, *lines)


def _list_names(label: str, names: Sequence[str]) -> list[Text]:
    if not names:
        return []
    more = f" and {len(names) - _MOST_NAMES} more; --json lists them" if len(names) > _MOST_NAMES else ""
    return [Text(f"{label} ({len(names)}): {show_safely(', '.join(names[:_MOST_NAMES]))}{more}", style="yellow")]
