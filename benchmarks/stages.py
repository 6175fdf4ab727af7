"""What one submission costs: processor time beyond start-up, where it goes, and the floor beside it.

Measured inside one process, without the command line around it.
"""

import os
import statistics
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from autograder.course import Course
from autograder.grading import Grader
from autograder.intake.notebook import parse_program
from autograder.records import Program, Submission
from autograder.sandbox.processes import measure_tree
from autograder.sandbox.watch import build_budget

ASSIGNMENT = "qkv"


class Stages(msgspec.Struct, frozen=True):
    """Seconds a submission. host, inside: processor time in front of the wall and behind it. floor: of a warm fork that
    runs the same passes. parts: processor time of each part on its own, reruns of single exercises left out."""

    host: float
    inside: float
    wall: float
    floor: float
    parts: dict[str, float]


def measure_batch(grader: Grader, submissions: Sequence[Submission]) -> tuple[float, float, float]:
    """CPU seconds of the host, CPU seconds behind the wall, wall seconds of grading a batch."""
    pid = find_sandbox_pid(grader)
    inside, host, wall = measure_tree(pid).cpu_seconds, time.process_time(), time.perf_counter()
    for submission in submissions:
        grade = grader.grade_submission(submission)
        if grade.status != "graded":
            raise SystemExit(f"{submission.path}: {grade.reason}")
    return time.process_time() - host, measure_tree(pid).cpu_seconds - inside, time.perf_counter() - wall


def find_sandbox_pid(grader: Grader) -> int:
    """The process under which everything behind the wall lives."""
    server = grader.sandbox._server
    if server is None:
        raise SystemExit("the sandbox is not running")
    return server._process.pid


def measure_parts(grader: Grader, submissions: Sequence[Submission]) -> dict[str, float]:
    """CPU seconds a submission by part, from calling each part on its own."""
    inputs = [(each.seed, each.inputs) for each in grader.marking.input_sets]
    programs = [parse_program(each.data, grader.assignment) for each in submissions]
    parts: dict[str, float] = {}
    started = time.process_time()
    for each in submissions:
        parse_program(each.data, grader.assignment)
    parts["read the notebook"] = (time.process_time() - started) / len(submissions)

    def run(program: Program) -> tuple[float, float]:
        pid = find_sandbox_pid(grader)
        inside, host = measure_tree(pid).cpu_seconds, time.process_time()
        for _ in submissions:
            grader.sandbox.execute(program, inputs, build_budget(grader.assignment))
        count = len(submissions)
        return (measure_tree(pid).cpu_seconds - inside) / count, (time.process_time() - host) / count

    walls, talk = run(Program(()))
    parts["clone and walls"] = walls
    parts["talk to an empty process (host)"] = talk
    pid = find_sandbox_pid(grader)
    inside, host = measure_tree(pid).cpu_seconds, time.process_time()
    executions = [grader.sandbox.execute(each, inputs, build_budget(grader.assignment)) for each in programs]
    parts["passes"] = (measure_tree(pid).cpu_seconds - inside) / len(programs) - walls
    parts["talk about the passes (host)"] = (time.process_time() - host) / len(programs) - talk
    started = time.process_time()
    for each in executions:
        grader.marking.mark(each)
    parts["mark"] = (time.process_time() - started) / len(executions)
    return parts


def measure_floor(grader: Grader, submissions: Sequence[Submission]) -> float:
    """CPU seconds a submission of a warm fork that runs the same five passes with plain exec, and nothing else."""
    inputs = [each.inputs for each in grader.marking.input_sets]
    spent = 0.0
    for submission in submissions:
        program = parse_program(submission.data, grader.assignment)
        before = os.times()
        child = os.fork()
        if child == 0:
            silence = os.open(os.devnull, os.O_RDWR)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            run_plainly(program, [inputs[0], *inputs])
            os._exit(0)
        _, _, usage = os.wait4(child, 0)
        after = os.times()
        spent += usage.ru_utime + usage.ru_stime + after.user + after.system - before.user - before.system
    return spent / len(submissions)


def measure_floor_alone(course: Course, submissions: Sequence[Submission], repeats: int) -> float:
    """The floor's median, CPU seconds a submission."""
    with Grader(course, ASSIGNMENT) as grader:
        return statistics.median(measure_floor(grader, submissions) for _ in range(repeats))


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


def measure_stages(course: Course, submissions: Sequence[Submission], repeats: int) -> Stages:
    """The costs of one submission, over a batch, with one worker."""
    with Grader(course, ASSIGNMENT) as grader:
        measure_batch(grader, submissions[:10])
        runs = [measure_batch(grader, submissions) for _ in range(repeats)]
        host, inside, wall = (statistics.median(column) / len(submissions) for column in zip(*runs, strict=True))
        floor = statistics.median(measure_floor(grader, submissions) for _ in range(repeats))
        return Stages(host, inside, wall, floor, measure_parts(grader, submissions))
