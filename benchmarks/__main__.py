"""Measure how fast grading is, beside other graders on the same machine, and write `docs/benchmarks.md`.

make bench                                   everything, about half an hour on two cores
.venv/bin/python -m benchmarks --quick       everything on tiny classes, to try it; writes nothing
.venv/bin/python -m benchmarks --parts loops --output loops.md
"""

import argparse
import datetime
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from autograder.batch import count_cores
from autograder.course import load_course
from autograder.release.build import build_stub, read_config
from benchmarks import report
from benchmarks.classes import build_class
from benchmarks.compare import Sizes, compare_graders
from benchmarks.contenders import build_nbgrader, build_otter, build_product
from benchmarks.floor import measure_floor
from benchmarks.machine import describe_load, describe_machine
from benchmarks.peers.install import install_peers
from benchmarks.peers.nbgrader_course import build_source, make_nbgrader_course
from benchmarks.peers.otter_autograder import make_otter_archive
from benchmarks.peers.source import CHECKS_OF
from benchmarks.product import copy_course, grade_class
from benchmarks.scaling import Bench, measure_loops, measure_regrade, measure_scaling, measure_workers
from benchmarks.stages import ASSIGNMENT, measure_stages

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "benchmarks.md"
FULL_POINTS = sum(len(checks) for checks in CHECKS_OF.values())


COMPARED = """\
Every grader gets the same bytes: the released notebook, filled with accepted variants; every third notebook holds a
known mistake. *CPU* and *wall* are what one more submission costs: the difference between classes of {sizes.small} and
{sizes.large} (others: {sizes.peer_small} and {sizes.peer_large}, for what one more costs does not depend on the class),
median of {sizes.repeats} runs. CPU is that of all processes together. *First* is the command from its start to its end
with one notebook, *200 s* is first + {last} x wall. *Memory* is the peak of all processes together, with shared pages
counted once. *Marks right*: points as the catalogue says. nbgrader and otter-grader work on one notebook at a time.
The course was graded before: what a course keeps for all its submissions is there.

The {full} checks are the same. nbgrader and otter-grader run a notebook once, on the published input set, and check
inside the student's own process. This product runs it behind a wall and five times, once as it was handed in and once
for each of four input sets, and an exercise that lost marks once more alone. The others cannot see an answer that was
typed in; there their marks are not right."""


class Plan(msgspec.Struct, frozen=True):
    """How much is measured."""

    compared: Sizes = Sizes()
    stages: int = 200
    scaling: tuple[int, ...] = (100, 1000, 10_000)
    workers: int = 200
    regrade: tuple[int, int] = (200, 3000)
    loops: tuple[int, int] = (200, 20)
    repeats: int = 3


QUICK = Plan(Sizes(4, 24, 1, 2, 1), stages=12, scaling=(10, 40), workers=24, regrade=(12, 24), loops=(20, 2), repeats=1)


def compare(bench: Bench, plan: Plan) -> str:
    """This product, nbgrader and otter-grader on the same notebooks."""
    commands = install_peers()
    nbgrader, archive = bench.work / "nbgrader", bench.work / "autograder.zip"
    released = make_nbgrader_course(nbgrader, build_source(bench.course, ASSIGNMENT), ASSIGNMENT, commands)
    if released != bench.template:
        raise SystemExit("nbgrader released another notebook than the one that the classes are made from")
    make_otter_archive(archive, bench.course, ASSIGNMENT)
    contenders = [
        build_product(bench.course.folder, ASSIGNMENT, 0),
        build_product(bench.course.folder, ASSIGNMENT, 1),
        build_nbgrader(nbgrader, ASSIGNMENT, commands),
        build_otter(archive, commands, one_process=False),
        build_otter(archive, commands, one_process=True),
    ]
    results = list(
        compare_graders(
            contenders, bench.course, ASSIGNMENT, bench.template, FULL_POINTS, plan.compared, bench.work / "compare"
        )
    )
    class_folder = bench.make_class(plan.compared.large)
    floor = measure_floor(bench.course.folder, ASSIGNMENT, class_folder, plan.compared.repeats)
    return f"""{report.build_comparison(results, floor)}

{COMPARED.format(sizes=plan.compared, last=report.CLASS - 1, full=FULL_POINTS)}"""


