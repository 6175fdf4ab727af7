"""Reference of the assignment `qkv`: the input sets, and the right answers on each of them.

Shapes: B sequences of T characters, model width C, head size hs. Every function is pure: nothing is
changed in place, and NumPy's global generator is neither read nor set.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

VOCABULARY = " .abcdefghiklmnoprstuvwy"
C = 8
HS = 4
NEW_HS = 6
WEIGHT_SCALE = 0.1
TOLERANCE = 1e-5

PUBLISHED_SEED = 42
PUBLISHED_TEXT = "the lamp"

# No length equals a head size (4, 6) or the width (8): a mix-up of two axes must show in the shapes.
HIDDEN_LENGTHS = (5, 7, 9, 10, 11, 12, 13, 14)
HIDDEN_CORPUS = (
    "a baker opens the window before sunrise. flour covers every table and the oven is hot. "
    "two children bring butter and a basket of plums. my sister likes warm bread with honey. "
    "later the market fills with people and a dog sleeps under the cart. "
    "nobody hurries on a summer evening. a cold rain follows and the street is empty again."
)


def inputs(seed: int) -> dict[str, object]:
    """The lesson's variables on one input set.

    Seed 42 gives the published set. Any other seed (0 to 2**32 - 1) gives another text of another length
    T, another embedding and other weights; B = 1, C = 8 and hs = 4 stay.

    Shapes: X (B, T, C); embed_table (24, C); Wq, Wk, Wv (C, hs); Q, K, V (B, T, hs); scores (B, T, T).
    """
    # The legacy generator and the order of the draws are the lesson's: they make its printed numbers.
    generator = np.random.RandomState(seed)
    embed_table = generator.randn(len(VOCABULARY), C)
    Wq, Wk, Wv = (generator.randn(C, HS) * WEIGHT_SCALE for _ in range(3))

    text = PUBLISHED_TEXT if seed == PUBLISHED_SEED else choose_text(seed)
    ids = [VOCABULARY.index(character) for character in text]
    X = embed_table[ids][np.newaxis]
    Q, K, V = project(X, Wq), project(X, Wk), project(X, Wv)
    return {
        "X": X,
        "B": X.shape[0],
        "T": X.shape[1],
        "C": C,
        "hs": HS,
        "text": text,
        "ids": ids,
        "embed_table": embed_table,
        "Wq": Wq,
        "Wk": Wk,
        "Wv": Wv,
        "Q": Q,
        "K": K,
        "V": V,
        "scores": attention_scores(Q, K),
    }


def choose_text(seed: int) -> str:
    """A slice of the hidden corpus in which some characters repeat and at least three differ."""
    generator = np.random.default_rng(seed)
    while True:
        start = int(generator.integers(len(HIDDEN_CORPUS) - max(HIDDEN_LENGTHS) + 1))
        length = int(generator.choice(HIDDEN_LENGTHS))
        text = HIDDEN_CORPUS[start : start + length]
        if 3 <= len(set(text)) < length:
            return text


def project(X: Array, W: Array) -> Array:
    """Project every token: X (B, T, C) times W (C, n) gives (B, T, n)."""
    return X @ W


def attention_scores(Q: Array, K: Array) -> Array:
    """Scaled scores of Q and K, both (B, T, n), as (B, T, T): row i belongs to query i, column j to key j."""
    scores: Array = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])
    return scores


def is_symmetric(scores: Array) -> bool:
    """Whether scores (B, T, T) equal their own transpose in every sequence, up to rounding."""
    return equal_values(scores, scores.swapaxes(-1, -2))


def equal_values(left: Array, right: Array) -> bool:
    """Whether two arrays have one shape and the same values, up to rounding; NaN equals nothing.

    Rounding is measured against the largest entry: a float32 answer may be far off relative to an entry near zero.
    """
    return left.shape == right.shape and bool(np.abs(left - right).max() <= TOLERANCE * np.abs(right).max())


def shared_key(inputs: Mapping[str, Any]) -> dict[str, object]:
    """Exercise 1: the keys are made with the queries' matrix.

    Wk_shared (C, hs), K_shared (B, T, hs), scores_shared (B, T, T), is_symmetric bool.
    """
    Wk_shared = inputs["Wq"].copy()
    K_shared = project(inputs["X"], Wk_shared)
    scores_shared = attention_scores(inputs["Q"], K_shared)
    return {
        "Wk_shared": Wk_shared,
        "K_shared": K_shared,
        "scores_shared": scores_shared,
        "is_symmetric": is_symmetric(scores_shared),
    }


def head_size(inputs: Mapping[str, Any]) -> dict[str, object]:
    """Exercise 2: the head with head size 6, on matrices of its own that only the input set decides.

    Wq6, Wk6, Wv6 (C, 6), Q6, K6, V6 (B, T, 6), n_params int, scores6 (B, T, T), same_score_shape bool.
    """
    generator = np.random.default_rng(inputs["ids"])
    Wq6, Wk6, Wv6 = generator.standard_normal((3, inputs["C"], NEW_HS)) * WEIGHT_SCALE
    Q6, K6, V6 = (project(inputs["X"], W) for W in (Wq6, Wk6, Wv6))
    scores6 = attention_scores(Q6, K6)
    return {
        "Wq6": Wq6,
        "Wk6": Wk6,
        "Wv6": Wv6,
        "Q6": Q6,
        "K6": K6,
        "V6": V6,
        "n_params": sum(W.size for W in (Wq6, Wk6, Wv6)),
        "scores6": scores6,
        "same_score_shape": scores6.shape == inputs["scores"].shape,
    }


def shared_value(inputs: Mapping[str, Any]) -> dict[str, object]:
    """Exercise 3: the values are made with the keys' matrix.

    V_first (hs,), Wv_shared (C, hs), V_shared (B, T, hs), equals_K and equals_Q bool.
    """
    Wv_shared = inputs["Wk"].copy()
    V_shared = project(inputs["X"], Wv_shared)
    return {
        "V_first": inputs["V"][0, 0].copy(),
        "Wv_shared": Wv_shared,
        "V_shared": V_shared,
        "equals_K": equal_values(V_shared, inputs["K"]),
        "equals_Q": equal_values(V_shared, inputs["Q"]),
    }
