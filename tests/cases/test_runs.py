"""Student code runs once: stored runs are marked again without it, and only what can change a mark is run again."""

import hashlib
from collections.abc import Mapping

import msgspec
import pytest

from autograder.grading import Graded, Grader, Order
from autograder.intake.notebook import parse_program
from autograder.records import CellRun, Ending, Execution, Submission
from autograder.runs import TOGETHER

from .conftest import FULL, Workbench

WRONG = {
    "shared-key": "Wk_shared = Wk\nK_shared = X @ Wk\nscores_shared = scores\nis_symmetric = True",
    "head-size": "n_params = 7",
    "shared-value": "V_first = V[0]\nWv_shared = Wv\nV_shared = V\nequals_K = False\nequals_Q = False",
}


def grade(
    bench: Workbench, codes: Mapping[str, str], runs: Mapping[str, Execution] | None = None, *, may_run=True
) -> Graded:
    data = bench.fill(codes)
    submission = Submission("ada", "ada.ipynb", data, hashlib.sha256(data).hexdigest())
    return bench.grader.grade_order(Order(submission, dict(runs or {}), may_run))


def test_a_right_submission_runs_once(bench) -> None:
    graded = grade(bench, {})
    assert graded.grade.score == sum(FULL.values())
    assert list(graded.runs) == [TOGETHER]


def test_what_the_first_exercise_loses_on_the_published_set_is_not_run_again(bench) -> None:
    assert list(grade(bench, {"shared-key": WRONG["shared-key"]}).runs) == [TOGETHER]


def read_first(bench: Workbench) -> str:
    return bench.read_source("shared-key").split("\n", 1)[1]


REACHING = {
    "a function is defined": "def double(x):\n    return 2 * x",
    "an array is changed": "keep = X.copy()\nkeep[0] = 0",
    "NumPy is changed": "np.matmul = np.matmul",
    "a name of Python's is taken": "float = np.float64",
}


@pytest.mark.parametrize("line", REACHING.values(), ids=REACHING)
def test_an_exercise_behind_one_that_may_have_reached_it_is_run_again_alone(bench, line) -> None:
    codes = {"shared-key": f"{read_first(bench)}\n{line}", "head-size": f"n_params = float({WRONG['head-size'][-1]})"}
    assert list(grade(bench, codes).runs) == [TOGETHER, "head-size"]


@pytest.mark.parametrize(
    ("error", "runs"),
    [
        ("ValueError('shapes')", [TOGETHER]),
        ("ImportError('_backend_agg.so: failed to map segment from shared object')", [TOGETHER, "head-size"]),
        ("MemoryError()", [TOGETHER, "head-size"]),
        ("RuntimeError('cannot start a new thread')", [TOGETHER, "head-size"]),
        ("OSError(24, 'Too many open files')", [TOGETHER, "head-size"]),
    ],
)
def test_what_may_come_from_a_lack_that_another_exercise_left_is_run_again_alone(bench, error, runs) -> None:
    codes = {"shared-key": f"{read_first(bench)}\nbig = np.ones(10)", "head-size": f"raise {error}"}
    assert list(grade(bench, codes).runs) == runs


def test_what_the_first_exercise_loses_by_a_missing_module_is_not_run_again(bench) -> None:
    assert list(grade(bench, {"shared-key": "import torch"}).runs) == [TOGETHER]


def test_a_cell_of_the_course_that_fails_since_another_exercise_took_the_memory_proves_nothing(bench) -> None:
    helper = "raise ImportError('_backend_agg.so: failed to map segment from shared object')\n"
    before = bench.grader._released
    bench.grader._released = before | {helper}
    try:
        keys = bench.read_source("shared-key") + "\nbig = np.ones(10)\n"
        data = bench.build(
            replace={"shared-key": keys, "head-size": "# EXERCISE 2\nn_params = plt.plot(X)\n"},
            before={"head-size": [helper]},
        )
        graded = bench.grader.grade_order(Order(Submission("ada", "", data, hashlib.sha256(data).hexdigest())))
    finally:
        bench.grader._released = before
    assert list(graded.runs) == [TOGETHER, "head-size"]


def test_what_a_function_of_the_lesson_looks_at_is_looked_at_by_whoever_may_call_it(bench) -> None:
    """`encode` reads `stoi`, which no exercise names."""
    right = bench.read_source("head-size").split("\n", 1)[1]
    codes = {"shared-key": f"{HARMLESS}\nstoi = 0", "head-size": f"encode(text)\n{right}"}
    graded = grade(bench, codes)
    assert "head-size" in graded.runs
    bench.assert_full(graded.grade)


def test_an_exercise_behind_cells_of_no_exercise_that_a_student_wrote_is_run_again_alone(bench) -> None:
    data = bench.fill({"shared-key": HARMLESS, "head-size": WRONG["head-size"]}, {"head-size": "n = 1"})
    graded = bench.grader.grade_order(Order(Submission("ada", "ada.ipynb", data, "")))
    assert list(graded.runs) == [TOGETHER, "head-size"]


