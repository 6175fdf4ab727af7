"""Every kind of mistake that is known from classes is explained for what it is, by the catalogue and by its numbers."""

import random
import time
from collections.abc import Iterator

import pytest

from autograder.catalogue import load_catalogue
from autograder.course import Course, load_course
from autograder.grading import Grader
from autograder.intake.notebook import parse_program
from autograder.records import Mark
from autograder.sandbox.watch import build_budget

from .conftest import ASSIGNMENT, ROOT, Workbench

# What goes wrong: an entry of the catalogue, one of the tests that it loses, and what its numbers alone say
# (None where they can say nothing for certain: a single truth value, a count, random draws).
ROWS = {
    ".T on three axes": ("transpose-reverses-all-axes", "test_scores_are_recomputed", "matmul-shapes"),
    "np.dot of three axes": ("dot-pairs-every-batch", "test_scores_are_recomputed", "outer-axes"),
    "transpose as in PyTorch": ("torch-transpose", "test_scores_are_recomputed", "axes-mismatch"),
    "reshape for transpose": ("reshape-instead-of-transpose", "test_scores_are_recomputed", "reshaped"),
    "no scale": ("no-scale", "test_scores_are_recomputed", "scaled-by"),
    "scale by the model width": ("scale-by-width", "test_scores_are_recomputed", "scaled-by"),
    "scale by the text length": ("scale-by-length", "test_scores_are_recomputed", "scaled-by"),
    "scale without the root": ("scale-by-head-size", "test_scores_are_recomputed", "scaled-by"),
    "scaled twice": ("scaled-twice", "test_scores_are_recomputed", "scaled-by"),
    "old scale in exercise 2": ("old-scale-with-new-head", "test_scores_use_the_new_head_size", "scaled-by"),
    "keys on the left": ("keys-on-the-left", "test_scores_use_the_new_head_size", "transposed"),
    "K not recomputed": ("keys-not-recomputed", "test_keys_are_recomputed", "unchanged-copy"),
    "symmetry of softmax weights": ("symmetry-of-the-weights", "test_symmetry_is_reported", None),
    "allclose by broadcasting": ("symmetry-by-broadcasting", "test_symmetry_is_reported", None),
    "if S == S.T": ("symmetry-in-an-if", "test_symmetry_is_reported", "ambiguous-truth"),
    "only printed": ("shared-key-printed-only", "test_keys_are_recomputed", "not-attempted"),
    "causal mask": ("causal-mask-infinite", "test_scores_are_recomputed", "causal-mask"),
    "seed before each draw": ("seeded-before-each-draw", "test_matrices_have_six_columns", None),
    "parameters with biases": ("parameters-with-biases", "test_parameters_are_counted", None),
    "parameters of one matrix": ("parameters-of-one-matrix", "test_parameters_are_counted", None),
    "parameters of the old head": ("parameters-of-old-head", "test_parameters_are_counted", None),
    "parameters with an output matrix": ("parameters-with-output-matrix", "test_parameters_are_counted", None),
    "only Wq rebuilt": ("only-queries-rebuilt", "test_matrices_have_six_columns", "unchanged-copy"),
    "V not recomputed": ("values-not-recomputed", "test_values_are_recomputed", "unchanged-copy"),
    "numbers typed in": ("first-value-typed-in", "test_first_value_is_read", "typed-in"),
    "lesson's names overwritten only": (
        "lesson-names-overwritten",
        "test_keys_are_recomputed",
        "lesson-name-overwritten",
    ),
    "zeros": ("zeros-handed-in", "test_keys_are_recomputed", "constant"),
    "X everywhere": ("input-handed-in-everywhere", "test_keys_are_recomputed", "equals-name"),
    "changed in place": ("shared-matrix-changed-in-place", "test_key_matrix_is_the_query_matrix", "scaled-by"),
}
each_row = pytest.mark.parametrize(("entry", "test", "kind"), ROWS.values(), ids=ROWS)


@pytest.fixture(scope="module")
def mistakes(course: Course):
    return {each.id: each for each in load_catalogue(course, ASSIGNMENT).mistakes}


@each_row
def test_the_catalogue_names_the_mistake(bench: Workbench, mistakes, entry: str, test: str, kind: str | None) -> None:
    mistake = mistakes[entry]
    mark = bench.lost(bench.grade_codes({mistake.exercise: mistake.code}))[test]
    (named,) = [each.removeprefix("mistake:") for each in mark.explanations if each.startswith("mistake:")]
    # Mistakes that give the same answers are one to a test, and have one hint.
    assert mistakes[named].hint == mistake.hint == mark.hint


