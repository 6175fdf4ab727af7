"""CSV files that people and spreadsheets write."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.sheets import Row, clean_text, parse_sheet

NAMES = {"id": ("student",), "name": (), "email": ("mail",), "lms_id": ()}


def read(data: bytes | str):
    return parse_sheet(data.encode() if isinstance(data, str) else data, NAMES, ["id"])


def rows(data: bytes | str) -> list[dict[str, str]]:
    sheet = read(data)
    assert sheet.problems == ()
    return [row.fields for row in sheet.rows]


TABLE = "id,name\r\nada,M\xfcller\r\n"


@pytest.mark.parametrize(
    "data",
    [
        TABLE.encode(),
        TABLE.encode("utf-8-sig"),
        TABLE.encode("utf-16"),
        TABLE.encode("cp1252"),
        TABLE.replace(",", ";").encode(),
        TABLE.replace(",", "\t").encode(),
        TABLE.replace("\r\n", "\n").encode(),
        TABLE.replace("\r\n", "\r").encode(),
        ("\n\n" + TABLE + ",\n \n\n").encode(),
        TABLE.replace("id,name", " Student , NAME ").encode(),
        TABLE.replace("id", '"id"').replace("ada", '"ada"').encode(),
        TABLE.replace("M\xfcller", "Mu\u0308ller ").encode(),
    ],
    ids="utf-8 bom utf-16 cp1252 semicolons tabs lf cr empty-lines headers quotes composition".split(),
)
def test_what_spreadsheets_write_reads_the_same(data) -> None:
    assert rows(data) == [{"id": "ada", "name": "M\xfcller"}]


def test_headers_do_not_depend_on_case_and_punctuation_and_strangers_are_passed_over() -> None:
    assert rows("LMS-ID;E-Mail;Id;Section;Last name\n1;2;3;4;5") == [{"lms_id": "1", "email": "2", "id": "3"}]
    assert read("mail,id\na,b").problems == ()


def test_a_semicolon_table_may_hold_commas() -> None:
    assert rows('id;name\n1;"Byron, Ada"\n2;a,b') == [{"id": "1", "name": "Byron, Ada"}, {"id": "2", "name": "a,b"}]


def test_a_short_line_is_filled_and_an_apostrophe_against_formulas_is_taken_off() -> None:
    assert rows("id,name\n'=x\n'+3,'t Hooft") == [{"id": "=x", "name": ""}, {"id": "+3", "name": "'t Hooft"}]


def test_a_row_knows_the_line_on_which_it_begins() -> None:
    sheet = read('id,name\n\na,"two\nlines"\nb,c\n')
    assert sheet.rows == (Row(3, {"id": "a", "name": "two lines"}), Row(5, {"id": "b", "name": "c"}))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "the file is empty"),
        (b"\n \n", "the file is empty"),
        (b"name\nx", "line 1: there is no column id"),
        (b"id,naem\nx,y", "line 1: unknown column naem (did you mean name?)"),
        (b"id,Student\nx,y", "line 1: the column id stands there twice"),
        (b"id,name\n\na,b,c", "line 3: 3 fields under 2 headers"),
        (b'id,name\na,"b\n', "line 2: this is no CSV"),
        (b'id,name\na,b\na,"b"c', "line 3: this is no CSV"),
        (b"id\n\x81\x8d", "the file is neither UTF-8 nor"),
        (b"id\n\x00", "the file is neither UTF-8 nor"),
        (b"id\n" + b"x" * 140_000, "line 2: this is no CSV"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(data, said) -> None:
    sheet = read(data)
    assert any(problem.startswith(said) for problem in sheet.problems), sheet.problems


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader(data) -> None:
    read(data)
    read(b"id,name\n" + data)


FIELDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)


@given(st.lists(st.tuples(FIELDS, FIELDS), max_size=8), st.sampled_from(",;\t"))
def test_what_a_writer_of_csv_writes_comes_back(table, delimiter) -> None:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows([("id", "name"), *table])
    sheet = read(text.getvalue())
    assert sheet.problems == ()
    plain = [tuple(clean_text(field) for field in row) for row in table]
    kept = [row for row in plain if any(row)]
    found = [(row.fields["id"], row.fields["name"]) for row in sheet.rows]
    guarded = ("'=", "'+", "'-", "'@")
    assert len(found) == len(kept)
    for got, wanted in zip(found, kept, strict=True):
        assert all(one == two or two.startswith(guarded) for one, two in zip(got, wanted, strict=True))
