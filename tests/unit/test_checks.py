"""Error carried forward: judged on one's own earlier steps where they are wrong but usable, and never on a copy.

The chain under test is W -> K = X @ W -> S = K @ K.T -> flag.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from autograder.course import Exercise
from autograder.marking.answers import Answers, CheckFailed, get_sheet
from autograder.marking.checks import check_close, check_equal, check_step, require

KINDS = {"W": "(C, C)", "K": "(T, C)", "S": "(T, T)", "flag": "bool", "count": "whole number"}
generator = np.random.default_rng(0)
X = np.array([[3.0, 0.5], [-0.4, 1.5], [0.2, -2.0]])
RIGHT_W, LESSON_W, OWN_W = generator.normal(size=(3, 2, 2))


def follow(W: np.ndarray) -> dict[str, object]:
    K = X @ W
    return {"W": W, "K": K, "S": K @ K.T, "flag": bool(K[0, 0] > 0)}


RIGHT = follow(RIGHT_W)
LESSON = follow(LESSON_W)
OWN = follow(OWN_W if (X @ OWN_W)[0, 0] * (X @ RIGHT_W)[0, 0] < 0 else -OWN_W)
INPUTS = SimpleNamespace(C=2, T=3, X=X, Wk=LESSON_W, K=LESSON["K"], scores=LESSON["S"], text="abc")
EXPECTED = SimpleNamespace(**RIGHT, count=5)

STEPS = {
    "K": (("W",), lambda W: X @ W),
    "S": (("W", "K"), lambda W, K: K @ K.T),
    "flag": (("W", "K"), lambda W, K: bool(K[0, 0] > 0)),
}


def build_answers(**values: object) -> Answers:
    exercise = Exercise(id="one", title="One", answers=KINDS)
    return Answers(values, (exercise,), INPUTS, EXPECTED)


def list_passed(**values: object) -> set[str]:
    """The steps that these answers pass."""
    passed = set()
    for name, (after, own) in STEPS.items():
        try:
            check_step(build_answers(**values), EXPECTED, name, after=after, own=own)
        except CheckFailed:
            continue
        passed.add(name)
    return passed


def test_the_lessons_flag_differs_between_right_and_own() -> None:
    assert RIGHT["flag"] != OWN["flag"]


def test_right_answers_pass() -> None:
    assert list_passed(**RIGHT) == {"K", "S", "flag"}


def test_what_follows_from_an_own_wrong_step_passes_and_says_so() -> None:
    assert list_passed(**OWN) == {"K", "S", "flag"}
    answers = build_answers(**OWN)
    check_step(answers, EXPECTED, "K", after=("W",), own=STEPS["K"][1])
    assert get_sheet(answers).notes == ["`K` was judged on your own `W`."]


def test_a_right_answer_after_a_wrong_step_passes_without_a_note() -> None:
    answers = build_answers(**{**RIGHT, "W": OWN["W"]})
    check_step(answers, EXPECTED, "K", after=("W",), own=STEPS["K"][1])
    assert get_sheet(answers).notes == []


def test_a_step_that_follows_from_neither_fails() -> None:
    assert list_passed(**{**OWN, "K": OWN["K"] * 2}) == {"flag"}
    assert list_passed(**{**RIGHT, "S": RIGHT["S"] * 2}) == {"K", "flag"}
    assert list_passed(**{**RIGHT, "S": OWN["S"]}) == {"K", "flag"}


def test_each_step_is_judged_on_the_nearest_own_step() -> None:
    doubled = OWN["K"] * 2
    assert list_passed(W=OWN["W"], K=doubled, S=doubled @ doubled.T, flag=OWN["flag"]) == {"S", "flag"}


UNUSABLE = {
    "missing": None,
    "of a wrong shape": OWN["W"][:1],
    "of a wrong kind": "W",
    "constant": np.ones((2, 2)),
    "all zeros": np.zeros((2, 2)),
    "with a NaN": np.where(np.eye(2) > 0, np.nan, OWN["W"]),
    "infinite": OWN["W"] * np.inf,
    "complex": OWN["W"] * 1j,
}


@pytest.mark.parametrize("W", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_an_unusable_step_carries_nothing_and_the_next_is_judged_as_expected(W) -> None:
    given = {} if W is None else {"W": W}
    assert list_passed(**given, K=RIGHT["K"], S=RIGHT["S"], flag=RIGHT["flag"]) == {"K", "S", "flag"}
    followed = X @ np.ones((2, 2))
    assert "K" not in list_passed(**given, K=followed)
    assert "K" not in list_passed(**given, K=np.zeros((3, 2)))


def test_zeros_everywhere_earn_nothing() -> None:
    assert list_passed(**follow(np.zeros((2, 2)))) <= {"flag"}
    assert "S" not in list_passed(**follow(np.zeros((2, 2))))


def test_copies_of_the_lesson_earn_nothing_and_carry_nothing() -> None:
    copies = {"W": LESSON["W"], "K": LESSON["K"], "S": LESSON["S"], "flag": not RIGHT["flag"]}
    assert list_passed(**copies) == set()
    assert list_passed(W=OWN["W"], K=LESSON["K"], S=LESSON["S"]) == set()


def test_a_copy_of_a_matrix_does_not_carry_a_computed_step() -> None:
    assert list_passed(W=LESSON["W"], K=X @ LESSON["W"] * 1.0) == set()


def test_a_step_that_comes_out_as_the_lessons_own_is_a_copy_too() -> None:
    with pytest.raises(CheckFailed, match="unchanged"):
        check_step(build_answers(**{**LESSON, "W": OWN_W}), EXPECTED, "K", after=("W",), own=lambda W: LESSON["K"])


def test_a_copy_carries_once_an_earlier_answer_of_its_chain_is_right() -> None:
    assert list_passed(W=RIGHT["W"], K=LESSON["K"], S=LESSON["S"], flag=LESSON["flag"]) == {"S", "flag"}
    assert list_passed(W=RIGHT["W"], K=LESSON["K"], S=OWN["S"]) == set()


@pytest.mark.parametrize("flag", [True, False])
def test_a_bool_is_judged_on_the_own_steps_alone(flag) -> None:
    assert ("flag" in list_passed(**{**OWN, "flag": flag})) == (flag == OWN["flag"])
    assert ("flag" in list_passed(**{**RIGHT, "flag": flag})) == (flag == RIGHT["flag"])
    assert ("flag" in list_passed(flag=flag)) == (flag == RIGHT["flag"])
    assert ("flag" in list_passed(**{**LESSON, "flag": flag})) == (flag == RIGHT["flag"])


def test_a_right_step_after_a_wrong_one_is_what_the_next_is_judged_on() -> None:
    assert "S" in list_passed(W=OWN["W"], K=RIGHT["K"], S=RIGHT["S"])
    assert "flag" in list_passed(W=OWN["W"], K=RIGHT["K"], flag=RIGHT["flag"])


def test_a_missing_answer_fails_its_own_step() -> None:
    for name, (after, own) in STEPS.items():
        with pytest.raises(CheckFailed, match=f"`{name}` was not assigned"):
            check_step(build_answers(), EXPECTED, name, after=after, own=own)


def test_an_own_step_that_overflows_passes_nothing() -> None:
    huge = np.array([[1.7e308, 1.6e308], [1.0, 2.0]])
    with np.errstate(over="ignore"):
        assert np.isinf(X @ huge).any()
        assert not np.isnan(X @ huge).any()
        assert "K" not in list_passed(W=huge, K=np.arange(6.0).reshape(3, 2))


def test_an_own_tolerance_is_used_for_the_step() -> None:
    answers = build_answers(**{**RIGHT, "K": RIGHT["K"] + 0.01 * np.abs(RIGHT["K"]).max()})
    check_step(answers, EXPECTED, "K", after=("W",), own=STEPS["K"][1], tolerance=0.02)
    with pytest.raises(CheckFailed):
        check_step(answers, EXPECTED, "K", after=("W",), own=STEPS["K"][1], tolerance=0.005)


def test_no_sentence_for_the_student_holds_a_number_of_the_expected_answer() -> None:
    with pytest.raises(CheckFailed) as caught:
        check_close(build_answers(W=OWN["W"]), "W", RIGHT_W)
    shown = caught.value.rationale + caught.value.hint
    assert not any(character.isdigit() for character in shown)
    assert "expected" in caught.value.detail


def test_check_close_judges_shape_kind_and_values() -> None:
    check_close(build_answers(W=RIGHT_W), "W", RIGHT_W)
    check_close(build_answers(W=RIGHT_W.astype(np.float32)), "W", RIGHT_W)
    for wrong in (RIGHT_W * 1.001, RIGHT_W[0], RIGHT_W * np.nan, True, "W"):
        with pytest.raises(CheckFailed):
            check_close(build_answers(W=wrong), "W", RIGHT_W)


def test_check_equal_is_exact() -> None:
    check_equal(build_answers(count=5.0), "count", 5)
    check_equal(build_answers(flag=np.array([False])), "flag", False)
    for wrong in (6, 5.5, True, "5"):
        with pytest.raises(CheckFailed):
            check_equal(build_answers(count=wrong), "count", 5)


def test_require_fails_with_the_words_it_is_given() -> None:
    require(True, "never")
    with pytest.raises(CheckFailed) as caught:
        require(False, "It is wrong.", hint="Look again.", detail="5 and 6")
    assert (caught.value.rationale, caught.value.hint, caught.value.detail) == (
        "It is wrong.",
        "Look again.",
        "5 and 6",
    )
