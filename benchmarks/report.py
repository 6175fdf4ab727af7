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


def build_regrade(result: Regrade) -> str:
    labels = ("graded", "the same command again", "marked again after a test changed")
    rows = [
        (
            label,
            f"{cost.wall_seconds:.2f}",
            f"{cost.cpu_seconds:.2f}",
            f"{result.graded.wall_seconds / cost.wall_seconds:.1f}",
        )
        for label, cost in zip(labels, (result.graded, result.unchanged, result.regraded), strict=True)
    ]
    return build_table((f"{result.size:,} submissions", "wall s", "CPU s", "times as fast"), rows)


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
