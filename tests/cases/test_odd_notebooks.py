"""What real students hand in gets the marks for what is there, and a note on what was repaired.

Odd code stands in `odd_notebooks.toml`; odd files are made here, each from the solution notebook.
"""

import base64
import json
import random
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Notebook = dict[str, Any]
CASES = tomllib.loads(Path(__file__).with_name("odd_notebooks.toml").read_text())["case"]
PATIENCE = 20.0
"""Seconds that no case may take. A cell that waits for somebody, or for a network, would take longer."""


def build_case(bench, case: dict[str, Any]) -> bytes:
    cells = dict(case.get("replace", {}))
    for name, code in case.get("insert", {}).items():
        marker, _, rest = cells.get(name, bench.read_source(name)).partition("\n")
        cells[name] = f"{marker}\n{code}\n{rest}"
    for name, text in case.get("above", {}).items():
        cells[name] = f"{text}\n{bench.read_source(name)}"
    return bench.build(replace=cells, before=case.get("before"), after=case.get("after"), drop=case.get("drop", ()))


def check_verdict(bench, data: bytes, scores=None, status=None, notes=()) -> Any:
    """Full marks, status "ok" and no note, but for what is said."""
    begin = time.monotonic()
    grade = bench.grade(data)
    assert time.monotonic() - begin < PATIENCE
    assert bench.scores(grade) == bench.full | (scores or {}), (bench.lost(grade), grade.notes)
    found = {each.id: each.status.value for each in grade.exercises}
    assert found == dict.fromkeys(bench.full, "ok") | (status or {})
    assert list(grade.notes) == list(notes)
    return grade


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES])
def test_odd_code_gets_its_verdict(bench, case) -> None:
    if "newer_than" in case and sys.version_info >= tuple(case["newer_than"]):
        pytest.skip("this Python can read it")
    data = build_case(bench, case)
    grade = check_verdict(bench, data, case.get("scores"), case.get("status"), case.get("notes", ()))
    for exercise, kind in case.get("explained", {}).items():
        lost = [mark for mark in bench.lost(grade).values() if mark.exercise == exercise]
        assert lost
        assert all(kind in mark.explanations for mark in lost), lost


# ---- odd files ----------------------------------------------------------------------------------------------


def find_cell(notebook: Notebook, name: str) -> dict[str, Any]:
    return next(cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("grade_id") == name)


def strip_metadata(notebook: Notebook) -> None:
    notebook["metadata"] = {}
    for cell in notebook["cells"]:
        cell["metadata"] = {}


def strip_all_but_sources(notebook: Notebook) -> None:
    for key in ("metadata", "nbformat", "nbformat_minor"):
        notebook.pop(key)
    notebook["cells"] = [{key: cell[key] for key in ("cell_type", "source")} for cell in notebook["cells"]]


def set_everything_to_null(notebook: Notebook) -> None:
    notebook["metadata"] = None
    for cell in notebook["cells"]:
        cell.update(id=None, metadata=None, outputs=None, execution_count=None, attachments=None)


def drop_ids(notebook: Notebook) -> None:
    """A Colab export: format 4.0, no ids, a badge first, metadata of its own."""
    notebook.update(nbformat=4, nbformat_minor=0)
    notebook["metadata"] = {
        "colab": {"name": "Untitled17.ipynb", "provenance": [], "toc_visible": True},
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "language_info": {"name": "python"},
        "accelerator": "GPU",
    }
    for cell in notebook["cells"]:
        cell.pop("id", None)
        cell["metadata"]["id"] = "aB3_x"
    badge = '<a href="https://colab.research.google.com/x"><img src="https://colab.research.google.com/b.svg"/></a>'
    notebook["cells"].insert(0, {"cell_type": "markdown", "metadata": {"colab_type": "text"}, "source": [badge]})


def use_r_kernel(notebook: Notebook) -> None:
    notebook["metadata"]["kernelspec"] = {"name": "ir", "display_name": "R", "language": "R"}


def use_missing_kernel(notebook: Notebook) -> None:
    notebook["metadata"]["kernelspec"] = {"name": "conda-env-ml-py", "display_name": "ML", "language": "python"}


