"""The floor: what a submission's own code costs in a warm fork that runs the same five passes and does nothing else.

    python -m benchmarks.floor COURSE ASSIGNMENT SUBMITTED REPEATS

prints the median of CPU seconds a submission. It is a process of its own, for a fork of a large one costs more.
"""

import gc
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from autograder.course import load_course
from autograder.intake.notebook import parse_program
from autograder.marking.reference import build_input_sets, load_reference
from autograder.records import Program


def measure_floor(course: Path, assignment: str, submitted: Path, repeats: int) -> float:
    """CPU seconds a submission, from a process of its own."""
    command = [sys.executable, "-m", "benchmarks.floor", str(course), assignment, str(submitted), str(repeats)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def run_programs(programs: Sequence[Program], input_sets: Sequence[dict[str, Any]]) -> float:
    """CPU seconds of a program, the fork included."""
    began, inside = time.process_time(), 0.0
    for program in programs:
        child = os.fork()
        if child == 0:
            silence = os.open(os.devnull, os.O_RDWR)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            run_plainly(program, input_sets)
            os._exit(0)
        _, _, usage = os.wait4(child, 0)
        inside += usage.ru_utime + usage.ru_stime
    return (time.process_time() - began + inside) / len(programs)


def run_plainly(program: Program, input_sets: Sequence[dict[str, Any]]) -> None:
    """Compile once, exec all cells for each input set."""
    codes = []
    for cell in program.cells:
        try:
            codes.append(compile(cell.source, "<cell>", "exec"))
        except SyntaxError:
            continue
    for values in input_sets:
        names: dict[str, Any] = {"__name__": "__main__", "np": np, **values}
        for code in codes:
            try:
                exec(code, names)
            except Exception:
                continue


def main() -> None:
    folder, name, submitted, repeats = sys.argv[1:]
    course = load_course(Path(folder))
    reference = load_reference(course.solution_notebook(name).parent / "reference.py")
    inputs = [each.inputs for each in build_input_sets(course, name, reference)]
    notebooks = sorted(Path(submitted).glob("*/*/*.ipynb"))
    programs = [parse_program(each.read_bytes(), course.assignment(name)) for each in notebooks]
    gc.collect()
    gc.freeze()
    run_programs(programs[:10], [inputs[0], *inputs])
    print(statistics.median(run_programs(programs, [inputs[0], *inputs]) for _ in range(int(repeats))))


if __name__ == "__main__":
    main()
