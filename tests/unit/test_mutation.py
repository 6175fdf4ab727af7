"""Mutants: what is derived, what is left alone, how they are judged, and what an equivalent must prove."""

import ast
import shutil
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from autograder.course import load_course
from autograder.errors import CourseError
from autograder.grading import Grader
from autograder.solution import batch_by_exercise
from autograder.validation.equivalents import (
    Equality,
    build_fresh_grader,
    equals_reference,
    load_equivalents,
    read_solution_cell,
)
from autograder.validation.mutants import (
    Job,
    Judged,
    build_report,
    find_unequal,
    judge_batch,
    judge_code,
    list_equivalents,
    list_jobs,
)
from autograder.validation.mutation import Mutant, derive_mutants

ROOT = Path(__file__).parents[2]
EXERCISES = ("shared-key", "head-size", "shared-value")
KINDS = {"X": "array 3", "K": "array 3", "V": "array 3", "Wq": "array 2", "Wk": "array 2", "hs": "whole number"}


@pytest.fixture(scope="module")
def course():
    return load_course(ROOT)


@pytest.fixture(scope="module")
def grader(course):
    with Grader(course, "qkv") as grader:
        yield grader


@pytest.fixture(scope="module")
def jobs(course, grader):
    return list_jobs(course, "qkv", grader.marking)


@pytest.fixture(scope="module")
def equality(course):
    with build_fresh_grader(course, "qkv", range(700_001, 700_021)) as fresh:
        yield Equality(fresh)


@pytest.fixture
def solution(course):
    notebook = course.solution_notebook("qkv").read_bytes()
    return {exercise: read_solution_cell(notebook, exercise) for exercise in EXERCISES}


def list_changes(source, names=(), kinds=None):
    return {mutant.change for mutant in derive_mutants(source, names, kinds)}


def test_each_exercise_has_at_least_sixty_mutants(jobs):
    counts = Counter(job.exercise for job in jobs)
    assert min(counts[exercise] for exercise in EXERCISES) >= 60


def test_mutants_differ_from_the_source_and_from_each_other_and_have_ids_of_their_own(jobs, solution):
    for exercise in EXERCISES:
        mutants = [job.mutant for job in jobs if job.exercise == exercise]
        shapes = [ast.dump(ast.parse(mutant.code)) for mutant in mutants]
        assert len({ast.dump(ast.parse(solution[exercise])), *shapes}) == len(shapes) + 1
        assert len({mutant.id for mutant in mutants}) == len(mutants)


def test_a_change_names_one_mutant_only(jobs):
    assert [
        change for change, count in Counter((job.exercise, job.mutant.change) for job in jobs).items() if count > 1
    ] == []


def test_the_same_source_gives_the_same_mutants(course, grader, jobs):
    assert list_jobs(course, "qkv", grader.marking) == jobs


