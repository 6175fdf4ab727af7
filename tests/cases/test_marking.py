"""From answers to marks: typed-in numbers, error carried forward, what is said, and whose fault it was."""

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from autograder.course import load_course
from autograder.errors import CourseError
from autograder.finals import Finals
from autograder.gradebook import Entry
from autograder.grading import Grader
from autograder.records import Grade, Submission
from autograder.report.documents import write_document

ROOT = Path(__file__).parents[2]
HIDDEN = Path("tests/hidden/qkv")

KEY_TESTS = (
    "test_key_matrix_is_the_query_matrix",
    "test_keys_are_recomputed",
    "test_scores_are_recomputed",
    "test_symmetry_is_reported",
)


def read_answers(bench, seed, exercise):
    input_set = next(each for each in bench.grader.marking.input_sets if each.seed == seed)
    names = next(each for each in bench.grader.assignment.exercises if each.id == exercise).answers
    return {name: input_set.expected[name] for name in names}


def type_in(values) -> str:
    lines = [
        f"{name} = np.array({value.tolist()})" if isinstance(value, np.ndarray) else f"{name} = {value!r}"
        for name, value in values.items()
    ]
    return "\n".join(lines)


# --- typed in -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exercise", ["shared-key", "head-size", "shared-value"])
def test_numbers_typed_in_from_the_published_set_are_told_as_right_for_it_alone(bench, exercise) -> None:
    grade = bench.grade_codes({exercise: type_in(read_answers(bench, 42, exercise))})
    bench.assert_only(grade, exercise)
    lost = bench.lost(grade)
    # Exercise 3 asks whether the typed-in values equal Q, and they have not the shape of this set's.
    changing = {"shared-key": 3, "head-size": 2, "shared-value": 4}
    assert len(lost) == changing[exercise], "what is alike on all input sets passes, and nothing else"
    for mark in lost.values():
        assert "only-published" in mark.explanations, mark


def test_an_answer_wrong_on_one_hidden_set_loses_its_mark_alone(bench) -> None:
    lengths = {each.seed: each.inputs["T"] for each in bench.grader.marking.input_sets}
    assert len(set(lengths.values())) == 4
    code = f"{bench.read_source('shared-key')}\nif T == {lengths[7]}: K_shared = K_shared * 2"
    grade = bench.grade(bench.build(replace={"shared-key": code}))
    lost = bench.lost(grade)
    assert set(lost) == {"test_keys_are_recomputed"}


# --- what a student reads -----------------------------------------------------------------------------------


def build_document(bench, grade: Grade) -> bytes:
    file = io.BytesIO()
    final = Finals(bench.course, "qkv").compute(grade, Entry(grade.student, grade.path, grade.sha256))
    write_document(file, "attention", "qkv", [(grade, final)], [])
    return file.getvalue()


def test_no_message_shows_the_text_of_an_exception_on_a_hidden_set(bench) -> None:
    code = f"if text != 'the lamp': raise ValueError('SECRET' + text)\n{bench.read_source('shared-key')}"
    grade = bench.grade(bench.build(replace={"shared-key": code}))
    document = build_document(bench, grade)
    assert b"SECRET" not in document
    assert bench.status(grade, "shared-key") == "error"


def test_outputs_are_those_of_the_published_set_only(bench) -> None:
    notebook = bench.build(before={"head-size": ["print('seen:', text)", "1/0"]})
    execution = execute(bench, notebook)
    shown = b"".join(output.data for output in execution.outputs)
    assert b"seen: the lamp" in shown
    for each in bench.grader.marking.input_sets[1:]:
        assert each.inputs["text"].encode() not in shown
    assert [run.error for run in execution.evidence if run.error] == ["ZeroDivisionError"]


SPEAKERS = {
    "a thread that goes on": """
import threading
def talk():
    import time
    for number in range(40):
        print("tick", number, flush=True)
        time.sleep(0.002)
threading.Thread(target=talk, daemon=True).start()
import time; time.sleep(0.02)
""",
    "processes of a pool": """
import multiprocessing
def talk(number):
    print("child", "x" * 70_000, flush=True)
    return number
with multiprocessing.Pool(4) as pool:
    print("tick", sum(pool.map(talk, range(12))))
""",
}


