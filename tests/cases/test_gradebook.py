"""Execute once, mark many: what is done again and what is not, on a course of one's own with a real store."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from sqlalchemy import text

from autograder.__main__ import main
from autograder.catalogue import fill_notebook
from autograder.course import load_course
from autograder.gradebook import Done, Gradebook, Work
from autograder.intake.layouts import find_submissions
from autograder.store.database import Store, open_store
from autograder.store.forgetting import forget
from autograder.store.place import default_place

ROOT = Path(__file__).parents[2]
COMMAND = Path(sys.executable).with_name("autograder")
TEST_FILE = "tests/hidden/qkv/test_shared_key.py"
WRONG = {
    "bob": {"shared-key": "Wk_shared = Wq\nK_shared = X @ Wk_shared"},
    "cem": {"shared-value": "V_first = V[0, 0]\nequals_K = False"},
}


class School:
    """A course, its downloads and its store, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "course"
        self.downloads = folder / "downloads"
        if not self.folder.exists():
            self.downloads.mkdir()
            for part in ("solutions", "assignments", "tests/hidden"):
                shutil.copytree(ROOT / part, self.folder / part, ignore=shutil.ignore_patterns("__pycache__"))
            shutil.copy(ROOT / "course.toml", self.folder)
        self.source = (self.folder / "solutions/qkv/qkv.ipynb").read_bytes()

    def hand_in(self, student: str, codes: Mapping[str, str] | None = None, *, tail: bytes = b"") -> None:
        """Put a notebook into the downloads: the solution with other code in some cells."""
        (self.downloads / f"{student}.ipynb").write_bytes(fill_notebook(self.source, codes or {}) + tail)

    def edit(self, file: str, old: str, new: str) -> None:
        """Change one of the course's files."""
        path = self.folder / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    def grade(self, **options: bool) -> dict[str, Done]:
        """Grade the downloads in this process."""
        course = load_course(self.folder)
        sources, _ = find_submissions([self.downloads], "qkv")
        with open_store(default_place(self.folder)) as store:
            return {
                each.entry.student: each for each in Gradebook(course, "qkv", store, jobs=1).grade(sources, **options)
            }

    def regrade(self, *, dry_run: bool = False) -> dict[str, Done]:
        """Mark again in this process."""
        with open_store(default_place(self.folder)) as store:
            book = Gradebook(load_course(self.folder), "qkv", store, jobs=1)
            return {each.entry.student: each for each in book.regrade(dry_run=dry_run)}

    def call(self, *arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
        """The command line, as an instructor calls it in the course's folder."""
        environment = {**os.environ, "COLUMNS": "200"} | ({"PATH": path} if path is not None else {})
        del environment["AUTOGRADER_STORE"]
        return subprocess.run(
            [str(COMMAND), *arguments], cwd=self.folder, env=environment, capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL, timeout=120,
        )  # fmt: skip


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A school whose class is graded; the others are copies, since to grade each class anew would only cost time."""
    folder = tmp_path_factory.mktemp("school")
    made = School(folder)
    made.hand_in("ada")
    for student, codes in WRONG.items():
        made.hand_in(student, codes)
    made.grade()
    return folder


@pytest.fixture
def graded(template: Path, tmp_path: Path) -> School:
    """A class of three that is graded."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    return School(tmp_path)


@pytest.fixture
def school(graded: School) -> School:
    """A class of three that nobody has graded."""
    for file in default_place(graded.folder).parent.glob("grades.*"):
        file.unlink()
    return graded


def count(done: Mapping[str, Done]) -> Counter[Work]:
    return Counter(each.work for each in done.values())


def score(done: Mapping[str, Done]) -> dict[str, float | None]:
    return {student: each.grade.score for student, each in sorted(done.items())}


# --- what is done again -------------------------------------------------------------------------------------


def test_a_second_run_does_nothing_and_shows_the_same(school: School) -> None:
    first = school.call("grade", "../downloads", "--json")
    assert (first.returncode, first.stderr) == (0, "")
    again = school.call("grade", "../downloads", "--json", path="/nowhere")
    assert (again.returncode, again.stdout) == (0, first.stdout)
    table = school.call("grade", "../downloads")
    assert "(nothing to do: all were graded before, in the same way)" in table.stdout


def test_only_what_is_new_is_run(school: School) -> None:
    assert count(school.grade()) == {Work.RUN: 3}
    school.hand_in("dia", {"head-size": "n_params = 7"})
    school.hand_in("bob")
    done = school.grade()
    assert {student for student, each in done.items() if each.work is Work.RUN} == {"dia"}
    assert done["bob"].grade.score == 13.0, "bytes that somebody else handed in before are known"


def test_bytes_that_two_hand_in_are_run_once_and_graded_for_both(school: School) -> None:
    school.hand_in("ida", WRONG["bob"])
    done = school.grade()
    bob, ida = done["bob"].grade, done["ida"].grade
    assert (ida.student, ida.score, ida.exercises) == ("ida", bob.score, bob.exercises)
    with open_store(default_place(school.folder)) as store:
        assert len(store.find_executed("qkv", _read_environment(school))) == 3


def _read_environment(school: School) -> str:
    with open_store(default_place(school.folder)) as store:
        return store.latest_grades("qkv")[0].environment


def test_force_runs_everything_again(school: School) -> None:
    before = score(school.grade())
    done = school.grade(force=True)
    assert count(done) == {Work.RUN: 3}
    assert score(done) == before


def test_another_limit_is_another_environment_and_runs_again(graded: School) -> None:
    graded.edit("course.toml", "processes = 32", "processes = 20")
    assert count(graded.grade()) == {Work.RUN: 3}


# --- marking again ------------------------------------------------------------------------------------------


def test_other_points_are_marked_without_a_sandbox_and_it_is_said_whose_marks_change(graded: School) -> None:
    graded.edit(TEST_FILE, "@pytest.mark.points(1)", "@pytest.mark.points(2)")
    # Without bubblewrap no student code can run.
    planned = graded.call("regrade", "--dry-run", path="/nowhere")
    assert planned.returncode == 0, planned.stderr
    done = graded.call("regrade", path="/nowhere")
    assert done.returncode == 0, done.stderr
    assert planned.stdout.replace("would be ", "").split(", in ")[0] == done.stdout.split(", in ")[0]
    assert "marked again: 3, had been marked like this before: 0, changed exercises: 3" in done.stdout
    assert "  ada: shared-key 4 of 5 -> 8 of 9\n" in done.stdout
    assert "  bob: shared-key 2 of 5 -> 4 of 9\n" in done.stdout
    again = graded.call("regrade", path="/nowhere")
    assert "marked again: 0, had been marked like this before: 3, changed exercises: 0" in again.stdout


def test_a_dry_run_stores_nothing(school: School) -> None:
    before = school.grade()
    school.edit(TEST_FILE, "@pytest.mark.points(1)", "@pytest.mark.points(2)")
    assert score(school.regrade(dry_run=True)) != score(before)
    with open_store(default_place(school.folder)) as store:
        stored = {each.submission.student: each.grade.score for each in store.latest_grades("qkv")}
    assert stored == score(before)


def test_tests_that_go_back_to_what_they_were_give_the_old_marks_at_once(school: School) -> None:
    before = score(school.grade())
    school.edit(TEST_FILE, "@pytest.mark.points(1)", "@pytest.mark.points(2)")
    school.regrade()
    school.edit(TEST_FILE, "@pytest.mark.points(2)", "@pytest.mark.points(1)")
    done = school.regrade()
    assert count(done) == {Work.KEPT: 3}
    assert done["ada"].before is not None, "it is said that marks change"
    with open_store(default_place(school.folder)) as store:
        assert {each.submission.student: each.grade.score for each in store.latest_grades("qkv")} == before


def test_a_run_alone_that_is_missing_is_made_and_told(school: School) -> None:
    """What is refused newly may be a neighbour's fault, and nobody has looked at that yet."""
    for student in WRONG:
        (school.downloads / f"{student}.ipynb").unlink()
    # It defines a function, so that its text does not prove that it reaches nothing below it.
    neighbour = f"def double(x):\n    return 2 * x\n{read_solution(school, 'shared-key')}"
    drawn = f"np.random.rand(3)\n{read_solution(school, 'head-size')}"
    school.hand_in("ada", {"shared-key": neighbour, "head-size": drawn})
    assert score(school.grade()) == {"ada": 13.0}
    with open(school.folder / "tests/hidden/qkv/test_head_size.py", "a", encoding="utf-8") as file:
        file.write(
            "\n\n@pytest.mark.points(1)\ndef test_draws_are_those_of_the_reference(answers, expected) -> None:\n"
            '    """Wq6 is drawn as the reference draws it."""\n'
            '    require(answers.Wq6[0, 0] == expected.Wq6[0, 0], "It is not.")\n'
        )
    planned = school.call("regrade", "--dry-run", path="/nowhere")
    assert planned.returncode == 0, planned.stderr
    assert "1 submissions newly lose marks that a run of the exercise alone might save" in planned.stdout
    done = school.call("regrade")
    assert done.returncode == 0, done.stderr
    assert "1 exercises that newly lost marks were run alone first" in done.stdout
    assert "run alone" not in school.call("regrade").stdout


def read_solution(school: School, exercise: str) -> str:
    for cell in json.loads(school.source)["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == exercise:
            return "".join(cell["source"])
    raise LookupError(exercise)


def test_what_was_not_run_in_this_environment_is_left_out_and_told(graded: School) -> None:
    graded.edit("course.toml", "processes = 32", "processes = 20")
    done = graded.call("regrade")
    assert "marked again: 0, had been marked like this before: 0" in done.stdout
    assert "3 submissions were not run in this environment and are left out" in done.stdout


def test_a_damaged_run_is_made_again_and_damaged_bytes_are_stored_again(school: School) -> None:
    before = score(school.grade())
    with open_store(default_place(school.folder)) as store, store._write() as connection:
        connection.execute(text("UPDATE executions SET data = substr(data, 1, 40)"))
    school.edit(TEST_FILE, "@pytest.mark.points(1)", "@pytest.mark.points(2)")
    assert {each.grade.status for each in school.regrade(dry_run=True).values()} == {"ungraded"}
    assert {each.grade.status for each in school.grade().values()} == {"graded"}
    school.edit(TEST_FILE, "@pytest.mark.points(2)", "@pytest.mark.points(1)")
    assert score(school.regrade()) == before
    with open_store(default_place(school.folder)) as store, store._write() as connection:
        connection.execute(text("UPDATE contents SET data = x'00112233'"))
    school.edit(TEST_FILE, "@pytest.mark.points(1)", "@pytest.mark.points(3)")
    assert school.call("regrade").returncode == 0, "answers are marked without the bytes"
    with open_store(default_place(school.folder)) as store, store._write() as connection:
        connection.execute(text("UPDATE executions SET data = substr(data, 1, 40)"))
    school.edit(TEST_FILE, "@pytest.mark.points(3)", "@pytest.mark.points(4)")
    assert all("grade its file again with --force" in (each.grade.reason or "") for each in school.regrade().values())
    assert school.call("grade", "../downloads", "--force").returncode == 0
    assert school.call("regrade").returncode == 0


# --- people -------------------------------------------------------------------------------------------------


def test_points_of_a_lost_test_and_of_a_written_part_are_changes_too(school: School) -> None:
    school.hand_in("dia", {"head-size": "pass"})
    school.hand_in("eli", {"shared-key": "pass"})
    school.call("grade", "../downloads")
    school.edit("tests/hidden/qkv/test_head_size.py", "@pytest.mark.points(1)", "@pytest.mark.points(2)")
    school.edit("course.toml", "written_points = 1", "written_points = 2")
    planned = school.call("regrade", "--dry-run", "--json")
    changes = [tuple(each.values()) for each in json.loads(planned.stdout)["changes"]]
    assert ("dia", "head-size", "0 of 5", "0 of 10") in changes
    assert ("eli", "shared-key", "0 of 5", "0 of 6") in changes
    assert [student for student, *_ in changes] == sorted(student for student, *_ in changes)
    done = school.call("regrade", "--json")
    assert planned.stdout.replace('"dry_run": true', '"dry_run": false') == done.stdout


def test_regrade_does_not_promise_to_run_what_is_no_notebook(school: School) -> None:
    (school.downloads / "dan.ipynb").write_text("no notebook")
    school.call("grade", "../downloads")
    assert "left out" not in school.call("regrade").stdout
    school.edit("course.toml", "processes = 32", "processes = 20")
    assert "4 submissions were not run" in school.call("regrade").stdout


@pytest.mark.parametrize("disguise", ["\u212aarl", "Karl\u200b"])
@pytest.mark.parametrize("first", ["Karl", "the disguise"])
def test_who_hands_in_under_a_name_that_is_shown_alike_takes_nobodys_place(school: School, disguise, first) -> None:
    handed = {"Karl": {}, disguise: {"shared-key": "K_shared = 1"}}
    for name in sorted(handed, key=lambda name: (name == "Karl") is (first != "Karl")):
        school.hand_in(name, handed[name])
        scores = {student: each.grade.score for student, each in school.grade().items()}
    assert scores["Karl"] == 13
    assert len([student for student in scores if student.startswith("Karl")]) == 2
    with open_store(default_place(school.folder)) as store:
        assert {each.grade.student for each in store.latest_grades("qkv")} == set(scores)


def test_points_by_hand_survive_a_regrade_and_are_shown(graded: School) -> None:
    assert graded.call("mark", "bob", "shared-key", "3", "--override", "--why", "a typo").returncode == 0
    assert graded.call("mark", "bob", "shared-key", "0.5").returncode == 0
    graded.edit(TEST_FILE, "@pytest.mark.points(1)", "@pytest.mark.points(2)")
    graded.call("regrade")
    shown = graded.call("show", "bob").stdout
    assert "3 by hand in place of 4" in shown
    assert "0.5 for the written part" in shown
    assert "gave 3 for shared-key in place of the autograded points: a typo" in shown
    assert "Score: 12.5 / 19, 1 pending" in shown


def test_a_person_can_give_all_points_of_what_could_not_be_graded(school: School) -> None:
    (school.downloads / "aaa.ipynb").write_text("no notebook")
    school.call("grade", "../downloads")
    for exercise, points in {"shared-key": "4", "head-size": "5", "shared-value": "3"}.items():
        made = school.call("mark", "aaa", exercise, points, "--override", "--why", "read on paper")
        assert made.returncode == 0, made.stderr
    assert "Score: 12 / 15, 2 pending" in school.call("show", "aaa").stdout
    alone = school.call("grade", "../downloads/aaa.ipynb")
    assert alone.returncode == 0, alone.stderr
    assert "12 / 15" in alone.stdout
    (result,) = json.loads(school.call("grade", "../downloads/aaa.ipynb", "--json").stdout)["results"]
    assert (result["score"], result["max_score"]) == (12, 15)


def test_marks_of_a_whole_file_are_applied_all_or_none(graded: School) -> None:
    sheet = graded.folder / "marks.csv"
    sheet.write_text("student,exercise,points,why\nada,shared-key,1,\nbob,shared-key,9,\nzoe,shared-key,1,\n")
    refused = graded.call("mark", "--csv", "marks.csv")
    assert refused.returncode == 2
    assert "line 3" in refused.stderr
    assert "line 4" in refused.stderr
    assert "Score: 13 / 15, 2 pending" in graded.call("show", "ada").stdout
    sheet.write_text("student,exercise,points,why\nada,shared-key,1,\nbob,shared-key,0.5,\n")
    assert "decisions stored: 2" in graded.call("mark", "--csv", "marks.csv").stdout
    assert "Score: 14 / 15, 1 pending" in graded.call("show", "ada").stdout


def test_status_says_who_is_missing_and_what_could_not_be_graded(school: School) -> None:
    (school.folder / "students.csv").write_text("id,name\nada,Ada\nbob,Bob\ncem,Cem\ndia,Dia\n")
    (school.downloads / "dan.ipynb").write_text("no notebook")
    school.call("grade", "../downloads")
    said = school.call("status").stdout
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert "4 submitted of 4 students in the roster" in lines
    assert "3 run in this environment" in lines
    assert "4 marked with the hidden tests as they are now" in lines
    assert "missing (1): dia Dia" in lines
    assert any(line.startswith("ungraded dan: ") for line in lines)
    assert any(line.startswith("not in the roster (1): dan is not in the roster") for line in lines)


def test_a_second_file_of_the_same_name_takes_no_points_by_hand_away(school: School) -> None:
    school.call("grade", "../downloads")
    school.call("mark", "ada", "shared-key", "1")
    (school.downloads / "mallory").mkdir()
    (school.downloads / "mallory" / "ada.ipynb").write_bytes(
        fill_notebook(school.source, {"head-size": "n_params = 1"})
    )
    table = school.call("grade", "../downloads").stdout
    (own,) = [line for line in table.splitlines() if line.split()[1:3] == ["ada", "│"]]
    assert "14 / 15" in own
    assert school.call("status").stdout.splitlines()[1].split() == ["4", "submitted"]


def test_a_group_shares_the_submission_of_one_and_each_has_a_story(school: School) -> None:
    (school.folder / "students.csv").write_text("id,name,group\nada,Ada,A\ndia,Dia,A\nbob,Bob,\ncem,Cem,\n")
    school.grade()
    assert "missing" not in school.call("status").stdout
    school.call("mark", "ada", "shared-key", "1")
    school.call("mark", "ada", "head-size", "2", "--override", "--why", "she said so")
    dia = school.call("show", "dia").stdout
    assert "shared with ada" in dia
    assert "ada.ipynb" in dia
    assert "Score: 14 / 15, 1 pending" in dia, "written points are for the text, an override is for one person"
    assert "Score: 11 / 15, 1 pending" in school.call("show", "ada").stdout


def test_a_person_who_is_forgotten_is_gone_from_the_disk(school: School) -> None:
    school.hand_in("secretive-name", {"head-size": "n_params = 7\nmark = 'the-words-of-one-person'"})
    school.grade()
    refused = school.call("forget", "secretive-name")
    assert refused.returncode == 2
    assert "say --yes" in refused.stderr
    done = school.call("forget", "secretive-name", "--yes")
    assert done.returncode == 0, done.stderr
    assert "secretive-name" not in school.call("status").stdout
    for file in (school.folder / ".autograder").iterdir():
        assert b"secretive-name" not in file.read_bytes(), file
    assert school.call("show", "secretive-name").returncode == 2


def test_forgetting_that_was_cut_short_is_finished_by_the_same_command(school: School) -> None:
    school.hand_in("secretive-name")
    school.grade()
    place = default_place(school.folder)
    with open_store(place) as store:
        reader = sqlite3.connect(place)  # keeps the log from being folded in at a close
        reader.execute("SELECT * FROM contents").fetchone()
        with store._write() as connection:  # what is left when the process is killed right after the erasing
            forget(connection, "secretive-name")
        again = school.call("forget", "secretive-name", "--yes")
        left = [file.name for file in place.parent.iterdir() if b"secretive-name" in file.read_bytes()]
    reader.close()
    assert again.returncode == 2
    assert "gone from the disk" in again.stderr
    assert left == []


@pytest.mark.parametrize("asked", ["mary", "bloggsmary", "Mary Bloggs"])
def test_a_person_is_forgotten_under_every_name_that_the_roster_joins(school: School, asked: str) -> None:
    (school.folder / "students.csv").write_text("id,name\nmary,Mary Bloggs\nada,Ada\n")
    school.hand_in("bloggsmary")
    school.grade()
    school.call("mark", "mary", "shared-key", "1", "--why", "Mary wrote it well")
    school.call("mark", "bloggsmary", "shared-value", "1")
    done = school.call("forget", asked, "--yes")
    assert done.returncode == 0, done.stderr
    assert "Made anonymous: submissions 1, decisions 2" in done.stdout
    assert not [each.name for each in default_place(school.folder).parent.iterdir() if b"mary" in each.read_bytes()]
    assert not [each.name for each in default_place(school.folder).parent.iterdir() if b"Mary" in each.read_bytes()]


def test_a_second_run_at_once_is_told_who_is_running(school: School) -> None:
    with open_store(default_place(school.folder)) as store, store.exclusive("a long evening"):
        refused = school.call("grade", "../downloads")
    assert refused.returncode == 2
    assert f"process {os.getpid()}" in refused.stderr
    assert "a long evening" in refused.stderr
    assert school.call("grade", "../downloads").returncode == 0


def test_an_interrupt_saves_what_there_is_while_the_store_is_still_held(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    saved = []
    close = Store.__exit__

    def look_and_close(store: Store, *error: object) -> None:
        saved.append(len(store.latest_grades("qkv")))
        close(store, *error)  # type: ignore[arg-type]

    monkeypatch.setattr("rich.progress.Progress.advance", interrupt)
    monkeypatch.setattr("autograder.gradebook._UNSAVED_SECONDS", 1000)
    monkeypatch.setattr(Store, "__exit__", look_and_close)
    place = default_place(school.folder)
    arguments = [str(school.downloads), "-j1", "--course", str(school.folder), "--store", str(place)]
    monkeypatch.setattr(sys, "argv", ["autograder", "grade", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert saved == [1]


def test_without_a_store_nothing_is_kept(school: School) -> None:
    assert school.call("grade", "../downloads", "--no-store").returncode == 0
    assert not default_place(school.folder).exists()
    assert school.call("status").returncode == 2
