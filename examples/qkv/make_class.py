"""Build the sample class in `submitted/` from the list in `class.toml`.

    python examples/qkv/make_class.py            write the folder anew
    python examples/qkv/make_class.py --check    exit with 1 when the folder is not what the list says

The bytes depend on the course's files alone: the released notebook, the catalogue and the list.
"""

import argparse
import copy
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ASSIGNMENT = "qkv"
HERE = Path(__file__).resolve().parent
COURSE = HERE.parents[1]
SUBMITTED = HERE / "submitted"
MARKER = re.compile(r"# EXERCISE (\d+)\b.*")
SOLUTION = re.compile(r"### BEGIN SOLUTION\n(.*?)\n### END SOLUTION", re.DOTALL)

Cell = dict[str, Any]
Notebook = dict[str, Any]
Table = dict[str, Any]


class ClassListError(Exception):
    """`class.toml` asks for something that is not there; the text names the student."""


def build_class(course: Path = COURSE) -> dict[str, bytes]:
    """Every file of the sample class: path below `submitted/` -> bytes."""
    listed = read_toml(course / "examples" / ASSIGNMENT / "class.toml")
    materials = read_materials(course)
    files = {}
    for student in listed["student"]:
        name = student.get("file", f"{ASSIGNMENT}.ipynb")
        notebook = build_notebook(student, listed["prelude"], materials)
        files[f"{student['id']}/{ASSIGNMENT}/{name}"] = build_bytes(notebook, student.get("saved_as", "plain"))
    return files


def read_toml(path: Path) -> Table:
    """One TOML file as a table."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def read_materials(course: Path) -> Table:
    """What answers are made of: the stub, the order of the exercises, the solutions and the catalogue."""
    solutions = course / "solutions" / ASSIGNMENT
    exercises = [
        exercise["id"] for exercise in read_toml(course / "course.toml")["assignments"][ASSIGNMENT]["exercises"]
    ]
    source = read_notebook(solutions / f"{ASSIGNMENT}.ipynb")
    return {
        "stub": read_notebook(course / "assignments" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"),
        "exercises": exercises,
        "solution": {
            exercise: extract_solution(source["cells"][at]["source"])
            for exercise, at in find_answer_cells(source["cells"], exercises).items()
        },
        "mistake": {entry["id"]: entry for entry in read_toml(solutions / "mistakes.toml")["mistake"]},
        "variant": {entry["id"]: entry for entry in read_toml(solutions / "variants.toml")["variant"]},
    }


def read_notebook(path: Path) -> Notebook:
    """A notebook with the source of every cell as one text."""
    notebook: Notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    return notebook


def extract_solution(source: str) -> str:
    """The code of a solution cell between its region marks."""
    match = SOLUTION.search(source)
    if match is None:
        raise ClassListError("the solution notebook has an answer cell without a solution region")
    return match[1]


def find_answer_cells(cells: list[Cell], exercises: list[str]) -> dict[str, int]:
    """Exercise id -> position of the answer cell, found by its marker line."""
    found = {}
    for at, cell in enumerate(cells):
        match = MARKER.match(cell["source"]) if cell["cell_type"] == "code" else None
        if match:
            found[exercises[int(match[1]) - 1]] = at
    return found


def build_notebook(student: Table, prelude: list[str], materials: Table) -> Notebook:
    """One student's notebook before it is saved."""
    exercises: list[str] = materials["exercises"]
    notebook: Notebook = copy.deepcopy(materials["stub"])
    if student.get("saved_as") == "fresh":
        sources = [*prelude, *(cell for exercise in exercises for cell in read_answer(student, exercise, materials))]
        notebook["cells"] = [build_code_cell(source, f"cell-{number}") for number, source in enumerate(sources)]
        return notebook
    cells: list[Cell] = notebook["cells"]
    # From the last exercise to the first, so that the positions found before stay right.
    for exercise, at in reversed(find_answer_cells(cells, exercises).items()):
        cells[at : at + 1] = build_answer_cells(student, exercise, cells[at], materials)
    written = {f"{exercise}-why": text.strip() for exercise, text in student.get("why", {}).items()}
    for cell in cells:
        grade_id = cell["metadata"].get("nbgrader", {}).get("grade_id", "")
        cell["source"] = written.get(grade_id, cell["source"])
    return notebook


def build_answer_cells(student: Table, exercise: str, stub_cell: Cell, materials: Table) -> list[Cell]:
    """What stands in the place of one released answer cell; nothing when the student deleted it."""
    answer: Table = student[exercise]
    if "untouched" in answer:
        return [stub_cell]
    if "deleted" in answer:
        return []
    marker = stub_cell["source"].splitlines()[0]
    first, *more = read_answer(student, exercise, materials)
    entry = materials["variant"].get(answer.get("variant"), {})
    before = [source for source in (answer.get("before"), entry.get("before")) if source]
    tries = [answer["first_try"]] if "first_try" in answer else []
    return [
        *(build_code_cell(source, f"{exercise}-before-{number}") for number, source in enumerate(before)),
        # A copied cell keeps the metadata and the id of the cell that it was copied from.
        *(stub_cell | {"source": f"{marker}\n{source.strip()}"} for source in tries),
        stub_cell | {"source": f"{marker}\n{first}"},
        *(build_code_cell(source, f"{exercise}-more-{number}") for number, source in enumerate(more)),
    ]


