"""A name that the store knows stays with its student."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from autograder.intake.files import Source
from autograder.naming import adopt_names, find_orphans
from autograder.store.records import StoredSubmission

NOW = datetime(2027, 1, 1, tzinfo=UTC)


def store(student: str, path: str, lms_id: str = "") -> StoredSubmission:
    return StoredSubmission("qkv", student, "aa", path, 0, None, None, lms_id, (), NOW, True)


def find(student: str, shown: str, lms_id: str = "") -> Source:
    return Source(student, Path(shown), shown, id=lms_id)


def test_a_newcomer_of_the_same_name_takes_nobodys_name() -> None:
    sources = [find("alice (alice.ipynb)", "in/alice.ipynb"), find("alice (m/alice.ipynb)", "in/m/alice.ipynb")]
    named = adopt_names(sources, [store("alice", "in/alice.ipynb")])
    assert [each.student for each in named] == ["alice", "alice (m/alice.ipynb)"]


def test_the_id_of_the_lms_outweighs_the_path() -> None:
    sources = [find("Wei Wang (2)", "new/b.ipynb", "2"), find("Wei Wang (1)", "new/a.ipynb", "1")]
    named = adopt_names(sources, [store("Wei Wang", "old/x.ipynb", "1"), store("Wei Wang (9)", "new/b.ipynb", "9")])
    assert [each.student for each in named] == ["Wei Wang (2)", "Wei Wang"]


def test_an_id_of_one_lms_is_not_that_of_another() -> None:
    stored = [msgspec.structs.replace(store("Ada", "m/a.ipynb", "301"), lms="Moodle")]
    moodle, canvas = (
        msgspec.structs.replace(find(name, f"new/{name}", "301"), lms=lms)
        for name, lms in (("Ada L.", "Moodle"), ("bob", "Canvas"))
    )
    for batch, names in (([moodle, canvas], ["Ada", "bob"]), ([canvas], ["bob"]), ([moodle], ["Ada"])):
        assert [each.student for each in adopt_names(batch, stored)] == names
    older = [store("Ada", "m/a.ipynb", "301")]
    assert [each.student for each in adopt_names([moodle], older)] == ["Ada"]
    assert [each.student for each in adopt_names([moodle, canvas], older)] == ["Ada L.", "bob"]
    assert [each.student for each in adopt_names([canvas], [*older, *stored])] == ["bob"]


def test_all_attempts_of_a_student_keep_the_name() -> None:
    sources = [find("Wei Wang (1)", f"new/{number}.ipynb", "1") for number in range(3)]
    named = adopt_names(sources, [store("Wei Wang", "old/x.ipynb", "1")])
    assert {each.student for each in named} == {"Wei Wang"}


def test_a_name_that_somebody_else_of_the_batch_has_is_not_taken() -> None:
    sources = [find("alice", "other/alice.ipynb"), find("bob", "in/alice.ipynb")]
    named = adopt_names(sources, [store("alice", "in/alice.ipynb")])
    assert [each.student for each in named] == ["alice", "bob"]


def test_points_by_hand_that_nobody_gets_any_more_are_told() -> None:
    sources = [find("alice (x/alice.ipynb)", "x/alice.ipynb"), find("bob", "bob.ipynb")]
    assert find_orphans(sources, ["alice", "bob", "carl"]) == ["alice"]


def test_who_comes_later_with_a_stored_students_name_and_another_number_is_somebody_else() -> None:
    stored = [store("Wei Wang", "old/x.ipynb", "1"), store("Bo", "old/b.ipynb"), store("Wei Wang (3)", "old/y.ipynb")]
    later = [find("Wei Wang", "new/a.ipynb", "2"), find("Bo", "new/b.ipynb", "9")]
    assert [each.student for each in adopt_names(later, stored)] == ["Wei Wang (2)", "Bo"]
    attempts = [find("Wei Wang", f"new/{number}.ipynb", "3") for number in range(2)]
    assert [each.student for each in adopt_names(attempts, stored)] == ["Wei Wang (3) #2"] * 2
    assert adopt_names([find("Wei Wang", "new/z.ipynb", "1")], stored)[0].student == "Wei Wang"


LABELS, IDS = st.sampled_from("ABCD"), st.sampled_from(["", "1", "2", "3"])
STORED = st.lists(
    st.builds(store, LABELS, st.sampled_from("pqrs"), IDS), max_size=4, unique_by=lambda each: each.student
)
FOUND = st.lists(
    st.builds(find, LABELS, st.sampled_from("pqrs"), IDS),
    max_size=4,
    unique_by=(lambda each: each.student, lambda each: each.shown, lambda each: each.id or each.shown),
)


@given(FOUND, STORED)
def test_no_two_of_a_batch_ever_get_one_name(sources, stored) -> None:
    named = [each.student for each in adopt_names(sources, stored)]
    assert len(set(named)) == len(named) == len(sources)
