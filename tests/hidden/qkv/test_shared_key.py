"""Exercise 1: the keys are made with the matrix of the queries."""

import pytest

from autograder.marking.checks import check_close, check_step, require

pytestmark = pytest.mark.exercise("shared-key")


@pytest.mark.points(1)
def test_key_matrix_is_the_query_matrix(answers, expected):
    """`Wk_shared` is the matrix of the queries."""
    check_close(answers, "Wk_shared", expected.Wk_shared)


@pytest.mark.points(1)
def test_keys_are_recomputed(answers, expected, inputs, reference):
    """`K_shared` holds the keys that the shared matrix makes from `X`."""
    check_step(
        answers,
        expected,
        "K_shared",
        after=("Wk_shared",),
        own=lambda Wk_shared: reference.project(inputs.X, Wk_shared),
    )


@pytest.mark.points(1)
def test_scores_are_recomputed(answers, expected, inputs, reference):
    """`scores_shared` holds the scaled scores of `Q` and the new keys."""
    # Keys on the left cannot be told apart here: the right scores are symmetric. Exercise 2 sees it.
    check_step(
        answers,
        expected,
        "scores_shared",
        after=("Wk_shared", "K_shared"),
        own=lambda Wk_shared, K_shared: reference.attention_scores(inputs.Q, K_shared),
    )


@pytest.mark.points(1)
def test_symmetry_is_reported(answers, expected, reference):
    """`is_symmetric` says whether your scores equal their transpose."""
    require(
        answers.is_symmetric or not reference.is_symmetric(answers.scores_shared),
        "`is_symmetric` does not fit your own `scores_shared`.",
        hint="Compare the scores themselves, with the last two axes swapped, and allow for rounding: the same sum "
        "taken in another order can differ in its last digits.",
    )
    check_step(
        answers,
        expected,
        "is_symmetric",
        after=("Wk_shared", "K_shared", "scores_shared"),
        own=lambda Wk_shared, K_shared, scores_shared: reference.is_symmetric(scores_shared),
    )
