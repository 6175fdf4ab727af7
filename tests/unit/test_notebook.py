"""Bytes of every kind become a program or one clear sentence."""

import contextlib
import io
import json
import time
import warnings
import zipfile
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autograder.course import Assignment, Exercise
from autograder.errors import NotebookError
from autograder.intake.names import MAX_PARSED_CHARS, find_markers, find_names, split_source
from autograder.intake.notebook import MAX_CELLS, _parse_json, parse_program
from autograder.records import Program

ASSIGNMENT = Assignment(
    title="Three exercises",
    seeds=(42, 7),
    exercises=(
        Exercise(id="first", title="One", answers={"a1": "number", "b1": "number"}),
        Exercise(id="second", title="Two", answers={"a2": "number", "b2": "number"}),
        Exercise(id="third", title="Three", answers={"a3": "number", "b3": "number"}),
    ),
)

ONE = "# EXERCISE 1: one\na1 = 1\nb1 = 2"
TWO = "# EXERCISE 2: two\na2 = 1\nb2 = 2"
THREE = "# EXERCISE 3: three\na3 = 1\nb3 = 2"
SOLUTION: dict[str, Any] = {"grade": False, "locked": False, "solution": True, "schema_version": 3}
CHECK: dict[str, Any] = {"grade": True, "locked": True, "solution": False, "points": 1, "schema_version": 3}


def build_cell(source: Any, kind: str = "code", **nbgrader: Any) -> dict[str, Any]:
    return {"cell_type": kind, "source": source, "metadata": {"nbgrader": nbgrader} if nbgrader else {}, "outputs": []}


def build_notebook(*cells: Any, **more: Any) -> dict[str, Any]:
    built = [build_cell(cell) if isinstance(cell, str) else cell for cell in cells]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": built, **more}


def parse(*cells: Any, **more: Any) -> Program:
    return parse_program(json.dumps(build_notebook(*cells, **more)).encode(), ASSIGNMENT)


def list_exercises(program: Program) -> list[tuple[str, ...]]:
    return [cell.exercises for cell in program.cells]


# --- bytes that are a notebook --------------------------------------------------------------------------------


def test_a_plain_notebook_has_no_notes() -> None:
    program = parse("import numpy as np", ONE, TWO, THREE, "print(a1)")
    assert list_exercises(program) == [(), ("first",), ("second",), ("third",), ()]
    assert program.notes == ()
    assert [cell.index for cell in program.cells] == [0, 1, 2, 3, 4]


def test_only_code_cells_are_run_and_keep_their_place() -> None:
    program = parse(build_cell("# Title", "markdown"), ONE, build_cell("raw", "raw"), TWO, THREE)
    assert [cell.index for cell in program.cells] == [1, 3, 4]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_every_unicode_encoding_is_read(encoding: str) -> None:
    source = 'name = "Zoë 🙂"'
    data = json.dumps(build_notebook(source), ensure_ascii=False).encode(encoding)
    assert parse_program(data, ASSIGNMENT).cells[0].source == source


def test_windows_1252_is_read_with_a_note() -> None:
    data = json.dumps(build_notebook('name = "Zoë"'), ensure_ascii=False).encode("cp1252")
    program = parse_program(data, ASSIGNMENT)
    assert program.cells[0].source == 'name = "Zoë"'
    assert "Windows-1252" in program.notes[0]


def test_crlf_around_and_within_cells_is_normalised() -> None:
    data = json.dumps(build_notebook("a1 = 1\r\nb1 = 2\rx = 3"), indent=1).replace("\n", "\r\n").encode()
    assert parse_program(data, ASSIGNMENT).cells[0].source == "a1 = 1\nb1 = 2\nx = 3"


def test_format_3_worksheets_are_read() -> None:
    cells = [{"cell_type": "code", "input": ONE, "language": "python"}, {"cell_type": "heading", "source": "x"}]
    notebook = {"nbformat": 3, "worksheets": [{"cells": cells}, {"cells": [{"cell_type": "code", "input": [TWO]}]}]}
    program = parse_program(json.dumps(notebook).encode(), ASSIGNMENT)
    assert list_exercises(program) == [("first",), ("second",)]
    assert "old format 3" in program.notes[0]


