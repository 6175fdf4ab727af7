"""Comparisons: shape first, never by broadcasting, NaN never equal, tolerance against the largest entry."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from autograder.marking.compare import TOLERANCE, find_copy, is_close, is_usable
from autograder.marking.known import equal_values

SHAPES = arrays.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)
FINITE = st.floats(-1e6, 1e6, allow_subnormal=False)
ARRAYS = arrays.arrays(np.float64, SHAPES, elements=FINITE)


@given(ARRAYS)
def test_an_array_is_close_to_itself(array) -> None:
    assert is_close(array.copy(), array)


@given(ARRAYS, st.data())
def test_another_shape_is_never_close_even_where_it_would_broadcast(array, data) -> None:
    others = [
        array[np.newaxis],
        array[..., np.newaxis],
        array.reshape(-1, 1),
        array[:1],
        array[0],
        np.array(array.flat[0]),
    ]
    other = data.draw(st.sampled_from([each for each in others if each.shape != array.shape]))
    assert not is_close(other, array)
    assert not is_close(array, other)


@given(ARRAYS, st.data(), st.sampled_from([np.nan, np.inf, -np.inf]))
def test_one_entry_that_is_not_finite_is_never_close(array, data, entry) -> None:
    place = data.draw(st.integers(0, array.size - 1))
    wrong = array.copy()
    wrong.flat[place] = entry
    assert not is_close(wrong, array)
    assert not is_close(array, wrong)
    assert not is_close(wrong, wrong)


@given(ARRAYS, st.data(), st.sampled_from([2.0**-40, 2.0**-3, -1.0, 2.0**30]))
def test_the_verdict_does_not_depend_on_the_scale(right, data, factor) -> None:
    left = right + data.draw(arrays.arrays(np.float64, right.shape, elements=st.floats(-10, 10, allow_subnormal=False)))
    assert is_close(left, right) == is_close(left * factor, right * factor)


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1.0, 1e3, 1e200])
@pytest.mark.parametrize(("part", "close"), [(0.9, True), (1.1, False)])
def test_the_largest_difference_counts_against_the_largest_expected_entry(scale, part, close) -> None:
    expected = np.array([4.0, -10.0, 0.0]) * scale
    for place in range(3):
        answer = expected.copy()
        answer[place] += part * TOLERANCE * 10 * scale
        assert is_close(answer, expected) is close


def test_zeros_are_close_to_zeros_only() -> None:
    assert is_close(np.zeros(3), np.zeros(3))
    assert not is_close(np.full(3, 1e-300), np.zeros(3))


def test_float32_of_the_same_steps_is_close() -> None:
    generator = np.random.default_rng(0)
    left, right = generator.normal(size=(50, 8)), generator.normal(size=(8, 50))
    assert is_close((left.astype(np.float32) @ right.astype(np.float32)).astype(np.float64), left @ right)


def test_empty_arrays_are_close_when_their_shapes_are_equal() -> None:
    assert is_close(np.zeros((0, 3)), np.zeros((0, 3)))
    assert not is_close(np.zeros((0, 3)), np.zeros((3, 0)))
    assert not is_close(np.zeros(0), np.zeros(1))


def test_an_own_tolerance_replaces_the_usual_one() -> None:
    assert is_close(np.array([1.05]), np.array([1.0]), 0.1)
    assert not is_close(np.array([1.05]), np.array([1.0]), 0.01)


@pytest.mark.parametrize(
    ("array", "usable"),
    [
        (np.array([1.0, 2.0]), True),
        (np.array([[0.0, 0.0], [0.0, 1e-9]]), True),
        (np.array([[0.0, 0.0], [0.0, 1e-300]]), False),
        (np.array([[1.0, 1.0], [1.0, 1.0 + 1e-12]]), False),
        (np.array([[1.0, 1.0], [2.0, 2.0]]), False),
        (np.array([1.0, 1.0]), False),
        (np.zeros((3, 4)), False),
        (np.array([1.0]), False),
        (np.array([]), False),
        (np.array([1.0, np.nan]), False),
        (np.array([1.0, np.inf]), False),
    ],
)
def test_usable_is_finite_and_not_constant(array, usable) -> None:
    assert is_usable(array) is usable


def test_a_copy_is_found_by_its_values_and_never_by_broadcasting() -> None:
    lesson = {"T": 2, "text": "ab", "K": np.ones((1, 2, 2)), "V": np.array([[1.0, 2.0]])}
    right = np.array([[5.0, -1.0]])
    assert find_copy(np.array([[1.0, 2.0 + 1e-9]]), lesson, right) == "V"
    assert find_copy(np.ones((1, 2, 2)), lesson, right) == "K"
    assert find_copy(np.ones((2, 2)), lesson, right) is None
    assert find_copy(np.array([[1.0, 2.1]]), lesson, right) is None


def test_a_copy_times_a_number_or_turned_is_a_copy_and_a_multiple_of_the_right_answer_is_none() -> None:
    lesson = {"K": np.array([[1.0, 2.0], [3.0, 5.0]])}
    right = np.array([[2.0, 0.0], [0.0, 1.0]])
    assert find_copy(-1.001 * lesson["K"], lesson, right) == "K"
    assert find_copy(lesson["K"].T, lesson, right) == "K"
    assert find_copy(0.5 * right, {"Wq": right}, right) is None
    assert find_copy(np.zeros((2, 2)), lesson, right) is None


@pytest.mark.filterwarnings("error")
def test_a_nan_that_signals_is_compared_without_a_warning() -> None:
    signalling = np.frombuffer(b"\x01\x00\xa0\x7f" * 4, "<f4")
    assert equal_values(signalling, signalling.copy())
    assert not equal_values(signalling, np.zeros(4, np.float32))
