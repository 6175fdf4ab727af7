"""The JSON document and the CSV file, as the contract has them."""

import csv
import io
import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.course import load_course
from autograder.finals import Finals
from autograder.gradebook import Entry
from autograder.intake.files import make_showable
from autograder.records import Ending, ExerciseGrade, FinalGrade, Grade, Mark, Skipped
from autograder.report.documents import write_csv, write_document

WHOLE = load_course(Path(__file__).parents[2])
QKV = WHOLE.assignment("qkv")
ASSIGNMENT = QKV.model_copy(update={"exercises": QKV.exercises[:1]})
COURSE = WHOLE.model_copy(update={"assignments": {"qkv": ASSIGNMENT}})

# The keys that outsiders rely on, and after the bar those that were added since.
DOCUMENT_KEYS = {"course", "assignment", "results", "skipped"} | {"explanations"}
RESULT_KEYS = {
    "student", "path", "sha256", "status", "reason", "notes", "score", "max_score", "pending", "exercises",
} | {"late"}  # fmt: skip
EXERCISE_KEYS = {"id", "status", "score", "max_score", "pending", "tests"} | {"automatic", "override", "written"}
TEST_KEYS = {"name", "score", "max_score", "outcome", "message", "hint"} | {"explanations", "detail"}


def build_grade(student: str = "ada", score: float = 1.0, **changes: object) -> Grade:
    failed = Mark(
        "test_b", "shared-key", 0.0, 1.0, "failed", "It is wrong.", "Look.", "SECRET 5", ("a:b",), ("a note",)
    )
    tests = (Mark("test_a", "shared-key", 1.0, 1.0, "passed"), failed)
    exercise = ExerciseGrade("shared-key", Ending.OUT_OF_MEMORY, score, 3.0, 1.0, tests)
    values = {
        "student": student,
        "path": f"in/{student}.ipynb",
        "sha256": "0" * 64,
        "status": "graded",
        "notes": ("one", "two"),
        "score": score,
        "max_score": 3.0,
        "pending": 1.0,
        "exercises": (exercise,),
    }
    return Grade(**{**values, **changes})  # type: ignore[arg-type]


UNGRADED = Grade("eve", "in/eve.ipynb", "", "ungraded", reason="The file is empty.")


def read_document(*grades: Grade, skipped: tuple[Skipped, ...] = ()) -> dict[str, object]:
    return json.loads(build_document(grades, skipped))


def settle(grades: Sequence[Grade]) -> list[tuple[Grade, FinalGrade]]:
    finals = Finals(COURSE, "qkv")
    return [(grade, finals.compute(grade, Entry(grade.student, grade.path, grade.sha256))) for grade in grades]


def build_document(grades: Sequence[Grade], skipped: Sequence[Skipped] = ()) -> bytes:
    file = io.BytesIO()
    write_document(file, "attention", "qkv", settle(grades), skipped)
    return file.getvalue()


def build_csv(grades: Sequence[Grade]) -> str:
    file = io.StringIO()
    write_csv(file, ASSIGNMENT, settle(grades))
    return file.getvalue()


def test_the_document_has_exactly_the_keys_of_the_contract() -> None:
    document = read_document(build_grade(), UNGRADED, skipped=(Skipped("a.txt", "no notebook"),))
    assert set(document) == DOCUMENT_KEYS
    graded, ungraded = document["results"]
    assert set(graded) == set(ungraded) == RESULT_KEYS
    (exercise,) = graded["exercises"]
    assert set(exercise) == EXERCISE_KEYS
    assert document["skipped"] == [{"path": "a.txt", "reason": "no notebook"}]
    for test in exercise["tests"]:
        assert set(test) == TEST_KEYS


def test_the_document_holds_the_values() -> None:
    graded, ungraded = read_document(build_grade(), UNGRADED)["results"]
    assert (graded["student"], graded["status"], graded["reason"]) == ("ada", "graded", None)
    assert (graded["score"], graded["max_score"], graded["pending"]) == (1.0, 3.0, 1.0)
    assert graded["notes"] == ["one", "two"]
    assert graded["exercises"][0]["status"] == "out-of-memory"
    passed, failed = graded["exercises"][0]["tests"]
    assert (passed["outcome"], passed["score"], passed["message"]) == ("passed", 1.0, "")
    assert (failed["outcome"], failed["message"], failed["hint"]) == ("failed", "It is wrong.", "Look.")
    assert (ungraded["status"], ungraded["reason"]) == ("ungraded", "The file is empty.")
    assert (ungraded["score"], ungraded["max_score"], ungraded["pending"], ungraded["exercises"]) == (
        None,
        None,
        None,
        [],
    )


