"""The job: which cell begins, answers and ends which exercise, and which names are kept between two of them."""

import json
import time
import warnings

import pytest

from autograder.course import Assignment, Exercise, Limits
from autograder.guest.wire import Job, PlannedCell
from autograder.intake.notebook import parse_program
from autograder.records import Cell, Program
from autograder.sandbox.plan import build_job

ASSIGNMENT = Assignment(
    title="Two",
    seeds=(42, 7),
    limits=Limits(output_bytes=11, answer_bytes=4_122),
    exercises=(
        Exercise(id="one", title="One", answers={"a": "number", "b": "number"}),
        Exercise(id="two", title="Two", answers={"c": "number"}),
    ),
)
LESSON = ("X", "hs")
ONE, TWO = ("a", "b"), ("c",)


def plan(*cells: "tuple[str, ...] | Cell") -> Job:
    """The job of cells given by their exercises, or as they are."""
    built = [
        cell if isinstance(cell, Cell) else Cell(index=number, source=f"cell {number}", exercises=cell)
        for number, cell in enumerate(cells)
    ]
    return build_job(Program(tuple(built)), ASSIGNMENT, LESSON)


def list_field(job: Job, field: str) -> list[object]:
    return [getattr(cell, field) for cell in job.cells]


def test_an_ordinary_notebook() -> None:
    job = plan((), ("one",), (), ("two",), ())
    assert list_field(job, "number") == [0, 1, 2, 3, 4]
    assert list_field(job, "source") == [f"cell {number}" for number in range(5)]
    assert list_field(job, "prelude") == [True, False, False, False, False]
    assert list_field(job, "bind_before") == [False, True, False, True, False]
    assert list_field(job, "collect") == [(), ONE, (), TWO, ()]
    assert list_field(job, "ends") == [(), ONE, (), TWO, ()]
    assert (job.answers, job.output_bytes, job.answer_bytes) == (ONE + TWO, 11, 4_122)


def test_an_exercise_in_several_cells_begins_at_the_first_and_ends_at_the_last() -> None:
    job = plan(("one",), (), ("one",), ("one",), ("two",))
    assert list_field(job, "bind_before") == [True, False, False, False, True]
    assert list_field(job, "collect") == [ONE, (), ONE, ONE, TWO]
    assert list_field(job, "ends") == [(), (), (), ONE, TWO]


def test_interleaved_exercises_begin_and_end_each_for_itself() -> None:
    job = plan(("one",), ("two",), ("one",), ("two",))
    assert list_field(job, "bind_before") == [True, True, False, False]
    assert list_field(job, "collect") == [ONE, TWO, ONE, TWO]
    assert list_field(job, "ends") == [(), (), ONE, TWO]


def test_a_cell_of_both_exercises_begins_and_ends_both() -> None:
    job = plan((), ("one", "two"))
    assert job.cells[1] == PlannedCell(
        number=1, source="cell 1", prelude=False, bind_before=True, collect=ONE + TWO, ends=ONE + TWO
    )


def test_exercises_in_another_order_are_taken_as_they_stand() -> None:
    job = plan((), ("two",), ("one",))
    assert list_field(job, "prelude") == [True, False, False]
    assert list_field(job, "ends") == [(), TWO, ONE]


def test_a_missing_exercise_leaves_the_other_as_it_is() -> None:
    job = plan((), ("two",), ())
    assert list_field(job, "collect") == [(), TWO, ()]
    assert job.answers == ONE + TWO


def test_without_any_exercise_all_is_prelude() -> None:
    job = plan((), ())
    assert list_field(job, "prelude") == [True, True]
    assert list_field(job, "ends") == [(), ()]


def test_an_empty_program_is_an_empty_job() -> None:
    assert plan().cells == ()
    assert plan().answers == ONE + TWO


def test_lessons_names_that_a_cell_between_assigns_are_kept_and_no_others() -> None:
    def assign(*names: str, exercises: tuple[str, ...] = ()) -> Cell:
        return Cell(index=0, source="", exercises=exercises, assigns=names)

    job = plan(
        assign("X", "hs"), assign("hs", exercises=("one",)), assign("hs", "other"), assign("hs", exercises=("two",))
    )
    assert list_field(job, "keep") == [(), (), ("hs",), ()]


def test_a_copy_of_a_released_cell_is_of_the_prelude_and_however_much_else_there_is_takes_no_time() -> None:
    """Python's parser needs seconds and gigabytes for such a text, and it would run on the host."""
    given = ("X = 1  # the lesson's own\n",)
    huge = Cell(1, "X = 2\n" + "a = 1; b = 2\n" * 300_000, assigns=("X",))
    copies = [Cell(number, source, assigns=("X",)) for number, source in ((2, given[0]), (3, "X = 1"))]
    cells = (Cell(0, "a = 1", ("one",)), huge, *copies)
    began = time.process_time()
    job = build_job(Program(cells), ASSIGNMENT, LESSON, given)
    assert time.process_time() - began < 1
    assert [cell.prelude for cell in job.cells] == [False, False, True, True]


@pytest.mark.parametrize("text", ["1else 2", "'\\\033[31m'", "0xfor x in (1,)"])
def test_what_the_parser_would_warn_of_reaches_nobody(text: str) -> None:
    """The warning quotes the student's text on the terminal of whoever grades."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        source = f"X = hs if X is 1 or {text}"
        cells = (Cell(0, source, assigns=("X",)), Cell(1, source, exercises=("one",)))
        build_job(Program(cells), ASSIGNMENT, LESSON, (f"{source}  #",))
        notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell(source), cell(f"a = {text}")]}
        assert len(parse_program(json.dumps(notebook).encode(), ASSIGNMENT).cells) == 2
    assert warned == []


def cell(source: str) -> dict[str, object]:
    return {"cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": None}


def test_a_number_that_python_would_not_print_is_a_cell_like_any_other() -> None:
    cells = (Cell(0, f"X = 0x{'f' * 4_000}", assigns=("X",)), Cell(1, "a = 1", exercises=("one",)))
    assert [each.number for each in build_job(Program(cells), ASSIGNMENT, LESSON, ("X = 1",)).cells] == [0, 1]
