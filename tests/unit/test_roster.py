"""The roster: reading it, extensions, and whose a submission is."""

import contextlib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.course import Course, load_course
from autograder.errors import CourseError
from autograder.people import find_forms, fold_text
from autograder.roster import Roster, Student, parse_roster, read_roster

COURSE = """
id = "c"
title = "C"
time_zone = "Europe/Berlin"
"""
ASSIGNMENT = """
[assignments.{name}]
title = "A"
{due}
seeds = [1, 2]
[[assignments.{name}.exercises]]
id = "one"
title = "One"
answers = {{ x = "bool" }}
"""
DUE = "due = 2027-03-27T23:59:00+01:00"


def make_course(folder: Path, *assignments: tuple[str, str], head: str = COURSE) -> Course:
    text = head + "".join(ASSIGNMENT.format(name=name, due=due) for name, due in assignments or [("qkv", DUE)])
    (folder / "course.toml").write_text(text)
    return load_course(folder)


def parse(course: Course, text: str) -> Roster:
    return parse_roster(text.encode(), course, Path("students.csv"))


def complain(course: Course, text: str) -> list[str]:
    with pytest.raises(CourseError) as caught:
        parse(course, text)
    lines = str(caught.value).splitlines()
    assert all(line.startswith("students.csv: line ") for line in lines)
    return [line.removeprefix("students.csv: ") for line in lines]


def test_a_roster_is_read_in_the_order_of_the_file(tmp_path) -> None:
    roster = parse(make_course(tmp_path), "ID;Name;E-Mail;LMS id;Group\nada;Ada L;a@x.org;11;red\n\nbob;;;;\n")
    assert roster.students == (Student("ada", "Ada L", "a@x.org", "11", "red"), Student("bob"))
    assert roster.find("bob") == Student("bob")
    assert roster.find("eve") is None


def test_a_course_without_a_roster_has_none_and_one_that_is_named_must_be_there(tmp_path) -> None:
    course = make_course(tmp_path)
    assert read_roster(course) is None
    (tmp_path / "students.csv").write_text("id\nada\n")
    assert [student.id for student in read_roster(course).students] == ["ada"]
    course = make_course(tmp_path, head=COURSE + 'roster = "lists/all.csv"\n')
    with pytest.raises(CourseError, match=r"roster: there is no file .*lists/all\.csv"):
        read_roster(course)
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists/all.csv").write_text("name\nada\n")
    with pytest.raises(CourseError, match=r"all\.csv: line 1: there is no column id"):
        read_roster(course)


@pytest.mark.parametrize(
    ("text", "deadline"),
    [
        ("2027-03-29", "2027-03-29T23:59:59+02:00"),
        ("2027-03-29 12:00", "2027-03-29T12:00+02:00"),
        ("2027-03-29T12:00Z", "2027-03-29T12:00+00:00"),
        # The night in which the clocks change has 23 hours.
        ("+1d", "2027-03-28T23:59+02:00"),
        ("3 days", "2027-03-30T23:59+02:00"),
        ("'+12h", "2027-03-28T12:59+02:00"),
        ("", None),
    ],
)
def test_an_extension_is_a_date_a_time_or_a_delay(tmp_path, text, deadline) -> None:
    [student] = parse(make_course(tmp_path), f"id,extension\nada,{text}").students
    assert student.deadlines == ({"qkv": datetime.fromisoformat(deadline)} if deadline else {})


def test_without_a_time_zone_the_due_dates_own_offset_counts(tmp_path) -> None:
    course = make_course(tmp_path, head=COURSE.replace('time_zone = "Europe/Berlin"', ""))
    [student] = parse(course, "id,extension\nada,2027-03-29").students
    assert student.deadlines["qkv"] == datetime(2027, 3, 29, 22, 59, 59, tzinfo=UTC)


def test_an_extension_of_one_assignment_outweighs_the_general_one(tmp_path) -> None:
    course = make_course(tmp_path, ("qkv", DUE), ("softmax", DUE), ("essay", ""))
    [student] = parse(course, "id,extension,Extension: softmax\nada,+1d,2027-04-01").students
    assert {name: f"{moment:%m-%d}" for name, moment in student.deadlines.items()} == {
        "qkv": "03-28", "softmax": "04-01"
    }  # fmt: skip


def test_all_that_is_wrong_is_listed_by_line(tmp_path) -> None:
    course = make_course(tmp_path, ("qkv", DUE), ("softmax", DUE), ("essay", ""))
    said = complain(
        course,
        "id,e-mail,lms id,extension,extension:qkv,extension:essay,extension:sofmax\n"
        "ada,a@x,1,,,,\nADA,A@X,1,,,,\n,x,,,,,\nbob,,,2027-04-01,,,\ncy,,,,2027-01-01,,\ndi,,,,soon,,\neve,,,,,+1d,\n",
    )
    expected = [
        ("line 1", "extension:sofmax names no assignment", "did you mean softmax?"),
        ("line 3", "the id ADA stands in line 2 already"),
        ("line 3", "the lms_id 1 stands in line 2"),
        ("line 3", "the email A@X stands in line 2"),
        ("line 4", "the id is missing"),
        ("line 5", "2027-04-01 does not say of which assignment", "extension:qkv"),
        ("line 6", "ends before qkv is due (2027-03-27 23:59 +0100)"),
        ("line 7", "soon is not understood", "+3d"),
        ("line 8", "essay has no due date"),
    ]
    assert len(said) == len(expected)
    for line, words in zip(said, expected, strict=True):
        assert all(word in line for word in words), line


