"""Attacks from inside a student's cell, between honest submissions, through the real line.

Each attack is a file in `corpus/`. Whatever it does, it earns no mark that its values do not earn, costs
no other exercise and no other submission anything, sees nothing of the course, and leaves nothing behind.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.course import Course
from autograder.records import Cell, Ending, Program
from autograder.sandbox.session import Session
from autograder.sandbox.watch import Budget, build_budget

from .attacks import ESCAPED, TRIED, Attack, load_corpus
from .claims import assert_attack_fails, assert_neighbour_is_untouched
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
    seen = assert_attack_fails(attack, firing_range, hidden_texts, canary)
    assert ESCAPED not in b"".join(capfdbinary.readouterr()), "code of the student's ran in the grader itself"
    assert TRIED in seen or not attack.tried, seen[-2000:]
    assert_neighbour_is_untouched(firing_range)


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
            Program((Cell(0, "x = 1"),)), [(1, {}), (2, {})], Budget(wall=1e-9, cpu=1, cell_wall=1, cell_cpu=1)
        )
    # It is over when the host first looks, which is before it reads any reply, on a machine of any speed.
    assert {run.ending for one_pass in execution.passes for run in one_pass.runs} == {Ending.TIMEOUT}
