"""Exercise 2: the head with head size 6.

The matrices are drawn at random, so these tests ask how the answers relate, never which numbers were drawn.
"""

from itertools import combinations

import numpy as np
import pytest

from autograder.marking.checks import check_close, check_equal, is_usable, require

pytestmark = pytest.mark.exercise("head-size")

HEAD_SIZE = 6
MATRIX_OF = {"Q6": "Wq6", "K6": "Wk6", "V6": "Wv6"}

# The root mean square of 144 right draws leaves these bounds about once in 10**10.
SMALLEST_SCALE, LARGEST_SCALE = 0.064, 0.141
# A single matrix has 48 draws and gets more room: a right one leaves these bounds about once in 10**11.
SMALLEST_ALONE, LARGEST_ALONE = 0.04, 0.175

TOLERANCE = 1e-5
NOT_USABLE = "it holds entries that are not finite numbers, or all its columns are the same"


@pytest.mark.points(1)
def test_matrices_have_six_columns(answers, reference):
    """`Wq6`, `Wk6` and `Wv6` are three different random matrices with six columns, scaled by 0.1."""
    matrices = {name: getattr(answers, name) for name in MATRIX_OF.values()}
    for name, matrix in matrices.items():
        require(
            np.isfinite(matrix).all(),
            f"`{name}` holds entries that are not numbers (NaN) or not finite.",
            hint="A root or a power of a negative number, or a division by zero, gives NaN.",
        )
        require(
            matrix.min() < 0 < matrix.max(),
            f"The entries of `{name}` do not lie on both sides of zero.",
            hint="Normal random numbers do. Numbers from 0 to 1, zeros or constants do not.",
        )
    scale = np.sqrt(np.mean(np.square(list(matrices.values()))))
    hint = "Draw normal random numbers and multiply each matrix by 0.1, once."
    require(scale <= LARGEST_SCALE, "The entries of the three matrices are too large.", hint=hint)
    require(scale >= SMALLEST_SCALE, "The entries of the three matrices are too small.", hint=hint)
    for name, matrix in matrices.items():
        alone = np.sqrt(np.mean(np.square(matrix)))
        require(alone <= LARGEST_ALONE, f"The entries of `{name}` are too large.", hint=hint)
        require(alone >= SMALLEST_ALONE, f"The entries of `{name}` are too small.", hint=hint)
    for first, second in combinations(matrices, 2):
        require(
            not reference.equal_values(matrices[first], matrices[second]),
            f"`{first}` and `{second}` are the same matrix.",
            hint="Draw each of them anew. A seed set again before each draw brings the same numbers again.",
        )
    for name, matrix in matrices.items():
        require(
            np.linalg.matrix_rank(matrix) == HEAD_SIZE,
            f"The columns of `{name}` are not six draws of their own.",
            hint="Some are zero or made of the others. Draw the whole matrix anew, do not stretch a smaller one.",
        )


@pytest.mark.points(1)
def test_projections_use_the_new_matrices(answers, inputs, reference):
    """`Q6`, `K6` and `V6` are the projections of `X` by your three new matrices."""
    for name, matrix in MATRIX_OF.items():
        weights = getattr(answers, matrix)
        require(is_usable(weights), f"`{name}` cannot be judged on `{matrix}`: {NOT_USABLE}.")
        check_close(answers, name, reference.project(inputs.X, weights))


@pytest.mark.points(1)
def test_parameters_are_counted(answers, inputs):
    """`n_params` counts the learnable numbers of the three matrices together."""
    one_matrix = inputs.C * HEAD_SIZE
    wrong = "`n_params` is not the count of this head's learnable numbers."
    slips = {
        one_matrix: "It counts a single matrix.",
        3 * inputs.C * inputs.hs: "It comes out like this for two of the three matrices, or for the old head size.",
        3 * (one_matrix + HEAD_SIZE): "It counts biases too; these projections have none.",
        4 * one_matrix: "It comes out like this with a fourth matrix, or with another length for the head size.",
    }
    for slip, hint in slips.items():
        require(answers.n_params != slip, wrong, hint=hint)
    hint = "How many matrices does this head have, and how many rows and columns has each?"
    require(answers.n_params == 3 * one_matrix, wrong, hint=hint)


@pytest.mark.points(1)
def test_scores_use_the_new_head_size(answers, inputs, reference):
    """`scores6` holds the scores of your `Q6` and `K6`, scaled for the new head size."""
    for name in ("Q6", "K6"):
        projection = getattr(answers, name)
        require(is_usable(projection), f"`scores6` cannot be judged on `{name}`: {NOT_USABLE}.")
        require(
            not is_cut_from(inputs.X, projection),
            f"`{name}` is a piece of `X` itself, so `scores6` cannot be judged.",
            hint="Project `X` by the new matrix first.",
        )
    check_close(answers, "scores6", reference.attention_scores(answers.Q6, answers.K6))


@pytest.mark.points(1)
def test_score_shape_is_compared(answers):
    """`same_score_shape` says whether `scores6` has the same shape as `scores`."""
    check_equal(answers, "same_score_shape", True)


def is_cut_from(X, projection):
    """Whether every column of a projection is a column of X: both (B, T, any)."""
    gaps = np.abs(projection[..., :, np.newaxis] - X[..., np.newaxis, :]).max(axis=(0, 1))
    return bool((gaps.min(axis=-1) <= TOLERANCE * np.abs(X).max()).all())