def test_a_delay_beyond_all_years_is_an_error_and_no_crash(tmp_path) -> None:
    course = make_course(tmp_path, ("qkv", "due = 9999-12-30T00:00:00Z"))
    assert complain(course, "id,extension\nada,9999d")[0].startswith("line 2: ")


LESSON = load_course(Path(__file__).parents[2])
ROSTER = Roster(
    [
        Student("a1", "Ada Lovelace", "ada@x.org", "11"),
        Student("a2", "Alan M\xfcller-Turing", "alan@x.org", "12"),
        Student("w1", "Wei Wang", "wei@x.org", "21"),
        Student("w2", "Wei Wang", "wei@y.org", "22"),
        Student("b1", "Berg, Jan van der", "jan@x.org"),
        Student("ada", "", "", ""),
        Student("k1", "\u304b\u304d", ""),
        Student("k2", "\u304c\u304d", ""),
        Student("h1", "\u0930\u093e \u0915\u093f"),
        Student("h2", "\u0930\u093e \u0915\u093e"),
        Student("n1", "", "77@x.org"),
    ]
)


@pytest.mark.parametrize(
    ("label", "lms_id", "student"),
    [
        ("a1", "", "a1"),
        ("A1", "", "a1"),
        # The id before the address of another.
        ("ada", "", "ada"),
        ("lovelaceada", "11", "a1"),
        ("lovelaceada", "", "a1"),
        ("Ada Lovelace", "", "a1"),
        ("LOVELACE, Ada", "", "a1"),
        ("adalovelace", "", "a1"),
        ("whoever", "12", "a2"),
        ("Alan Mu\u0308ller-Turing", "", "a2"),
        ("mullerturingalan", "", "a2"),
        ("alan", "", "a2"),
        ("Participant 7", "alan@x.org", "a2"),
        ("wangwei (22)", "22", "w2"),
        ("wangwei (21)", "", "w1"),
        ("Wei Wang", "21", "w1"),
        ("vanderbergjan", "", "b1"),
        ("Jan van der Berg", "", "b1"),
        # Marks that are part of a letter tell names apart.
        ("\u304c\u304d", "", "k2"),
        ("\u0915\u093f\u0930\u093e", "", "h1"),
        ("77", "", "n1"),
    ],
)
def test_a_submission_finds_its_student(label, lms_id, student) -> None:
    assert [each.id for each in ROSTER.match(label, lms_id).students] == [student]


@pytest.mark.parametrize(
    ("label", "lms_id", "said"),
    [
        ("Wei Wang", "", "Wei Wang fits several students of the roster (w1, w2)"),
        ("wei", "", "(w1, w2)"),
        ("Ada Lovelace", "12", "(a1, a2)"),
        ("a1", "12", "(a1, a2)"),
        # An LMS's number is no part of an address.
        ("Eve", "77", "Eve is not in the roster"),
        ("Eve", "", "Eve is not in the roster"),
        ("", "", "is not in the roster"),
        ("...", "", "is not in the roster"),
        ("Ada Lovelace & Eve", "", "Eve is not in the roster"),
        # Names that students chose themselves.
        ("Ada Lovelace", "66", "has the LMS id 66, and a1 of the same name has 11"),
        ("ada@x.org", "66", "has the LMS id 66"),
        ("Jan van der Berg (66)", "66", "several submissions have the name Jan van der Berg; put 66 into the roster"),
        ("Eve & Ada Lovelace", "66", "Eve & Ada Lovelace is not in the roster"),
    ],
)
def test_a_submission_that_is_not_clearly_somebodys_is_nobodys(label, lms_id, said) -> None:
    match = ROSTER.match(label, lms_id)
    assert match.students == ()
    assert said in match.reason


def test_people_who_handed_in_together_are_each_found() -> None:
    match = ROSTER.match("Ada Lovelace & Wei Wang", "11 & 22")
    assert [each.id for each in match.students] == ["a1", "w2"]


WORDS = st.lists(st.text(st.characters(categories=["L"]), min_size=1, max_size=8), min_size=1, max_size=4)


@given(WORDS, st.integers(0, 3))
def test_every_order_in_which_an_lms_writes_a_name_is_found(words, at) -> None:
    name = " ".join(words)
    at = at % len(words)
    roster = Roster([Student("x", name)])
    labels = [name.upper(), "".join(words[at:] + words[:at]).lower()]
    if at:
        labels.append(f"{' '.join(words[at:])}, {' '.join(words[:at])}")
    for label in labels:
        # Case is no bijection (dotless i, final sigma); what folds to the same is the same.
        if find_forms(label) & find_forms(name) or fold_text(label) == fold_text(name):
            assert [each.id for each in roster.match(label).students] == ["x"]
    assert [each.id for each in roster.match(name).students] == ["x"]


@given(st.text(max_size=30), st.text(max_size=10))
def test_no_label_breaks_the_match_or_is_matched_without_a_reason(label, lms_id) -> None:
    match = ROSTER.match(label, lms_id)
    assert bool(match.students) != bool(match.reason)


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader(data) -> None:
    for each in (data, b"id,name,extension\n" + data):
        with contextlib.suppress(CourseError):
            parse_roster(each, LESSON, Path("s.csv"))