HARMLESS = """
Wk_shared = Wq
K_shared = X @ Wk_shared
scores_shared = Q @ K_shared.transpose(0, 2, 1) / np.sqrt(hs)
is_symmetric = np.allclose(scores_shared, scores_shared.transpose(0, 2, 1))
"""


def test_an_exercise_behind_one_that_cannot_have_reached_it_is_not_run_again(bench) -> None:
    graded = grade(bench, {"shared-key": HARMLESS, "head-size": WRONG["head-size"]})
    assert list(graded.runs) == [TOGETHER]
    bench.assert_only(graded.grade, "head-size")


REBOUND = {
    "an iterator of its own": ("X = iter(X)", "seen = list(X)", "n_params = len(list(X))"),
    "a function of its own": (
        "calls = []\ndef print(*text): calls.append(text)", "print('seen')", "n_params = len(calls)",
    ),
    "a function of NumPy": (
        "calls = []\nnp.sum = lambda *values: calls.append(values)", "seen = np.sum(X)", "n_params = len(calls)",
    ),
    "an object in a list of the lesson": (
        "batches = iter([1])\nids[0] = batches", "seen = list(ids[0])", "n_params = len(list(batches))",
    ),
}  # fmt: skip


@pytest.mark.parametrize("lines", REBOUND.values(), ids=REBOUND)
def test_an_exercise_whose_own_object_another_one_may_have_changed_is_run_again_alone(bench, lines) -> None:
    """A cell of the other exercise stands between its first cell and its last."""
    begin, between, end = lines
    one, two = (bench.read_source(name).split("\n", 1)[0] for name in ("shared-key", "head-size"))
    cells = {
        "shared-key": f"{one}\n{HARMLESS}",
        "head-size": f"{two}\n{bench.read_source('head-size').split(chr(10), 1)[1]}\n{end}",
    }
    data = bench.build(replace=cells, after={"shared-key": [f"{two}\n{begin}", f"{one}\n{between}"]})
    graded = bench.grader.grade_order(Order(Submission("ada", "ada.ipynb", data, "")))
    assert bench.scores(graded.grade)["shared-key"] == FULL["shared-key"]
    assert "head-size" in graded.runs


def test_what_is_lost_on_hidden_input_sets_only_is_run_again_whatever_stands_above(bench) -> None:
    """By then all exercises have run in that process."""
    typed = "n_params = 3 * C * 6 if X[0, 0, 0] == {value!r} else 0"
    value = float(bench.grader.marking.input_sets[0].inputs["X"][0, 0, 0])
    right = bench.read_source("head-size").split("\n", 1)[1]
    codes = {"shared-key": HARMLESS, "head-size": f"{right}\n{typed.format(value=value)}"}
    assert "head-size" in grade(bench, codes).runs


def test_the_first_exercise_is_run_again_when_the_published_set_does_not_show_the_loss(bench) -> None:
    first = "Wk_shared = Wq\nK_shared = np.matmul(X, Wk_shared)\n"
    first += "scores_shared = Q @ K_shared.swapaxes(1, 2) / np.sqrt(hs)\n"
    first += "is_symmetric = bool(np.allclose(scores_shared, scores_shared.swapaxes(1, 2)))"
    last = "keep = np.matmul\nnp.matmul = lambda *a, **k: 0 * keep(*a, **k)"
    graded = grade(bench, {"shared-key": first, "shared-value": last})
    assert "shared-key" in graded.runs
    assert bench.scores(graded.grade)["shared-key"] == FULL["shared-key"]


def test_stored_runs_give_the_same_grade_and_run_nothing(bench) -> None:
    made = grade(bench, WRONG)
    again = grade(bench, WRONG, made.runs)
    assert again.grade == made.grade
    assert again.runs == {}
    assert again.wanted == ()


def test_without_a_run_alone_it_is_said_which_exercises_want_one(bench) -> None:
    reaching = WRONG | {"shared-key": f"{WRONG['shared-key']}\ndef double(x):\n    return 2 * x"}
    made = grade(bench, reaching)
    again = grade(bench, reaching, {TOGETHER: made.runs[TOGETHER]}, may_run=False)
    assert again.runs == {}
    assert again.wanted == ("head-size", "shared-value")
    assert again.grade.score == made.grade.score


def test_marking_stored_runs_starts_no_sandbox(course, bench) -> None:
    made = grade(bench, WRONG)
    known = bench.grader.load_known()
    with Grader(course, "qkv") as grader:
        grader._known = known  # the catalogue's own code runs in a sandbox, too
        data = bench.fill(WRONG)
        submission = Submission("ada", "ada.ipynb", data, hashlib.sha256(data).hexdigest())
        assert grader.grade_order(Order(submission, made.runs, may_run=False)).grade == made.grade
        assert grader.sandbox.pids == []


def test_nothing_stored_and_nothing_allowed_is_our_fault(bench) -> None:
    graded = grade(bench, {}, may_run=False)
    assert graded.grade.status == "ungraded"
    assert graded.grade.score is None
    assert graded.runs == {}


