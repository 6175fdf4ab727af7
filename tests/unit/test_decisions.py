"""A person's decisions: which are possible, and many of them from a CSV file."""

import csv
import io
import math
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.course import load_course
from autograder.decisions import Desk, Marked, check_decision, find_maxima, parse_decisions
from autograder.errors import UsageError
from autograder.records import Decision, Ending, ExerciseGrade, Grade
from autograder.roster import Roster, Student

QKV = load_course(Path(__file__).parents[2]).assignment("qkv")
MAXIMA = {"shared-key": 4.0, "head-size": 5.0, "shared-value": 4.0}
WHEN = datetime(2027, 2, 1, 12, tzinfo=UTC)
ROSTER = Roster([Student("a1", "Ada Lovelace"), Student("w1", "Wei Wang"), Student("w2", "Wei Wang")])


def parse(text: str | bytes, **changes) -> Marked:
    data = text.encode() if isinstance(text, str) else text
    options = {
        "assignment_id": "qkv",
        "assignment": QKV,
        "students": ["ada", "bob"],
        "maxima": MAXIMA,
        "who": "grace",
        "when": WHEN,
    }
    return parse_decisions(data, "marks.csv", Desk(**{**options, **changes}))


def complain(text: str, **changes) -> list[str]:
    with pytest.raises(UsageError) as caught:
        parse(text, **changes)
    *lines, last = str(caught.value).splitlines()
    assert "nothing of marks.csv was applied" in last
    assert all(line.startswith("marks.csv: ") for line in lines)
    return [line.removeprefix("marks.csv: ") for line in lines]


def test_each_line_is_a_decision() -> None:
    marked = parse(
        "why;points;Exercise;Student;Kind\n"
        "half;0,5;shared-key;ada;written\nwrong axis;4;shared-value;ada;OVERRIDE\n;WITHDRAW;shared-key;bob;\n"
        ";;shared-value;bob;\n;3;head-size;bob;\n".replace(";3;head", "recount;3;head")
    )
    assert marked.blank == 1
    assert marked.decisions == (
        Decision("qkv", "ada", "shared-key", "written", 0.5, "grace", "half", WHEN),
        Decision("qkv", "ada", "shared-value", "override", 4.0, "grace", "wrong axis", WHEN),
        Decision("qkv", "bob", "shared-key", "written", None, "grace", "", WHEN),
        Decision("qkv", "bob", "head-size", "override", 3.0, "grace", "recount", WHEN),
    )


def test_all_that_is_wrong_is_listed_by_line_and_nothing_is_applied() -> None:
    said = complain(
        "student,exercise,points,why,kind\n"
        "ada,shared-key,1,,written\n"
        "adda,shared-key,1,,written\n"
        "ada,shared-kye,1,,\n"
        "ada,shared-key,1.5,,written\n"
        "ada,shared-key,4.5,x,override\n"
        "ada,shared-key,-1,x,override\n"
        "ada,head-size,1,x,written\n"
        "ada,head-size,1,,override\n"
        "ada,shared-value,1,x,overide\n"
        "ada,shared-key,0,,\n"
        ",shared-key,0,,\n"
        "ada,shared-key,nan,,\n"
        "ada,shared-key,1,x,override,more\n"
    )
    expected = [
        ("line 14", "6 fields under 5 headers"),
        ("line 3", "adda has no submission", "did you mean ada?"),
        ("line 4", "no exercise shared-kye", "did you mean shared-key?"),
        ("line 5", "1.5 points for shared-key", "0 to 1", "override"),
        ("line 6", "4.5 points for shared-key", "0 to 4"),
        ("line 7", "the points -1 are no number", "withdraw"),
        ("line 8", "head-size has no written part"),
        ("line 9", "the override of head-size has no reason"),
        ("line 10", "the kind overide is not known", "did you mean override?"),
        ("line 11", "line 2 decides the same (ada, shared-key, written)"),
        ("line 12", "the student is missing"),
        ("line 13", "the points nan are no number"),
    ]
    assert len(said) == len(expected)
    for line, words in zip(said, expected, strict=True):
        assert all(word in line for word in words), line


