"""Submissions, results and decisions come back as they went in; faults are one sentence."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autograder.changes import list_changes
from autograder.errors import StoreError
from autograder.records import Decision, Ending, ExerciseGrade, Grade, Mark
from autograder.store.database import Store, open_store
from autograder.store.place import default_place
from autograder.store.records import Received, Result

from .conftest import read_contents

SUMMER = timezone(timedelta(hours=2))


def receive(student: str = "ada", sha256: str = "aa", **other: object) -> Received:
    given = {"assignment": "qkv", "data": f"bytes of {sha256}".encode(), "path": f"{student}.ipynb"} | other
    return Received(student=student, sha256=sha256, **given)  # type: ignore[arg-type]


def build_grade(sha256: str = "aa", score: float = 1.0, message: str = "") -> Grade:
    marks = (
        Mark(
            "test_a", "one", score, 1.0, "passed" if score else "failed", message, "hint", "detail", ("axis",), ("n",)
        ),
        Mark("test_b", "one", 0.1, 0.7, "failed"),
    )
    other = (Mark("test_c", "two", 0.0, 2.0, "not-run"),)
    exercises = (
        ExerciseGrade("one", Ending.OK, score + 0.1, 1.7 + 1.0, 1.0, marks),
        ExerciseGrade("two", Ending.TIMEOUT, 0.0, 2.0, 0.0, other),
    )
    return Grade("", "", sha256, "graded", None, ("note",), score + 0.1, 4.7, 1.0, exercises)


def build_result(sha256: str = "aa", marking: str = "m1", score: float = 1.0, **other: object) -> Result:
    given = {"assignment": "qkv", "environment": "e1", "grade": build_grade(sha256, score)} | other
    return Result(sha256=sha256, marking=marking, **given)  # type: ignore[arg-type]


def save(store: Store, *results: Result) -> None:
    for environment in {each.environment for each in results}:
        store.save_environment(environment, {"numpy": "2"})
    for marking in {each.marking for each in results}:
        store.save_marking(marking, {"tests": "x"})
    store.save_results(results)


# --- submissions --------------------------------------------------------------------------------------------


def test_submission_comes_back_as_it_went(store: Store) -> None:
    received = datetime(2026, 5, 1, 12, 0, 1, 234567, tzinfo=SUMMER)
    store.save_submissions([receive(attempt=3, received=received, late=True, notes=("a", "b"))])
    (found,) = store.list_submissions("qkv")
    assert (found.student, found.sha256, found.path, found.attempt) == ("ada", "aa", "ada.ipynb", 3)
    assert (found.received, found.late, found.notes, found.current) == (received, True, ("a", "b"), True)
    assert found.received.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - found.recorded) < timedelta(minutes=5)
    assert read_contents(store, ["aa", "bb"]) == {"aa": b"bytes of aa"}


def test_submission_given_last_counts_and_older_ones_stay(store: Store) -> None:
    store.save_submissions([receive(sha256="aa"), receive("bob", "bb")])
    store.save_submissions([receive(sha256="cc")])
    assert [(each.student, each.sha256) for each in store.list_submissions("qkv")] == [("ada", "cc"), ("bob", "bb")]
    history = store.list_submissions("qkv", "ada", current_only=False)
    assert [(each.sha256, each.current) for each in history] == [("aa", False), ("cc", True)]


def test_student_who_goes_back_to_older_bytes_has_them_counted_again(store: Store) -> None:
    store.save_submissions([receive(sha256="aa")])
    store.save_submissions([receive(sha256="bb")])
    before = store.list_submissions("qkv", current_only=False)
    store.save_submissions([receive(sha256="aa", path="again.ipynb")])
    after = store.list_submissions("qkv", current_only=False)
    assert [(each.sha256, each.path, each.current) for each in after] == [
        ("aa", "again.ipynb", True),
        ("bb", "ada.ipynb", False),
    ]
    assert [each.recorded for each in after] == [each.recorded for each in before]


def test_of_several_submissions_given_at_once_the_last_counts(store: Store) -> None:
    store.save_submissions([receive(sha256="bb"), receive(sha256="aa"), receive(sha256="bb", path="b2")])
    history = store.list_submissions("qkv", current_only=False)
    assert sorted((each.sha256, each.path, each.current) for each in history) == [
        ("aa", "ada.ipynb", False),
        ("bb", "b2", True),
    ]


def test_assignments_are_apart(store: Store) -> None:
    store.save_submissions([receive(), receive(assignment="other", sha256="bb")])
    assert [each.sha256 for each in store.list_submissions("qkv")] == ["aa"]
    assert [each.sha256 for each in store.list_submissions("other")] == ["bb"]


def test_time_without_a_time_zone_is_refused(store: Store) -> None:
    with pytest.raises(Exception, match="has no time zone"):
        store.save_submissions([receive(received=datetime(2026, 5, 1))])
    assert store.list_submissions("qkv") == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(st.text(), st.text(), st.lists(st.text()).map(tuple))
def test_any_text_comes_back_as_it_went(store: Store, student: str, path: str, notes: tuple[str, ...]) -> None:
    store.save_submissions([receive(student, path=path, notes=notes)])
    (found,) = store.list_submissions("qkv", student)
    assert (found.student, found.path, found.notes) == (student, path, notes)


@pytest.mark.parametrize("text", ["\0", "\x10", "\x100000", "\udc80\ud800", "a\x10\0\x10", "\\x00", "☃\U0001f600"])
def test_texts_that_databases_refuse_come_back_as_they_went(store: Store, text: str) -> None:
    store.save_submissions([receive(text, path=text, notes=(text,))])
    (found,) = store.list_submissions("qkv", text)
    assert (found.student, found.path, found.notes) == (text, text, (text,))


# --- results ------------------------------------------------------------------------------------------------


def test_grade_is_rebuilt_equal_from_its_rows(store: Store) -> None:
    store.save_submissions([receive()])
    save(store, build_result())
    assert store.find_grades("qkv", "e1", "m1", ["aa", "zz"]) == {"aa": build_grade()}


def test_ungraded_result_keeps_its_reason_and_has_no_points(store: Store) -> None:
    store.save_submissions([receive()])
    ungraded = Grade("", "", "aa", "ungraded", "the sandbox failed", ("n",))
    save(store, build_result(grade=ungraded))
    assert store.find_grades("qkv", "e1", "m1", ["aa"]) == {"aa": ungraded}


def test_grades_are_found_only_under_their_own_digests(store: Store) -> None:
    store.save_submissions([receive()])
    save(store, build_result())
    for other in (("xxx", "e1", "m1"), ("qkv", "xx", "m1"), ("qkv", "e1", "xx")):
        assert store.find_grades(*other, ["aa"]) == {}


def test_latest_grade_says_whose_it_is_and_where_it_comes_from(store: Store) -> None:
    store.save_submissions([receive(), receive("bob", "aa"), receive("eve", "ee")])
    save(store, build_result())
    ada, bob = store.latest_grades("qkv")
    assert ada.grade == msgspec.structs.replace(build_grade(), student="ada", path="ada.ipynb")
    assert bob.grade == msgspec.structs.replace(build_grade(), student="bob", path="bob.ipynb")
    assert (ada.environment, ada.marking, ada.submission.student) == ("e1", "m1", "ada")
    assert [each.submission.student for each in store.latest_grades("qkv", "bob")] == ["bob"]
    assert (store.find_description("e1"), store.find_description("m1")) == ({"numpy": "2"}, {"tests": "x"})
    assert store.find_description("zz") is None


def test_newest_marking_counts_until_an_older_one_is_chosen_again(store: Store) -> None:
    store.save_submissions([receive()])
    save(store, build_result(marking="m1", score=1.0))
    save(store, build_result(marking="m2", score=0.0))
    assert [each.marking for each in store.latest_grades("qkv")] == ["m2"]
    store.choose_grades("qkv", "e1", "m1", ["aa"])
    assert [(each.marking, each.grade.score) for each in store.latest_grades("qkv")] == [("m1", 1.1)]


def test_result_of_the_same_digests_is_replaced(store: Store) -> None:
    store.save_submissions([receive()])
    save(store, build_result(score=1.0, executions={"": (b"old", 1.0), "one": (b"alone", 2.0)}))
    save(store, build_result(score=0.0, executions={"": (b"new", 1.0)}))
    assert store.find_grades("qkv", "e1", "m1", ["aa"])["aa"] == build_grade(score=0.0)
    assert store.find_executions("qkv", "e1", ["aa", "bb"]) == {"aa": {"": b"new", "one": b"alone"}}
    assert store.find_executed("qkv", "e1") == {"aa": frozenset({"", "one"})}
    assert store.find_executed("qkv", "e2") == store.find_executions("qkv", "e2", ["aa"]) == {}
    assert store.measure_executions("qkv", "e1", ["aa", "bb"]) == {"aa": len(b"new") + len(b"alone")}
    assert store.measure_executions("qkv", "e2", ["aa"]) == {}


def test_points_come_without_words_and_add_up_as_the_grade_does(store: Store) -> None:
    store.save_submissions([receive()])
    save(store, build_result(score=0.1 + 0.2))
    (grade,) = store.find_grades("qkv", "e1", "m1", ["aa"]).values()
    (points,) = store.find_points("qkv", "e1", "m1", ["aa"]).values()
    assert not list_changes(grade, points)
    assert (points.status, points.score, points.max_score) == (grade.status, grade.score, grade.max_score)
    assert [(each.id, each.status, each.score) for each in points.exercises] == [
        (each.id, each.status, each.score) for each in grade.exercises
    ]
    assert any(each.tests for each in grade.exercises)
    assert not any(each.tests for each in points.exercises)
    assert store.find_points("qkv", "e1", "m2", ["aa"]) == {}


def test_batch_that_fails_leaves_nothing_behind(store: Store) -> None:
    store.save_submissions([receive()])
    save(store, build_result(score=1.0))
    with pytest.raises(StoreError, match="please report it"):
        store.save_results([build_result(score=0.0, executions={"": (b"x", 1.0)}), build_result("unknown")])
    assert store.find_grades("qkv", "e1", "m1", ["aa"]) == {"aa": build_grade(score=1.0)}
    assert store.find_executions("qkv", "e1", ["aa"]) == {}


def test_more_submissions_than_one_statement_takes_are_one_call(store: Store) -> None:
    names = [f"{number:05}" for number in range(1100)]
    store.save_submissions([receive(name, name) for name in names])
    store.save_submissions([receive(name, name) for name in names])
    save(store, *(build_result(name, executions={"": (b"x", 0.0)}) for name in names))
    assert store.find_grades("qkv", "e1", "m1", names).keys() == set(names)
    assert store.find_executions("qkv", "e1", names).keys() == set(names)
    assert read_contents(store, names).keys() == set(names)
    assert [each.grade.student for each in store.latest_grades("qkv")] == names
    store.choose_grades("qkv", "e1", "m1", names)


# --- decisions ----------------------------------------------------------------------------------------------


def test_decisions_come_back_in_their_order(store: Store) -> None:
    when = datetime(2026, 5, 1, 12, tzinfo=SUMMER)
    made = [
        Decision("qkv", "ada", "one", "override", 2.5, "teacher", "typing error", when),
        Decision("qkv", "bob", "one", "written", 1.0, "teacher", "", when),
        Decision("qkv", "ada", "one", "override", None, "teacher", "withdrawn", when),
        Decision("other", "ada", "one", "override", 0.0, "teacher", "", when),
    ]
    store.add_decisions(made[:2])
    store.add_decisions(made[2:])
    store.add_decisions([])
    assert store.list_decisions("qkv") == made[:3]
    assert store.list_decisions("qkv", "ada") == [made[0], made[2]]


# --- places and faults --------------------------------------------------------------------------------------


def test_what_was_saved_is_there_after_opening_again(place: str) -> None:
    with open_store(place) as store:
        store.save_submissions([receive()])
    with open_store(place, create=False) as store:
        assert [each.student for each in store.list_submissions("qkv")] == ["ada"]


def test_what_was_saved_survives_a_process_that_is_killed(place: str) -> None:
    code = f"""