@pytest.mark.parametrize("code", SPEAKERS.values(), ids=SPEAKERS)
def test_what_others_than_the_cell_print_tears_no_output_apart(bench, code) -> None:
    execution = execute(bench, bench.build(before={"head-size": [code]}))
    assert b"tick" in b"".join(output.data for output in execution.outputs)
    assert {run.ending for run in execution.evidence} == {"ok"}


def execute(bench, data):
    from autograder.intake.notebook import parse_program
    from autograder.sandbox.watch import build_budget

    inputs = [(each.seed, each.inputs) for each in bench.grader.marking.input_sets]
    program = parse_program(data, bench.grader.assignment)
    return bench.grader.sandbox.execute(program, inputs, build_budget(bench.grader.assignment))


# --- error carried forward ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        ("Wk_shared = Wq * 2", KEY_TESTS[:1]),
        ("Wk_shared = Wq.T.copy()", ()),
        ("Wk_shared = Wk", KEY_TESTS),
        ("Wk_shared = Wq * np.nan", KEY_TESTS),
        ("Wk_shared = np.ones((C, hs))", KEY_TESTS[:3]),
        ("Wk_shared = Wq.tolist()", ()),
        ("Wk_shared = Wq.astype('float32')", ()),
        ("Wk_shared = Wq.astype('float16')", KEY_TESTS[:1]),
        ("Wk_shared = Wq + 0j", ()),
        ("Wk_shared = Wq + 1j", KEY_TESTS),
    ],
)
def test_a_wrong_matrix_carries_forward_only_where_it_is_usable_and_ones_own(bench, change, lost) -> None:
    by_matrix = """W = np.asarray(Wk_shared)
K_shared = X @ (W if W.shape == (C, hs) else W.T)
scores_shared = Q @ K_shared.swapaxes(1, 2) / np.sqrt(hs)
is_symmetric = np.allclose(scores_shared, scores_shared.swapaxes(1, 2))
"""
    grade = bench.grade_codes({"shared-key": f"{change}\n{by_matrix}"})
    bench.assert_only(grade, "shared-key")
    assert set(bench.lost(grade)) == set(lost)


def test_answers_that_are_all_missing_but_one_keep_that_one(bench) -> None:
    grade = bench.grade_codes({"shared-key": "scores_shared = Q @ (X @ Wq).swapaxes(1, 2) / np.sqrt(hs)"})
    assert set(bench.lost(grade)) == {name for name in KEY_TESTS if name != "test_scores_are_recomputed"}


# --- our faults ---------------------------------------------------------------------------------------------


@pytest.fixture
def broken(tmp_path):
    """A copy of the course to be broken."""
    folder = tmp_path / "course"
    shutil.copytree(ROOT / "solutions", folder / "solutions")
    shutil.copytree(ROOT / HIDDEN, folder / HIDDEN)
    shutil.copy(ROOT / "course.toml", folder)
    return folder


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


FAILING_TESTS = {
    "raises": "1 / 0",
    "misspells an answer": "answers.Wk_shard",
    "compares shapes that do not broadcast": "inputs.X + inputs.Wq",
    "is skipped": "pytest.skip('later')",
    "leaves": "raise SystemExit(0)",
}


@pytest.mark.parametrize("line", FAILING_TESTS.values(), ids=FAILING_TESTS.keys())
def test_a_hidden_test_that_breaks_is_an_error_of_the_course(broken, line) -> None:
    file = broken / HIDDEN / "test_shared_key.py"
    change(file, "    check_close(answers, ", f"    {line}\n    check_close(answers, ")
    change(file, "(answers, expected):", "(answers, expected, inputs):")
    with (
        pytest.raises(CourseError, match="test_key_matrix_is_the_query_matrix is broken"),
        Grader(load_course(broken), "qkv"),
    ):
        pass


