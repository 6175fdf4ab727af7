"""Wrong answers that no entry of the catalogue describes: each loses a mark, and its explanation helps and is true."""

import tomllib
from pathlib import Path

import msgspec
import pytest

from autograder.records import Mark

HELPFUL_SHARE = 25 / 30
"""The explanation of an answer that nobody foresaw may fail to help in one case of six; it may never be false."""


class Wrong(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of `uncatalogued_wrong.toml`, which says what its fields mean."""

    id: str
    exercise: str
    code: str
    tests: tuple[str, ...]
    useful: tuple[str, ...]
    false: tuple[str, ...]
    why: str


WRONG = msgspec.convert(
    tomllib.loads(Path(__file__).with_name("uncatalogued_wrong.toml").read_text(encoding="utf-8"))["wrong"],
    tuple[Wrong, ...],
)
each_wrong = pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.id)


@pytest.fixture(scope="module")
def grades(bench):
    """The grade of every wrong answer by its id; the other answers are the solution's."""
    return {wrong.id: bench.grade_codes({wrong.exercise: wrong.code}) for wrong in WRONG}


def explain(mark: Mark) -> str:
    """What the student reads about a lost mark."""
    return f"{mark.message} {mark.hint}".strip()


def find_phrases(phrases: tuple[str, ...], text: str) -> list[str]:
    """The phrases that occur in a text, whatever their case."""
    return [phrase for phrase in phrases if phrase.lower() in text.lower()]


@each_wrong
def test_a_wrong_answer_loses_marks_in_its_exercise_only(bench, grades, wrong: Wrong) -> None:
    grade = grades[wrong.id]
    assert bench.scores(grade)[wrong.exercise] < bench.full[wrong.exercise], wrong.why
    bench.assert_only(grade, wrong.exercise)


@each_wrong
def test_no_explanation_is_false(bench, grades, wrong: Wrong) -> None:
    for name, mark in bench.lost(grades[wrong.id]).items():
        assert not find_phrases(wrong.false, explain(mark)), (wrong.why, name, explain(mark))


def test_most_explanations_help(bench, grades) -> None:
    useless = {}
    for wrong in WRONG:
        texts = {name: explain(mark) for name, mark in bench.lost(grades[wrong.id]).items()}
        if not any(find_phrases(wrong.useful, text) for text in texts.values()):
            useless[wrong.id] = (wrong.why, texts)
    report = "\n".join(f"{name}: {why}\n  {texts}" for name, (why, texts) in useless.items())
    assert len(WRONG) - len(useless) >= HELPFUL_SHARE * len(WRONG), report
