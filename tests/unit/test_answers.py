"""Answers become what course.toml declares, or a sentence that says what they are instead."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from autograder.course import Exercise
from autograder.marking.answers import Answers, CheckFailed, get_sheet
from autograder.records import Missing, Opaque, Value

KINDS = {
    "W": "(C, hs)",
    "K": "(B, T, hs)",
    "first": "(hs,)",
    "six": "(C, 6)",
    "flag": "bool",
    "count": "whole number",
    "loss": "number",
    "word": "text",
}
INPUTS = SimpleNamespace(B=1, T=5, C=8, hs=4)


def build_answers(inputs: SimpleNamespace = INPUTS, **values: Value) -> Answers:
    exercise = Exercise(id="one", title="One", answers=KINDS)
    return Answers(values, (exercise,), inputs, SimpleNamespace())


def read(name: str, value: Value) -> Any:
    return getattr(build_answers(**{name: value}), name)


def refuse(name: str, value: Value) -> str:
    """What is said of an answer that must be refused."""
    with pytest.raises(CheckFailed) as caught:
        read(name, value)
    assert f"`{name}`" in caught.value.rationale
    return caught.value.rationale


@pytest.mark.parametrize("wanted", [True, False])
def test_a_bool_is_a_bool_or_a_one_element_bool_array(wanted) -> None:
    for value in (wanted, np.array(wanted), np.array([wanted]), np.array([[[wanted]]])):
        assert read("flag", value) is wanted


@pytest.mark.parametrize(
    "value",
    [
        1, 0, 1.0, "True", "", None, np.array([]), np.array([], bool), np.array([True, True]),
        np.array([1]), np.array(1.0), Opaque("Truthy"), 1j,
    ],
    ids=repr,
)  # fmt: skip
def test_nothing_else_is_a_bool(value) -> None:
    assert "True or False" in refuse("flag", value)


@pytest.mark.parametrize("value", [144, 144.0, np.array(144), np.array([144.0]), np.array([[144]], np.uint8)], ids=repr)
def test_a_whole_number_may_be_an_integral_float_or_one_element(value) -> None:
    found = read("count", value)
    assert found == 144
    assert type(found) is int


@pytest.mark.parametrize(
    "value",
    [
        144.5, float("nan"), float("inf"), True, False, "144", None, np.array([]), np.array([144, 144]),
        np.array([True]), np.array([144.5]), np.array([np.nan]), 144 + 0j, np.array([144 + 0j]), Opaque("int"),
    ],
    ids=repr,
)  # fmt: skip
def test_nothing_else_is_a_whole_number(value) -> None:
    assert "whole number" in refuse("count", value)


def test_a_number_may_be_any_real_number_but_no_bool() -> None:
    assert read("loss", 0.25) == 0.25
    assert read("loss", np.array([0.25], np.float32)) == 0.25
    assert read("loss", 3) == 3
    for value in (True, "0.25", 1j, np.array([1.0, 2.0]), None):
        assert "a number" in refuse("loss", value)


def test_a_text_is_a_text() -> None:
    assert read("word", "the lamp") == "the lamp"
    for value in (5, None, np.array([1]), Opaque("bytes")):
        assert "text" in refuse("word", value)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", ">f8", "i4", "u1"])
def test_an_array_of_any_real_kind_is_read_as_float64(dtype) -> None:
    answers = build_answers(W=np.arange(32).reshape(8, 4).astype(dtype))
    assert answers.W.dtype == np.float64
    np.testing.assert_array_equal(answers.W, np.arange(32.0).reshape(8, 4))
    assert get_sheet(answers).notes == []


def test_a_missing_batch_axis_of_one_is_added_with_a_note() -> None:
    values = np.arange(20.0).reshape(5, 4)
    answers = build_answers(K=values)
    np.testing.assert_array_equal(answers.K, values[np.newaxis])
    assert len(get_sheet(answers).notes) == 1
    assert "`K`" in get_sheet(answers).notes[0]
    assert "batch" in get_sheet(answers).notes[0]


def test_a_batch_of_more_than_one_is_not_made_up() -> None:
    answers = build_answers(SimpleNamespace(B=2, T=5, C=8, hs=4), K=np.zeros((5, 4)))
    with pytest.raises(CheckFailed):
        _ = answers.K


def test_a_turned_weight_is_turned_back_with_a_note() -> None:
    values = np.arange(32.0).reshape(4, 8)
    answers = build_answers(W=values, six=np.ones((6, 8)))
    np.testing.assert_array_equal(answers.W, values.T)
    assert answers.six.shape == (8, 6)
    assert len(get_sheet(answers).notes) == 2
    assert "(hs, C)" in get_sheet(answers).notes[0]


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("K", (4, 5)), ("K", (1, 4, 5)), ("K", (5, 1, 4)), ("K", (1, 1, 5, 4)), ("K", (2, 5, 4)), ("K", (20,)),
        ("K", (1, 5, 1)),
        ("K", ()), ("K", (0,)), ("K", (1, 0, 4)),
        ("W", (8, 3)), ("W", (1, 8, 4)), ("W", (1, 4, 8)), ("W", (32,)), ("W", (8, 8)), ("W", (8, 4, 1)),
        ("first", (1, 4)), ("first", (4, 1)), ("first", (5,)), ("first", ()),
    ],
)  # fmt: skip
def test_nothing_else_is_reshaped(name, shape) -> None:
    assert KINDS[name] in refuse(name, np.zeros(shape))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (np.full((8, 4), 1j), "complex"),
        (np.zeros((8, 4), bool), "True and False"),
        (5.0, "a number"),
        (5, "a whole number"),
        (True, "a bool"),
        ("Wq", "a text"),
        (None, "None"),
        (Opaque("DataFrame"), "an object of another kind"),
    ],
    ids=repr,
)
def test_what_is_no_array_of_real_numbers_is_named_for_what_it_is(value, said) -> None:
    assert said in refuse("W", value)


@pytest.mark.parametrize("name", KINDS)
def test_a_missing_answer_of_any_kind_was_not_assigned(name) -> None:
    assert "not assigned" in refuse(name, Missing())
    with pytest.raises(CheckFailed, match="not assigned"):
        getattr(build_answers(), name)


def test_an_undeclared_answer_is_a_fault_of_the_test_and_not_of_the_student() -> None:
    with pytest.raises(AttributeError, match="Wk_shard"):
        _ = build_answers().Wk_shard


@pytest.mark.parametrize("name", ["inputs", "expected", "notes", "read", "raw", "kind_of", "_hidden"])
def test_an_answer_whose_name_the_course_accepts_can_be_read(name) -> None:
    try:
        exercise = Exercise(id="one", title="One", answers={name: "whole number"})
    except ValidationError:
        return
    assert getattr(Answers({name: 5}, (exercise,), INPUTS, SimpleNamespace()), name) == 5


def test_a_refusal_is_the_same_each_time_it_is_read() -> None:
    answers = build_answers(flag="True")
    said = []
    for _ in range(2):
        with pytest.raises(CheckFailed) as caught:
            _ = answers.flag
        said.append(caught.value.rationale)
    assert said[0] == said[1]


def test_reading_does_not_change_what_the_student_gave() -> None:
    values = np.arange(32.0).reshape(4, 8)
    answers = build_answers(W=values)
    answers.W[:] = 0
    assert values.sum() > 0


@pytest.mark.parametrize("value", ["SECRET", Opaque("SECRET"), np.zeros((7, 77)), 777, 7.7], ids=repr)
def test_a_refusal_never_quotes_what_an_answer_holds(value) -> None:
    said = refuse("flag", value) + refuse("W", value)
    assert "SECRET" not in said
    assert "7" not in said
