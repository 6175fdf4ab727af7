"""The measurements as text: Markdown, which reads well on a terminal too."""

from collections.abc import Sequence

from benchmarks.compare import Comparison
from benchmarks.meter import Cost
from benchmarks.scaling import Regrade, Run
from benchmarks.stages import Stages

CLASS = 200


def build_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; every column but the first is aligned to the right."""
    widths = [max(len(row[place]) for row in (header, *rows)) for place in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        first, *others = (
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join((first, *others))} |"

    rule = "|".join("-" * (width + 2) if place == 0 else "-" * (width + 1) + ":" for place, width in enumerate(widths))
    return "\n".join([line(header), f"|{rule}|", *(line(row) for row in rows)])


def build_machine(facts: Sequence[tuple[str, str]]) -> str:
    return build_table(("machine", ""), facts)


def build_comparison(results: Sequence[Comparison], floor: float) -> str:
    """The graders side by side; ratios against the first, which is this product with its defaults."""
    own = results[0]
    rows = [("floor: a warm fork, plain exec", f"{floor * 1000:.1f}", "", "1.0", "", "", "", "", "", "")]
    for each in results:
        whole_class = each.first + (CLASS - 1) * each.wall
        rows.append(
            (
                each.name,
                f"{each.cpu * 1000:.1f}",
                f"{each.wall * 1000:.1f}",
                f"{each.cpu / floor:.1f}",
                f"{each.cpu / own.cpu:.1f}",
                f"{each.wall / own.wall:.1f}",
                f"{each.first:.2f}",
                f"{whole_class:.1f}",
                f"{each.tree_bytes / 1024**2:.0f}",
                f"{each.agreeing} of {each.size}",
            )
        )
    header = ("", "CPU ms", "wall ms", "CPU / floor", "CPU / ours", "wall / ours", "first s", f"{CLASS} s")
    return build_table((*header, "memory MiB", "marks right"), rows)


def build_scaling(runs: Sequence[Run]) -> str:
    rows = []
    for each in runs:
        cost = each.cost
        rows.append(
            (
                f"{each.size:,}",
                f"{cost.wall_seconds:.1f}",
                f"{cost.wall_seconds / each.size * 1000:.2f}",
                f"{cost.cpu_seconds / each.size * 1000:.2f}",
                f"{cost.parent_bytes / 1024**2:.0f}",
            )
        )
    return build_table(("submissions", "wall s", "wall ms each", "CPU ms each", "parent's peak MiB"), rows)


def build_workers(size: int, seconds: dict[int, float]) -> str:
    rows = [
        (str(jobs), f"{wall:.2f}", f"{wall / size * 1000:.2f}", f"{seconds[1] / wall:.2f}")
        for jobs, wall in seconds.items()
    ]
    return build_table((f"workers, {size} submissions", "wall s", "wall ms each", "times as fast"), rows)


def build_regrade(results: Sequence[Regrade]) -> str:
    """A table for each size, and one for what one more submission costs between the first and the last."""
    labels = ("graded", "the same command again", "marked again after a test changed")
    tables = []
    for result in results:
        costs = [(cost.wall_seconds, cost.cpu_seconds) for cost in (result.graded, result.unchanged, result.regraded)]
        tables.append(_build_times(f"{result.size:,} submissions", "s", labels, costs))
    small, large = results[0], results[-1]
    pairs = ((small.graded, large.graded), (small.unchanged, large.unchanged), (small.regraded, large.regraded))
    more = (large.size - small.size) / 1000
    each = [
        ((after.wall_seconds - before.wall_seconds) / more, (after.cpu_seconds - before.cpu_seconds) / more)
        for before, after in pairs
    ]
    return "\n\n".join([*tables, _build_times("one more submission", "ms", labels, each)])


def _build_times(title: str, unit: str, labels: Sequence[str], costs: Sequence[tuple[float, float]]) -> str:
    """Wall and processor time, and how many times as much the first one takes."""
    (first_wall, first_cpu), *_ = costs
    rows = [
        (label, f"{wall:.2f}", f"{first_wall / wall:.1f}", f"{cpu:.2f}", f"{first_cpu / cpu:.1f}")
        for label, (wall, cpu) in zip(labels, costs, strict=True)
    ]
    return build_table((title, f"wall {unit}", "times as fast", f"CPU {unit}", "times less"), rows)


def build_loops(size: int, loops: int, costs: tuple[Cost, Cost], limit: float, workers: int) -> str:
    """limit: seconds of processor time after which a cell is ended."""
    without, with_loops = costs
    wall = with_loops.wall_seconds - without.wall_seconds
    cpu = with_loops.cpu_seconds - without.cpu_seconds
    least = loops * limit
    rows = [
        (f"{size} submissions, none loops", f"{without.wall_seconds:.1f}", f"{without.cpu_seconds:.1f}"),
        (f"{size}, of which {loops} loop forever", f"{with_loops.wall_seconds:.1f}", f"{with_loops.cpu_seconds:.1f}"),
        ("what the loops cost", f"{wall:.1f}", f"{cpu:.1f}"),
        (f"{loops} x the limit of {limit:g} s, {workers} workers", f"{least / workers:.1f}", f"{least:.1f}"),
        ("times that", f"{wall / (least / workers):.2f}", f"{cpu / least:.2f}"),
    ]
    return build_table(("", "wall s", "CPU s"), rows)


def build_stages(stages: Stages, floor: float) -> str:
    rows = [
        ("processor time", stages.host + stages.inside),
        ("- behind the wall", stages.inside),
        ("- host", stages.host),
        ("wall time", stages.wall),
        ("floor: a warm fork, plain exec", floor),
        *stages.parts.items(),
    ]
    return build_table(("", "ms"), [(label, f"{seconds * 1000:.2f}") for label, seconds in rows])