def test_a_file_without_its_columns_is_refused() -> None:
    assert complain("student,points\nada,1") == ["line 1: there is no column exercise"]
    assert complain("") == ["the file is empty; its first line must have the headers"]


def test_students_of_the_roster_are_known_by_id_and_by_a_name_that_is_unique() -> None:
    marked = parse('student,exercise,points\nw1,shared-key,1\n"Lovelace, Ada",shared-key,1\n', roster=ROSTER)
    assert [decision.student for decision in marked.decisions] == ["w1", "a1"]
    said = complain("student,exercise,points\nWei Wang,shared-key,1\neve,shared-key,1\nada,shared-key,1", roster=ROSTER)
    assert said == [
        "line 2: Wei Wang fits several students of the roster (w1, w2)",
        "line 3: eve is not in the roster and has no submission",
    ]


def test_an_override_needs_to_know_what_the_tests_are_worth() -> None:
    assert "grade at least one submission first" in complain(
        "student,exercise,points,why\nada,head-size,1,x", maxima={}
    )[0]  # fmt: skip
    assert parse("student,exercise,points\nada,shared-key,1", maxima={}).decisions[0].points == 1


@pytest.mark.parametrize("points", [-0.01, 4.01, math.nan, math.inf, -math.inf])
def test_points_outside_of_what_the_part_is_worth_are_refused(points) -> None:
    decision = Decision("qkv", "ada", "shared-key", "override", points, "grace", "x", WHEN)
    with pytest.raises(UsageError, match="0 to 4"):
        check_decision(decision, QKV, MAXIMA)


@pytest.mark.parametrize("points", [0, 2.5, 4, None])
def test_points_within_are_taken_and_so_is_taking_back(points) -> None:
    check_decision(Decision("qkv", "ada", "shared-key", "override", points, "grace", "x", WHEN), QKV, MAXIMA)


def test_what_tests_are_worth_is_known_from_any_graded_submission() -> None:
    exercise = ExerciseGrade("one", Ending.OK, 1.0, 5.0, 1.0, ())
    graded = Grade("ada", "", "", "graded", exercises=(exercise,))
    assert find_maxima([Grade("eve", "", "", "ungraded"), graded]) == {"one": 4.0}
    assert find_maxima([Grade("eve", "", "", "ungraded")]) == {}


@given(st.binary(max_size=200))
def test_no_bytes_give_anything_but_possible_decisions_or_an_error(data) -> None:
    for each in (data, b"student,exercise,points,why,kind\nada,shared-key," + data):
        try:
            marked = parse(each)
        except UsageError:
            continue
        for decision in marked.decisions:
            check_decision(decision, QKV, MAXIMA)


ROWS = st.tuples(
    st.sampled_from(["ada", "bob"]),
    st.sampled_from([*MAXIMA]),
    st.one_of(st.none(), st.integers(0, 400)),
    st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=10),
)


@given(st.lists(ROWS, max_size=6, unique_by=lambda row: row[:2]), st.sampled_from(",;\t"))
def test_a_file_that_is_written_is_read_as_it_was_meant(table, delimiter) -> None:
    table = [row for row in table if row[2] is None or row[2] <= 100 * MAXIMA[row[1]]]
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerow(["student", "exercise", "points", "why", "kind"])
    for student, exercise, cents, why in table:
        writer.writerow([student, exercise, "withdraw" if cents is None else f"{cents / 100:.2f}", why, "override"])
    found = [(each.student, each.exercise, each.points) for each in parse(text.getvalue()).decisions]
    assert found == [
        (student, exercise, None if cents is None else cents / 100) for student, exercise, cents, _ in table
    ]