def test_whole_scores_are_numbers_with_a_point() -> None:
    assert b'"score": 1.0' in build_document([build_grade()])


def test_an_empty_batch_is_a_document_too() -> None:
    document = read_document()
    assert (document["course"], document["assignment"]) == ("attention", "qkv")
    assert (document["results"], document["skipped"]) == ([], [])


def test_letters_of_any_alphabet_and_quotes_survive() -> None:
    name = 'Zo\u00eb "\u4e16"\n\x00\U0001f600'
    assert read_document(build_grade(name))["results"][0]["student"] == name


# --- CSV ----------------------------------------------------------------------------------------------------


def read_rows(*grades: Grade) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(build_csv(grades))))


def test_the_table_has_a_column_for_each_exercise_and_a_row_for_each_submission() -> None:
    columns = ["student", "status", "shared-key"]
    text = build_csv([build_grade(), UNGRADED])
    assert text.splitlines()[0].split(",") == [*columns, "score", "max_score", "pending", "late", "reason", "path"]
    graded, ungraded = read_rows(build_grade(), UNGRADED)
    assert (graded["student"], graded["shared-key"], graded["score"], graded["late"]) == ("ada", "1", "1", "")
    assert (ungraded["status"], ungraded["score"], ungraded["reason"]) == ("ungraded", "", "The file is empty.")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "  =", "\n=", "\r+", "\uff1d", "\uff0b", "\uff0d", "\uff20"])
@pytest.mark.parametrize("field", ["student", "reason", "path"])
def test_what_a_spreadsheet_would_take_for_a_formula_is_defused(start, field) -> None:
    text = f"{start}cmd|'/c calc'!A0"
    (row,) = read_rows(msgspec.structs.replace(UNGRADED, **{field: text}))
    assert row[field].startswith("'")
    assert row[field].split("'", 1)[1].strip() == text.strip()


@pytest.mark.parametrize("field", ["student", "reason", "path"])
def test_a_tab_at_the_start_of_a_field_is_shown_for_what_it_is(field) -> None:
    (row,) = read_rows(msgspec.structs.replace(UNGRADED, **{field: "\t=1"}))
    assert row[field] == "\ufffd=1"


def test_a_semicolon_begins_no_formula_where_it_separates_columns() -> None:
    row = build_csv([build_grade("a", path='in/b;=HYPERLINK("x").ipynb')]).splitlines()[1]
    assert not [cell for cell in row.split(";") if cell.lstrip(' "').startswith("=")]


@given(st.text(alphabet=";\"'=+-@ x,"), st.text(alphabet=";\"'=+-@ x,"))
def test_no_cell_is_a_formula_where_semicolons_separate_them(student, path) -> None:
    text = build_csv([msgspec.structs.replace(UNGRADED, student=student, path=path)])
    for row in csv.reader(io.StringIO(text), delimiter=";"):
        assert not [cell for cell in row if cell.lstrip().startswith(("=", "+", "-", "@"))], row


@pytest.mark.parametrize("name", ["ada", "O'Brien", "a=b", "1-2", 'say "x"', "a,b", "a; b", "\u00e9mile", ""])
def test_other_fields_come_back_as_they_are(name) -> None:
    assert read_rows(build_grade(name))[0]["student"] == name


@given(st.text(), st.text(), st.text())
def test_a_submission_is_one_line_that_no_character_leaves(student, reason, path) -> None:
    text = build_csv([msgspec.structs.replace(UNGRADED, student=student, reason=reason, path=path)])
    assert len(text.splitlines()) == 2
    (row,) = csv.DictReader(io.StringIO(text))
    for field in ("student", "reason", "path"):
        assert not row[field].lstrip().startswith(("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"))
        assert row[field] == make_showable(row[field])


@given(st.text())
def test_the_document_holds_the_same_text_and_shows_nothing_that_steers(text) -> None:
    document = build_document([build_grade(text)]).decode()
    assert json.loads(document)["results"][0]["student"] == text
    for letter in document.replace("\n", ""):
        assert unicodedata.category(letter) != "Cc"
        assert unicodedata.bidirectional(letter) not in {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


@pytest.mark.parametrize(
    ("score", "shown"), [(1.0, "1"), (0.5, "0.5"), (0.0, "0"), (12.25, "12.25"), (100.125, "100.125")]
)
def test_scores_are_shown_in_full_without_needless_zeros(score, shown) -> None:
    assert read_rows(build_grade(score=score))[0]["score"] == shown
