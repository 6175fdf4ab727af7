"""Inputs that were made or found to break the readers of foreign bytes break nothing: bounded in time and memory."""

import importlib.util
import time
import tracemalloc
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autograder.guest import wire
from autograder.records import Execution

FUZZ = Path(__file__).parents[1] / "fuzz"
MAX_SECONDS = 2.0
"""Processor time for one input. What is found is a few kilobytes; a reader that takes this long takes too long."""


def load_target(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"fuzz_{name}", FUZZ / f"fuzz_{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TARGETS = {name: load_target(name) for name in ("wire", "notebook")}
WIRE = TARGETS["wire"]
CORPUS = [
    pytest.param(name, path, id=f"{name}/{path.name}")
    for name in TARGETS
    for path in sorted((FUZZ / "corpus" / name).iterdir())
]


@pytest.mark.parametrize(("target", "path"), CORPUS)
def test_an_input_of_the_corpus_is_read_or_refused_within_bounds(target: str, path: Path) -> None:
    data = path.read_bytes()
    tracemalloc.start()
    begin = time.process_time()
    try:
        TARGETS[target].check_bytes(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert time.process_time() - begin < MAX_SECONDS
    assert peak < 4 * 2**20 + 100 * len(data)


def test_the_corpus_reaches_a_whole_run_and_a_whole_notebook() -> None:
    run = WIRE.take_stream((FUZZ / "corpus" / "wire" / "whole-run").read_bytes())
    assert run.is_done
    program = TARGETS["notebook"].read_notebook((FUZZ / "corpus" / "notebook" / "plain").read_bytes())
    assert [cell.exercises for cell in program.cells] == [("first",), ("second",)]


# ---- replies in any order -----------------------------------------------------------------------------------

NUMBERS = st.integers(-1, 4) | st.sampled_from([2**31, 2**63 - 1, -(2**63)])
TEXTS = st.text(max_size=5) | st.sampled_from(["x" * (wire.MAX_TEXT + 1), "\0", "\u202e"])
BLOBS = st.binary(max_size=8) | st.sampled_from([bytes(2**14)])
ARRAYS = st.builds(
    wire.Array,
    st.sampled_from(["<f8", "|b1", "<i8", "|O", "f8", ""]),
    st.lists(st.integers(-1, 3) | st.sampled_from([2**62, 2**63, 2**64 - 1]), max_size=9).map(tuple),
    BLOBS,
)
VALUES = ARRAYS | st.builds(wire.Plain, TEXTS | NUMBERS | st.none()) | st.builds(wire.Other, TEXTS)
REPLIES = st.one_of(
    st.builds(wire.Began, NUMBERS, NUMBERS),
    st.builds(wire.Ended, NUMBERS, NUMBERS, st.sampled_from(get_args(wire.EndingName)), TEXTS, TEXTS),
    st.builds(wire.Ran, NUMBERS, st.lists(NUMBERS, max_size=6).map(tuple)),
    st.builds(wire.Answered, NUMBERS, NUMBERS, VALUES | st.builds(wire.Absent)),
    st.builds(wire.Shown, NUMBERS, TEXTS, BLOBS),
    st.builds(wire.Finished, NUMBERS),
    st.builds(wire.Fault, TEXTS, TEXTS),
)
PASSES = {"first": (0, True), "shown": (2, False), "hidden": (1, True)}


def build_pass(name: str) -> list[wire.Reply]:
    """What an honest guest says in one pass; cell 2 is skipped."""
    number, graded = PASSES[name]
    replies: list[wire.Reply] = []
    for cell in (0, 1, 3):
        replies += [wire.Began(number, cell), wire.Ended(number, cell, "ok")]
    if graded:
        replies += [wire.Answered(number, answer, wire.Plain(1.0)) for answer in range(3)]
    return [*replies, wire.Finished(number)]


HONEST = [reply for name in PASSES for reply in build_pass(name)]


def take_all(replies: list[wire.Reply]) -> "tuple[Execution, int]":
    """What the host keeps of replies up to the first that it refuses, and how many it took."""
    progress, watch = WIRE.open_progress()
    taken = 0
    try:
        for reply in replies:
            progress.take(reply, watch)
            progress.take_requests()
            taken += 1
    except wire.WireError:
        pass
    return progress.build_execution(), taken


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("cell", [-1, -2, 0, 4])
def test_a_claim_about_a_cell_that_does_not_run_is_refused(name: str, cell: int) -> None:
    number, _ = PASSES[name]
    for claim in (wire.Ended(number, cell, "ok"), wire.Shown(cell, "stream/stdout", b"x")):
        before = [reply for each in list(PASSES)[: list(PASSES).index(name)] for reply in build_pass(each)]
        execution, taken = take_all([*before, claim])
        assert taken == len(before)
        assert all(run.cell in (0, 1, 3) for one_pass in execution.passes for run in one_pass.runs)
        assert -1 not in [output.cell for output in execution.outputs]


def check_bounds(execution: Execution) -> None:
    """However long the stream was, no more is kept than one honest run and the caps allow."""
    limits = WIRE.ASSIGNMENT.limits
    assert [each.seed for each in execution.passes] == [42, 7]
    for each in execution.passes:
        cells = [run.cell for run in each.runs]
        assert cells == sorted(set(cells))
        assert set(cells) <= {0, 1, 3}
        assert set(each.answers) <= {"a1", "b1", "a2"}
        assert all(max(len(run.error), len(run.text)) <= wire.MAX_TEXT for run in each.runs)
    assert sum(len(output.data) + 256 for output in execution.outputs) <= 2 * limits.output_bytes + 2**16
    assert all(len(output.mime) <= 100 for output in execution.outputs)


def test_an_honest_run_is_taken_whole() -> None:
    execution, taken = take_all(HONEST)
    assert taken == len(HONEST)
    assert [each.answers for each in execution.passes] == [{"a1": 1.0, "b1": 1.0, "a2": 1.0}] * 2
    check_bounds(execution)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(REPLIES, max_size=40))
def test_any_replies_are_taken_or_refused_and_leave_a_bounded_state(replies: list[wire.Reply]) -> None:
    check_bounds(take_all(replies)[0])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_an_honest_run_with_replies_put_in_repeated_or_moved_leaves_a_bounded_state(data: st.DataObject) -> None:
    replies = list(HONEST)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(replies)))
        if data.draw(st.booleans()):
            replies[at:at] = data.draw(st.lists(REPLIES, min_size=1, max_size=3)) * data.draw(st.sampled_from([1, 50]))
        else:
            replies.insert(at, data.draw(st.sampled_from(replies)))
    check_bounds(take_all(replies)[0])


@pytest.mark.parametrize("place", range(0, len(HONEST), 3))
def test_a_reply_said_twice_is_refused(place: int) -> None:
    replies = [*HONEST[: place + 1], HONEST[place], *HONEST[place + 1 :]]
    assert take_all(replies)[1] == place + 1


def test_a_flood_of_outputs_is_refused_at_the_cap() -> None:
    flood = [*build_pass("first"), wire.Began(2, 0), *[wire.Shown(0, "text/plain", b"")] * 100_000]
    execution, taken = take_all(flood)
    assert taken < 2_000
    check_bounds(execution)
