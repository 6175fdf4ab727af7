"""The catalogue's files are read strictly, and an entry's code replaces an answer cell and nothing else."""

import json
from pathlib import Path

import pytest

from autograder.catalogue import fill_notebook, load_catalogue
from autograder.course import load_course
from autograder.errors import CourseError

ROOT = Path(__file__).parents[2]

MISTAKE = """
[[mistake]]
id = "no-scale"
exercise = "one"
title = "No scale"
source = "derived"
code = "S = Q @ K"
loses = ["test_scores"]
hint = "Divide."
raises = { type = "ValueError", message = "no" }
"""
VARIANT = """
[[variant]]
id = "by-einsum"
exercise = "one"
title = "By einsum"
source = "derived"
before = "n = 1"
code = "S = 1"
"""
COURSE = """
id = "c"
title = "C"
[assignments.qkv]
title = "Q"
seeds = [1, 2]
[[assignments.qkv.exercises]]
id = "one"
title = "One"
answers = { S = "(T, T)" }
"""


@pytest.fixture
def course(tmp_path):
    (tmp_path / "course.toml").write_text(COURSE)
    (tmp_path / "solutions" / "qkv").mkdir(parents=True)
    return load_course(tmp_path)


def load(course, mistakes: str = MISTAKE, variants: str = VARIANT):
    folder = course.folder / "solutions" / "qkv"
    (folder / "mistakes.toml").write_text(mistakes)
    (folder / "variants.toml").write_text(variants)
    return load_catalogue(course, "qkv")


def test_entries_are_read_with_all_their_keys(course) -> None:
    catalogue = load(course)
    (mistake,), (variant,) = catalogue.mistakes, catalogue.variants
    assert (mistake.id, mistake.exercise, mistake.loses, mistake.hint) == (
        "no-scale",
        "one",
        ("test_scores",),
        "Divide.",
    )
    assert mistake.raises is not None
    assert (mistake.raises.type, mistake.raises.message) == ("ValueError", "no")
    assert (variant.id, variant.before, variant.code) == ("by-einsum", "n = 1", "S = 1")


def test_files_that_are_not_there_have_no_entries(course) -> None:
    catalogue = load_catalogue(course, "qkv")
    assert (catalogue.mistakes, catalogue.variants) == ((), ())


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('exercise = "one"', 'exercise = "two"', "entry no-scale: there is no exercise two"),
        ('hint = "Divide."', "", "entry no-scale, key hint"),
        ('hint = "Divide."', 'hint = "Divide."\npoints = 1', "entry no-scale, key points"),
        ('id = "no-scale"', 'id = "No scale"', "entry No scale, key id"),
        ('loses = ["test_scores"]', "loses = 5", "entry no-scale, key loses"),
        ('type = "ValueError",', "", "entry no-scale, key raises.type"),
        ("[[mistake]]", "[[mistakes]]", "unknown key mistakes; entries begin with [[mistake]]"),
        ("[[mistake]]", "[[mistake]", "is not valid TOML"),
        (MISTAKE, MISTAKE + MISTAKE, "entry no-scale stands there twice"),
    ],
)
def test_a_wrong_entry_is_named_with_its_file_and_key(course, old, new, named) -> None:
    with pytest.raises(CourseError) as caught:
        load(course, mistakes=MISTAKE.replace(old, new))
    assert "mistakes.toml" in str(caught.value)
    assert named in str(caught.value)


def test_a_wrong_variant_is_named_too(course) -> None:
    with pytest.raises(CourseError, match=r"variants\.toml: entry by-einsum, key loses"):
        load(course, variants=VARIANT + 'loses = ["x"]')


def test_the_catalogue_of_each_assignment_of_the_course_is_right() -> None:
    course = load_course(ROOT)
    for name in course.assignments:
        catalogue = load_catalogue(course, name)
        assert catalogue.mistakes
        assert catalogue.variants


# --- notebooks ----------------------------------------------------------------------------------------------


def build_source() -> bytes:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "text"]},
        {"cell_type": "code", "metadata": {"nbgrader": {"grade_id": "one-start"}}, "source": "start()", "outputs": []},
        {
            "cell_type": "code",
            "metadata": {"nbgrader": {"grade_id": "one", "solution": True}},
            "source": ["# EXERCISE 1: scores\n", "S = ...\n", "S = 5"],
            "outputs": [],
        },
        {
            "cell_type": "code",
            "metadata": {"nbgrader": {"grade_id": "two"}},
            "source": "# EXERCISE 2\nx = 1",
            "outputs": [],
        },
    ]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {"a": "\u4e16"}, "cells": cells}).encode()


def test_an_answer_cell_is_replaced_and_keeps_its_marker_line() -> None:
    filled = json.loads(fill_notebook(build_source(), {"one": "S = 6\nT = 7"}))
    original = json.loads(build_source())
    assert filled["cells"][2]["source"] == "# EXERCISE 1: scores\nS = 6\nT = 7"
    assert filled["cells"][2]["metadata"] == original["cells"][2]["metadata"]
    del filled["cells"][2], original["cells"][2]
    assert filled == original


def test_a_cell_before_the_answer_cell_stands_right_before_it() -> None:
    filled = json.loads(fill_notebook(build_source(), {"one": "S = n"}, {"one": "n = 1"}))
    assert [cell["source"] for cell in filled["cells"][2:4]] == ["n = 1", "# EXERCISE 1: scores\nS = n"]
    assert filled["cells"][2]["cell_type"] == "code"
    assert len(filled["cells"]) == 5


def test_nothing_to_fill_leaves_the_notebook_as_it_is() -> None:
    assert json.loads(fill_notebook(build_source(), {})) == json.loads(build_source())