def use_python_2(notebook: Notebook) -> None:
    notebook["metadata"] = {
        "kernelspec": {"name": "python2", "display_name": "Python 2", "language": "python"},
        "language_info": {"name": "python", "version": "2.7.18", "codemirror_mode": {"name": "ipython", "version": 2}},
    }


def shuffle_counts(notebook: Notebook) -> None:
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            stale = {"output_type": "stream", "name": "stdout", "text": "K_shared = 0"}
            error = {"output_type": "error", "ename": "NameError", "evalue": "name 'X'", "traceback": ["\x1b[31mno"]}
            cell.update(execution_count=97 - 7 * number, outputs=[stale, error])


def embed_image(notebook: Notebook) -> None:
    picture = base64.b64encode(random.Random(1).randbytes(5 * 2**20)).decode()
    shown = {"output_type": "display_data", "data": {"image/png": picture}, "metadata": {}}
    find_cell(notebook, "shared-key")["outputs"] = [shown]
    find_cell(notebook, "shared-key-why")["attachments"] = {"image.png": {"image/png": picture}}


def copy_all_cells(notebook: Notebook) -> None:
    notebook["cells"] += json.loads(json.dumps(notebook["cells"]))


def copy_answer(notebook: Notebook) -> None:
    """The same id and grade_id twice, the last one wrong."""
    cell = find_cell(notebook, "shared-value")
    wrong = {**cell, "source": "# EXERCISE 3: once more\nV_first = V[0, 1]"}
    notebook["cells"].insert(notebook["cells"].index(cell) + 1, wrong)


def join_two_exercises(notebook: Notebook) -> None:
    first, second = find_cell(notebook, "shared-key"), find_cell(notebook, "head-size")
    first["source"] = "".join(first["source"]) + "\n\n" + "".join(second["source"])
    notebook["cells"].remove(second)


def turn_answer_into(kind: str) -> Callable[[Notebook], None]:
    def turn(notebook: Notebook) -> None:
        cell = find_cell(notebook, "head-size")
        cell["cell_type"] = kind
        for key in ("outputs", "execution_count"):
            cell.pop(key, None)

    return turn


def strip_markers_and_metadata(notebook: Notebook) -> None:
    strip_metadata(notebook)
    for cell in notebook["cells"]:
        lines = "".join(cell["source"]).splitlines(keepends=True)
        cell["source"] = [line for line in lines if not line.startswith("# EXERCISE")]


def abandon_template(notebook: Notebook) -> None:
    """A fresh notebook with code only, in one cell."""
    code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    lines = [line for line in "\n".join(code).splitlines() if not line.startswith("#")]
    notebook["cells"] = [{"cell_type": "code", "source": "\n".join(lines), "metadata": {}, "outputs": []}]


def use_format_3(notebook: Notebook) -> None:
    cells = []
    for cell in notebook.pop("cells"):
        text = "".join(cell["source"])
        if cell["cell_type"] == "code":
            cells.append({"cell_type": "code", "language": "python", "input": text, "outputs": [], "collapsed": False})
        else:
            cells += [{"cell_type": "heading", "level": 1, "source": "x"}, {"cell_type": "markdown", "source": text}]
    notebook.update(nbformat=3, nbformat_minor=0, worksheets=[{"cells": cells[:9]}, {"cells": cells[9:]}])


