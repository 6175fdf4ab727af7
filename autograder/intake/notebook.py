"""A submission's bytes -> the program that will be run. Nothing is executed here.

Only what grading needs is read (code cells, their text, nbgrader's flags), because this runs for every
submission. Everything else about the file may be missing or wrong.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from autograder.course import Assignment, Exercise
from autograder.errors import NotebookError
from autograder.intake.calls import note_calls
from autograder.intake.names import Names, find_foreign_magic, find_markers, find_names, split_source
from autograder.records import Cell, Program

MAX_CELLS = 5_000
"""A notebook with more cells is no homework."""

MAX_CODE_CHARS = 4_000_000
"""Code of all cells together; a cell of another type is looked at no further than `MAX_PROSE_CHARS`."""
MAX_PROSE_CHARS = 100_000
MAX_PARSED_CHARS = 300_000
"""Cells beyond this many characters of code are only read line by line, so that no notebook takes long."""
MAX_ITEMS = 2_000_000
"""Values in the whole file, outputs included. Each takes many times its size in memory once it is read."""

_ASK = "ask the student for the notebook file (.ipynb)"
_ASK_AGAIN = "ask the student to save the notebook and hand it in again"
_LONG_NUMBER = 300
_STARTS = (
    (b"PK", "a zip archive (or an Office document)"),
    (b"%PDF", "a PDF"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"Rar!", "a rar archive"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"{\\rtf", "a rich text document"),
    (b"SQLite format 3", "a database"),
    (b"version https://git-lfs", "a git-lfs pointer without the file itself"),
)
_CONFLICT = re.compile(r"^(?:<{7}|>{7})(?: |$)", re.MULTILINE)
_PYTHON_LINE = re.compile(r"^(?:#|import |from \w|def \w|class \w|print\(|[A-Za-z_]\w*\s*=|\"\"\"|%)", re.MULTILINE)
_SURROGATE = re.compile("[\ud800-\udfff]")


class _RawCell(msgspec.Struct, frozen=True):
    """One notebook cell of any type, as read."""

    kind: str
    source: str
    nbgrader: dict[str, Any]


class _Part(msgspec.Struct, frozen=True):
    """A cell, or one exercise's part of a cell, with what its text and its flags show."""

    index: int
    kind: str
    source: str
    numbers: tuple[int, ...]
    """Exercises named by its marker lines, counted from 1."""
    grade_id: str
    check: bool
    fixed: bool
    """A check or a locked cell of the release, which never belongs to an exercise."""
    names: Names


def parse_program(data: bytes, assignment: Assignment) -> Program:
    """Read a notebook: its code cells in order, the exercises they belong to, and notes for the instructor.

    `NotebookError` says in one sentence what the bytes seem to be instead and what to do.
    """
    text, notes = _decode_text(data)
    notebook = _parse_json(text)
    cells = _read_cells(notebook, notes)
    _note_language(notebook, notes)
    notes += note_calls([(index, cell.source) for index, cell in enumerate(cells) if cell.kind == "code"])
    parts = _split_cells(cells, assignment, notes)
    exercises = _assign_exercises(parts, assignment, notes)
    program = tuple(
        Cell(part.index, part.source, exercises[at], part.names.assigned, part.check)
        for at, part in enumerate(parts)
        if part.kind == "code"
    )
    return Program(cells=program, notes=tuple(notes))


def _decode_text(data: bytes) -> tuple[str, list[str]]:
    """The text of the file without a byte order mark, and notes on an unusual encoding."""
    if not data.strip(b"\0 \t\r\n\xef\xbb\xbf"):
        raise NotebookError(f"The file is empty; {_ASK_AGAIN}.")
    if len(data) > MAX_ITEMS and sum(map(data.count, (b",", b"[", b"{"))) > MAX_ITEMS:
        raise NotebookError("The notebook holds too much data; ask the student to clear the outputs and save it again.")
    for start, what in _STARTS:
        if data.startswith(start):
            raise NotebookError(f"The file is {what}, not a notebook; {_ASK}.")
    notes: list[str] = []
    encoding = json.detect_encoding(data)
    try:
        # A file in UTF-16 that breaks off in the middle of a letter is recognised by its JSON later.
        text = data.decode(encoding, "strict" if encoding.startswith("utf-8") else "replace")
    except UnicodeDecodeError:
        text = data.decode("cp1252", errors="replace")
        notes.append("The file is not UTF-8 and was read as Windows-1252; check letters with accents.")
    else:
        if not encoding.startswith("utf-8"):
            notes.append(f"The file was saved as {encoding.upper()} instead of UTF-8.")
    return text.strip("\ufeff\0 \t\r\n"), notes