@pytest.mark.parametrize(
    "cell",
    [
        {"cell_type": "code", "source": "x = 1"},
        {"cell_type": "code", "source": "x = 1", "id": None, "metadata": None, "outputs": None},
        {"cell_type": "code", "source": ["x = 1"], "metadata": {"nbgrader": None}},
        {"cell_type": "code", "source": ["x ", "= 1", None, 3], "metadata": {"nbgrader": {"grade_id": 5}}},
        {"cell_type": "code", "source": "x = 1", "metadata": [], "execution_count": 10**400},
    ],
)
def test_missing_and_odd_parts_of_a_cell_do_no_harm(cell: dict[str, Any]) -> None:
    assert [cell.source for cell in parse(cell).cells] == ["x = 1"]


def test_cells_that_are_no_cells_are_passed_over() -> None:
    program = parse(None, 5, [], {}, {"cell_type": "code"}, {"cell_type": "slide", "source": "x"}, ONE)
    assert [cell.source for cell in program.cells] == ["", ONE]
    assert "A cell of an unknown type was not run." in program.notes


def test_nan_raw_line_breaks_and_endless_numbers_are_tolerated() -> None:
    data = b'{"cells": [{"cell_type": "code", "source": "x = 1\ny = 2", "n": NaN, "m": ' + b"9" * 10_000 + b"}]}\0\n"
    assert parse_program(data, ASSIGNMENT).cells[0].source == "x = 1\ny = 2"


def test_half_a_surrogate_pair_can_be_encoded_afterwards() -> None:
    data = b'{"cells": [{"cell_type": "code", "source": "x = \'\\ud800\'"}]}'
    assert parse_program(data, ASSIGNMENT).cells[0].source.encode() == "x = '\ufffd'".encode()


def test_another_language_is_noted_and_run_as_python() -> None:
    program = parse(ONE, TWO, THREE, metadata={"kernelspec": {"language": "R", "name": "ir"}})
    assert len(program.cells) == 3
    assert program.notes == ('The notebook names the language "R"; its cells were run as Python.',)


@pytest.mark.parametrize("metadata", [None, {"kernelspec": {"name": "gone", "language": "python3"}}, {"kernelspec": 1}])
def test_the_kernel_does_not_matter(metadata: Any) -> None:
    assert parse(ONE, TWO, THREE, metadata=metadata).notes == ()


def test_a_notebook_without_code_is_a_program_without_cells() -> None:
    program = parse(build_cell("only words", "markdown"))
    assert program.cells == ()
    assert "The notebook has no code cell." in program.notes


# --- bytes that are none --------------------------------------------------------------------------------------


def build_zip() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("hw.ipynb", "{}")
    return file.getvalue()


