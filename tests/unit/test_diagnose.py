"""Explanations of wrong answers: each kind is found on the lesson's data, and nothing is said without reason."""

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.course import load_course
from autograder.marking.compare import is_close
from autograder.marking.diagnose import MOST, Difference, Explanation, explain, explain_hidden
from autograder.records import CellRun, Ending, Missing, Opaque

ROOT = Path(__file__).parents[2]
PUBLISHED = 42
SEEDS = (42, 7, 1234, 2026)
HIDDEN = SEEDS[1:]
KINDS = {
    name: kind for exercise in load_course(ROOT).assignment("qkv").exercises for name, kind in exercise.answers.items()
}
Build = Callable[[dict[str, Any], dict[str, Any]], Any]


def load_reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("qkv_reference", ROOT / "solutions" / "qkv" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference = load_reference()


def build_right(seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    inputs = reference.inputs(seed)
    answers = {k: v for step in EXERCISES for k, v in step(inputs).items()}
    return inputs, answers


EXERCISES = (reference.shared_key, reference.head_size, reference.shared_value)
RIGHT = {seed: build_right(seed) for seed in SEEDS}


def build_differences(
    name: str, build: Build, seeds: tuple[int, ...] = SEEDS, kind: str | None = None, wanted: Build | None = None
) -> list[Difference]:
    """The answer `name` is what `build(inputs, right answers)` gives; all other answers are right."""
    found = []
    for seed in seeds:
        inputs, right = RIGHT[seed]
        value = build(inputs, right)
        goal = wanted(inputs, right) if wanted else right[name]
        found.append(Difference(seed, name, kind or KINDS[name], value, goal, inputs, {**right, name: value}))
    return found


def explain_answer(name: str, build: Build, seeds: tuple[int, ...] = SEEDS, **more: Any) -> tuple[Explanation, ...]:
    differences = [each for each in build_differences(name, build, seeds) if not is_right(each)]
    return explain(differences, published_seed=PUBLISHED, **more)


def is_right(difference: Difference) -> bool:
    value, wanted = difference.value, difference.wanted
    return isinstance(value, np.ndarray) and isinstance(wanted, np.ndarray) and is_close(value, wanted)


def list_kinds(explanations: tuple[Explanation, ...]) -> list[str]:
    return [each.kind for each in explanations]


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def softmax(array: np.ndarray) -> np.ndarray:
    return np.exp(array) / np.exp(array).sum(-1, keepdims=True)


SHAPES: list[tuple[str, str, Build]] = [
    ("axes-swapped", "K_shared", lambda i, r: r["K_shared"].swapaxes(1, 2)),
    ("axes-reversed", "K_shared", lambda i, r: r["K_shared"].T),
    ("axes-moved", "K_shared", lambda i, r: r["K_shared"].transpose(1, 2, 0)),
    ("reshaped", "K_shared", lambda i, r: r["K_shared"].reshape(1, i["hs"], i["T"])),
    ("reshaped", "K_shared", lambda i, r: r["K_shared"].ravel()),
    ("flattened", "K_shared", lambda i, r: draw(1, i["T"], 4, seed=i["T"]).ravel()),
    ("extra-batch-axis", "K_shared", lambda i, r: r["K_shared"][None]),
    ("extra-batch-axis", "Wk_shared", lambda i, r: r["Wk_shared"][None]),
    ("extra-axis", "K_shared", lambda i, r: r["K_shared"][..., None]),
    ("outer-axes", "scores6", lambda i, r: np.dot(r["Q6"], r["K6"].swapaxes(1, 2)) / np.sqrt(6)),
    ("missing-axis", "K_shared", lambda i, r: draw(1, 4, seed=i["T"])),
    ("wrong-axis-length", "Q6", lambda i, r: draw(1, i["T"], 4, seed=i["T"])),
    ("wrong-axis-length", "K_shared", lambda i, r: r["K_shared"][:, :-1]),
    ("wrong-shape", "K_shared", lambda i, r: draw(3, 3, 2, 5, seed=i["T"])),
    ("empty", "K_shared", lambda i, r: np.zeros((1, 0, 4))),
]


@pytest.mark.parametrize(("kind", "name", "build"), SHAPES)
def test_a_wrong_shape_is_told_in_the_symbols_of_the_exercise(kind, name, build):
    assert kind in list_kinds(explain_answer(name, build))


def test_shapes_of_the_published_input_are_shown_beside_the_symbols():
    (swapped,) = explain_answer("K_shared", lambda i, r: r["K_shared"].swapaxes(1, 2))
    assert "expected (B, T, hs), on the published input (1, 8, 4); yours is (1, 4, 8)" in swapped.rationale
    assert "the last two axes are swapped" in swapped.rationale


def test_old_head_size_is_told_as_the_last_axis():
    found = explain_answer("Q6", lambda i, r: draw(1, i["T"], 4, seed=i["T"]))
    assert "the last axis is hs where 6 is asked" in found[-1].rationale


def test_missing_batch_axis_is_told_where_it_cannot_be_added():
    def stack(array):
        return np.concatenate([array, 2 * array[:, ::-1]])

    differences = [
        Difference(seed, "K", "(B, T, hs)", draw(i["T"], 4, seed=seed), stack(i["K"]), {**i, "B": 2}, {})
        for seed, (i, _) in RIGHT.items()
    ]
    assert list_kinds(explain(differences, published_seed=PUBLISHED)) == ["missing-batch-axis"]


def test_a_batch_axis_that_marking_adds_is_no_fault():
    found = explain_answer("scores_shared", lambda i, r: 2 * r["scores_shared"][0])
    assert list_kinds(found) == ["scaled-by"]


def test_a_turned_weight_is_turned_back_before_it_is_compared():
    assert list_kinds(explain_answer("Wk_shared", lambda i, r: -r["Wk_shared"].T)) == ["sign-flipped"]


def test_a_length_written_as_eight_is_told():
    def fill(i, r):
        kept = np.zeros((1, 8, 4))
        kept[:, : min(8, i["T"])] = r["K_shared"][:, :8]
        return kept

    assert "fixed-length" in list_kinds(explain_answer("K_shared", fill, HIDDEN))


SCALES: list[tuple[str, str, Build]] = [
    ("division by √hs were missing", "scores_shared", lambda i, r: r["scores_shared"] * 2),
    ("divided by √hs twice, or by hs without the root", "scores_shared", lambda i, r: r["scores_shared"] / 2),
    ("divided by √C, not divided by √hs", "scores_shared", lambda i, r: r["scores_shared"] * np.sqrt(4 / 8)),
    ("divided by √T, not divided by √hs", "scores_shared", lambda i, r: r["scores_shared"] * np.sqrt(4 / i["T"])),
    ("divided by C, not divided by √hs", "scores_shared", lambda i, r: r["scores_shared"] * 2 / 8),
    ("divided by T, not divided by √hs", "scores_shared", lambda i, r: r["scores_shared"] * 2 / i["T"]),
    ("multiplied by √hs, not divided by √hs", "scores_shared", lambda i, r: r["scores_shared"] * 4),
    ("division by √6 were missing", "scores6", lambda i, r: r["scores6"] * np.sqrt(6)),
    ("divided by √hs, not divided by √6", "scores6", lambda i, r: r["scores6"] * np.sqrt(6 / 4)),
    ("divided by √C, not divided by √6", "scores6", lambda i, r: r["scores6"] * np.sqrt(6 / 8)),
    ("divided by √6 twice, or by 6 without the root", "scores6", lambda i, r: r["scores6"] / np.sqrt(6)),
    ("as if it were divided by √6", "Q6", lambda i, r: r["Q6"] / np.sqrt(6)),
    ("0.1 times what it should be, on every input", "Q6", lambda i, r: r["Q6"] * 0.1),
    ("2 times what it should be, on every input", "V_shared", lambda i, r: r["V_shared"] * 2),
    ("1.414 times what it should be", "scores_shared", lambda i, r: r["scores_shared"] * np.sqrt(2)),
    ("changes from input to input", "scores_shared", lambda i, r: r["scores_shared"] / r["scores_shared"].max()),
]


@pytest.mark.parametrize(("words", "name", "build"), SCALES)
def test_a_wrong_factor_is_named(words, name, build):
    (found,) = explain_answer(name, build)
    assert found.kind == "scaled-by"
    assert words in found.rationale


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_missing_scale_is_found_in_every_precision(dtype):
    (found,) = explain_answer("scores6", lambda i, r: (r["scores6"] * np.sqrt(6)).astype(dtype))
    assert found.kind == "scaled-by"


VALUES: list[tuple[str, str, Build]] = [
    ("sign-flipped", "scores6", lambda i, r: -r["scores6"]),
    ("transposed", "scores6", lambda i, r: r["scores6"].swapaxes(1, 2)),
    ("reshaped", "Wk_shared", lambda i, r: r["Wk_shared"].T.reshape(8, 4)),
    ("reshaped", "scores6", lambda i, r: r["Q6"] @ r["K6"].reshape(1, 6, i["T"]) / np.sqrt(6)),
    ("reversed", "K_shared", lambda i, r: r["K_shared"][:, ::-1]),
    ("shifted", "K_shared", lambda i, r: np.roll(r["K_shared"], 1, axis=1)),
    ("permuted", "K_shared", lambda i, r: r["K_shared"][..., [1, 0, 3, 2]]),
    ("permuted", "scores6", lambda i, r: np.random.default_rng(1).permuted(r["scores6"], axis=None)),
    ("unchanged-copy", "K_shared", lambda i, r: i["K"]),
    ("unchanged-copy", "Wk_shared", lambda i, r: i["Wk"]),
    ("unchanged-copy", "scores6", lambda i, r: i["scores"]),
    ("equals-name", "K_shared", lambda i, r: i["V"]),
    ("equals-name", "K_shared", lambda i, r: i["X"]),
    ("equals-name", "V6", lambda i, r: r["K6"]),
    ("equals-name", "scores_shared", lambda i, r: i["scores"].swapaxes(1, 2)),
    ("product-of-names", "K_shared", lambda i, r: i["embed_table"][None] @ i["Wq"]),
    ("product-of-names", "scores6", lambda i, r: r["Q6"] @ r["V6"].swapaxes(1, 2) / np.sqrt(6)),
    ("product-of-names", "scores6", lambda i, r: r["Q6"].swapaxes(1, 2) @ r["K6"]),
    ("entrywise-product", "K_shared", lambda i, r: i["K"] * i["V"]),
    ("after-attention", "V_shared", lambda i, r: softmax(i["scores"]) @ i["V"]),
    ("cosine", "scores6", lambda i, r: scale_rows(r["Q6"]) @ scale_rows(r["K6"]).swapaxes(1, 2)),
    ("mixture", "Wk_shared", lambda i, r: (i["Wq"] + i["Wk"]) / 2),
    ("piece-of-name", "V_first", lambda i, r: i["V"][0, 1]),
    ("piece-of-name", "V_first", lambda i, r: i["K"][0, 0]),
    ("piece-of-name", "V_first", lambda i, r: i["V"][0, :, 0]),
    ("summed-name", "V_first", lambda i, r: i["V"].mean(axis=(0, 1))),
    ("symmetrised", "scores_shared", lambda i, r: (i["scores"] + i["scores"].swapaxes(1, 2)) / 2),
    ("constant", "K_shared", lambda i, r: np.zeros((1, i["T"], 4))),
    ("constant", "K_shared", lambda i, r: np.full((1, i["T"], 4), 0.3)),
    ("causal-mask", "scores6", lambda i, r: np.tril(r["scores6"])),
    ("causal-mask", "scores6", lambda i, r: np.where(np.tri(i["T"]) > 0, r["scores6"], -np.inf)),
    ("causal-mask", "scores6", lambda i, r: np.where(np.tri(i["T"]) > 0, r["scores6"], -1e9)),
    ("masked", "scores6", lambda i, r: np.triu(r["scores6"])),
    ("partly-right", "K_shared", lambda i, r: keep_first(r["K_shared"])),
    ("partly-right", "scores6", lambda i, r: r["scores6"] - np.eye(i["T"])),
    ("first-only", "K_shared", lambda i, r: r["K_shared"][0, 0]),
    ("diagonal-only", "scores6", lambda i, r: np.diagonal(r["scores6"], axis1=1, axis2=2)),
    ("summed-away", "scores6", lambda i, r: r["scores6"].sum(-1)),
    ("averaged", "K_shared", lambda i, r: r["K_shared"].mean(1)),
    ("softmaxed", "scores6", lambda i, r: softmax(r["scores6"])),
    ("softmaxed", "scores6", lambda i, r: softmax(draw(1, i["T"], i["T"], seed=i["T"]))),
    ("rounded", "scores6", lambda i, r: r["scores6"].round(3)),
    ("rounded", "K_shared", lambda i, r: r["K_shared"].astype(np.float16)),
    ("nearly", "scores6", lambda i, r: r["Q6"].round(6) @ r["K6"].round(4).swapaxes(1, 2) / np.sqrt(6)),
    ("offset", "scores6", lambda i, r: r["scores6"] + 1),
    ("offset", "K_shared", lambda i, r: r["K_shared"] + np.array([0.1, 0.4, 0.2, 0.9])),
    ("centred", "K_shared", lambda i, r: r["K_shared"] - r["K_shared"].mean(1, keepdims=True)),
    ("normalised", "K_shared", lambda i, r: scale_rows(r["K_shared"])),
    ("absolute", "scores6", lambda i, r: np.abs(r["scores6"])),
    ("squared", "scores6", lambda i, r: r["scores6"] ** 2),
    ("exponential", "scores6", lambda i, r: np.exp(r["scores6"])),
    ("whole-numbers", "scores6", lambda i, r: r["scores6"] // 1),
    ("sorted", "V_first", lambda i, r: np.sort(r["V_first"])),
    ("summed-up", "K_shared", lambda i, r: np.cumsum(r["K_shared"], axis=1)),
    ("not-finite", "scores6", lambda i, r: np.sqrt(r["scores6"])),
    ("not-finite", "scores6", lambda i, r: r["scores6"] / 0),
    ("typed-in", "V_first", lambda i, r: np.array([0.2693, -0.2327, -0.5393, 0.2382])),
    ("typed-in", "Wk_shared", lambda i, r: draw(8, 4)),
]


def scale_rows(array: np.ndarray) -> np.ndarray:
    return array / np.linalg.norm(array, axis=-1, keepdims=True)


def keep_first(array: np.ndarray) -> np.ndarray:
    kept = np.zeros_like(array)
    kept[:, 0] = array[:, 0]
    return kept


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
@pytest.mark.parametrize(("kind", "name", "build"), VALUES)
def test_wrong_values_are_told_by_what_they_are(kind, name, build):
    assert kind in list_kinds(explain_answer(name, build))


SLIPS: list[tuple[str, str, Any]] = [
    ("none", "K_shared", None),
    ("none", "is_symmetric", None),
    ("not-called", "scores_shared", Opaque("builtin_function_or_method")),
    ("not-called", "is_symmetric", Opaque("_ArrayFunctionDispatcher")),
    ("not-called", "n_params", Opaque("method")),
    ("ragged-list", "K_shared", Opaque("list")),
    ("lazy", "K_shared", Opaque("generator")),
    ("mapping", "K_shared", Opaque("dict")),
    ("foreign-array", "K_shared", Opaque("Tensor")),
    ("foreign-array", "K_shared", Opaque("DataFrame")),
    ("too-large", "K_shared", Opaque("ndarray")),
    ("array-of-objects", "K_shared", Opaque("array of O")),
    ("array-of-text", "K_shared", Opaque("array of U")),
    ("wrong-kind", "K_shared", Opaque("Something")),
    ("text-for-array", "K_shared", "[[0.4591 0.827]]"),
    ("number-for-array", "K_shared", 0.4591),
    ("array-of-bools", "K_shared", np.ones((1, 8, 4), bool)),
    ("complex-numbers", "K_shared", np.ones((1, 8, 4), complex)),
    ("bool-as-text", "is_symmetric", "True"),
    ("bool-as-number", "is_symmetric", 1),
    ("bool-as-number", "is_symmetric", np.array([1.0])),
    ("bool-as-array", "is_symmetric", np.ones((1, 8, 8), bool)),
    ("numbers-for-bool", "is_symmetric", np.ones(3)),
    ("empty", "is_symmetric", np.ones(0, bool)),
    ("number-as-text", "n_params", "144"),
    ("bool-for-number", "n_params", True),
    ("not-whole", "n_params", 144.5),
    ("not-finite", "n_params", float("nan")),
    ("array-for-number", "n_params", np.array([8, 6])),
]


@pytest.mark.parametrize(("kind", "name", "value"), SLIPS)
def test_a_wrong_kind_is_told_with_advice(kind, name, value):
    (found,) = explain_answer(name, lambda i, r: value)
    assert found.kind == kind
    assert found.hint


def test_kinds_that_differ_between_input_sets_are_not_explained():
    assert explain_answer("K_shared", lambda i, r: None if i["T"] == 8 else "text") == ()


def test_an_opposite_truth_value_is_told():
    assert list_kinds(explain_answer("is_symmetric", lambda i, r: False)) == ["opposite-bool"]


COUNTS = [
    (48, "a single array is counted"),
    (192, "one array too many is counted"),
    (162, "biases are counted too"),
    (96, "the length hs stands where another one belongs"),
    (24, "the length 6 is left out"),
    (48**3, "multiplied with each other"),
]


@pytest.mark.parametrize(("count", "words"), COUNTS)
def test_a_wrong_count_is_told_by_the_slip_that_gives_it(count, words):
    (found,) = explain_answer("n_params", lambda i, r: count)
    assert found.kind == "other-count"
    assert words in found.rationale
    assert "144" not in found.rationale + found.hint


def test_a_count_with_the_length_of_the_text_is_told():
    (found,) = explain_answer("n_params", lambda i, r: 3 * i["T"] * 6, HIDDEN)
    assert "the length T stands where another one belongs" in found.rationale


def test_a_count_that_no_slip_gives_is_not_explained():
    assert explain_answer("n_params", lambda i, r: 1000) == ()


def test_numbers_are_told_by_sign_factor_and_rounding():
    def kinds_of(change):
        differences = build_differences(
            "x",
            lambda i, r: change(float(r["scores6"][0, 0, 1])),
            kind="number",
            wanted=lambda i, r: float(r["scores6"][0, 0, 1]),
        )
        return list_kinds(explain(differences, published_seed=PUBLISHED))

    assert kinds_of(lambda x: -x) == ["sign-flipped"]
    assert kinds_of(lambda x: 3 * x) == ["scaled-by"]
    assert kinds_of(lambda x: round(x, 3)) == ["rounded"]
    assert kinds_of(lambda x: x + np.pi) == []


def test_text_is_told_by_blanks_and_capitals():
    def kinds_of(value):
        differences = build_differences("x", lambda i, r: value, kind="text", wanted=lambda i, r: "the Lamp")
        return list_kinds(explain(differences, published_seed=PUBLISHED))

    assert kinds_of(" the  Lamp") == ["text-blanks"]
    assert kinds_of("The lamp") == ["text-capitals"]
    assert kinds_of("the lantern") == []


def test_a_transposed_answer_without_its_scale_gets_both_explanations():
    found = explain_answer("scores6", lambda i, r: r["scores6"].swapaxes(1, 2) * np.sqrt(6))
    assert list_kinds(found) == ["transposed", "scaled-by"]


def test_an_explanation_must_hold_on_every_failing_input():
    def mixed(i, r):
        return r["scores6"] * (np.sqrt(6) if i["T"] == 8 else draw(i["T"], i["T"], seed=i["T"]))

    assert explain_answer("scores6", mixed) == ()


def test_an_answer_made_of_an_own_wrong_array_is_said_to_be():
    differences = []
    for seed, (inputs, right) in RIGHT.items():
        own = draw(1, inputs["T"], 6, seed=seed)
        answers = {**right, "K6": own}
        value = right["Q6"] @ own.swapaxes(1, 2) / np.sqrt(6)
        differences.append(Difference(seed, "scores6", "(B, T, T)", value, right["scores6"], inputs, answers))
    (found,) = explain(differences, published_seed=PUBLISHED)
    assert "your `K6`" in found.rationale


def run_error(error: str, text: str, ending: Ending = Ending.ERROR) -> CellRun:
    return CellRun(0, ending, error, text)


ERRORS = [
    (
        "matmul-shapes",
        "ValueError",
        "matmul: Input operand 1 has a mismatch in its core dimension 0 (size 4 is different from 8)",
    ),
    ("broadcast-shapes", "ValueError", "operands could not be broadcast together with shapes (1,8,8) (8,4)"),
    ("axes-mismatch", "ValueError", "axes don't match array"),
    ("axes-mismatch", "AxisError", "axis 3 is out of bounds for array of dimension 3"),
    (
        "ambiguous-truth",
        "ValueError",
        "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()",
    ),
    ("reshape-size", "ValueError", "cannot reshape array of size 88 into shape (8,8)"),
    ("syntax-error", "SyntaxError", "'(' was never closed"),
    ("syntax-error", "IndentationError", "unexpected indent"),
    ("array-attribute", "AttributeError", "'numpy.ndarray' object has no attribute 'permute'"),
    ("none-used", "AttributeError", "'NoneType' object has no attribute 'shape'"),
    ("placeholder-used", "TypeError", "unsupported operand type(s) for @: 'ellipsis' and 'float'"),
    ("not-callable", "TypeError", "'numpy.ndarray' object is not callable"),
    ("whole-number-needed", "TypeError", "'tuple' object cannot be interpreted as an integer"),
    ("import-error", "ModuleNotFoundError", "No module named 'torch'"),
    ("index-error", "IndexError", "index 8 is out of bounds for axis 1 with size 5"),
    ("zero-division", "ZeroDivisionError", "division by zero"),
    ("cell-failed", "Oops", "whatever"),
]


@pytest.mark.parametrize(("kind", "error", "text"), ERRORS)
def test_an_exception_is_told_in_words(kind, error, text):
    (found,) = explain_answer("K_shared", lambda i, r: Missing(), errors=[run_error(error, text)])
    assert found.kind == kind
    assert found.hint


@pytest.mark.parametrize("ending", [Ending.TIMEOUT, Ending.KILLED, Ending.EXITED, Ending.OUT_OF_MEMORY])
def test_a_cell_that_was_ended_is_told_by_its_ending(ending):
    (found,) = explain_answer("K_shared", lambda i, r: Missing(), errors=[run_error("", "", ending)])
    assert found.kind == ending.value


def explain_undefined(name: str, assigned: tuple[str, ...] = ()) -> tuple[Explanation, ...]:
    errors = [run_error("NameError", f"name '{name}' is not defined")]
    return explain_answer("scores_shared", lambda i, r: Missing(), errors=errors, assigned=assigned)


def test_an_undefined_name_is_told_with_what_was_meant():
    assert "close to `K_shared`" in explain_undefined("K_shraed")[0].rationale
    assert "PyTorch" in explain_undefined("torch")[0].rationale
    assert "`sqrt`" in explain_undefined("sqrt")[0].rationale
    assert "before it has a value" in explain_undefined("K_shared")[0].rationale


def test_an_answer_under_a_near_name_is_found():
    def kinds_for(name, *assigned):
        return list_kinds(explain_answer(name, lambda i, r: Missing(), assigned=assigned))

    found = explain_answer("K_shared", lambda i, r: Missing(), assigned=("K_share",))
    assert found[0].rationale == "You assigned `K_share`; the asked name is `K_shared`."
    assert kinds_for("is_symmetric", "issymmetric") == ["not-assigned-near-match"]
    assert kinds_for("K_shared", "Q_shared") == ["not-assigned"]
    assert kinds_for("K_shared", "K") == ["lesson-name-overwritten"]


def test_a_near_name_comes_before_the_exception_that_follows_from_it():
    errors = [run_error("NameError", "name 'K_shared' is not defined")]
    found = explain_answer("K_shared", lambda i, r: Missing(), errors=errors, assigned=("K_share",))
    assert list_kinds(found) == ["not-assigned-near-match", "undefined-name"]


def test_nothing_tried_is_not_attempted_and_something_left_out_is_not_assigned():
    differences = [
        Difference(seed, "K_shared", "(B, T, hs)", Missing(), r["K_shared"], i, {"K_shared": Missing()})
        for seed, (i, r) in RIGHT.items()
    ]
    found = explain(differences, published_seed=PUBLISHED, assigned=("K_shared",))
    assert list_kinds(found) == ["not-attempted"]
    assert list_kinds(explain_answer("K_shared", lambda i, r: Missing())) == ["not-assigned"]


def test_of_a_test_that_passes_on_the_published_input_set_only_the_way_a_cell_ended_is_told():
    assert explain_hidden(None).rationale == "Right for the published input, and not for every other."
    stopped = explain_hidden(run_error("ValueError", "cannot reshape array of size 88 into shape (8,8)"))
    assert stopped == explain_hidden(run_error("KeyError", "x"))
    assert "On some input your cell stops with an error." in stopped.rationale
    ended = explain_hidden(CellRun(1, Ending.TIMEOUT, text="it ran longer than 10 s (limit cell_wall_seconds)"))
    assert "(limit cell_wall_seconds)" in ended.rationale


SECRETS = re.compile(r"\b(5|7|9|1[0-4]|88|0\.\d{2,})\b")
"""Lengths of hidden texts, and numbers with digits: neither may be read by a student."""


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
@pytest.mark.parametrize(("kind", "name", "build"), SHAPES + VALUES)
def test_hidden_inputs_alone_show_none_of_their_numbers(kind, name, build):
    for each in explain_answer(name, build, HIDDEN):
        assert not SECRETS.search(f"{each.rationale} {each.hint}"), each


def test_a_number_that_only_hidden_inputs_give_is_not_shown():
    for build in (lambda i, r: r["scores6"] * 0.4591, lambda i, r: r["scores6"] + 0.4591):
        (found,) = explain_answer("scores6", build, HIDDEN)
        assert "0.45" not in found.rationale
    (shape,) = explain_answer("K_shared", lambda i, r: draw(1, i["T"], 4591, seed=i["T"]), HIDDEN)
    assert "4591" not in shape.rationale


@pytest.mark.parametrize("error", ["NameError", "ValueError", "AttributeError", "X04591"])
def test_text_of_an_exception_is_never_quoted(error):
    for text in ("name 'x04591' is not defined", "secret 04591", "'numpy.ndarray' object has no attribute 'x04591'"):
        (found,) = explain_answer("K_shared", lambda i, r: Missing(), errors=[run_error(error, text)])
        assert "4591" not in found.rationale + found.hint


def test_a_type_that_a_student_named_is_not_repeated():
    (found,) = explain_answer("K_shared", lambda i, r: Opaque("x04591"))
    assert "4591" not in found.rationale + found.hint


ARRAYS = sorted(name for name, kind in KINDS.items() if kind.startswith("("))


@pytest.mark.parametrize("name", ARRAYS)
def test_random_numbers_of_the_right_shape_get_no_explanation(name):
    for seed in range(12):
        assert (
            explain_answer(name, lambda i, r, s=seed: 10.0 ** (s % 4 - 2) * draw(*r[name].shape, seed=s + 100 * i["T"]))
            == ()
        )


@pytest.mark.parametrize("name", ARRAYS)
def test_random_numbers_of_a_wrong_shape_get_an_explanation_of_the_shape_only(name):
    shape_kinds = {
        "wrong-axis-length",
        "wrong-shape",
        "extra-batch-axis",
        "missing-axis",
        "flattened",
        "reshaped",
        "axes-moved",
    }
    for change in ((2,), (0, 3), (1, 1), (5, 5, 5, 5)):
        found = explain_answer(name, lambda i, r, c=change: draw(*r[name].shape, *c, seed=i["T"]).squeeze())
        assert {each.kind for each in found} <= {*shape_kinds, "empty"}
        assert len(found) <= 1


@pytest.mark.parametrize("name", ARRAYS)
def test_right_numbers_with_noise_get_no_explanation(name):
    assert explain_answer(name, lambda i, r: r[name] * (1 + 0.3 * draw(*r[name].shape, seed=i["T"]))) == ()


PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64),
    st.floats(),
    st.complex_numbers(),
    st.text(max_size=20),
    st.just(Missing()),
    st.builds(Opaque, st.sampled_from(["list", "ndarray", "method", "Foo", ""])),
)
SHAPED = st.builds(
    lambda shape, dtype, fill, seed: np.nan_to_num(np.full(shape, fill) * draw(*shape, seed=seed)).astype(dtype),
    st.lists(st.integers(0, 9), max_size=4).map(tuple),
    st.sampled_from([bool, np.uint8, np.int64, np.float16, np.float32, np.float64, complex]),
    st.sampled_from([0.0, 1.0, -1e9, 1e300]),
    st.integers(0, 99),
)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(deadline=None, max_examples=200)
@given(
    st.sampled_from(sorted(KINDS)),
    st.lists(st.one_of(PLAIN, SHAPED), min_size=4, max_size=4),
    st.sampled_from([1, 2, 4]),
)
def test_whatever_a_student_hands_in_gives_at_most_two_explanations_and_no_error(name, values, count):
    by_length = {RIGHT[seed][0]["T"]: value for seed, value in zip(SEEDS, values, strict=True)}
    found = explain_answer(name, lambda i, r: by_length.get(i["T"]), SEEDS[:count])
    assert len(found) <= MOST
    assert all(each.kind and each.rationale for each in found)


def test_a_huge_answer_is_told_by_its_shape_without_a_search():
    (found,) = explain_answer("K_shared", lambda i, r: np.zeros((1, i["T"], 100_000)))
    assert found.kind == "wrong-axis-length"


def test_no_difference_gives_no_explanation():
    assert explain([], published_seed=PUBLISHED) == ()


def test_of_several_answers_the_one_that_fails_everywhere_is_explained():
    differences = [
        *build_differences("Q6", lambda i, r: -r["Q6"], HIDDEN),
        *build_differences("K6", lambda i, r: 3 * r["K6"]),
    ]
    found = explain(differences, published_seed=PUBLISHED)
    assert list_kinds(found) == ["scaled-by"]
    assert "`K6`" in found[0].rationale