import os, signal
from autograder.store.database import open_store
from autograder.store.records import Received
store = open_store({place!r})
store.save_submissions([Received("qkv", "ada", "aa", b"data", "p")])
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    with open_store(place) as store:
        assert read_contents(store, ["aa"]) == {"aa": b"data"}


def test_password_is_shown_nowhere() -> None:
    with pytest.raises(StoreError, match="server") as caught:
        open_store("postgresql://teacher:secret@127.0.0.1:1/grades")
    assert "secret" not in str(caught.value)
    assert "127.0.0.1:1" in str(caught.value)


def test_other_kinds_of_database_are_refused() -> None:
    with pytest.raises(StoreError, match="mysql is not known"):
        open_store("mysql://somewhere/grades")
    with pytest.raises(StoreError, match="cannot be read"):
        open_store("postgresql://host:port/grades")


def test_store_is_for_its_owner_only(tmp_path: Path) -> None:
    place = default_place(tmp_path)
    with open_store(place) as store:
        store.save_submissions([receive()])
        with store.exclusive("a test"):
            modes = {file.name: file.stat().st_mode & 0o777 for file in place.parent.iterdir()}
    assert modes.keys() >= {"grades.sqlite", "grades.sqlite.lock"}
    assert set(modes.values()) == {0o600}