def _parse_json(text: str) -> dict[str, Any]:
    try:
        try:
            notebook = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError):
            # The quicker reader refuses some of what Jupyter and its relatives write, such as NaN.
            notebook = json.loads(text, strict=False, parse_int=_parse_int)
    except json.JSONDecodeError as error:
        raise NotebookError(_explain_text(text, error)) from error
    except (RecursionError, MemoryError) as error:
        raise NotebookError(f"The file is nested too deeply to be a notebook; {_ASK_AGAIN}.") from error
    if not isinstance(notebook, dict):
        raise NotebookError(f"The file is JSON, but not a notebook; {_ASK}.")
    return notebook


def _parse_int(digits: str) -> int:
    # Python refuses to read a number of thousands of digits; no number in a notebook needs its value.
    return int(digits) if len(digits) < _LONG_NUMBER else 0


def _explain_text(text: str, error: json.JSONDecodeError) -> str:
    """What a text that is not JSON seems to be."""
    start = text[:200].lower()
    if _CONFLICT.search(text):
        return "The notebook has git conflict markers in it; ask the student to resolve them and hand it in again."
    if start.startswith(("<!doctype html", "<html", "<head", "<body")):
        return f"The file is an HTML page, not a notebook; {_ASK}, not its web page or a login page."
    if start.startswith("<"):
        return f"The file is HTML or XML, not a notebook; {_ASK}."
    if not start.startswith(("{", "[")):
        if _PYTHON_LINE.search(text):
            return f"The file seems to be a Python script (.py), not a notebook; {_ASK}."
        return f"The file is not a notebook (it is not JSON); {_ASK}."
    cut = error.msg.startswith("Unterminated") or error.pos >= len(text)
    if cut or (not text.endswith(("}", "]")) and error.pos >= len(text) - 6):
        return f"The file breaks off in the middle (line {error.lineno}); {_ASK_AGAIN}."
    return f"The file is damaged: it is not valid JSON in line {error.lineno}; {_ASK_AGAIN}."


def _read_cells(notebook: dict[str, Any], notes: list[str]) -> list[_RawCell]:
    """The cells of every type, in order: `cells` of format 4, or the worksheets of format 3."""
    found = notebook.get("cells")
    sheets = notebook.get("worksheets")
    if not isinstance(found, list):
        if not isinstance(sheets, list):
            raise NotebookError(f"The file is JSON, but not a notebook: it has no cells; {_ASK}.")
        lists = [sheet.get("cells") for sheet in sheets if isinstance(sheet, dict)]
        found = [cell for cells in lists if isinstance(cells, list) for cell in cells]
        notes.append("The notebook has the old format 3.")
    if len(found) > MAX_CELLS:
        raise NotebookError(f"The notebook has {len(found)} cells, more than {MAX_CELLS}; {_ASK_AGAIN}.")
    cells = [_read_cell(cell) for cell in found]
    if sum(len(cell.source) for cell in cells if cell.kind == "code") > MAX_CODE_CHARS:
        raise NotebookError(
            f"The notebook has more than {MAX_CODE_CHARS // 10**6} million characters of code; "
            "ask the student to keep data out of the code cells."
        )
    unknown = sum(cell.kind not in _KINDS and bool(cell.source.strip()) for cell in cells)
    if unknown:
        notes.append(f"{unknown} cells of an unknown type were not run." if unknown > 1 else _ONE_UNKNOWN)
    return cells


_KINDS = ("code", "markdown", "raw", "heading", "html")
_ONE_UNKNOWN = "A cell of an unknown type was not run."


