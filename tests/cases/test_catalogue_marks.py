"""Every accepted variant earns full marks; every known mistake loses what its entry says, and nothing else."""

from pathlib import Path

import pytest

from autograder.catalogue import Mistake, Variant, load_catalogue
from autograder.course import load_course

CATALOGUE = load_catalogue(load_course(Path(__file__).parents[2]), "qkv")


@pytest.mark.parametrize("variant", CATALOGUE.variants, ids=lambda variant: variant.id)
def test_an_accepted_variant_gets_full_marks(bench, variant: Variant) -> None:
    before = {variant.exercise: variant.before} if variant.before is not None else None
    grade = bench.grade_codes({variant.exercise: variant.code}, before)
    bench.assert_full(grade)
    assert bench.status(grade, variant.exercise) == "ok"


@pytest.mark.parametrize("mistake", CATALOGUE.mistakes, ids=lambda mistake: mistake.id)
def test_a_known_mistake_loses_the_tests_of_its_entry_and_no_others(bench, mistake: Mistake) -> None:
    grade = bench.grade_codes({mistake.exercise: mistake.code})
    assert set(bench.lost(grade)) == set(mistake.loses)
    if mistake.raises is not None:
        assert bench.status(grade, mistake.exercise) == "error"


def test_every_hidden_test_is_lost_by_some_known_mistake(bench) -> None:
    lost = {name for mistake in CATALOGUE.mistakes for name in mistake.loses}
    assert lost == {test.name for test in bench.grader.marking.tests}


def test_all_variants_of_three_exercises_go_together(bench) -> None:
    by_exercise = {name: [each for each in CATALOGUE.variants if each.exercise == name] for name in bench.full}
    for three in zip(*by_exercise.values(), strict=False):
        codes = {each.exercise: each.code for each in three}
        before = {each.exercise: each.before for each in three if each.before is not None}
        bench.assert_full(bench.grade_codes(codes, before))
