"""Right answers that an odd or advanced student would write get full marks, alone and three together."""

import tomllib
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

RIGHT: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("further_right.toml").read_text("utf-8"))["right"]
THREES = [
    [each for each in three if each is not None]
    for three in zip_longest(
        *([each for each in RIGHT if each["exercise"] == name] for name in ("shared-key", "head-size", "shared-value"))
    )
]


@pytest.mark.parametrize("right", RIGHT, ids=lambda right: right["id"])
def test_a_further_right_answer_gets_full_marks(bench, right: dict[str, Any]) -> None:
    grade_together(bench, [right])


@pytest.mark.parametrize("three", THREES, ids=lambda three: "+".join(each["id"] for each in three))
def test_further_right_answers_go_together(bench, three: list[dict[str, Any]]) -> None:
    grade_together(bench, three)


def test_ids_of_further_right_answers_are_unique() -> None:
    assert len({each["id"] for each in RIGHT}) == len(RIGHT)


def grade_together(bench, answers: list[dict[str, Any]]) -> None:
    """One notebook with all these answers gets full marks."""
    codes = {each["exercise"]: each["code"] for each in answers}
    before = {each["exercise"]: each["before"] for each in answers if "before" in each}
    grade = bench.grade_codes(codes, before or None)
    bench.assert_full(grade)
    assert {bench.status(grade, name) for name in bench.full} == {"ok"}