def test_a_hidden_test_that_breaks_on_ones_answers_leaves_the_submission_ungraded(broken, bench) -> None:
    file = broken / HIDDEN / "test_shared_key.py"
    change(
        file,
        "    check_close(answers, ",
        "    1 / int((answers.Wk_shared == expected.Wk_shared).all())\n    check_close(answers, ",
    )
    change(file, "(answers, expected):", "(answers, expected, inputs):")
    wrong = bench.fill({"shared-key": "Wk_shared = np.arange(C * hs).reshape(C, hs)"})
    with Grader(load_course(broken), "qkv") as grader:
        for data, status in ((wrong, "ungraded"), (bench.source, "graded"), (wrong, "ungraded")):
            grade = grader.grade_submission(Submission("ada", "ada.ipynb", data, "0" * 64))
            assert grade.status == status, grade.reason
        assert grade.reason is not None
        assert "test_key_matrix_is_the_query_matrix is broken" in grade.reason


TESTS, REFERENCE, COURSE = HIDDEN / "test_head_size.py", Path("solutions/qkv/reference.py"), Path("course.toml")
FAILING_COURSES = {
    "a hidden test with a syntax error": (TESTS, "import numpy", "import numpy as = ", "test_head_size"),
    "a hidden test with a missing import": (TESTS, "import numpy", "import no_such_module", "test_head_size"),
    "a hidden test without points": (TESTS, "@pytest.mark.points(1)\n", "", "points"),
    "a hidden test of no exercise": (TESTS, 'exercise("head-size")', 'exercise("head-sise")', "head-sise"),
    "a hidden test with an unknown fixture": (TESTS, "(answers, inputs)", "(answers, inputz)", "inputz"),
    "a reference with a syntax error": (REFERENCE, "def project(", "def project((", "reference.py"),
    "a reference that fails": (REFERENCE, "return {\n", "1 / 0\n    return {\n", "reference.py"),
    "a reference that forgets an answer": (REFERENCE, '"n_params":', '"n_parameters":', "n_params"),
    "a reference without an exercise": (REFERENCE, "def head_size(", "def head_sise(", "head_size"),
    "a course file with a wrong key": (COURSE, "seeds =", "seed =", "seed"),
}


@pytest.mark.parametrize(("file", "old", "new", "named"), FAILING_COURSES.values(), ids=FAILING_COURSES.keys())
def test_course_files_that_are_wrong_stop_the_grading_and_are_named(broken, bench, file, old, new, named) -> None:
    change(broken / file, old, new)

    def grade() -> None:
        with Grader(load_course(broken), "qkv") as grader:
            result = grader.grade_submission(Submission("ada", "ada.ipynb", bench.source, "0" * 64))
        assert result.status == "ungraded"
        raise CourseError(str(result.reason))

    with pytest.raises(CourseError, match=named):
        grade()


def test_missing_hidden_tests_and_a_missing_reference_stop_the_grading(broken) -> None:
    (broken / "solutions" / "qkv" / "reference.py").unlink()
    with pytest.raises(CourseError, match=r"reference\.py: the reference is missing"):
        Grader(load_course(broken), "qkv").__enter__()
    shutil.copy(ROOT / "solutions" / "qkv" / "reference.py", broken / "solutions" / "qkv")
    shutil.rmtree(broken / HIDDEN)
    with pytest.raises(CourseError, match="hidden tests are missing"):
        Grader(load_course(broken), "qkv").__enter__()
    (broken / HIDDEN).mkdir()
    with pytest.raises(CourseError, match="hidden"):
        Grader(load_course(broken), "qkv").__enter__()


def test_bytes_that_are_no_notebook_are_ungraded_and_have_no_score(bench) -> None:
    for data in (b"", b"hello", b"{}", b'{"cells": 5}', bench.source[:-100], b"\x00" * 100):
        grade = bench.grade_any(data)
        assert (grade.status, grade.score, grade.max_score, grade.exercises) == ("ungraded", None, None, ())
        assert grade.reason


