"""Whether a mode works on this machine, found out by running a cell in it."""

from pathlib import Path

from autograder.course import Assignment, Exercise
from autograder.errors import SandboxError
from autograder.records import Cell, Program
from autograder.sandbox.modes import SandboxMode
from autograder.sandbox.session import Session
from autograder.sandbox.watch import build_budget

_NOWHERE = Path("/nonexistent")
_CODE = "import numpy as np\npulse = int(np.arange(4).sum())"


def try_mode(mode: SandboxMode) -> str | None:
    """Why a mode does not work here; None where a cell ran in it and its answer came back. Takes about a second."""
    exercise = Exercise(id="trial", title="trial", answers={"pulse": "whole number"})
    assignment = Assignment(title="trial", seeds=(0, 1), exercises=(exercise,))
    program = Program((Cell(0, _CODE, ("trial",)),))
    try:
        with Session(_NOWHERE, assignment, mode=mode) as session:
            execution = session.execute(program, [(seed, {}) for seed in assignment.seeds], build_budget(assignment))
    except SandboxError as error:
        return str(error)
    answers = [one_pass.answers.get("pulse") for one_pass in execution.passes]
    return None if answers == [6, 6] else f"NumPy does not work inside: the answers were {answers}"