def _read_cell(cell: Any) -> _RawCell:
    if not isinstance(cell, dict):
        return _RawCell("", "", {})
    metadata = cell.get("metadata")
    nbgrader = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    # Format 3 keeps the text of a code cell under `input`.
    source = cell.get("source", cell.get("input"))
    if isinstance(source, list):
        source = "".join([line for line in source if isinstance(line, str)])
    elif not isinstance(source, str):
        source = ""
    kind = cell.get("cell_type")
    return _RawCell(
        kind=kind if isinstance(kind, str) else "",
        source=_normalise_source(source if kind == "code" else source[:MAX_PROSE_CHARS]),
        nbgrader=nbgrader if isinstance(nbgrader, dict) else {},
    )


def _normalise_source(source: str) -> str:
    r"""Line endings as `\n`; half a surrogate pair, which no encoding can hold, as U+FFFD."""
    if "\r" in source:
        source = source.replace("\r\n", "\n").replace("\r", "\n")
    if not source.isascii():
        source = _SURROGATE.sub("\ufffd", source)
    return source


def _note_language(notebook: dict[str, Any], notes: list[str]) -> None:
    metadata = notebook.get("metadata")
    kernel = metadata.get("kernelspec") if isinstance(metadata, dict) else None
    language = kernel.get("language") if isinstance(kernel, dict) else None
    if isinstance(language, str) and language and not language.lower().startswith(("python", "ipython")):
        shown = "".join(letter for letter in language[:30] if letter.isprintable())
        notes.append(f'The notebook names the language "{shown}"; its cells were run as Python.')
    info = metadata.get("language_info") if isinstance(metadata, dict) else None
    name = kernel.get("name") if isinstance(kernel, dict) else None
    version = info.get("version") if isinstance(info, dict) and info.get("name") == "python" else None
    if name == "python2" or (isinstance(version, str) and version.startswith("2.")):
        notes.append("The notebook was made for Python 2; its cells were run as Python 3.")


def _split_cells(cells: list[_RawCell], assignment: Assignment, notes: list[str]) -> list[_Part]:
    """The cells, with a code cell that carries the markers of several exercises as one part for each."""
    count = len(assignment.exercises)
    ids = {exercise.id for exercise in assignment.exercises}
    starts = {f"{name}-start" for name in ids}
    found = [find_markers(cell.source) for cell in cells]
    parsed = _choose_parsed(cells, ids, found)
    parts: list[_Part] = []
    unknown: dict[int, None] = {}
    for index, cell in enumerate(cells):
        code = cell.kind == "code"
        named = cell.nbgrader.get("grade_id")
        grade_id = named if isinstance(named, str) else ""
        # nbgrader locks what is graded and is no solution, whatever older versions wrote under `locked`.
        released = not cell.nbgrader.get("solution")
        check = code and released and bool(cell.nbgrader.get("grade"))
        start = released and bool(cell.nbgrader.get("locked")) and grade_id in starts
        markers = () if check or start else found[index]
        known = [(line, number) for line, number in markers if 1 <= number <= count]
        if code and len(known) < len(markers):
            unknown.update((number, None) for _, number in markers if not 1 <= number <= count)
        # Prose assigns nothing; it is only read where it stands in the place of an answer.
        read = code or known or grade_id in ids
        cut = [(cell.source, [number for _, number in known])]
        if code and len({number for _, number in known}) > 1:
            cut = split_source(cell.source, known, parse=index in parsed)
        for source, numbers in cut:
            names = find_names(source, parse=index in parsed) if read else Names()
            carried = tuple(dict.fromkeys(numbers))
            parts.append(_Part(index, cell.kind, source, carried, grade_id, check, check or start, names))
        if len(parts) > MAX_CELLS:
            raise NotebookError(f"The notebook has more than {MAX_CELLS} cells and marker lines; {_ASK_AGAIN}.")
    if unknown:
        shown = ", ".join(str(number) for number in list(unknown)[:5])
        notes.append(f"Markers of exercises that do not exist were ignored (number {shown}).")
    return parts


