"""Runs that begin after a submission's code has seen the hidden input sets: by a clock, these could tell of them."""

import hashlib
import json
import re

import pytest

from autograder.grading import Order
from autograder.records import Ending, Submission
from autograder.runs import TOGETHER
from autograder.sandbox.progress import Part

from .conftest import open_bench

SPIN = "import time\nbegan = time.process_time()\nwhile time.process_time() - began < {seconds}: pass\n"
HIDDEN = "if text != 'the lamp':\n    " + SPIN.replace("\n", "\n    ").rstrip() + "\n"

SLOW = {
    "a helper on hidden input sets": ({}, HIDDEN.format(seconds=0.7)),
    "a helper": ({}, SPIN.format(seconds=0.7)),
    "an exercise on hidden input sets": ({"shared-value": HIDDEN.format(seconds=0.7)}, ""),
    "an exercise": ({"shared-value": SPIN.format(seconds=0.7)}, ""),
    "an endless exercise": ({"shared-value": "while True: pass\n"}, ""),
    "one that is endless on hidden input sets": ({"shared-value": "while text != 'the lamp': pass\n"}, ""),
    "an endless exercise and another on hidden input sets": (
        {"head-size": "while True: pass\n", "shared-value": HIDDEN.format(seconds=0.7)},
        "",
    ),
    "nothing": ({}, ""),
}


@pytest.mark.parametrize(("codes", "helper"), SLOW.values(), ids=SLOW)
def test_the_notebook_as_submitted_runs_before_anything_hidden_is_seen_and_once(
    bench, monkeypatch, codes, helper
) -> None:
    calls = []
    execute = bench.grader.sandbox.execute

    def note(*arguments, evidence=True, part=Part.ALL, **options):
        execution = execute(*arguments, evidence=evidence, part=part, **options)
        calls.append((evidence, part is Part.HIDDEN or len(execution.passes) > 1))
        return execution

    monkeypatch.setattr(bench.grader.sandbox, "execute", note)
    data = bench.fill(
        {name: code + bench.read_source(name) for name, code in codes.items()},
        {"shared-key": f"{helper}print('shown')\n"},
    )
    graded = grade(bench, data)
    seen = [hidden for _, hidden in calls]
    first = seen.index(True)
    assert not any(evidence for evidence, _ in calls[first + 1 :])
    assert [each.data for each in graded.runs[TOGETHER].outputs if b"shown" in each.data] == [b"shown\n"]
    if "while True" not in "".join(codes.values()) and "while text" not in "".join(codes.values()):
        bench.assert_full(graded.grade)
    assert all(len(run.passes) == 4 for run in graded.runs.values())


@pytest.mark.parametrize("tries", [3, 0])
def test_what_is_ended_on_the_published_set_is_ended_once_and_noted_once(bench, tries) -> None:
    before = {"head-size-start": ["import os\nos._exit(3)", HIDDEN.format(seconds=0.7)]}
    graded = grade(bench, bench.build(before=before), tries)
    bench.assert_full(graded.grade)
    (note,) = graded.grade.notes
    assert "ended itself" in note
    (cell,) = {run.cell for run in graded.runs[TOGETHER].passes[0].runs if run.ending is Ending.EXITED}
    assert [run.ending for each in graded.runs[TOGETHER].passes for run in each.runs if run.cell == cell] == [
        Ending.EXITED
    ] * 4


@pytest.mark.parametrize("tries", [3, 0])
def test_a_cell_that_is_ended_on_a_hidden_set_ended_well_before(bench, tries) -> None:
    keys = f"{bench.read_source('shared-key')}\nimport os\nif text != 'the lamp': os._exit(3)"
    graded = grade(bench, bench.build(replace={"shared-key": keys}), tries)
    joint = graded.runs[TOGETHER]
    assert {run.ending for run in (*joint.evidence, *joint.passes[0].runs)} == {Ending.OK}
    assert Ending.EXITED in {run.ending for run in joint.passes[1].runs}


