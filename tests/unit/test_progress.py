"""What the host believes of the place that a guest says it is at."""

import contextlib
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.guest import wire
from autograder.records import Ending

from ..fuzz.fuzz_wire import PROGRAM, open_progress


def test_each_further_cell_of_the_pass_that_runs_counts_once() -> None:
    progress, _ = open_progress()
    number = progress.steps[0].number
    assert progress.take_place(number, 0)
    assert not progress.take_place(number, 0)
    assert progress.take_place(number, 3)
    assert not progress.take_place(number, 1), "there is no way back"
    assert not progress.take_place(number, 2), "a cell that is left out"
    assert not progress.take_place(number, len(PROGRAM.cells))
    assert not progress.take_place(number + 1, 3)


def test_a_place_before_the_replies_about_it_refuses_none_of_them() -> None:
    progress, watch = open_progress()
    number = progress.steps[0].number
    assert progress.take_place(number, 3)
    for cell in (0, 1, 3):
        progress.take(wire.Began(number, cell), watch)
        progress.take(wire.Ended(number, cell, "ok", "", ""), watch)


def test_cells_that_ran_are_believed_in_their_order_once_and_after_the_first_was_told_aloud() -> None:
    progress, watch = open_progress()
    number = progress.steps[0].number
    with pytest.raises(wire.WireError, match="out of place"):
        progress.take(wire.Ran(number, (0, 1)), watch)
    progress.take(wire.Began(number, 0), watch)
    with pytest.raises(wire.WireError, match="out of place"):
        progress.take(wire.Ran(number, ()), watch)
    with pytest.raises(wire.WireError, match="out of order"):
        progress.take(wire.Ran(number, (1,)), watch)
    progress.take(wire.Ended(number, 0, "ok"), watch)
    progress.take(wire.Ran(number, (1, 3)), watch)
    for cells in ((3,), (1,), (len(PROGRAM.cells),), (-1,), (2**63,)):
        with pytest.raises(wire.WireError, match="out of order"):
            progress.take(wire.Ran(number, cells), watch)
    progress.take(wire.Finished(number), watch)
    runs = progress.build_execution().passes[0].runs
    assert [(run.cell, run.ending) for run in runs if run.cell != 2] == [(n, Ending.OK) for n in (0, 1, 3)]


def test_in_the_notebook_as_submitted_each_cell_is_told_of_by_itself() -> None:
    progress, watch = open_progress()
    number = progress.steps[0].number
    for cell in (0, 1, 3):
        progress.take(wire.Began(number, cell), watch)
        progress.take(wire.Ended(number, cell, "ok"), watch)
    progress.take(wire.Finished(number), watch)
    progress.take_requests()
    assert not progress.steps[1].graded
    with pytest.raises(wire.WireError, match="out of place"):
        progress.take(wire.Ran(progress.steps[1].number, (0,)), watch)


def test_the_cell_at_the_last_place_is_to_blame() -> None:
    progress, watch = open_progress()
    number = progress.steps[0].number
    progress.take(wire.Began(number, 0), watch)
    progress.take_place(number, 1)
    progress.finish((Ending.TIMEOUT, "too long"), 0)
    (ended,) = [run for run in progress.build_execution().passes[0].runs if run.text == "too long"]
    assert ended.cell == 1


@given(st.lists(st.tuples(st.integers(0, 2**32), st.integers(-1, 2**32))))
def test_whatever_stands_there_a_place_is_a_cell_and_time_is_given_to_each_once(places: list[tuple[int, int]]) -> None:
    progress, _ = open_progress()
    assert sum(progress.take_place(*place) for place in places) < len(PROGRAM.cells)


CELLS = st.integers(-1, len(PROGRAM.cells))
REPLIES = st.one_of(
    st.builds(wire.Began, st.just(0), CELLS),
    st.builds(wire.Ended, st.just(0), CELLS, st.just("ok")),
    st.builds(wire.Ran, st.just(0), st.lists(CELLS, max_size=3).map(tuple)),
    st.just(wire.Ran(0, ())),
    st.builds(wire.Answered, st.just(0), st.integers(-1, 3), st.just(wire.Absent())),
)


@given(st.lists(REPLIES, min_size=30, max_size=60))
def test_whatever_is_told_time_is_given_twice_for_a_cell_at_most(replies: list[wire.Reply]) -> None:
    progress, watch = open_progress()
    with patch.object(watch, "progress") as given:
        for reply in (wire.Began(0, 0), *replies):
            with contextlib.suppress(wire.WireError):
                progress.take(reply, watch)
    assert given.call_count <= 2 * len(PROGRAM.cells)