def _choose_parsed(cells: list[_RawCell], ids: set[str], markers: Sequence[tuple[tuple[int, int], ...]]) -> set[int]:
    """Cells that are read as Python, and not line by line; neither many cells nor a long one are at the cost of others.

    Those that say their exercise come first, and short ones before long ones.
    """
    carried = [{number for _, number in own} if own else () for own in markers]
    named = [isinstance(name := cell.nbgrader.get("grade_id"), str) and name in ids for cell in cells]

    def rank(index: int) -> tuple[bool, bool, int]:
        return cells[index].kind != "code", not (named[index] or carried[index]), len(cells[index].source)

    left = MAX_PARSED_CHARS
    chosen: set[int] = set()
    for index in sorted(range(len(cells)), key=rank):
        # What is cut at its markers is read again part by part.
        left -= len(cells[index].source) * (2 if len(carried[index]) > 1 else 1)
        if left < 0:
            break
        chosen.add(index)
    return chosen


def _assign_exercises(parts: list[_Part], assignment: Assignment, notes: list[str]) -> list[tuple[str, ...]]:
    """For each part the ids of the exercises that it belongs to: by marker, else by grade_id, else by names."""
    ids = [exercise.id for exercise in assignment.exercises]
    owners = {name: n for n, exercise in enumerate(assignment.exercises) for name in exercise.answers}
    open_parts = [at for at, part in enumerate(parts) if part.kind == "code" and not part.fixed]
    belongs: list[set[int]] = [set() for _ in parts]
    for at in open_parts:
        part = parts[at]
        if part.numbers:
            belongs[at] = {number - 1 for number in part.numbers}
        elif part.grade_id in ids:
            belongs[at] = {ids.index(part.grade_id)}
        else:
            belongs[at] = {owners[name] for name in {*part.names.assigned, *part.names.filled} if name in owners}
    strays = _find_strays(parts, open_parts, belongs, owners)
    for n, exercise in enumerate(assignment.exercises):
        stray = {name for _, name in strays if owners[name] == n}
        own = [part for part, exercises in zip(parts, belongs, strict=True) if n in exercises]
        notes += _note_exercise(n + 1, exercise, parts, own, stray)
    for at, name in strays:
        belongs[at].add(owners[name])
    if not any(part.kind == "code" for part in parts):
        notes.append("The notebook has no code cell.")
    elif not any(belongs):
        notes.append("No exercise of this assignment was found.")
    return [tuple(ids[n] for n in sorted(own)) for own in belongs]


def _find_strays(
    parts: list[_Part], open_parts: list[int], belongs: list[set[int]], owners: dict[str, int]
) -> list[tuple[int, str]]:
    """Answers that none of their exercise's own cells gives, with the cells of other exercises that give them."""
    given = {(n, name) for at in open_parts for n in belongs[at] for name in parts[at].names.filled}
    return [
        (at, name)
        for name, n in owners.items()
        if (n, name) not in given
        for at in open_parts
        if name in parts[at].names.filled
    ]


def _note_exercise(number: int, exercise: Exercise, parts: list[_Part], own: list[_Part], stray: set[str]) -> list[str]:
    """Say what was unusual about where an exercise was found: in `own` parts, and `stray` answers elsewhere."""
    notes: list[str] = []
    marked = any(number in part.numbers for part in own)
    carrying = [part for part in own if part.numbers or part.grade_id == exercise.id]
    if len(carrying) > 1:
        notes.append(f"Exercise {number} stands in {len(carrying)} cells; its last answer counts.")
    if carrying and not marked:
        notes.append(f"Exercise {number} has lost its marker and was found by its grade_id.")
    elif own and not marked:
        notes.append(f"Exercise {number} was found by the names it assigns.")
    if stray:
        notes.append(f"Exercise {number}: {', '.join(sorted(stray))} was found in a cell of another exercise.")
    if stray or any(part.names.filled.intersection(exercise.answers) for part in own):
        return notes
    for part in parts:
        answers = number in part.numbers and part.names.filled.intersection(exercise.answers)
        if part.kind in ("markdown", "raw") and (answers or part.grade_id == exercise.id):
            return [*notes, f"Exercise {number}: the answer stands in a {part.kind} cell and was not run."]
    if magic := next(filter(None, (find_foreign_magic(part.source) for part in own)), ""):
        return [*notes, f"Exercise {number}: its cell begins with %%{magic}, which leaves no answers behind."]
    return notes if own else [*notes, f"Exercise {number} was not found."]