@pytest.mark.parametrize("tries", [3, 0])
def test_marks_do_not_depend_on_a_try_where_the_published_part_takes_most_of_the_time(course, tries) -> None:
    limits = {"cell_cpu_seconds": 1.0, "cpu_seconds": 5.0, "cell_wall_seconds": 8.0, "wall_seconds": 40.0}
    spin = "import time\nfrom time import process_time as clock\nend = clock() + (0.4 if text == 'the lamp' else {})\n"
    helpers = [spin.format(seconds) + "while clock() < end: pass\n" for seconds in (0.85, 0.6)]
    with open_bench(course, limits) as bench:
        graded = grade(bench, bench.build(before={"shared-key-start": helpers}), tries)
        # 2 x 0.8 s and 2 x 1.45 s are within 5 s, and a third hidden set is not.
        unfinished = [any(run.ending is Ending.TIMEOUT for run in each.runs) for each in graded.runs[TOGETHER].passes]
    assert unfinished == [False, False, False, True]


@pytest.mark.parametrize("tries", [3, 0])
def test_a_try_that_has_no_time_for_the_notebook_as_submitted_takes_no_outputs_from_it(course, tries) -> None:
    limits = {"cell_wall_seconds": 0.9, "wall_seconds": 4.6}
    with open_bench(course, limits) as bench:
        sleeps = ["import time\ntime.sleep(0.6)\n" + f"# {number}\n" for number in range(3)]
        data = bench.build(before={"shared-key-start": sleeps}, after={"shared-value": ["print('shown')"]})
        graded = grade(bench, data, tries)
        joint = graded.runs[TOGETHER]
        program = graded.program
    assert any(b"shown" in each.data for each in joint.outputs)
    assert len(joint.evidence) == len(program.cells)
    assert not joint.after_hidden


def grade(bench, data: bytes, tries: int = 3):
    bench.grader._tries.left = tries
    return bench.grader.grade_order(Order(Submission("ada", "", data, hashlib.sha256(data).hexdigest())))


CLOCK = """
if text == "the lamp":
    K_shared = np.zeros((1, 8, 731))
"""
LEFT = "import sys\nif hasattr(sys, 'together'):\n    scores_shared = scores_shared * 0\n"


def test_no_number_of_a_run_alone_is_shown(bench) -> None:
    """It is made after the joint run, whose last hidden set can choose the moment at which it begins."""
    keys = bench.read_source("shared-key") + CLOCK + LEFT
    value = bench.read_source("shared-value") + "\nimport sys\nsys.together = True\n"
    graded = grade(bench, bench.build(replace={"shared-key": keys, "shared-value": value}))
    assert any("without the other" in note for note in graded.grade.notes), "the run alone counts"
    assert_nothing_told(bench, graded)


@pytest.mark.parametrize("helper", ["", HIDDEN.format(seconds=0.7)], ids=["a try that counts", "a try in vain"])
def test_a_number_of_the_first_run_on_the_published_set_is_shown(bench, helper) -> None:
    keys = bench.read_source("shared-key") + CLOCK
    before = {"head-size-start": [helper]} if helper else {}
    graded = grade(bench, bench.build(replace={"shared-key": keys}, before=before))
    assert "731" in tell(bench, graded)


def test_answers_for_the_published_set_are_those_of_the_first_run_on_it(bench, monkeypatch) -> None:
    """What it gives in a later one, it can choose by the hidden sets."""
    calls = []
    execute = bench.grader.sandbox.execute

    def note(*arguments, part=Part.ALL, **options):
        calls.append(part)
        return execute(*arguments, part=part, **options)

    monkeypatch.setattr(bench.grader.sandbox, "execute", note)
    graded = grade(bench, bench.build(before={"head-size-start": [HIDDEN.format(seconds=0.7)]}))
    bench.assert_full(graded.grade)
    assert not graded.grade.notes
    assert calls == [Part.WARY, Part.HIDDEN]


def assert_nothing_told(bench, graded) -> None:
    lost = bench.lost(graded.grade)
    assert lost
    assert not re.search(r"\d{2}", tell(bench, graded))


def tell(bench, graded) -> str:
    return json.dumps([[mark.message, mark.hint] for mark in bench.lost(graded.grade).values()])