def test_missing_store_is_not_made_without_being_asked(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store yet"):
        open_store(tmp_path / "no" / "grades.sqlite", create=False)
    assert not list(tmp_path.iterdir())


def test_empty_database_is_not_filled_without_being_asked(new_place: Callable[[], str]) -> None:
    place = new_place()
    for _ in range(2):
        with pytest.raises(StoreError, match="there is no store yet"):
            open_store(place, create=False)


def test_students_come_in_the_same_order_from_every_database(store: Store) -> None:
    names = ["Zoe", "ada", "Élodie", "bob", "ADA"]
    store.save_submissions([receive(name) for name in names])
    save(store, build_result())
    assert [each.student for each in store.list_submissions("qkv")] == sorted(names)
    assert [each.submission.student for each in store.latest_grades("qkv")] == sorted(names)


def test_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "grades.sqlite"
    file.write_bytes(b"important letters" * 100)
    with pytest.raises(StoreError, match=r"grades\.sqlite: the file is no store"):
        open_store(file)
    assert file.read_bytes() == b"important letters" * 100


def test_database_of_something_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.sqlite"
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE letters (text)")
    with pytest.raises(StoreError, match="holds other things"):
        open_store(file)


@pytest.mark.parametrize("folder_exists", [True, False])
def test_folder_that_may_not_be_written_is_named(tmp_path: Path, folder_exists: bool) -> None:
    parent = tmp_path / "course"
    (parent / ".autograder" if folder_exists else parent).mkdir(parents=True)
    file = parent / ".autograder" / "grades.sqlite"
    code = f"""
import os
from autograder.errors import StoreError
from autograder.store.database import open_store
try:
    open_store({str(file)!r})
except StoreError as error:
    print(error)
"""
    for folder in (file.parent, parent):
        if folder.exists():
            folder.chmod(0o555)
    found = run_unprivileged(code, tmp_path)
    assert str(file) in found
    assert "cannot be made" in found
    assert "--store" in found


def test_store_that_may_only_be_read_says_so_when_written(tmp_path: Path) -> None:
    file = tmp_path / "grades.sqlite"
    open_store(file).__exit__(None, None, None)
    file.chmod(0o444)
    code = f"""
from autograder.errors import StoreError
from autograder.store.database import open_store
from autograder.store.records import Received
try:
    with open_store({str(file)!r}) as store:
        store.save_submissions([Received("qkv", "ada", "aa", b"data", "p")])
except StoreError as error:
    print(error)
"""
    assert "may not be written" in run_unprivileged(code, tmp_path)


def run_unprivileged(code: str, folder: Path) -> str:
    """What a Python program prints as a user who may not write everywhere, as root may."""
    prefix = []
    if os.geteuid() == 0:
        for each in (folder, *folder.parents):
            if each.stat().st_uid == 0 and each.stat().st_mode & 0o777 == 0o700:
                each.chmod(0o755)
        prefix = ["setpriv", "--reuid", "nobody", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]
    ran = subprocess.run([*prefix, sys.executable, "-c", code], capture_output=True, text=True, cwd="/", check=False)
    assert not ran.stderr
    return ran.stdout


def test_full_disk_is_one_sentence_and_loses_nothing_that_was_saved(tmp_path: Path) -> None:
    place = tmp_path / "grades.sqlite"
    with open_store(place) as store:
        store.save_submissions([receive()])
        code = f"""
import os, resource, signal
from autograder.errors import StoreError
from autograder.store.database import open_store
from autograder.store.records import Received
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
try:
    open_store({str(place)!r}).save_submissions([Received("qkv", "bob", "bb", os.urandom(2_000_000), "p")])
except StoreError as error:
    print(error)
"""
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert "the disk" in ran.stdout
        assert [each.student for each in store.list_submissions("qkv")] == ["ada"]


def test_file_that_another_process_writes_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autograder.store.engine.BUSY_SECONDS", 0.1)
    place = tmp_path / "grades.sqlite"
    with open_store(place) as store:
        other = sqlite3.connect(place, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another process is writing"):
            store.save_submissions([receive()])
        other.execute("ROLLBACK")
        other.close()
        store.save_submissions([receive()])
