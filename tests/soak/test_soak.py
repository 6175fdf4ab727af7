"""One batch of honest and hostile submissions through the command line."""

import json
import random
import time
from pathlib import Path

from ..escapes.attacks import FULL
from .command import JOBS, Command, Ended
from .conftest import SIZE
from .submissions import TIMES, Entry, build_entries, copy_course, write_entries

SECONDS_TO_START = 60.0
SECONDS_EACH = 2.0
"""Generous for what is not limited by the course: reading, marking and explaining one submission."""


def test_attacks_in_a_batch_cost_nobody_else_anything(work: Path, chance: random.Random) -> None:
    course = copy_course(work / "mixed-course")
    entries = build_entries(course, SIZE, chance)
    honest = [entry for entry in entries if entry.attack is None]
    hostile = [entry for entry in entries if entry.attack is not None]

    alone = grade_all(copy_course(work / "honest-course"), honest, work / "honest", 0)
    mixed = grade_all(course, entries, work / "mixed", len(hostile))

    assert list(mixed) == sorted(entry.student for entry in entries)
    for entry in honest:
        assert take_path_away(mixed[entry.student]) == take_path_away(alone[entry.student]), entry.student
    wrong = {entry.student: wrong for entry in hostile if (wrong := find_wrong(entry, mixed[entry.student]))}
    assert not wrong, json.dumps(wrong, indent=1)


def grade_all(course: Path, entries: list[Entry], folder: Path, hostile: int) -> dict[str, dict]:
    """Results by student; fails when a batch does not end within the limits of its submissions."""
    # The joint run and the runs alone have the limit once each.
    limit = SECONDS_TO_START + SECONDS_EACH * len(entries) + 2 * TIMES["wall_seconds"] * hostile / JOBS
    began = time.monotonic()
    command = Command(course, write_entries(entries, folder), folder)
    ended: Ended = command.wait(limit)
    print(f"\n{len(entries)} submissions, {hostile} hostile: {time.monotonic() - began:.1f} s of at most {limit:.0f} s")
    assert ended.results is not None, (ended.status, ended.errors)
    ungraded = {name: each["reason"] for name, each in ended.results.items() if each["status"] != "graded"}
    assert (ended.status, ungraded) == (0, {}), ended.errors
    return ended.results


def take_path_away(result: dict) -> dict:
    return {key: value for key, value in result.items() if key != "path"}


def find_wrong(entry: Entry, result: dict) -> dict:
    """What a hostile submission earned without a right to it, or lost where it did no harm."""
    assert entry.attack is not None
    scores = {exercise["id"]: exercise["score"] for exercise in result["exercises"]}
    due = FULL | {entry.attack.exercise: min(scores[entry.attack.exercise], entry.attack.earns)}
    return {} if scores == due else {"scores": scores, "notes": result["notes"]}
