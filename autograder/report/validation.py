"""A validation for the terminal: mistakes against hidden tests, and what holds."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from autograder.catalogue import Mistake
from autograder.validation.validate import Validation


def build_tables(validation: Validation) -> RenderableType:
    """For each exercise its known mistakes against its hidden tests, as they really came out; misses in colour."""
    return Group(
        *(_build_table(validation, exercise) for exercise in dict.fromkeys(each for each, _ in validation.tests))
    )


def _build_table(validation: Validation, exercise: str) -> Table:
    tests = [test for own, test in validation.tests if own == exercise]
    table = Table(title=f"{validation.assignment}: known mistakes of {exercise}", title_justify="left", pad_edge=False)
    table.add_column("mistake", no_wrap=True)
    for number, _ in enumerate(tests, start=1):
        table.add_column(str(number), justify="center")
    table.add_column("elsewhere")
    for each in validation.entries:
        if not isinstance(each.entry, Mistake) or each.entry.exercise != exercise:
            continue
        cells = [_build_cell(test in each.lost, test in each.entry.loses) for test in tests]
        elsewhere = ", ".join(name for name in each.lost if name not in tests)
        style = "bold red" if each.problems else ""
        table.add_row(Text(each.entry.id, style=style), *cells, Text(elsewhere, style="bold red"))
    legend = "   ".join(f"{number} {test}" for number, test in enumerate(tests, start=1))
    table.caption = f"x lost as declared   MISS declared and not lost   EXTRA lost and not declared\n{legend}"
    table.caption_justify = "left"
    return table


def _build_cell(lost: bool, declared: bool) -> Text:
    if lost and declared:
        return Text("x")
    if declared:
        return Text("MISS", style="bold white on red")
    if lost:
        return Text("EXTRA", style="bold white on red")
    return Text("")


def build_findings(validation: Validation) -> RenderableType:
    """One line for each thing that was tried."""
    lines = [Text(validation.assignment, style="bold")]
    for finding in validation.findings:
        sign = Text("  ok    ", style="green") if finding.ok else Text("  WRONG ", style="bold red")
        lines.append(sign + Text(f"{finding.subject}: {finding.text}"))
    return Group(*lines)
