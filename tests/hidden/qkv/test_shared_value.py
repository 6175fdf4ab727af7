"""Exercise 3: the values are made with the matrix of the keys."""

import pytest

from autograder.marking.checks import check_close, check_step, require

pytestmark = pytest.mark.exercise("shared-value")


@pytest.mark.points(1)
def test_first_value_is_read(answers, expected, reference):
    """`V_first` is the lesson's value at the first position."""
    require(
        not reference.equal_values(answers.V_first, expected.V_shared[0, 0]),
        "`V_first` is not the lesson's value, but the one after sharing.",
        hint="Read it from the lesson's `V`, before anything is computed anew.",
    )
    check_close(answers, "V_first", expected.V_first)


@pytest.mark.points(1)
def test_value_matrix_is_the_key_matrix(answers, expected):
    """`Wv_shared` is the matrix of the keys."""
    check_close(answers, "Wv_shared", expected.Wv_shared)


@pytest.mark.points(1)
def test_values_are_recomputed(answers, expected, inputs, reference):
    """`V_shared` holds the values that the shared matrix makes from `X`."""
    check_step(
        answers,
        expected,
        "V_shared",
        after=("Wv_shared",),
        own=lambda Wv_shared: reference.project(inputs.X, Wv_shared),
    )


@pytest.mark.points(1)
def test_comparisons_are_reported(answers, expected, inputs, reference):
    """`equals_K` and `equals_Q` say whether your new values equal the keys and the queries."""
    for name, other in (("equals_K", inputs.K), ("equals_Q", inputs.Q)):
        require(
            getattr(answers, name) or not reference.equal_values(answers.V_shared, other),
            f"`{name}` does not fit your own `V_shared`.",
            hint="Compare all numbers of both arrays, and allow for rounding.",
        )
        check_step(
            answers,
            expected,
            name,
            after=("Wv_shared", "V_shared"),
            own=lambda Wv_shared, V_shared, other=other: reference.equal_values(V_shared, other),
        )
