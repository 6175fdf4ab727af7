"""A person can be erased; others lose nothing, and the statistics stay."""

import secrets
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autograder.errors import StoreError
from autograder.records import Decision, Ending, ExerciseGrade, Grade, Mark
from autograder.store.database import Store, open_store
from autograder.store.records import Forgotten, Received, Result

from .conftest import read_contents

WHEN = datetime(2026, 5, 1, tzinfo=UTC)
NAME = "Ada-Lovelace"
SHARED = "shared"
"""Digest of the bytes that two students handed in."""


def build_result(sha256: str, data: bytes, words: str) -> Result:
    mark = Mark("test_a", "one", 1.0, 2.0, "failed", words, words, words, ("axis",), (words,))
    exercise = ExerciseGrade("one", Ending.OK, 1.0, 3.0, 1.0, (mark,))
    grade = Grade("", "", sha256, "graded", None, (words,), 1.0, 3.0, 1.0, (exercise,))
    return Result("qkv", sha256, "e", "m", grade, {"": (data, 1.0), "one": (data, 1.0)})


@pytest.fixture
def secret() -> bytes:
    """Bytes that zlib cannot make smaller, to be looked for on the disk."""
    return secrets.token_bytes(40_000)


@pytest.fixture
def filled(store: Store, secret: bytes) -> Iterator[Store]:
    """Ada handed in bytes of her own and then the same as Bob."""
    store.save_environment("e", {})
    store.save_marking("m", {})
    store.save_submissions([Received("qkv", NAME, "own", secret, f"{NAME}.ipynb", 1, WHEN, True, NAME, (NAME,))])
    store.save_submissions([Received("qkv", NAME, SHARED, b"shared", f"{NAME}2.ipynb")])
    store.save_submissions([Received("qkv", "bob", SHARED, b"shared", "bob.ipynb")])
    store.save_results([build_result("own", secret, f"about {NAME}"), build_result(SHARED, b"x", "about both")])
    store.add_decisions(
        [
            Decision("qkv", NAME, "one", "override", 2.0, "teacher", f"{NAME} was ill", WHEN),
            Decision("qkv", "bob", "one", "written", 1.0, "teacher", "fine", WHEN),
        ]
    )
    return store


def test_what_was_erased_is_counted(filled: Store) -> None:
    assert filled.forget(NAME) == Forgotten(submissions=2, contents=1, executions=2, decisions=1)
    assert filled.forget(NAME) == filled.forget("nobody") == Forgotten()


def test_nothing_of_the_person_is_found_any_more(filled: Store) -> None:
    filled.forget(NAME)
    assert filled.list_submissions("qkv", NAME, current_only=False) == []
    assert filled.list_decisions("qkv", NAME) == []
    assert read_contents(filled, ["own"]) == {}
    assert filled.find_executions("qkv", "e", ["own"]) == {}
    assert filled.find_grades("qkv", "e", "m", ["own"]) == {}
    everything = [
        *filled.list_submissions("qkv", current_only=False, forgotten=True),
        *filled.list_decisions("qkv"),
    ]
    assert NAME not in repr(everything)
    assert "own" not in {each.sha256 for each in everything if not isinstance(each, Decision)}


def test_others_who_handed_in_the_same_bytes_lose_nothing(filled: Store) -> None:
    before = filled.latest_grades("qkv", "bob")
    filled.forget(NAME)
    assert filled.latest_grades("qkv") == filled.latest_grades("qkv", "bob") == before
    assert read_contents(filled, [SHARED]) == {SHARED: b"shared"}
    assert filled.find_executions("qkv", "e", [SHARED]) == {SHARED: {"": b"x", "one": b"x"}}
    assert [each.why for each in filled.list_decisions("qkv", "bob")] == ["fine"]


def test_points_stay_for_the_statistics_without_words(filled: Store) -> None:
    filled.forget(NAME)
    (erased,) = [each for each in filled.latest_grades("qkv", forgotten=True) if each.submission.forgotten]
    assert (erased.grade.score, erased.grade.max_score, erased.grade.pending) == (1.0, 3.0, 1.0)
    (mark,) = erased.grade.exercises[0].tests
    assert (mark.explanations, mark.message, mark.hint, mark.detail, mark.notes) == (("axis",), "", "", "", ())
    assert erased.grade.notes == ()
    points = {each.student: each.points for each in filled.list_decisions("qkv")}
    assert points == {erased.submission.student: 2.0, "bob": 1.0}


def test_last_of_those_who_share_bytes_takes_them_along(filled: Store) -> None:
    filled.forget(NAME)
    assert filled.forget("bob") == Forgotten(submissions=1, contents=1, executions=2, decisions=1)
    assert read_contents(filled, [SHARED]) == {}
    assert len(filled.latest_grades("qkv", forgotten=True)) == 2


def test_erased_student_can_hand_in_again(filled: Store) -> None:
    filled.forget(NAME)
    filled.save_submissions([Received("qkv", NAME, "own", b"again", "p")])
    assert read_contents(filled, ["own"]) == {"own": b"again"}
    assert [each.sha256 for each in filled.list_submissions("qkv", NAME)] == ["own"]


def find_on_disk(folder: Path, wanted: bytes) -> list[str]:
    return [file.name for file in folder.iterdir() if wanted in file.read_bytes()]


@pytest.mark.parametrize("new_place", ["sqlite"], indirect=True)
def test_erased_bytes_are_gone_from_the_file_and_its_log(filled: Store, place: str, secret: bytes) -> None:
    folder = Path(place).parent
    with sqlite3.connect(place) as connection:
        connection.execute("SELECT * FROM contents").fetchone()  # keeps the log from being folded in at a close
        probes = (NAME.encode(), secret[2000:2100])
        assert all(find_on_disk(folder, probe) for probe in probes)
        filled.forget(NAME)
        assert [find_on_disk(folder, probe) for probe in probes] == [[], []]
    connection.close()


@pytest.mark.parametrize("new_place", ["sqlite"], indirect=True)
def test_reader_that_keeps_erased_bytes_in_the_log_is_reported(
    filled: Store, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autograder.store.engine.BUSY_SECONDS", 0.1)
    reader = sqlite3.connect(place, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM contents").fetchall()
    with open_store(place) as store, pytest.raises(StoreError):
        store.forget(NAME)
    reader.execute("COMMIT")
    reader.close()
    filled.forget(NAME)
    assert find_on_disk(Path(place).parent, NAME.encode()) == []