# --- one result ---------------------------------------------------------------------------------------------


def test_grading_twice_gives_the_same_document(bench) -> None:
    data = bench.fill(
        {"shared-key": "Wk_shared = Wq * np.random.rand()\nprint(id(Wk_shared))", "shared-value": "1 / 0"}
    )
    documents = [build_document(bench, bench.grade(data)) for _ in range(2)]
    assert documents[0] == documents[1]


def test_a_hidden_test_that_does_not_end_is_our_fault_and_stops_nobody_for_ever(monkeypatch, broken, bench) -> None:
    monkeypatch.setattr("autograder.marking.session.MARK_SECONDS", 2.0)
    with open(broken / HIDDEN / "test_head_size.py", "a", encoding="utf-8") as file:
        file.write(
            "\n\n@pytest.mark.points(1)\ndef test_waits(answers) -> None:\n"
            # Far beyond the limit; for ever, it would take time from all tests that follow in this process.
            '    """It waits for seven."""\n    import time\n    end = time.monotonic() + 6\n'
            "    while answers.n_params == 7 and time.monotonic() < end:\n        time.sleep(0.01)\n"
        )
    with Grader(load_course(broken), "qkv") as grader:
        for code, status in (("n_params = 1", "graded"), ("n_params = 7", "ungraded"), ("n_params = 1", "ungraded")):
            data = bench.fill({"head-size": code})
            grade = grader.grade_submission(Submission("ada", "ada.ipynb", data, "0" * 64))
            assert grade.status == status, grade.reason
        assert "test_head_size.py::test_waits did not end within 2 s" in (grade.reason or "")


STOPPED = """
import os, queue, subprocess, threading, time
from autograder.marking.session import take_within
results = queue.SimpleQueue()
def work():
    for _ in range(30):
        time.sleep(0.05)
    results.put("done")
threading.Thread(target=work).start()
subprocess.Popen(["sh", "-c", f"sleep 0.3; kill -STOP {os.getpid()}; sleep 4; kill -CONT {os.getpid()}"])
print(take_within(results, 3))
"""


def test_time_in_which_the_grader_is_stopped_is_no_time_of_a_hidden_tests() -> None:
    ended = subprocess.run([sys.executable, "-c", STOPPED], capture_output=True, text=True, timeout=30, check=False)
    assert ended.stdout == "done\n", ended.stderr


def test_one_submission_leaves_nothing_for_the_next(bench) -> None:
    leave = (
        "import builtins, os\nopen('/tmp/left', 'w').write('x')\nnp.left = builtins.left = os.environ['left'] = 'x'\n"
    )
    look = "import builtins, os\nassert not os.path.exists('/tmp/left') and 'left' not in os.environ\n"
    look += "assert not hasattr(np, 'left') and not hasattr(builtins, 'left')\n"
    for code in (leave, look):
        grade = bench.grade_codes({"shared-key": code + bench.read_source("shared-key")})
        bench.assert_full(grade)
        assert bench.status(grade, "shared-key") == "ok"


# --- plain pytest -------------------------------------------------------------------------------------------


def run_pytest(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HIDDEN), *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_the_hidden_tests_are_green_on_the_solution() -> None:
    done = run_pytest()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "13 passed" in done.stdout


def test_the_hidden_tests_mark_a_named_submission(bench, tmp_path) -> None:
    file = tmp_path / "ada.ipynb"
    file.write_bytes(bench.fill({"shared-key": "Wk_shared = Wk"}))
    done = run_pytest("--submission", str(file))
    assert done.returncode == 1
    assert "4 failed, 9 passed" in done.stdout
    assert "seed 42: `Wk_shared` has other values than this step gives." in done.stdout


def test_the_hidden_tests_say_in_a_sentence_that_a_submission_is_not_there() -> None:
    done = run_pytest("--submission", "no-such-file.ipynb")
    assert done.returncode != 0
    assert "there is no such file" in done.stdout + done.stderr