WHOLE = json.dumps(build_notebook(ONE, TWO, THREE), indent=1).encode()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"\xef\xbb\xbf \r\n\0", "empty"),
        (b"<!DOCTYPE html><html><body>Log in</body></html>", "HTML page"),
        (b"  <HTML>", "HTML page"),
        (b"<?xml version='1.0'?>", "HTML or XML"),
        (b"import numpy as np\nx = 1\n", "Python script"),
        (b"# %% cell\nx = 1", "Python script"),
        (b"Dear teacher, here are my answers", "not JSON"),
        (build_zip(), "zip archive"),
        (b"%PDF-1.7 ...", "PDF"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "git-lfs"),
        (WHOLE.replace(b' "cells"', b'<<<<<<< HEAD\n "cells"\n=======\n "cells"\n>>>>>>> main'), "conflict"),
        (WHOLE[: len(WHOLE) // 2], "breaks off"),
        (WHOLE[:-1], "breaks off"),
        (WHOLE.replace(b'"cells":', b'"cells"'), "damaged"),
        (b"[1, 2]", "JSON, but not a notebook"),
        (b'"text"', "JSON, but not a notebook"),
        (b"{}", "no cells"),
        (b'{"cells": {}, "worksheets": 1}', "no cells"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"cells": [' + b'{"a":' * 200_000, "nested too deeply"),
        (b'{"cells": [' + b"{}," * MAX_CELLS + b"{}]}", "more than 5000"),
        (b'{"cells": [], "x": [' + b"[]," * 2_000_000 + b"1]}", "too much data"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_notebook_is_named_in_one_sentence(data: bytes, words: str) -> None:
    with pytest.raises(NotebookError, match=words) as caught:
        parse_program(data, ASSIGNMENT)
    text = str(caught.value)
    assert text.endswith(".")
    assert "ask the student" in text
    assert "\n" not in text


def test_a_cell_with_thousands_of_markers_is_refused() -> None:
    with pytest.raises(NotebookError, match="marker lines"):
        parse("# EXERCISE 1\n# EXERCISE 2\n" * MAX_CELLS)


def test_code_without_end_is_refused_and_prose_without_end_is_not() -> None:
    with pytest.raises(NotebookError, match="4 million characters of code"):
        parse("x = 1\n" * 700_000, ONE)
    assert len(parse(build_cell("# EXERCISE 1: x\n" * 700_000, "markdown"), ONE).cells) == 1


# --- which cells answer which exercise ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "marker",
    [
        "# EXERCISE 2: two",
        "#EXERCISE 2",
        "# exercise 2",
        "#\tExercise\t2 - two",
        "   # Exercise 2:",
        "# EXERCISE 02 two",
    ],
)
def test_a_marker_survives_careless_typing(marker: str) -> None:
    assert list_exercises(parse(f"\n{marker}\nx = 1"))[0] == ("second",)


def test_a_comment_that_mentions_an_exercise_is_no_marker() -> None:
    program = parse(ONE, TWO, THREE + "\n# exercise 1 gave a1\nx = a1\n# Exercise 2's b2 is not needed")
    assert list_exercises(program) == [("first",), ("second",), ("third",)]


def test_two_markers_make_two_cells_and_lead_text_belongs_to_the_first() -> None:
    program = parse(f"import math\n{ONE}\n\n{TWO}", THREE)
    assert [cell.source for cell in program.cells] == [f"import math\n{ONE}\n", TWO, THREE]
    assert list_exercises(program) == [("first",), ("second",), ("third",)]
    assert [cell.index for cell in program.cells] == [0, 0, 1]
    assert program.notes == ()


def test_a_syntax_error_in_one_part_leaves_the_other_part_whole() -> None:
    program = parse(f"# EXERCISE 1\na1 = (\n{TWO}", THREE)
    assert program.cells[1].source == TWO
    assert list_exercises(program) == [("first",), ("second",), ("third",)]


def test_a_marker_within_a_statement_does_not_cut_it() -> None:
    source = f"{ONE}\ndef helper():\n    # EXERCISE 2: here\n    return 1\na2 = b2 = helper()"
    program = parse(source, THREE)
    assert [cell.source for cell in program.cells] == [source, THREE]
    assert program.cells[0].exercises == ("first", "second")


def test_a_marker_above_a_decorator_cuts_before_it() -> None:
    second = "# EXERCISE 2\n@staticmethod\ndef a2(): ..."
    assert [cell.source for cell in parse(f"{ONE}\n{second}").cells] == [ONE, second]


def test_markers_of_unknown_exercises_are_ignored_with_a_note() -> None:
    program = parse(ONE + "\n# EXERCISE 9\nx = 1", TWO, THREE, "# EXERCISE 0")
    assert list_exercises(program) == [("first",), ("second",), ("third",), ()]
    assert program.notes == ("Markers of exercises that do not exist were ignored (number 9, 0).",)


def test_the_marker_wins_over_the_grade_id() -> None:
    program = parse(build_cell(ONE, grade_id="second", **SOLUTION), TWO, THREE)
    assert list_exercises(program) == [("first",), ("second",), ("third",)]
    assert program.notes == ()


def test_a_lost_marker_is_made_good_by_the_grade_id() -> None:
    program = parse(ONE, build_cell("x = 1", grade_id="second", **SOLUTION), THREE)
    assert program.cells[1].exercises == ("second",)
    assert program.notes == ("Exercise 2 has lost its marker and was found by its grade_id.",)


def test_an_abandoned_template_is_found_by_its_names() -> None:
    program = parse("a1 = 1\nb1 = 2\na2 = 3", "b2 = 5", "a3, b3 = 1, 2")
    assert list_exercises(program) == [("first", "second"), ("second",), ("third",)]
    assert program.notes == tuple(f"Exercise {n} was found by the names it assigns." for n in (1, 2, 3))


def test_a_cell_with_a_syntax_error_is_still_found_by_its_names() -> None:
    assert parse("a1 = 1\n  b1 = = 2").cells[0].exercises == ("first",)


def test_an_unmarked_cell_that_gives_an_answer_belongs_beside_the_marked_one() -> None:
    program = parse("# EXERCISE 1\na1 = ...", "a1 = 5", "a1[0] = 6", "b1: int = ...", TWO, THREE)
    assert list_exercises(program)[:4] == [("first",)] * 4
    assert program.notes == ()


def test_an_answer_in_the_wrong_exercise_counts_only_where_it_is_missing() -> None:
    missing = parse(ONE + "\na2 = 1", "# EXERCISE 2\na2 = ...\nb2 = 1", THREE)
    assert missing.cells[0].exercises == ("first", "second")
    assert missing.notes == ("Exercise 2: a2 was found in a cell of another exercise.",)
    given_too = parse(ONE + "\na2 = 1", TWO, THREE)
    assert given_too.cells[0].exercises == ("first",)
    assert given_too.notes == ()


def test_checks_and_restoring_cells_never_belong_to_an_exercise() -> None:
    start: dict[str, Any] = {"grade": False, "locked": True, "solution": False, "grade_id": "second-start"}
    program = parse(build_cell("a1 = 1", **CHECK, grade_id="first"), build_cell(TWO, **start), THREE)
    assert list_exercises(program) == [(), (), ("third",)]
    assert [cell.check for cell in program.cells] == [True, False, False]


def test_a_written_answer_cell_is_no_check() -> None:
    program = parse(build_cell(ONE, grade=True, locked=False, solution=True, points=1, grade_id="first"))
    assert program.cells[0].exercises == ("first",)
    assert not program.cells[0].check


def test_a_duplicated_cell_belongs_twice_and_is_noted() -> None:
    program = parse(ONE, ONE.replace("1\n", "7\n"), TWO, THREE)
    assert list_exercises(program)[:2] == [("first",), ("first",)]
    assert program.notes == ("Exercise 1 stands in 2 cells; its last answer counts.",)


@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_an_answer_in_a_cell_that_is_not_run_is_noted(kind: str) -> None:
    note = f"Exercise 2: the answer stands in a {kind} cell and was not run."
    assert parse(ONE, build_cell(TWO, kind), THREE).notes == (note,)
    assert parse(ONE, build_cell("x", kind, grade_id="second", **SOLUTION), THREE).notes == (note,)
    assert parse(ONE, build_cell(TWO, kind), TWO, THREE).notes == ()


def test_a_heading_is_not_taken_for_an_answer() -> None:
    assert parse(ONE, build_cell("# Exercise 2: two", "markdown"), TWO, THREE).notes == ()


def test_missing_exercises_are_noted() -> None:
    assert parse(ONE, THREE).notes == ("Exercise 2 was not found.",)
    nothing = parse("print('hello')").notes
    assert nothing[-1] == "No exercise of this assignment was found."


# --- names ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("a = b = 1", "a b"),
        ("a, (b, *c) = x", "a b c"),
        ("a += 1", "a"),
        ("a: int = 1\nb: int", "a"),
        ("a[0] = 1\nb.c = 2", ""),
        ("print(a := 1)", "a"),
        ("[b := i for i in x if (c := i)]", "b c"),
        ("lambda: (a := 1)", ""),
        ("f = lambda a: a", "f"),
        ("for a, b in x:\n    c = 1\nelse:\n    d = 2", "a b c d"),
        ("while x:\n    a = 1", "a"),
        ("if x:\n    a = 1\nelif y:\n    b = 1\nelse:\n    c = 1", "a b c"),
        ("try:\n    a = 1\nexcept E as e:\n    b = 1\nelse:\n    c = 1\nfinally:\n    d = 1", "a b c d"),
        ("try:\n    a = 1\nexcept* E:\n    b = 1", "a b"),
        ("with f() as a, g() as (b, c):\n    d = 1", "a b c d"),
        (
            "match x:\n    case [a, *b] if (g := 1):\n        c = 1\n    case {'k': d, **e}:\n        pass",
            "g a b c d e",
        ),
        ("import a\nimport b.c\nimport d as e\nfrom f import g, h as i\nfrom j import *", "a b e g i"),
        ("def f(x):\n    y = 1", "f"),
        ("async def f():\n    y = 1", "f"),
        ("class A:\n    y = 1\n    def m(self):\n        global z\n        z = 1", "A z"),
        ("def f():\n    global a, b\n    a = 1", "f a"),
        ("def f(x=(a := 1)): pass", "a f"),
        ("del a", ""),
        ("a == 1\nf(a=1)", ""),
        # IPython
        ("%matplotlib inline\na = 1", "a"),
        ("!pip install \\\n  x=1\na = 1", "a"),
        ("a = !ls\nb = %pwd", "a b"),
        ("%time a = f(1)", "a"),
        ("a?\n?b\nnp.sum??\nc = 1", "c"),
        ("if x:\n    !ls\na = 1", "a"),
        ("%%time\na = 1", "a"),
        ("\n%%capture out\n%%time\na = 1", "a"),
        ("%%bash\na=1", ""),
        ("%%writefile a.py\na = 1", ""),
        ("%%timeit\na = 1", ""),
        # not Python at all
        ("a = 1\nb, c = (", "a b c"),
        ("  a = b = 1 +\nif a == 2", "a b"),
        ("x: int = 1\ny += 1\nf(z=1) = =", "x y"),
        ("a = 1\0", "a"),
    ],
)
def test_names_are_those_assigned_at_module_level(source: str, names: str) -> None:
    assert sorted(find_names(source).assigned) == sorted(names.split())


@pytest.mark.parametrize(
    ("source", "filled"),
    [
        ("a = ...", ""),
        ("a = b = ...", ""),
        ("a, b = ..., 1", "b"),
        ("a: int = ...", ""),
        ("a = Ellipsis", ""),
        ("a = ...\na = 1", "a"),
        ("a[:, 0] = 1", "a"),
        ("a = ...  # (B, T)\nb = (", "b"),
        ("def f():\n    global a\n    a = ...", "f"),
        ("a = [...]", "a"),
    ],
)
def test_a_placeholder_fills_no_name(source: str, filled: str) -> None:
    assert find_names(source).filled == set(filled.split())


HOSTILE = {
    "parentheses": "(" * 50_000,
    "minus": "a = " + "-" * 50_000 + "1",
    "plus": "a = " + "1+" * 40_000 + "1",
    "attributes": "a = x" + ".b" * 40_000,
    "calls": "a = x" + "()" * 40_000,
    "lambdas": "a = " + "lambda:" * 10_000 + "1",
    "blocks": "\n".join(" " * n + "if x:" for n in range(400)),
    "f-strings": "a = " + "f'{" * 1_000,
    "spaces": "a" + " " * 90_000 + "b",
    "commas": "a" + " , a" * 20_000 + " !",
    "questions": "?" * 90_000 + "x(",
    "magics": "%%x\n" * 20_000,
    "markers": "# EXERCISE 1 x\n" * 6_000,
    "long": "a = 1\n" * (MAX_PARSED_CHARS // 4),
}


@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_read_quickly(source: str) -> None:
    begin = time.process_time()
    parse(source)
    assert time.process_time() - begin < 2


def test_many_cells_that_are_slow_to_parse_are_read_quickly() -> None:
    slow = "# EXERCISE 1\na = f'" + "{a}" * 33_000 + "'\n# EXERCISE 2\n)"
    data = json.dumps({"cells": [{"cell_type": "code", "source": slow}] * 39}).encode()
    begin = time.process_time()
    assert len(parse_program(data, ASSIGNMENT).cells) == 2 * 39
    assert time.process_time() - begin < 15


def test_reading_names_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert find_names("a = '\\d' if 1is 1 else 0or 1").assigned == ("a",)


# --- properties -----------------------------------------------------------------------------------------------

# Time is bounded by `check_total` in CPU seconds; a deadline in wall time would fail on a busy machine.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
SOURCES = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | SOURCES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
CODE = st.lists(
    st.sampled_from(["# EXERCISE 1", "# exercise 2: x", "  # EXERCISE 3", "a1 = 1", "def f():", "    b2 = ...", "'''"])
    | SOURCES,
    max_size=8,
).map("\n".join)


def check_total(data: bytes) -> None:
    """Nothing but a program or a `NotebookError`, in a bounded time."""
    begin = time.process_time()
    program = Program(cells=())
    with contextlib.suppress(NotebookError):
        program = parse_program(data, ASSIGNMENT)
    for cell in program.cells:
        assert "\r" not in cell.source
        cell.source.encode()
    assert time.process_time() - begin < 2


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
JSON = st.recursive(
    SCALARS, lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=5), part, max_size=3)
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4), st.booleans())
def test_whichever_reader_takes_the_json_it_holds_the_same(notebook: dict[str, Any], is_ascii: bool) -> None:
    """NaN, lone surrogates and control characters are beyond the quicker one."""
    text = json.dumps(notebook, ensure_ascii=is_ascii)
    assert repr(_parse_json(text)) == repr(json.loads(text))


@PATIENT
@given(st.binary(max_size=400))
def test_any_bytes_give_a_program_or_a_notebook_error(data: bytes) -> None:
    check_total(data)


@PATIENT
@given(st.integers(0, len(WHOLE)), st.binary(max_size=6), st.integers(0, 40))
def test_any_damage_to_a_notebook_gives_a_program_or_a_notebook_error(at: int, put: bytes, cut: int) -> None:
    check_total(WHOLE[:at] + put + WHOLE[at + cut :])


@PATIENT
@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "cell_type": st.sampled_from(["code", "markdown", "raw"]) | ANY_JSON,
                "source": CODE | st.lists(CODE) | ANY_JSON,
                "input": ANY_JSON,
                "metadata": st.fixed_dictionaries({"nbgrader": ANY_JSON}) | ANY_JSON,
            },
        )
        | ANY_JSON,
        max_size=5,
    ),
    ANY_JSON,
)
def test_any_json_shaped_like_a_notebook_is_read(cells: list[Any], metadata: Any) -> None:
    check_total(json.dumps({"cells": cells, "metadata": metadata}).encode())


