"""The command line as a shell sees it: exit statuses, what stands on standard output, and files written."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*arguments: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "autograder", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "140"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False)


def complain(done: subprocess.CompletedProcess[str]) -> str:
    """The complaint of a run that ended with status 2: one message, no traceback, no document."""
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert "{" not in done.stdout
    assert done.stderr.startswith("autograder: ")
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def class_folder(bench, tmp_path_factory):
    """A flat folder: right, half right, an endless wait for nobody, and a file that is no notebook."""
    folder = tmp_path_factory.mktemp("class")
    (folder / "ada.ipynb").write_bytes(bench.source)
    (folder / "ben.ipynb").write_bytes(bench.fill({"shared-key": "Wk_shared = Wk", "shared-value": "1/0"}))
    (folder / "cleo.ipynb").write_bytes(bench.course.released_notebook("qkv").read_bytes())
    (folder / "=dan().ipynb").write_bytes(bench.fill({"head-size": "import os\nos._exit(0)"}))
    return folder


@pytest.fixture(scope="module")
def graded(class_folder, tmp_path_factory):
    """One run over the class with every kind of output."""
    table = tmp_path_factory.mktemp("out") / "scores.csv"
    done = run("grade", class_folder, "--json", "--csv", table, "--jobs", 1)
    return done, json.loads(done.stdout), table.read_bytes()


def test_a_class_that_was_graded_whatever_its_scores_ends_with_0(graded) -> None:
    done, document, _ = graded
    assert done.returncode == 0, done.stderr
    scores = {each["student"]: each["score"] for each in document["results"]}
    assert scores == {"=dan()": 8.0, "ada": 13.0, "ben": 5.0, "cleo": 0.0}
    assert {each["status"] for each in document["results"]} == {"graded"}


def test_standard_output_holds_the_document_and_nothing_else(graded) -> None:
    done, document, _ = graded
    assert done.stdout.startswith("{")
    assert done.stdout.endswith("}\n")
    assert {"course", "assignment", "results", "skipped"} <= set(document)
    assert (document["course"], document["assignment"]) == ("attention", "qkv")
    assert [each["path"].split("/")[-1] for each in document["results"]] == sorted(
        ["=dan().ipynb", "ada.ipynb", "ben.ipynb", "cleo.ipynb"]
    )


def test_the_csv_file_has_a_row_for_each_and_no_formula(graded) -> None:
    _, document, table = graded
    rows = list(csv.DictReader(io.StringIO(table.decode("utf-8"))))
    assert [row["student"] for row in rows] == ["'=dan()", "ada", "ben", "cleo"]
    assert [float(row["score"]) for row in rows] == [each["score"] for each in document["results"]]
    assert [row["shared-key"] for row in rows] == ["4", "4", "0", "0"]


def test_two_workers_give_the_same_document_as_one(graded, class_folder) -> None:
    assert json.loads(run("grade", class_folder, "--json", "--jobs", 2).stdout) == graded[1]


def test_some_that_could_not_be_graded_end_with_1(class_folder, tmp_path) -> None:
    shutil.copy(class_folder / "ada.ipynb", tmp_path)
    (tmp_path / "eve.ipynb").write_text("this is my homework")
    (tmp_path / "notes.txt").write_text("not a submission")
    done = run("grade", tmp_path, "--json")
    assert done.returncode == 1
    document = json.loads(done.stdout)
    ada, eve = document["results"]
    assert (ada["status"], ada["score"]) == ("graded", 13.0)
    assert (eve["status"], eve["score"], eve["exercises"]) == ("ungraded", None, [])
    assert "not a notebook" in eve["reason"]
    assert [each["path"].split("/")[-1] for each in document["skipped"]] == ["notes.txt"]
    plain = run("grade", tmp_path)
    assert plain.returncode == 1
    assert "1 graded, 1 ungraded, 1 skipped" in plain.stdout
    assert "eve.ipynb" in plain.stdout


def test_the_table_shows_each_student_and_details_say_what_was_lost(class_folder) -> None:
    done = run("grade", class_folder / "ben.ipynb", class_folder / "cleo.ipynb", "--details")
    assert done.returncode == 0
    assert re.search(r"ben.*0/4.*5/5.*0/4 error.*5 / 15", done.stdout)
    assert re.search(r"cleo.*not-attempted", done.stdout)
    assert "shared-key, 1 lost: Asked: `Wk_shared` is the matrix of the queries." in done.stdout


def test_an_nbgrader_tree_names_the_students_by_their_folders(class_folder, tmp_path) -> None:
    for student, file in (("ada", "qkv.ipynb"), ("zoe", "Untitled3.ipynb")):
        (tmp_path / "in" / student / "qkv").mkdir(parents=True)
        shutil.copy(class_folder / "ada.ipynb", tmp_path / "in" / student / "qkv" / file)
    document = json.loads(run("grade", tmp_path / "in", "-a", "qkv", "--json").stdout)
    assert [(each["student"], each["score"]) for each in document["results"]] == [("ada", 13.0), ("zoe", 13.0)]


def test_a_broken_hidden_test_is_never_a_zero(class_folder, tmp_path) -> None:
    shutil.copytree(ROOT / "solutions", tmp_path / "solutions")
    shutil.copytree(ROOT / "tests" / "hidden", tmp_path / "tests" / "hidden")
    shutil.copy(ROOT / "course.toml", tmp_path)
    file = tmp_path / "tests" / "hidden" / "qkv" / "test_shared_key.py"
    text = file.read_text()
    file.write_text(text.replace("check_close(answers, ", "1 / 0, (answers, "))
    said = complain(run("grade", class_folder / "ada.ipynb", "--json", "--course", tmp_path))
    assert "test_key_matrix_is_the_query_matrix is broken" in said
    file.write_text(text.replace("import pytest", "import pytest as"))
    assert "test_shared_key.py" in complain(run("grade", class_folder / "ada.ipynb", "--json", "--course", tmp_path))
    file.write_text(text)
    reference = tmp_path / "solutions" / "qkv" / "reference.py"
    reference.write_text(reference.read_text().replace("HS = 4", "HS = four"))
    assert "reference.py" in complain(run("grade", class_folder, "--json", "--jobs", 2, "--course", tmp_path))


USAGE_ERRORS = {
    "an unknown assignment": (["grade", "solutions/qkv/qkv.ipynb", "-a", "qkw"], "did you mean qkv?"),
    "a missing path": (["grade", "no/such/folder"], "no/such/folder"),
    "a missing course": (["grade", "--course", "/usr/share"], "course.toml"),
    "an unknown option": (["grade", "--jsonn"], "--json"),
    "an unknown command": (["grad"], "grad"),
    "jobs below zero": (["grade", "solutions/qkv/qkv.ipynb", "--jobs", "-1"], "jobs"),
    "jobs that are no number": (["grade", "solutions/qkv/qkv.ipynb", "--jobs", "two"], "jobs"),
    "an unknown assignment to validate": (["validate", "kqv"], "did you mean qkv?"),
    "an unknown assignment to release": (["release", "kqv"], "did you mean qkv?"),
}


@pytest.mark.parametrize(("arguments", "named"), USAGE_ERRORS.values(), ids=USAGE_ERRORS.keys())
def test_a_wrong_command_ends_with_2_and_a_sentence(arguments, named) -> None:
    assert named in complain(run(*arguments))


def test_no_course_above_the_current_folder_ends_with_2_and_says_what_to_do(tmp_path) -> None:
    said = complain(run("grade", "x.ipynb", cwd=tmp_path))
    assert "no course.toml" in said
    assert "--course DIR" in said


def test_a_csv_file_that_cannot_be_written_ends_with_2(class_folder) -> None:
    done = run("grade", class_folder / "ada.ipynb", "--csv", "/no/such/folder/scores.csv")
    assert done.returncode == 2
    assert "/no/such/folder/scores.csv" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_course_is_found_from_a_folder_below_it() -> None:
    done = run("grade", "qkv.ipynb", "--json", cwd=ROOT / "solutions" / "qkv")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["results"][0]["path"] == "qkv.ipynb"


def test_a_grader_that_was_started_with_ended_children_ignored_grades_all_the_same(class_folder) -> None:
    """Some services start what they start like that, and it is handed on to all that is started below."""
    command = ["env", "--ignore-signal=CHLD", sys.executable, "-m", "autograder", "grade"]
    command += [str(class_folder / "ben.ipynb"), "--no-store", "--json", "--course", str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["results"][0]["score"] == 5.0