@pytest.mark.parametrize("form", ["{}", "[{}]", "np.array({})", "np.array([[{}]])"])
def test_a_truth_value_that_turns_when_it_is_alone_is_shown_to_the_instructor(bench, form) -> None:
    guess = "V_first, Wv_shared, V_shared, equals_Q = V[0, 0], Wk, K, False\n"
    guess += "equals_K = " + form.format("'n_params' not in globals()")
    grade_of_guess = grade(bench, {"shared-value": guess}).grade
    assert bench.scores(grade_of_guess) == FULL
    assert [note for note in grade_of_guess.notes if "equals_K" in note and "guess twice" in note]
    lost = "V_first, Wv_shared, V_shared, equals_K, equals_Q = V[0, 0], Wk, K, False, False"
    steady = grade(bench, {"shared-value": lost}).grade
    assert bench.scores(steady)["shared-value"] < FULL["shared-value"]
    assert not [note for note in steady.notes if "guess twice" in note]


def test_an_exercise_that_keeps_the_limit_of_a_cell_has_time_for_all_input_sets_beside_slow_ones(quick_bench) -> None:
    """Whatever the others use up of what a submission has."""
    limits = quick_bench.grader.assignment.limits
    seconds = 0.75 * limits.cell_cpu_seconds
    assert 3 * 4 * seconds > limits.cpu_seconds, "all of them together are too slow"
    slow = f"import time\nbegan = time.process_time()\nwhile time.process_time() - began < {seconds}: pass\n"
    names = [each.id for each in quick_bench.grader.assignment.exercises]
    graded = grade(quick_bench, {name: slow + quick_bench.read_source(name).split("\n", 1)[1] for name in names})
    quick_bench.assert_full(graded.grade)


SOLVE = """
def solve(names):
    drawn = np.random.RandomState(1)
    weights = [drawn.randn(C, 6) * 0.1 for _ in range(3)]
    rows = [X @ each for each in weights]
    names.update(Wq6=weights[0], Wk6=weights[1], Wv6=weights[2], Q6=rows[0], K6=rows[1], V6=rows[2])
    names.update(n_params=int(np.prod([3, C, 6])), scores6=rows[0] @ rows[1].swapaxes(1, 2) / np.sqrt(6))
    names.update(same_score_shape=True)
"""


@pytest.mark.parametrize("harm", ["", "np.prod = None", "np.sqrt = lambda number: 1.0", "solve = print"])
def test_an_exercise_that_a_helper_answers_is_its_own(bench, harm) -> None:
    """No cell of the notebook is known to belong to it."""
    keys = f"{bench.read_source('shared-key')}\n{harm}"
    before = {"shared-key-start": [SOLVE], "head-size": ["solve(globals())"]}
    graded = bench.grade(bench.build(replace={"shared-key": keys}, drop={"head-size"}, before=before))
    assert bench.scores(graded)["head-size"] == FULL["head-size"]


@pytest.mark.parametrize("answer", ["n_params", "scores6"])
def test_an_answer_that_is_another_one_alone_is_shown_to_the_instructor(bench, answer) -> None:
    source = bench.read_source("head-size").split("\n", 1)[1]
    guess = f"{source}\nif 'Wk_shared' in globals(): {answer} = {answer} * 2\n"
    graded = grade(bench, {"head-size": guess}).grade
    assert bench.scores(graded) == FULL
    (note,) = [note for note in graded.notes if "guess twice" in note]
    assert f"gave {answer} other values" in note


def test_a_cell_that_the_machine_made_wait_has_all_its_time_in_the_run_alone(bench) -> None:
    """A machine that stands still for ten seconds shows as a cell that hangs, and has used no processor time."""
    limit = bench.grader.assignment.limits.cell_cpu_seconds
    right = bench.read_source("shared-key").split("\n", 1)[1]
    slow = f"import time\nbegan = time.process_time()\nwhile time.process_time() - began < {0.4 * limit}: pass\n{right}"
    joint = grade(bench, {"shared-key": slow}).runs[TOGETHER]
    program = parse_program(bench.fill({"shared-key": slow}), bench.grader.assignment)
    (cell,) = (number for number, each in enumerate(program.cells) if "shared-key" in each.exercises)
    stood = CellRun(cell, Ending.TIMEOUT, text="it ran longer than 10 s (limit cell_wall_seconds)")
    passes = [
        msgspec.structs.replace(
            each,
            runs=tuple(stood if run.cell == cell else run for run in each.runs),
            answers={name: value for name, value in each.answers.items() if name not in ANSWERS},
        )
        for each in joint.passes
    ]
    graded = grade(bench, {"shared-key": slow}, {TOGETHER: msgspec.structs.replace(joint, passes=tuple(passes))})
    assert list(graded.runs) == ["shared-key"]
    bench.assert_full(graded.grade)


ANSWERS = ("Wk_shared", "K_shared", "scores_shared", "is_symmetric")