@each_row
def test_the_numbers_alone_say_what_is_wrong_or_nothing(
    bench: Workbench, mistakes, entry: str, test: str, kind: str | None
) -> None:
    mark = mark_without_catalogue(bench, mistakes[entry].exercise, mistakes[entry].code)[test]
    if kind is None:
        assert not set(mark.explanations) - {"opposite-bool", "other-count"}
    else:
        assert mark.explanations[0] == kind


def mark_without_catalogue(bench: Workbench, exercise: str, code: str) -> dict[str, Mark]:
    grader = bench.grader
    program = parse_program(bench.fill({exercise: code}), grader.assignment)
    inputs = [(each.seed, each.inputs) for each in grader.marking.input_sets]
    execution = grader.sandbox.execute(program, inputs, build_budget(grader.assignment), evidence=False)
    return {mark.name: mark for mark in grader.marking.mark(execution, program) if mark.outcome == "failed"}


def test_at_most_two_explanations_are_shown(bench: Workbench, mistakes) -> None:
    for mistake in mistakes.values():
        for mark in mark_without_catalogue(bench, mistake.exercise, mistake.code).values():
            assert len(mark.explanations) <= 2, (mistake.id, mark)


@pytest.fixture(scope="module")
def hintless() -> Iterator[Workbench]:
    course = load_course(ROOT)
    assignment = course.assignment(ASSIGNMENT).model_copy(update={"show_hints": False})
    with Grader(course.model_copy(update={"assignments": {ASSIGNMENT: assignment}}), ASSIGNMENT) as grader:
        yield Workbench(grader)


def test_without_hints_a_lost_mark_still_says_what_is_wrong(hintless: Workbench, mistakes) -> None:
    mark = hintless.lost(hintless.grade_codes({"shared-key": mistakes["no-scale"].code}))["test_scores_are_recomputed"]
    assert mark.hint == ""
    assert mark.message
    assert mark.explanations[0] == "mistake:no-scale"


@pytest.mark.parametrize("answer", ["zeros", "constants", "empty", "X", "lesson"])
@pytest.mark.parametrize("exercise", ["shared-key", "head-size", "shared-value"])
def test_an_answer_without_work_earns_nothing_but_what_is_right_by_itself(bench: Workbench, exercise, answer) -> None:
    values = {
        "zeros": "np.zeros({shape})",
        "constants": "np.full({shape}, 0.5)",
        "empty": "np.empty((0, 0, 0))",
        "X": "X",
    }
    lesson = {"Wk_shared": "Wk", "K_shared": "K", "scores_shared": "scores", "V_first": "K[0, 0]", "Wv_shared": "Wv"}
    lesson |= {
        "V_shared": "V",
        "Wq6": "Wq",
        "Wk6": "Wk",
        "Wv6": "Wv",
        "Q6": "Q",
        "K6": "K",
        "V6": "V",
        "scores6": "scores",
    }
    kinds = next(each.answers for each in bench.grader.assignment.exercises if each.id == exercise)
    arrays = {name: kind for name, kind in kinds.items() if kind.startswith("(")}
    lines = [
        f"{name} = {lesson[name] if answer == 'lesson' else values[answer].format(shape=kind)}"
        for name, kind in arrays.items()
    ]
    grade = bench.grade_codes({exercise: "\n".join(lines)})
    assert bench.scores(grade)[exercise] == 0
    bench.assert_only(grade, exercise)


def test_thousands_of_long_names_that_look_alike_take_no_time_to_explain(bench) -> None:
    """Comparing two of them costs milliseconds, again for each hidden test; nothing limits the grader's own time."""
    draw = random.Random(1)
    names = ["x" + "".join(draw.sample("ab" * 95, 190)) for _ in range(3000)]
    short = [f"n{number}" for number in range(20_000)]
    assigned = "".join(f" {name}=1\n" for name in [*names[1:], *short])
    code = f"if T < 0:\n{assigned}raise NameError(\"name '{names[0]}' is not defined\")\n"
    began = time.process_time()
    lost = bench.lost(bench.grade_codes({"shared-key": code}))
    assert time.process_time() - began < 5
    assert all("NameError" in mark.message for mark in lost.values())
