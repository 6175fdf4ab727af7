"""The autograder's processes are killed while they work; the same command again gives what an undisturbed run gives."""

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from .command import ROLES, Command, Ended
from .conftest import KILLS, SIZE
from .leftovers import list_leftovers, list_things
from .submissions import build_entries, copy_course, write_entries

MOST = 30
"""Submissions in a run that is disturbed; more would only make the moments rarer in which one starts or ends."""
LONGEST = 300.0
MOST_PAUSE = 1.0
"""Seconds between two kills: short beside a run, long beside a submission."""


@pytest.fixture(scope="module")
def submissions(work: Path) -> Path:
    """Attacks that end in one way only; the messages of others hold measured times."""
    entries = build_entries(copy_course(work / "known-course"), min(SIZE, MOST), random.Random(0), steady=True)
    return write_entries(entries, work / "disturbed")


@pytest.fixture(scope="module")
def undisturbed(work: Path, submissions: Path) -> Ended:
    ended = run(copy_course(work / "undisturbed-course"), submissions)
    assert ended.status == 0, ended.errors
    return ended


def run(course: Path, submissions: Path) -> Ended:
    """The whole command, to its end."""
    return Command(course, submissions, course).wait(LONGEST)


def test_kills_at_random_moments_change_no_result(
    work: Path, submissions: Path, undisturbed: Ended, chance: random.Random
) -> None:
    killed: Counter[str] = Counter()
    rounds = 0
    while killed.total() < KILLS:
        rounds += 1
        course = copy_course(work / f"killed-course-{rounds}")
        before = list_things(work)
        command = Command(course, submissions, course)
        here: Counter[str] = Counter()
        while command.is_running:
            time.sleep(chance.uniform(0, MOST_PAUSE))
            if killed.total() + here.total() < KILLS:
                here.update(kill_one(command, chance))
        killed += here
        disturbed = command.wait(0)
        print(
            f"\nround {rounds}: kills {dict(here)}, exit status {disturbed.status} {disturbed.errors.strip()}", end=""
        )
        assert find_forged(disturbed, undisturbed) == []
        assert {each for each in list_leftovers(before, work) if not each.startswith("cgroup ")} == set()

        again = run(course, submissions)
        assert (again.status, again.results) == (0, undisturbed.results), again.errors
        assert list_names(course) == list_names(work / "undisturbed-course")
    print(f"\n{killed.total()} kills in {rounds} rounds: {dict(killed)}")


def find_forged(disturbed: Ended, undisturbed: Ended) -> list[str]:
    """Who was graded in a disturbed run, and got other marks than in the undisturbed one."""
    results = disturbed.results or {}
    due = undisturbed.results or {}
    return [
        student
        for student, each in results.items()
        if each["status"] == "graded" and each["score"] != due[student]["score"]
    ]


def kill_one(command: Command, chance: random.Random) -> list[str]:
    """Kill one process of a role that is drawn first, as soon as there is one; its role, unless the command is over."""
    role = chance.choice(ROLES)
    while command.is_running:
        victims = [process.pid for process in command.list_processes() if process.role == role]
        if victims:
            try:
                os.kill(chance.choice(victims), signal.SIGKILL)
            except ProcessLookupError:
                continue
            return [role]
        time.sleep(0.002)
    return []


def list_names(folder: Path) -> list[str]:
    """All files of a course, but bytecode."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if "__pycache__" not in path.parts)


@pytest.mark.parametrize(
    ("number", "to_all", "status"),
    [(signal.SIGINT, True, 130), (signal.SIGTERM, False, -signal.SIGTERM)],
)
def test_a_signal_ends_a_run_that_can_be_repeated(
    work: Path, submissions: Path, undisturbed: Ended, number: int, to_all: bool, status: int
) -> None:
    course = copy_course(work / f"signalled-course-{number}-{to_all}")
    before = list_things(work)
    command = Command(course, submissions, course)
    wait_until_students_run(command)
    send = os.killpg if to_all else os.kill
    send(command.process.pid, number)
    ended = command.wait(LONGEST)

    assert ended.status == status, ended.errors
    said = [line for line in ended.errors.splitlines() if not line.startswith("Grading ")]
    assert len(said) <= 1, ended.errors
    assert list_leftovers(before, work) == set()
    again = run(course, submissions)
    assert (again.status, again.results) == (0, undisturbed.results), again.errors


def wait_until_students_run(command: Command) -> None:
    while command.is_running and not any(process.role == "student" for process in command.list_processes()):
        time.sleep(0.01)
