"""The hidden tests of `qkv` as plain assertions, for graders that check inside the student's own process.

The text of this file goes into their notebooks and test files (`build_text`), together with the course's reference.
Each `check_` function is worth a point and asks what the hidden test asks, on the published input set alone and
without a word about what is wrong.
"""

from itertools import combinations

import numpy as np
from reference import (
    PUBLISHED_SEED,
    attention_scores,
    equal_values,
    inputs,
    is_symmetric,
    project,
    shared_key,
    shared_value,
)

GIVEN = inputs(PUBLISHED_SEED)
EXPECTED = shared_key(GIVEN) | shared_value(GIVEN)
T, WIDTH, HEAD = GIVEN["T"], GIVEN["C"], GIVEN["hs"]
SHAPES = {
    "Wk_shared": (WIDTH, HEAD),
    "Wv_shared": (WIDTH, HEAD),
    "K_shared": (1, T, HEAD),
    "V_shared": (1, T, HEAD),
    "scores_shared": (1, T, T),
    "V_first": (HEAD,),
    **dict.fromkeys(("Wq6", "Wk6", "Wv6"), (WIDTH, 6)),
    **dict.fromkeys(("Q6", "K6", "V6"), (1, T, 6)),
    "scores6": (1, T, T),
}


def read_array(answers, name):
    """An answer in its declared shape: a missing batch axis is added, a weight given as (hs, C) is turned."""
    value, shape = np.asarray(answers[name]), SHAPES[name]
    assert value.dtype.kind in "iuf"
    value = value.astype(float)
    if value.shape == shape[1:] and shape[0] == 1:
        value = value[np.newaxis]
    if len(shape) == 2 and value.shape == shape[::-1]:
        value = value.T
    assert value.shape == shape
    return value


def read_bool(answers, name):
    value = np.asarray(answers[name])
    assert value.dtype == bool
    assert value.size == 1
    return bool(value.reshape(-1)[0])


def is_usable(value):
    if value.size < 2 or not np.isfinite(value).all():
        return False
    spread = np.ptp(value, axis=-1).max() if value.ndim > 1 and value.shape[-1] > 1 else np.ptp(value)
    return spread > 1e-5 * np.abs(value).max()


def is_multiple(value, base):
    if value.shape != base.shape or not np.isfinite(value).all():
        return False
    factor = np.vdot(base, value) / np.vdot(base, base)
    return factor != 0 and equal_values(value, factor * base)


def is_copy(value, right):
    lesson = [each for each in GIVEN.values() if isinstance(each, np.ndarray)]
    turned = [each.swapaxes(-1, -2) for each in lesson if each.ndim > 1]
    return not is_multiple(value, right) and any(is_multiple(value, each) for each in lesson + turned)


def judge_chain(answers, names):
    """What a later step is judged on (the student's own where it is wrong but usable), whether any is own or right."""
    values, carried, any_right = [], False, False
    for name in names:
        right = EXPECTED[name]
        values.append(right)
        try:
            value = read_array(answers, name)
        except Exception:
            continue
        if equal_values(value, right):
            any_right = True
        elif is_usable(value) and (any_right or not is_copy(value, right)):
            values[-1], carried = value, True
    return values, carried, any_right


def require_step(answers, name, after, own):
    """The right array, or what follows from the student's own earlier steps."""
    value, right = read_array(answers, name), EXPECTED[name]
    if equal_values(value, right):
        return
    values, carried, any_right = judge_chain(answers, after)
    assert carried
    mine = own(*values)
    assert is_usable(mine)
    assert equal_values(value, mine)
    assert any_right or not is_copy(value, right)


def require_verdict(answers, name, after, own):
    """The right bool, or the one that follows from the student's own earlier steps."""
    values, carried, _ = judge_chain(answers, after)
    assert read_bool(answers, name) == (own(*values) if carried else EXPECTED[name])


def check_key_matrix(answers):
    assert equal_values(read_array(answers, "Wk_shared"), EXPECTED["Wk_shared"])


def check_keys(answers):
    require_step(answers, "K_shared", ["Wk_shared"], lambda Wk: project(GIVEN["X"], Wk))


def check_scores(answers):
    require_step(
        answers, "scores_shared", ["Wk_shared", "K_shared"], lambda Wk, keys: attention_scores(GIVEN["Q"], keys)
    )


def check_symmetry(answers):
    assert read_bool(answers, "is_symmetric") or not is_symmetric(read_array(answers, "scores_shared"))
    chain = ["Wk_shared", "K_shared", "scores_shared"]
    require_verdict(answers, "is_symmetric", chain, lambda Wk, keys, scores: is_symmetric(scores))


def check_new_matrices(answers):
    matrices = [read_array(answers, name) for name in ("Wq6", "Wk6", "Wv6")]
    assert 0.064 <= np.sqrt(np.mean(np.square(matrices))) <= 0.141
    for matrix in matrices:
        assert matrix.min() < 0 < matrix.max()
        assert 0.04 <= np.sqrt(np.mean(np.square(matrix))) <= 0.175
        assert np.linalg.matrix_rank(matrix) == 6
    assert not any(equal_values(first, second) for first, second in combinations(matrices, 2))


def check_projections(answers):
    for name, matrix in (("Q6", "Wq6"), ("K6", "Wk6"), ("V6", "Wv6")):
        weights = read_array(answers, matrix)
        assert is_usable(weights)
        assert equal_values(read_array(answers, name), project(GIVEN["X"], weights))


def check_parameters(answers):
    value = np.asarray(answers["n_params"])
    assert value.dtype.kind in "iuf"
    assert value.size == 1
    assert value.reshape(-1)[0] == 3 * WIDTH * 6


def check_new_scores(answers):
    queries, keys = read_array(answers, "Q6"), read_array(answers, "K6")
    for projection in (queries, keys):
        assert is_usable(projection)
        gaps = np.abs(projection[..., :, np.newaxis] - GIVEN["X"][..., np.newaxis, :]).max(axis=(0, 1))
        assert (gaps.min(axis=-1) > 1e-5 * np.abs(GIVEN["X"]).max()).any()
    assert equal_values(read_array(answers, "scores6"), attention_scores(queries, keys))


def check_same_shape(answers):
    assert read_bool(answers, "same_score_shape")


def check_first_value(answers):
    assert equal_values(read_array(answers, "V_first"), EXPECTED["V_first"])


def check_value_matrix(answers):
    assert equal_values(read_array(answers, "Wv_shared"), EXPECTED["Wv_shared"])


def check_values(answers):
    require_step(answers, "V_shared", ["Wv_shared"], lambda Wv: project(GIVEN["X"], Wv))


def check_comparisons(answers):
    for name, other in (("equals_K", GIVEN["K"]), ("equals_Q", GIVEN["Q"])):
        assert read_bool(answers, name) or not equal_values(read_array(answers, "V_shared"), other)
        require_verdict(
            answers, name, ["Wv_shared", "V_shared"], lambda Wv, values, other=other: equal_values(values, other)
        )
