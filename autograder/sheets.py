"""A CSV file that a person or a spreadsheet wrote -> rows by column. Pure.

Tolerant of what spreadsheets do (byte order marks, `;` and tabs, Windows-1252, empty lines, the case of headers), and
strict about what could change a meaning: all that is wrong is listed, each with its line.
"""

import codecs
import csv
import difflib
import io
import re
import unicodedata
from collections.abc import Callable, Collection, Mapping

import msgspec

_DELIMITERS = ",;\t"
_NEAR = 0.75
"""How much a header must be like a known one to be taken for a slip. `last name` and `name` are further apart."""
_DEFUSED = re.compile("(^|;)'(?=['\"\\s]*[=+\\-@\uff1d\uff0b\uff0d\uff20])")
"""An apostrophe that keeps a spreadsheet from taking a text for a formula, as `report.documents` writes it."""
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Row(msgspec.Struct, frozen=True):
    """One line of the file. `fields` has every known column that the file has; empty where nothing stands."""

    line: int
    fields: dict[str, str]


class Sheet(msgspec.Struct, frozen=True):
    """What could be read, and what is wrong, each problem beginning with its line."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    problems: tuple[str, ...]


def clean_text(text: str) -> str:
    """A field as it is kept: composed Unicode, no control characters, single spaces, none around it."""
    return " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", unicodedata.normalize("NFC", text)).split())


def parse_sheet(
    data: bytes,
    names: Mapping[str, Collection[str]],
    required: Collection[str],
    find_column: Callable[[str], str | None] = lambda header: None,
) -> Sheet:
    """Read a table whose first line has the headers.

    names: for each column its other headers. Case, spaces and punctuation of headers do not matter.
    find_column: the column of a header that is none of these; None when it is unknown, `ValueError` when it is wrong.
    Columns that nobody knows are passed over, unless their header is nearly a known one.
    """
    text = _decode(data)
    if text is None:
        return Sheet((), (), ("the file is neither UTF-8 nor Windows-1252 text; save it as CSV in UTF-8",))
    try:
        lines = _split_lines(text)
    except ValueError as error:
        return Sheet((), (), (str(error),))
    if not lines:
        return Sheet((), (), ("the file is empty; its first line must have the headers",))
    (first, headers), *rest = lines
    columns, problems = _name_columns(headers, names, find_column)
    problems += [f"there is no column {name}" for name in required if name not in columns]
    problems = [f"line {first}: {problem}" for problem in problems]
    rows = []
    for line, fields in rest:
        if any(fields[len(headers) :]):
            problems.append(f"line {line}: {len(fields)} fields under {len(headers)} headers; quote what holds commas")
            continue
        padded = [*fields, *[""] * (len(headers) - len(fields))]
        rows.append(Row(line, {column: padded[at] for at, column in enumerate(columns) if column is not None}))
    return Sheet(tuple(column for column in columns if column is not None), tuple(rows), tuple(problems))


def _decode(data: bytes) -> str | None:
    encodings = ["utf-16"] if data.startswith(_UTF16_MARKS) else ["utf-8-sig", "cp1252"]
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        return None if "\x00" in text else text
    return None


def _split_lines(text: str) -> list[tuple[int, list[str]]]:
    """Number and cleaned fields of every line that holds something."""
    head = next((line for line in text.splitlines() if line.strip()), "")
    bare = re.sub(r'"[^"]*"', "", head)
    # Of equally frequent ones, the comma.
    delimiter = max(_DELIMITERS, key=bare.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    lines = []
    begins = 1
    try:
        for raw in reader:
            fields = [_clean_field(field) for field in raw]
            if any(fields):
                lines.append((begins, fields))
            begins = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"line {begins}: this is no CSV that can be read ({error}); save the file as CSV again"
        ) from error
    return lines


def _clean_field(field: str) -> str:
    return clean_text(_DEFUSED.sub(r"\1", field))


def _name_columns(
    headers: list[str], names: Mapping[str, Collection[str]], find_column: Callable[[str], str | None]
) -> tuple[list[str | None], list[str]]:
    known = {_reduce(header): column for column, others in names.items() for header in (column, *others)}
    columns: list[str | None] = []
    problems = []
    for header in headers:
        column = known.get(_reduce(header))
        if column is None and header:
            try:
                column = find_column(header)
            except ValueError as error:
                problems.append(str(error))
                columns.append(None)
                continue
        if column is None and (near := difflib.get_close_matches(_reduce(header), known, n=1, cutoff=_NEAR)):
            problems.append(f"unknown column {header} (did you mean {known[near[0]]}?)")
        elif column is not None and column in columns:
            problems.append(f"the column {column} stands there twice")
            column = None
        columns.append(column)
    return columns, problems


def _reduce(header: str) -> str:
    return re.sub(r"[\W_]", "", header.casefold())