@PATIENT
@given(st.lists(SOURCES, min_size=1, max_size=6), st.booleans(), st.booleans(), st.booleans())
def test_the_code_of_a_notebook_comes_back(sources: list[str], as_list: bool, crlf: bool, escape: bool) -> None:
    plain = [source.replace("\r\n", "\n").replace("\r", "\n") for source in sources]
    written = [source.replace("\n", "\r\n") if crlf else source for source in plain]
    cells = [build_cell(source.splitlines(keepends=True) if as_list else source) for source in written]
    data = json.dumps(build_notebook(*cells), ensure_ascii=escape, indent=1).encode()
    assert [cell.source for cell in parse_program(data, ASSIGNMENT).cells] == plain


@PATIENT
@given(CODE)
def test_splitting_a_cell_loses_no_line(source: str) -> None:
    markers = find_markers(source)
    parts = split_source(source, markers)
    assert "\n".join(part for part, _ in parts) == source
    assert [number for _, numbers in parts for number in numbers] == [number for _, number in markers]


@pytest.mark.parametrize("long", [1, 4])
def test_a_long_cell_of_one_exercise_does_not_decide_how_the_cells_of_another_are_read(long: int) -> None:
    """What is not seen to give an answer would have it looked for in cells of other exercises, hostile ones too."""
    padding = "# " + "x" * (360_000 // long)
    first = [build_cell(f"# EXERCISE 1\na1 = b1 = 1\na2 = 0\n{padding}\n") for _ in range(long)]
    program = parse(*first, build_cell("# EXERCISE 2\nfor a2 in [1]: pass\nb2 = 2\n"))
    assert list_exercises(program) == [*[("first",)] * long, ("second",)]


def test_many_short_cells_of_no_exercise_do_not_decide_how_the_cells_of_exercises_are_read() -> None:
    short = [build_cell(f"note_{number} = 1  # {'x' * 130}") for number in range(2_300)]
    first = build_cell("# EXERCISE 1\na1 = b1 = 1\na2 = 0\n")
    program = parse(*short, first, build_cell("# EXERCISE 2\nfor a2 in [1]: pass\nb2 = 2\n"))
    assert list_exercises(program)[-2:] == [("first",), ("second",)]