def read_answer(student: Table, exercise: str, materials: Table) -> list[str]:
    """The code cells with which a student answers an exercise, without the marker line."""
    answer: Table = student[exercise]
    if "solution" in answer:
        return [materials["solution"][exercise]]
    if "code" in answer:
        return [answer["code"].strip()]
    if "cells" in answer:
        return [source.strip() for source in answer["cells"]]
    for kind in ("mistake", "variant"):
        if kind in answer:
            entry = materials[kind].get(answer[kind])
            if entry is None or entry["exercise"] != exercise:
                raise ClassListError(f"{student['id']}: there is no {kind} {answer[kind]!r} of exercise {exercise}")
            return [entry["code"].strip()]
    raise ClassListError(f"{student['id']}: exercise {exercise} has no answer")


def build_code_cell(source: str, cell_id: str) -> Cell:
    """A code cell that has not been run."""
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": cell_id,
        "metadata": {},
        "outputs": [],
        "source": source.strip(),
    }


def build_bytes(notebook: Notebook, saved_as: str) -> bytes:
    """A notebook's bytes, as the program that a student saved it with writes them."""
    match saved_as:
        case "plain" | "fresh":
            return format_notebook(notebook)
        case "colab":
            return format_notebook(build_colab_export(notebook))
        case "windows":
            return b"\xef\xbb\xbf" + format_notebook(notebook).replace(b"\n", b"\r\n")
        case "truncated":
            whole = format_notebook(notebook)
            return whole[: len(whole) * 3 // 5]
        case _:
            raise ClassListError(f"unknown way to save a notebook: {saved_as!r}")


def build_colab_export(notebook: Notebook) -> Notebook:
    """Format 4.0 with a badge, a mounted drive, no cell ids and no nbgrader metadata."""
    badge = (
        '<a href="https://colab.research.google.com/drive/sample" target="_parent">'
        '<img src="https://colab.research.google.com/assets/colab-badge.svg" alt="Open In Colab"/></a>'
    )
    mount = "from google.colab import drive\ndrive.mount('/content/drive')"
    cells: list[Cell] = [
        {"cell_type": "markdown", "metadata": {"id": "view-in-github"}, "source": badge},
        build_code_cell(mount, "mount"),
        *notebook["cells"],
    ]
    for number, cell in enumerate(cells):
        cell.pop("id", None)
        cell["metadata"] = {"id": f"colab{number:04d}"}
    return {
        "nbformat": 4,
        "nbformat_minor": 0,
        "metadata": {
            "colab": {"provenance": []},
            "kernelspec": {"name": "python3", "display_name": "Python 3"},
            "language_info": {"name": "python"},
        },
        "cells": cells,
    }


def format_notebook(notebook: Notebook) -> bytes:
    """The notebook as JSON, laid out as Jupyter does: sorted keys, one line of source in each line."""
    cells = [cell | {"source": cell["source"].splitlines(keepends=True)} for cell in notebook["cells"]]
    text = json.dumps(notebook | {"cells": cells}, indent=1, sort_keys=True, ensure_ascii=False)
    return f"{text}\n".encode()


def find_differences(files: dict[str, bytes], folder: Path) -> list[str]:
    """One line for each file of `folder` that is missing, changed or too many."""
    there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    missing = [f"{name} is missing" for name in sorted(files.keys() - there.keys())]
    extra = [f"{name} is not in the list" for name in sorted(there.keys() - files.keys())]
    both = sorted(files.keys() & there.keys())
    return missing + extra + [f"{name} differs" for name in both if there[name].read_bytes() != files[name]]


def write_class(files: dict[str, bytes], folder: Path) -> None:
    """Make `folder` hold exactly these files."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.relative_to(folder).as_posix() not in files:
            path.unlink()
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def main() -> int:
    """Write the folder, or check it. Exit status 1 when the check finds a difference."""
    parser = argparse.ArgumentParser(description="Build the sample class from class.toml.")
    parser.add_argument("--check", action="store_true", help="compare the folder with the list, write nothing")
    check = parser.parse_args().check
    try:
        files = build_class()
    except (ClassListError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    if not check:
        write_class(files, SUBMITTED)
        print(f"{len(files)} submissions written to {SUBMITTED}")
        return 0
    differences = find_differences(files, SUBMITTED)
    print("\n".join(differences) or f"{SUBMITTED} is what the list says.")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