@pytest.mark.parametrize(
    ("source", "change"),
    [
        ("K = X @ Wk", "K = X @ Wk -> K = X @ Wq"),
        ("K = X @ Wk", "K = X @ Wk -> K = X"),
        ("K = X @ Wk", "K = X @ Wk -> K = Wk @ X"),
        ("K = X @ Wk", "K = X @ Wk -> K = X * Wk"),
        ("K = X @ Wk", "K = X @ Wk -> K = X @ Wk.T"),
        ("K = X @ Wk", "K = X @ Wk -> K = V"),
        ("K = X @ Wk", "K = X @ Wk -> K = np.zeros_like(X @ Wk)"),
        ("K = X @ Wk", "K = X @ Wk -> K = np.round(X @ Wk, 3)"),
        ("K = X @ Wk", "K = X @ Wk -> K = (X @ Wk).astype(int)"),
        ("K = X @ Wk", "K = X @ Wk -> X *= 2; K = X @ Wk"),
        ("K = X @ Wk", "K = X @ Wk -> nothing"),
        ("K = X\nV = K", "K = X; V = K -> V = K; K = X"),
        ("a = K / np.sqrt(hs)", "a = K / np.sqrt(hs) -> a = K * np.sqrt(hs)"),
        ("a = K / np.sqrt(hs)", "a = K / np.sqrt(hs) -> a = K / hs"),
        ("a = K / np.sqrt(hs)", "a = K / np.sqrt(hs) -> a = K / np.square(hs)"),
        ("a = K.transpose(0, 2, 1)", "a = K.transpose(0, 2, 1) -> a = K.transpose(2, 1, 0)"),
        ("a = K.transpose(0, 2, 1)", "a = K.transpose(0, 2, 1) -> a = K.T"),
        ("a = K.transpose(0, 2, 1)", "a = K.transpose(0, 2, 1) -> a = K"),
        ("a = K.swapaxes(-2, -1)", "a = K.swapaxes(-2, -1) -> a = K.swapaxes(0, 1)"),
        ("a = V[0, 0]", "a = V[0, 0] -> a = V[0, 1]"),
        ("a = V[0, 0]", "a = V[0, 0] -> a = V[0, -1]"),
        ("a = V[0, 0]", "a = V[0, 0] -> a = V[0]"),
        ("a = K.sum(axis=2)", "a = K.sum(axis=2) -> a = K.sum(axis=1)"),
        ("a = K.sum(axis=2)", "a = K.sum(axis=2) -> a = K.mean(axis=2)"),
        ("a = np.random.randn(8, 6) * 0.1", "a = np.random.randn(8, 6) * 0.1 -> a = np.random.rand(8, 6) * 0.1"),
        ("a = np.random.randn(8, 6) * 0.1", "a = np.random.randn(8, 6) * 0.1 -> a = np.random.randn(8, 6) * 0.01"),
        ("a = np.random.randn(8, 6) * 0.1", "a = np.random.randn(8, 6) * 0.1 -> a = np.random.randn(8, 4) * 0.1"),
        ("a = np.random.randn(8, 6) * 0.1", "a = np.random.randn(8, 6) * 0.1 -> a = np.random.randn(6, 8) * 0.1"),
        ("a = 6 * hs\nb = 6 + hs", "6 -> 4 everywhere"),
        (
            "a = np.random.randn(2)\nb = np.random.randn(2)",
            "a = np.random.randn(2); b = np.random.randn(2) -> "
            "np.random.seed(42); a = np.random.randn(2); np.random.seed(42); b = np.random.randn(2)",
        ),
        ("a = K.shape == V.shape", "a = K.shape == V.shape -> a = K.shape != V.shape"),
        ("a = K.shape == V.shape", "a = K.shape == V.shape -> a = True"),
        ("a = np.allclose(K, V)", "a = np.allclose(K, V) -> a = not np.allclose(K, V)"),
        ("a = np.allclose(K, V)", "a = np.allclose(K, V) -> a = np.array_equal(K, V)"),
        ("a = not np.allclose(K, V)", "a = not np.allclose(K, V) -> a = np.allclose(K, V)"),
        ("a = np.allclose(K, V)", "a = np.allclose(K, V) -> a = str(np.allclose(K, V))"),
        ("if hs > 4:\n    K = X @ Wk", "K = X @ Wk -> K = X @ Wq"),
        ("def f(x):\n    return x @ Wk\nK = f(X)", "return x @ Wk -> return x * Wk"),
    ],
)
def test_a_slip_is_among_the_mutants(source, change):
    assert change in list_changes(source, tuple(KINDS), KINDS)


def test_names_of_another_kind_are_not_mistaken_for_each_other():
    swaps = {mutant.code for mutant in derive_mutants("K = X @ Wk", tuple(KINDS), KINDS) if mutant.operator == "name"}
    assert swaps == {"K = K @ Wk", "K = V @ Wk", "K = X @ Wq"}


def test_an_earlier_answer_may_be_mistaken_but_not_a_later_one_or_a_placeholder():
    source = "first = ...\nlater = ...\nfirst = X @ Wk\nlater = X @ Wq"
    changes = list_changes(source, ("X", "Wk", "Wq"))
    assert "later = X @ Wq -> later = first @ Wq" in changes
    assert not any("later" in change for change in changes if change.startswith("first = X @ Wk ->"))


def test_a_placeholder_is_left_as_it_is():
    assert all(mutant.line == 2 for mutant in derive_mutants("K = ...  # (B, T, hs)\nK = X @ Wk", ("X", "Wk")))


