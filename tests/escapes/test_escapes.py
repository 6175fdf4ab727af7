"""Attacks from inside a student's cell, between honest submissions, through the real line.

Each attack is a file in `corpus/`. Whatever it does, it earns no mark that its values do not earn, costs
no other exercise and no other submission anything, sees nothing of the course, and leaves nothing behind.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.course import Course
from autograder.records import Cell, Ending, Execution, Grade, Program
from autograder.sandbox.session import Session
from autograder.sandbox.watch import Budget, build_budget

from .attacks import ESCAPED, FULL, LIMITS, TRIED, Attack, build_attack, load_corpus
from .conftest import Range

ATTACKS = load_corpus()
CaptureBinary = pytest.CaptureFixture[bytes]


@pytest.fixture
def firing_range(attack: Attack, open_range: Callable[[bool], Range]) -> Range:
    """The range for an attack; all share two."""
    found = open_range(attack.is_timed)
    found.clear()
    return found


@pytest.mark.parametrize("attack", [pytest.param(attack, id=name) for name, attack in ATTACKS.items()])
def test_an_attack_costs_its_own_exercise_at_most(
    attack: Attack, firing_range: Range, canary: str, hidden_texts: frozenset[bytes], capfdbinary: CaptureBinary
) -> None:
    grade = firing_range.grade(build_attack(attack, firing_range.grader.course))
    seen = firing_range.read_outputs()

    assert grade.status == "graded", grade.reason
    scores = {exercise.id: exercise.score for exercise in grade.exercises}
    others = {name: points for name, points in scores.items() if name != attack.exercise}
    assert others == {name: points for name, points in FULL.items() if name != attack.exercise}, grade.notes
    assert scores[attack.exercise] <= attack.earns
    assert {each.id: each.status for each in grade.exercises}[attack.exercise] in attack.endings, seen[-2000:]

    assert ESCAPED not in seen, seen[seen.index(ESCAPED) :][:2000]
    assert ESCAPED not in b"".join(capfdbinary.readouterr()), "code of the student's ran in the grader itself"
    assert TRIED in seen or not attack.tried, seen[-2000:]
    told = seen + read_claims(firing_range.executions)
    assert not [text for text in hidden_texts if text in seen + read_feedback(grade)]
    assert canary.encode() not in told
    assert firing_range.secret.encode() not in told
    assert len(seen) <= 3 * LIMITS["output_bytes"]
    assert count_outputs(firing_range.executions) <= LIMITS["output_bytes"]

    assert firing_range.seconds < 2 * firing_range.grader.assignment.limits.wall_seconds + 10
    assert firing_range.count_leftovers() == 0
    assert_neighbour_is_untouched(firing_range)


def assert_neighbour_is_untouched(firing_range: Range) -> None:
    """An honest submission right after it gets all points, in a world in which it is alone."""
    grade = firing_range.grade(firing_range.build_honest())
    assert (grade.status, grade.score) == ("graded", 13.0), (grade.reason, grade.notes)
    (line,) = [line for line in firing_range.read_outputs().splitlines() if line.startswith(b"WITNESS ")]
    assert json.loads(line.removeprefix(b"WITNESS ")) == {
        "tmp": [],
        "shm": [],
        "processes": 1,
        "open folders": [],
        "environment": [],
    }


def count_outputs(executions: list[Execution]) -> int:
    return sum(len(execution.outputs) for execution in executions)


def read_claims(executions: list[Execution]) -> bytes:
    """All texts that left the sandbox beside the outputs: of exceptions, of types and of answers."""
    passes = [one_pass for execution in executions for one_pass in execution.passes]
    texts = [f"{run.error} {run.text}" for one_pass in passes for run in one_pass.runs]
    texts += [repr(value) for one_pass in passes for value in one_pass.answers.values()]
    return "\n".join(texts).encode()


def read_feedback(grade: Grade) -> bytes:
    """All that a student gets to read."""
    marks = [mark for exercise in grade.exercises for mark in exercise.tests]
    texts = [*grade.notes, *(f"{mark.message} {mark.hint} {mark.notes}" for mark in marks)]
    return "\n".join(texts).encode()


def test_a_folder_that_is_covered_up_is_no_place_to_leave_things(course: Course) -> None:
    """A course or an autograder that lies inside what the sandbox shows is covered by an empty folder."""
    folder = Path("/usr/share/doc")
    assignment = course.assignment("qkv")
    look = f"import os\nprint(os.listdir({str(folder)!r}))\n"
    plant = f"open({str(folder / 'planted')!r}, 'w').close()\nprint('planted')\n"
    program = Program((Cell(0, look + plant),))
    with Session(folder, assignment) as session:
        for _ in range(2):
            execution = session.execute(program, [(1, {}), (2, {})], build_budget(assignment))
            said = [output.data for output in execution.outputs if output.mime == "stream/stdout"]
            assert b"".join(said) == b"[]\n"


def test_time_that_runs_out_before_a_cell_runs_is_no_fault_of_the_sandbox(course: Course) -> None:
    assignment = course.assignment("qkv")
    with Session(course.folder, assignment) as session:
        execution = session.execute(
            Program((Cell(0, "x = 1"),)), [(1, {}), (2, {})], Budget(wall=1e-4, cpu=1, cell_wall=1, cell_cpu=1)
        )
    assert {run.ending for one_pass in execution.passes for run in one_pass.runs} == {Ending.TIMEOUT}
