"""The reference of `qkv`: the lesson's printed numbers, and input sets for any seed."""

import copy
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from autograder.course import load_course

ROOT = Path(__file__).parents[2]
LESSON_NAMES = ["X", "B", "T", "C", "hs", "text", "ids", "embed_table", "Wq", "Wk", "Wv", "Q", "K", "V", "scores"]
FRESH_SEEDS = [int(seed) for seed in np.random.default_rng(20270115).integers(2**32, size=50)]
COURSE_SEEDS = load_course(ROOT).assignment("qkv").seeds


def load_reference() -> ModuleType:
    path = ROOT / "solutions" / "qkv" / "reference.py"
    spec = importlib.util.spec_from_file_location("qkv_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference = load_reference()
EXERCISES = (reference.shared_key, reference.head_size, reference.shared_value)


def answer_all(inputs: dict[str, Any]) -> dict[str, Any]:
    return {name: value for answer in EXERCISES for name, value in answer(inputs).items()}


def assert_same(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert left.keys() == right.keys()
    for name, value in left.items():
        assert np.array_equal(value, right[name]), name


def test_published_set_prints_the_lessons_numbers():
    inputs = reference.inputs(42)
    assert inputs["text"] == "the lamp"
    assert inputs["ids"] == [19, 9, 6, 0, 12, 2, 13, 16]
    assert inputs["Q"][0, 0].round(4).tolist() == [0.4591, 0.827, 0.179, 0.0736]
    assert inputs["K"][0, 0].round(4).tolist() == [-0.1142, -0.1084, 0.2109, 0.0254]
    assert inputs["V"][0, 0].round(4).tolist() == [0.2693, -0.2327, -0.5393, 0.2382]
    assert inputs["scores"][0, 0, 1].round(4) == -0.1481
    assert inputs["scores"][0, 1, 0].round(4) == -0.0016


@pytest.mark.parametrize("seed", [42, 0, 2**32 - 1, *FRESH_SEEDS])
def test_every_seed_gives_the_lessons_names_in_their_shapes(seed):
    inputs = reference.inputs(seed)
    B, T, C, hs = (inputs[name] for name in ("B", "T", "C", "hs"))
    assert list(inputs) == LESSON_NAMES
    assert (B, C, hs) == (1, 8, 4)
    assert inputs["embed_table"].shape == (24, C)
    assert inputs["X"].shape == (B, T, C)
    assert {inputs[name].shape for name in ("Wq", "Wk", "Wv")} == {(C, hs)}
    assert {inputs[name].shape for name in ("Q", "K", "V")} == {(B, T, hs)}
    assert inputs["scores"].shape == (B, T, T)
    assert np.array_equal(inputs["X"][0], inputs["embed_table"][inputs["ids"]])
    assert not reference.is_symmetric(inputs["scores"])


@pytest.mark.parametrize("seed", [*COURSE_SEEDS[1:], *FRESH_SEEDS])
def test_a_hidden_text_shares_no_size_with_the_head_and_repeats_some_characters(seed):
    inputs = reference.inputs(seed)
    assert inputs["T"] not in {4, 6, 8}
    assert 5 <= inputs["T"] == len(inputs["text"]) == len(inputs["ids"]) <= 14
    assert 3 <= len(set(inputs["text"])) < inputs["T"]


def test_the_courses_input_sets_differ_in_length_embedding_and_weights():
    sets = [reference.inputs(seed) for seed in COURSE_SEEDS]
    assert COURSE_SEEDS[0] == 42
    assert len({inputs["T"] for inputs in sets}) == len(sets)
    for name in ("embed_table", "Wq", "Wk", "Wv"):
        assert len({inputs[name].tobytes() for inputs in sets}) == len(sets)


@pytest.mark.parametrize("seed", [42, *FRESH_SEEDS])
def test_right_answers_say_what_the_lesson_says(seed):
    inputs = reference.inputs(seed)
    answers = answer_all(inputs)
    assert np.array_equal(answers["Wk_shared"], inputs["Wq"])
    assert np.array_equal(answers["K_shared"], inputs["Q"])
    assert np.allclose(answers["scores_shared"][0], inputs["Q"][0] @ inputs["Q"][0].T / 2)
    assert answers["is_symmetric"] is True
    assert answers["n_params"] == 144
    assert answers["scores6"].shape == inputs["scores"].shape
    assert answers["same_score_shape"] is True
    assert np.array_equal(answers["V_first"], inputs["V"][0, 0])
    assert np.array_equal(answers["Wv_shared"], inputs["Wk"])
    assert np.array_equal(answers["V_shared"], inputs["K"])
    assert answers["equals_K"] is True
    assert answers["equals_Q"] is False


def test_answers_have_the_names_that_the_course_declares():
    inputs = reference.inputs(42)
    for exercise, answer in zip(load_course(ROOT).assignment("qkv").exercises, EXERCISES, strict=True):
        assert answer.__name__ == exercise.id.replace("-", "_")
        assert list(answer(inputs)) == list(exercise.answers)


def test_scores_are_scaled_by_the_last_axis():
    Q, K = np.ones((1, 5, 6)), np.arange(30.0).reshape(1, 5, 6)
    scores = reference.attention_scores(Q, K)
    assert scores.shape == (1, 5, 5)
    assert np.isclose(scores[0, 2, 1], K[0, 1].sum() / 6**0.5)


def test_symmetry_forgives_rounding_but_no_single_entry():
    scores = np.array([[[1.0, 2.0], [2.0 + 1e-9, 3.0]]])
    assert reference.is_symmetric(scores)
    scores[0, 1, 0] += 1e-3
    assert not reference.is_symmetric(scores)


def test_a_number_that_is_none_equals_nothing():
    scores = np.full((1, 2, 2), np.nan)
    assert not reference.is_symmetric(scores)
    assert not reference.equal_values(scores, scores)


@pytest.mark.parametrize("seed", [42, *FRESH_SEEDS[:10]])
def test_answering_changes_no_input_and_shares_no_memory_with_it(seed):
    inputs = reference.inputs(seed)
    before = copy.deepcopy(inputs)
    answers = answer_all(inputs)
    assert_same(inputs, before)
    for value in answers.values():
        if isinstance(value, np.ndarray):
            value[:] = 0
    assert_same(inputs, before)


@pytest.mark.parametrize("seed", [42, *FRESH_SEEDS[:10]])
def test_two_calls_give_the_same(seed):
    inputs = reference.inputs(seed)
    assert_same(inputs, reference.inputs(seed))
    assert_same(answer_all(inputs), answer_all(inputs))


def test_numpys_global_generator_is_left_alone():
    np.random.seed(3)
    wanted = np.random.randn(4)
    np.random.seed(3)
    answer_all(reference.inputs(42))
    answer_all(reference.inputs(7))
    assert np.array_equal(np.random.randn(4), wanted)