def test_a_change_does_not_depend_on_where_the_statement_stands():
    moved = "# a comment\n\n\nK  =  (X @ Wk)  # keys\n"
    assert list_changes(moved, tuple(KINDS), KINDS) == list_changes("K = X @ Wk", tuple(KINDS), KINDS)


def test_a_description_says_the_line_and_what_became_of_it():
    mutants = derive_mutants("\nK = X @ Wk", ("Wq",))
    assert "line 2: `Wk` became `Wq`" in {mutant.description for mutant in mutants}


@pytest.mark.parametrize(
    "source",
    [
        "n = 10\nwhile n > 0:\n    n -= 1",
        "step = 1\nfor i in iter(int, 1):\n    step += 1\n    if step > 9:\n        break",
        "n = 3\ndef f(x):\n    return 1 if x < 1 else x * f(x - 1)",
    ],
)
def test_nothing_is_changed_before_or_in_what_might_then_run_forever(source):
    mutants = derive_mutants(f"{source}\nK = X @ Wk", ("X", "Wk", "Wq"))
    assert mutants
    assert all(mutant.code.startswith(ast.unparse(ast.parse(source))) for mutant in mutants)


@pytest.mark.parametrize(
    "source", ["open('a', 'w').write('1' + '2')", "import numpy as np", "os.remove(a[0])", "'a text'"]
)
def test_what_reaches_outside_or_does_nothing_is_left_alone(source):
    assert derive_mutants(source, ("X", "Wk")) == ()


def test_a_wrong_program_loses_the_test_that_asks_for_it(grader):
    code = "V_first = V[0, 1]\nWv_shared = Wk\nV_shared = X @ Wk\nequals_K = True\nequals_Q = False"
    assert judge_code(grader, "shared-value", code) == ("test_first_value_is_read",)
    assert judge_code(grader, "shared-value", code.replace("[0, 1]", "[0, 0]")) == ()


def test_a_batch_judges_as_each_alone_would(grader, jobs):
    for batch in tuple(batch_by_exercise(jobs))[5:150:29]:
        assert len(batch) == len(EXERCISES)
        for judged in judge_batch(grader, batch):
            assert judged.lost == judge_code(grader, judged.exercise, judged.mutant.code)


def test_a_mutant_whose_process_ends_costs_the_others_nothing(grader, solution):
    codes = {**solution, "head-size": "import os\nos._exit(0)"}
    judged = judge_batch(grader, [Job(exercise, build_mutant(code)) for exercise, code in codes.items()])
    assert [len(each.lost) for each in judged] == [0, 5, 0]


def build_mutant(code, change="a -> b"):
    return Mutant(f"operator-1-0-{code}", "operator", 1, "line 1: changed", change, code)


def test_the_report_tells_killed_survivors_equivalents_and_records_out_of_date(course, tmp_path):
    copy = copy_course(course, tmp_path)
    write_records(copy, changes=["a -> equal", "a -> killed", "a -> gone"])
    judged = [
        Judged("shared-key", build_mutant("1", "a -> equal"), ()),
        Judged("shared-key", build_mutant("2", "a -> killed"), ("test_keys_are_recomputed",)),
        Judged("shared-key", build_mutant("3", "a -> missed"), ()),
        Judged("head-size", build_mutant("4", "a -> equal"), ()),
    ]
    report = build_report(copy, "qkv", judged)
    keys, heads, values = report.exercises
    assert [each.change for each in keys.equivalents] == ["a -> equal"]
    assert [each.change for each in keys.refuted] == ["a -> killed"]
    assert [each.change for each in keys.survivors] == ["a -> missed"]
    assert keys.unused == ("a -> gone",)
    assert keys.kill_rate == 0.5
    assert [each.change for each in heads.survivors] == ["a -> equal"], "a record counts for its own exercise only"
    assert (values.count, values.kill_rate) == (0, 1.0)
    assert not report.complete
    assert msgspec.json.decode(msgspec.json.encode(report))["exercises"][0]["killed"] == 1


def copy_course(course, folder):
    source = course.solution_notebook("qkv").parent
    (folder / "solutions").mkdir()
    shutil.copytree(source, folder / "solutions" / "qkv", ignore=shutil.ignore_patterns("__pycache__"))
    return course.model_copy(update={"folder": folder})


