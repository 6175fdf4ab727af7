"""What must hold after each attack, in whichever mode of the sandbox."""

import json
from collections.abc import Collection

from autograder.records import Execution, Grade

from .attacks import ESCAPED, FULL, LIMITS, Attack, build_attack
from .conftest import Range

ALONE = {"tmp": [], "shm": [], "processes": 1, "open folders": [], "environment": []}
WORLDS = {
    "nested": ALONE,
    # The init is a process of ours there.
    "single": ALONE | {"processes": 2},
    # Nothing of these can be looked into.
    "user": ALONE | {"shm": None, "processes": None},
}
"""What an honest submission sees of the world, by mode."""


def assert_attack_fails(attack: Attack, firing_range: Range, hidden: Collection[bytes], canary: str) -> bytes:
    """Run an attack; the outputs that people would see.

    hidden: what gives a hidden input set away; it may be in nothing that a person sees.
    canary: what may not even be claimed.
    """
    grade = firing_range.grade(build_attack(attack, firing_range.grader.course))
    seen = firing_range.read_outputs()

    assert grade.status == "graded", grade.reason
    scores = {exercise.id: exercise.score for exercise in grade.exercises}
    others = {name: points for name, points in scores.items() if name != attack.exercise}
    assert others == {name: points for name, points in FULL.items() if name != attack.exercise}, grade.notes
    assert scores[attack.exercise] <= attack.earns
    assert {each.id: each.status for each in grade.exercises}[attack.exercise] in attack.endings, seen[-2000:]

    told = [
        line.removeprefix(ESCAPED).strip().decode(errors="replace") for line in seen.splitlines() if ESCAPED in line
    ]
    assert not [line for line in told if not line.startswith(attack.tells or "\0")], told
    assert not [text for text in hidden if text in seen + read_feedback(grade)]
    claimed = seen + read_claims(firing_range.executions)
    assert canary.encode() not in claimed
    assert firing_range.secret.encode() not in claimed
    assert len(seen) <= 3 * LIMITS["output_bytes"]
    assert count_outputs(firing_range.executions) <= LIMITS["output_bytes"]

    assert firing_range.seconds < 2 * firing_range.grader.assignment.limits.wall_seconds + 10
    assert firing_range.count_leftovers() == 0
    return seen


def assert_neighbour_is_untouched(firing_range: Range) -> None:
    """An honest submission right after it gets all points, in a world in which it is alone."""
    grade = firing_range.grade(firing_range.build_honest())
    assert (grade.status, grade.score) == ("graded", 13.0), (grade.reason, grade.notes)
    (line,) = [line for line in firing_range.read_outputs().splitlines() if line.startswith(b"WITNESS ")]
    assert json.loads(line.removeprefix(b"WITNESS ")) == WORLDS[firing_range.mode]


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