def scale(bench: Bench, plan: Plan) -> str:
    """Classes from small to very large."""
    runs = list(measure_scaling(bench, plan.scaling))
    return f"{report.build_scaling(runs)}\n\n`autograder grade` with one worker for each core; start-up included."


def count_workers(bench: Bench, plan: Plan) -> str:
    """One worker and two."""
    return report.build_workers(plan.workers, measure_workers(bench, plan.workers, plan.repeats))


def regrade(bench: Bench, plan: Plan) -> str:
    """Stored answers marked again."""
    return report.build_regrade(list(measure_regrade(bench, plan.regrade, plan.repeats)))


def loop(bench: Bench, plan: Plan) -> str:
    """Endless loops in a class."""
    size, loops = plan.loops
    limit = bench.course.assignment(ASSIGNMENT).limits.cell_cpu_seconds
    costs = measure_loops(bench, size, loops, plan.repeats)
    return report.build_loops(size, loops, costs, limit, count_cores())


def take_apart(bench: Bench, plan: Plan) -> str:
    """Where the time of a submission goes, in one worker."""
    texts = []
    for title, wrong in (("Everybody right", False), ("Every third with a known mistake", True)):
        made = build_class(bench.course, ASSIGNMENT, bench.template, plan.stages, wrong=wrong)
        stages = measure_stages(bench.course, [each for each, _ in made], plan.repeats)
        folder = bench.make_class(plan.stages, wrong=wrong)
        floor = measure_floor(bench.course.folder, ASSIGNMENT, folder, plan.repeats)
        texts.append(f"{title}, {plan.stages} submissions:\n\n{report.build_stages(stages, floor)}")
    return "\n\n".join(texts)


PARTS: dict[str, Callable[[Bench, Plan], str]] = {
    "compare": compare,
    "scaling": scale,
    "workers": count_workers,
    "regrade": regrade,
    "loops": loop,
    "stages": take_apart,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="what to measure; else all")
    parser.add_argument("--quick", action="store_true", help="tiny classes, to try it: no numbers to quote")
    parser.add_argument("--repeats", type=int, help="runs of each measurement; their median counts")
    parser.add_argument("--sizes", type=int, nargs="+", help="the classes of the part scaling")
    parser.add_argument("--output", type=Path, help=f"where to write; a full run writes {DOCUMENT.relative_to(ROOT)}")
    options = parser.parse_args()
    plan = QUICK if options.quick else Plan()
    if options.repeats:
        compared = msgspec.structs.replace(plan.compared, repeats=options.repeats)
        plan = msgspec.structs.replace(plan, repeats=options.repeats, compared=compared)
    if options.sizes:
        plan = msgspec.structs.replace(plan, scaling=tuple(options.sizes))
    complete = not options.quick and set(options.parts) == set(PARTS)
    output = options.output or (DOCUMENT if complete else None)
    now = datetime.datetime.now(datetime.UTC)
    began = f"{now:%Y-%m-%d %H:%M} UTC, load before {describe_load()}"
    texts = [
        "# How fast it is",
        f"Measured {began}, with `{shlex.join(['python', '-m', 'benchmarks', *sys.argv[1:]])}`.",
        "Machines differ and are shared: the ratios of one run are what counts.",
        report.build_machine(describe_machine()),
    ]
    print("\n\n".join(texts), flush=True)
    # Ended from outside, it still removes its folder and its control group.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    work = Path(tempfile.mkdtemp(prefix="autograder-bench-"))
    try:
        bench = prepare(work)
        for name in options.parts:
            text = f"## {(PARTS[name].__doc__ or name).rstrip('.')}\n\n{PARTS[name](bench, plan)}"
            print(f"\n{text}", flush=True)
            texts.append(text)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if output is not None:
        output.write_text("\n\n".join(texts) + "\n", encoding="utf-8")
        print(f"\nwritten: {output}")


def prepare(work: Path) -> Bench:
    """A copy of the course that has released the notebook of the classes, as each of the graders compared has.

    What every course keeps (the catalogue's answers) is there already.
    """
    prepared = work / "prepared"
    copy_course(ROOT, prepared)
    course = load_course(prepared)
    template = build_stub(build_source(course, ASSIGNMENT), read_config(prepared))
    course.released_notebook(ASSIGNMENT).write_bytes(template)
    bench = Bench(course, ASSIGNMENT, template, work)
    grade_class(prepared, ASSIGNMENT, bench.make_class(1))
    return bench


if __name__ == "__main__":
    main()
