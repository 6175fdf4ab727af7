"""Thirteen checks of one point each, as a grader has them that looks at the student's own objects."""

import importlib.util
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

EXERCISES = ("shared-key", "head-size", "shared-value")


def load_reference(file: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference_of_the_control", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build_case(reference: ModuleType, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The lesson's names of one input set, and the right answers."""
    inputs = reference.inputs(seed)
    return inputs, {
        name: value
        for exercise in EXERCISES
        for name, value in getattr(reference, exercise.replace("-", "_"))(inputs).items()
    }


def demand(truth: object) -> None:
    if not truth:
        raise AssertionError("not what was asked for")


def close(name: str) -> "Check":
    return lambda answers, expected, _: demand(np.allclose(answers[name], expected[name]))


def equal(*names: str) -> "Check":
    return lambda answers, expected, _: demand(all(answers[name] == expected[name] for name in names))


def check_key(answers: Mapping[str, Any], expected: Mapping[str, Any], inputs: Mapping[str, Any]) -> None:
    carried = inputs["X"] @ answers["Wk_shared"]
    demand(np.allclose(answers["K_shared"], expected["K_shared"]) or np.allclose(answers["K_shared"], carried))


def check_matrices(answers: Mapping[str, Any], _: object, inputs: Mapping[str, Any]) -> None:
    for name in ("Wq6", "Wk6", "Wv6"):
        demand(answers[name].shape == (inputs["C"], 6) and 0.04 < np.std(answers[name]) < 0.2)


def check_projections(answers: Mapping[str, Any], _: object, inputs: Mapping[str, Any]) -> None:
    for letter in "QKV":
        demand(np.allclose(answers[f"{letter}6"], inputs["X"] @ answers[f"W{letter.lower()}6"]))


def check_scores(answers: Mapping[str, Any], _: object, __: object) -> None:
    demand(np.allclose(answers["scores6"], answers["Q6"] @ answers["K6"].swapaxes(-1, -2) / np.sqrt(6)))


def check_count(answers: Mapping[str, Any], expected: Mapping[str, Any], _: object) -> None:
    demand(int(answers["n_params"]) == expected["n_params"])


Check = Callable[[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]], None]

CHECKS: tuple[tuple[str, Check], ...] = (
    ("shared-key", close("Wk_shared")),
    ("shared-key", check_key),
    ("shared-key", close("scores_shared")),
    ("shared-key", equal("is_symmetric")),
    ("head-size", check_matrices),
    ("head-size", check_projections),
    ("head-size", check_count),
    ("head-size", check_scores),
    ("head-size", equal("same_score_shape")),
    ("shared-value", close("V_first")),
    ("shared-value", close("Wv_shared")),
    ("shared-value", close("V_shared")),
    ("shared-value", equal("equals_K", "equals_Q")),
)
