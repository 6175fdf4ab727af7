"""What a submission costs in each sandbox mode, on the solution notebook: python benchmarks/modes.py [MODE ...]

Modes take turns within one run, so that a busy machine is as busy for each of them.
"""

import os
import resource
import statistics
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from autograder.course import load_course
from autograder.intake.notebook import parse_program
from autograder.marking.reference import build_input_sets, load_reference
from autograder.sandbox.modes import SandboxMode
from autograder.sandbox.processes import measure_tree
from autograder.sandbox.session import Session
from autograder.sandbox.watch import build_budget

COURSE = Path(__file__).resolve().parent.parent
ASSIGNMENT = "qkv"
ROUNDS = 15


def main() -> None:
    """Print start-up, and wall, host CPU and sandbox CPU for each submission: medians in milliseconds."""
    course = load_course(COURSE)
    assignment = course.assignment(ASSIGNMENT)
    sets = build_input_sets(course, ASSIGNMENT, load_reference(course.reference(ASSIGNMENT)))
    inputs = [(each.seed, each.inputs) for each in sets]
    program = parse_program(course.solution_notebook(ASSIGNMENT).read_bytes(), assignment)
    modes = [SandboxMode(name) for name in sys.argv[1:] or ("nested", "single", "none")]
    starts, rows = {}, {mode: [] for mode in modes}
    with ExitStack() as stack:
        sessions = {}
        for mode in modes:
            folder = stack.enter_context(ExitStack())
            began = time.perf_counter()
            # A folder that nobody can read serves mode user as the course's.
            sessions[mode] = folder.enter_context(Session(Path("/nonexistent"), assignment, mode=mode))
            starts[mode] = time.perf_counter() - began
        for _ in range(ROUNDS):
            for mode, session in sessions.items():
                rows[mode].append(measure(session, program, inputs, assignment))
    print(f"{'mode':8} {'start':>8} {'wall':>8} {'CPU':>8}   ms, medians of {ROUNDS}; load {os.getloadavg()[0]:.1f}")
    for mode in modes:
        wall, cpu = (statistics.median(column) for column in zip(*rows[mode], strict=True))
        print(f"{mode:8} {starts[mode] * 1000:8.0f} {wall * 1000:8.1f} {cpu * 1000:8.1f}")


def measure(session, program, inputs, assignment):
    """Wall seconds, and CPU seconds of everything on the way: this process, its dead children and its live ones."""
    wall, cpu = time.perf_counter(), count_cpu()
    session.execute(program, inputs, build_budget(assignment))
    return time.perf_counter() - wall, count_cpu() - cpu


def count_cpu() -> float:
    """Seconds of this process and all its children, ended ones included."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime + measure_tree(os.getpid()).cpu_seconds - time_of_self()


def time_of_self() -> float:
    """What the tree counts for this process itself, in its coarser ticks."""
    with open("/proc/self/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:13]) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