def use_tabs(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"]).replace("    ", "\t")


def add_odd_cells(notebook: Notebook) -> None:
    notebook["cells"] += [{"cell_type": "slide", "source": "x"}, {}, {"cell_type": "code"}]


def use_crlf_in_cells(notebook: Notebook) -> None:
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"]).replace("\n", "\r\n")


LAST_COUNTS = "Exercise {} stands in 2 cells; its last answer counts."
BY_NAMES = "Exercise {} was found by the names it assigns."
GONE = {"scores": {"head-size": 0.0}, "status": {"head-size": "not-attempted"}}
ODD_NOTEBOOKS: list[tuple[Callable[[Notebook], None], dict[str, Any]]] = [
    (strip_metadata, {}),
    (strip_all_but_sources, {}),
    (set_everything_to_null, {}),
    (drop_ids, {}),
    (use_r_kernel, {"notes": ['The notebook names the language "R"; its cells were run as Python.']}),
    (use_missing_kernel, {}),
    (use_python_2, {"notes": ["The notebook was made for Python 2; its cells were run as Python 3."]}),
    (shuffle_counts, {}),
    (embed_image, {}),
    (copy_all_cells, {"notes": [LAST_COUNTS.format(number) for number in (1, 2, 3)]}),
    (copy_answer, {"scores": {"shared-value": 3.0}, "notes": [LAST_COUNTS.format(3)]}),
    (join_two_exercises, {}),
    (
        turn_answer_into("markdown"),
        {**GONE, "notes": ["Exercise 2: the answer stands in a markdown cell and was not run."]},
    ),
    (turn_answer_into("raw"), {**GONE, "notes": ["Exercise 2: the answer stands in a raw cell and was not run."]}),
    (strip_markers_and_metadata, {"notes": [BY_NAMES.format(number) for number in (1, 2, 3)]}),
    (abandon_template, {"notes": [BY_NAMES.format(number) for number in (1, 2, 3)]}),
    (use_format_3, {"notes": ["The notebook has the old format 3."]}),
    (use_tabs, {}),
    (add_odd_cells, {"notes": ["A cell of an unknown type was not run."]}),
    (use_crlf_in_cells, {}),
]


@pytest.mark.parametrize(
    ("change", "verdict"),
    ODD_NOTEBOOKS,
    ids=lambda value: value.__qualname__.split(".")[0] if callable(value) else "",
)
def test_an_odd_notebook_gets_its_verdict(bench, change, verdict) -> None:
    notebook = json.loads(bench.source)
    change(notebook)
    check_verdict(bench, json.dumps(notebook).encode(), **verdict)


def dump(notebook: Notebook) -> str:
    find_cell(notebook, "shared-key")["source"] = "# EXERCISE 1: für Zoë\n" + "".join(
        find_cell(notebook, "shared-key")["source"]
    )
    return json.dumps(notebook, ensure_ascii=False, indent=1)


@pytest.mark.parametrize(
    ("encoding", "notes"),
    [
        ("utf-8", []),
        ("utf-8-sig", []),
        ("cp1252", ["The file is not UTF-8 and was read as Windows-1252; check letters with accents."]),
        ("utf-16", ["The file was saved as UTF-16 instead of UTF-8."]),
        ("utf-16-be", ["The file was saved as UTF-16-BE instead of UTF-8."]),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_a_notebook_in_any_encoding_has_full_marks(bench, encoding, notes, newline) -> None:
    text = dump(json.loads(bench.source)).replace("\n", newline)
    for letter in set(text) - set(text.encode("cp1252", "ignore").decode("cp1252")):
        text = text.replace(letter, "?")
    check_verdict(bench, text.encode(encoding), notes=notes)


REFUSED: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "an empty file": (
        lambda _: b"",
        "The file is empty; ask the student to save the notebook and hand it in again.",
    ),
    "an HTML page": (
        lambda _: b"<!DOCTYPE html>\n<html><title>Log in</title></html>",
        "The file is an HTML page, not a notebook; ask the student for the notebook file (.ipynb), "
        "not its web page or a login page.",
    ),
    "a script": (
        lambda _: b"import numpy as np\nWk_shared = 1\n",
        "The file seems to be a Python script (.py), not a notebook; ask the student for the notebook file (.ipynb).",
    ),
    "git conflict markers": (
        lambda data: data.replace(b' "cells"', b'<<<<<<< HEAD\n "cells"', 1) + b"\n>>>>>>> main\n",
        "The notebook has git conflict markers in it; ask the student to resolve them and hand it in again.",
    ),
    "a file cut in the upload": (
        lambda data: data[: len(data) // 2],
        "The file breaks off in the middle (line {line}); ask the student to save the notebook and hand it in again.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_no_notebook_is_ungraded_with_the_reason(bench, name) -> None:
    make, reason = REFUSED[name]
    data = make(bench.source)
    grade = bench.grade_any(data)
    assert (grade.status, grade.score, grade.exercises) == ("ungraded", None, ())
    assert grade.reason == reason.format(line=data.count(b"\n") + 1)