def write_records(course, **keys):
    entry = {"id": "same", "exercise": "shared-key", "reason": "It changes nothing.", "changes": [], **keys}
    file = course.solution_notebook("qkv").parent / "equivalents.toml"
    file.write_text(
        "[[equivalent]]\n" + "".join(f"{key} = {msgspec.json.encode(entry[key]).decode()}\n" for key in entry)
    )


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"exercise": "softmax"}, ["entry same", "no exercise softmax"]),
        ({"changes": ["a -> b", "a -> b"]}, ["entry same", "stands there twice"]),
        ({"changes": [1]}, ["entry same", "changes.0"]),
        ({"why": "because"}, ["entry same", "why"]),
    ],
)
def test_a_wrong_record_is_named_with_file_and_entry(course, tmp_path, keys, words):
    copy = copy_course(course, tmp_path)
    write_records(copy, **keys)
    with pytest.raises(CourseError) as caught:
        load_equivalents(copy, "qkv")
    assert all(word in str(caught.value) for word in ["equivalents.toml", *words])


def test_records_that_are_no_toml_are_refused_and_none_are_needed(course, tmp_path):
    copy = copy_course(course, tmp_path)
    file = copy.solution_notebook("qkv").parent / "equivalents.toml"
    file.write_text("[[equivalent")
    with pytest.raises(CourseError, match="not valid TOML"):
        load_equivalents(copy, "qkv")
    file.unlink()
    assert load_equivalents(copy, "qkv") == ()


def test_the_solution_equals_the_reference(equality, solution):
    assert equality.compare(solution) == dict.fromkeys(EXERCISES, True)


DRAW = "W{}6 = np.random.randn(C, 6) * 0.1"


@pytest.mark.parametrize(
    ("old", "new", "equal"),
    [
        (DRAW.format("q"), "Wq6 = np.random.normal(0, 0.1, (C, 6))", True),
        (DRAW.format("q"), "Wq6 = -np.random.randn(C, 6)[::-1] * 0.1", True),
        (DRAW.format("k"), "Wk6 = -Wq6", False),
        (DRAW.format("v"), "Wv6 = np.random.randn(C, 6) * 0.07", False),
        ("n_params = ", "n_params = 1 + ", False),
        ("same_score_shape = ", "1 / 0 #", False),
    ],
)
def test_drawn_answers_are_equal_only_if_they_are_drawn_alike(equality, solution, old, new, equal):
    code = solution["head-size"].replace(old, new)
    assert code != solution["head-size"]
    assert equality.compare({"head-size": code}) == {"head-size": equal}


def test_what_follows_from_a_wrong_step_is_not_equal(equality, solution):
    code = solution["shared-key"].replace("Wq.copy()", "Wq + 1e-3")
    assert equality.compare({"shared-key": code, "shared-value": solution["shared-value"]}) == {
        "shared-key": False,
        "shared-value": True,
    }


def test_an_error_of_one_exercise_does_not_make_another_unequal(equality, solution):
    codes = {**solution, "shared-key": solution["shared-key"] + "\n1 / 0"}
    assert equality.compare(codes) == {"shared-key": False, "head-size": True, "shared-value": True}


def test_one_code_can_be_compared_by_itself(course, solution):
    assert equals_reference(course, "qkv", "shared-value", solution["shared-value"], (700_101, 700_102))


def test_a_record_of_a_mistake_is_found_out(course, grader, equality, tmp_path, solution):
    copy = copy_course(course, tmp_path)
    write_records(copy, exercise="head-size", changes=["right", "wrong"])
    wrong = solution["head-size"].replace("n_params = ", "n_params = 2 * ")
    judged = [
        Judged("head-size", build_mutant(solution["head-size"], "right"), ()),
        Judged("head-size", build_mutant(wrong, "wrong"), ()),
    ]
    jobs = list_equivalents(build_report(copy, "qkv", judged))
    unequal = [job for batch in batch_by_exercise(jobs) for job in find_unequal(equality, batch)]
    assert [job.mutant.change for job in unequal] == ["wrong"]
