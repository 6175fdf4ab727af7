"""What one submission costs: processor time beyond start-up, and where it goes.

Measured inside one process, without the command line around it.
"""

import os
import statistics
import time
from collections.abc import Sequence

import msgspec

from autograder.course import Course
from autograder.grading import Grader
from autograder.intake.notebook import parse_program
from autograder.records import Program, Submission
from autograder.sandbox.processes import measure_tree
from autograder.sandbox.watch import build_budget

ASSIGNMENT = "qkv"


class Stages(msgspec.Struct, frozen=True):
    """Seconds a submission. host, inside: processor time in front of the wall and behind it. parts: processor time of
    each part on its own, reruns of single exercises left out."""

    host: float
    inside: float
    wall: float
    parts: dict[str, float]


def measure_batch(grader: Grader, submissions: Sequence[Submission]) -> tuple[float, float, float]:
    """CPU seconds of the host, CPU seconds behind the wall, wall seconds of grading a batch."""
    inside, host, wall = measure_inside(), time.process_time(), time.perf_counter()
    for submission in submissions:
        grade = grader.grade_submission(submission)
        if grade.status != "graded":
            raise SystemExit(f"{submission.path}: {grade.reason}")
    return time.process_time() - host, measure_inside() - inside, time.perf_counter() - wall


def measure_inside() -> float:
    """CPU seconds so far of everything that this process has started."""
    own = os.times()
    return measure_tree(os.getpid()).cpu_seconds - own.user - own.system


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
        inside, host = measure_inside(), time.process_time()
        for _ in submissions:
            grader.sandbox.execute(program, inputs, build_budget(grader.assignment))
        count = len(submissions)
        return (measure_inside() - inside) / count, (time.process_time() - host) / count

    walls, talk = run(Program(()))
    parts["clone and walls"] = walls
    parts["talk to an empty process (host)"] = talk
    inside, host = measure_inside(), time.process_time()
    executions = [grader.sandbox.execute(each, inputs, build_budget(grader.assignment)) for each in programs]
    parts["passes"] = (measure_inside() - inside) / len(programs) - walls
    parts["talk about the passes (host)"] = (time.process_time() - host) / len(programs) - talk
    started = time.process_time()
    for each in executions:
        grader.marking.mark(each)
    parts["mark"] = (time.process_time() - started) / len(executions)
    return parts


def measure_stages(course: Course, submissions: Sequence[Submission], repeats: int) -> Stages:
    """The costs of one submission, over a batch, with one worker."""
    with Grader(course, ASSIGNMENT) as grader:
        measure_batch(grader, submissions[:10])
        runs = [measure_batch(grader, submissions) for _ in range(repeats)]
        host, inside, wall = (statistics.median(column) / len(submissions) for column in zip(*runs, strict=True))
        return Stages(host, inside, wall, measure_parts(grader, submissions))
