"""The catalogue of an assignment: known mistakes and accepted variants, and notebooks that hold them.

`solutions/<id>/mistakes.toml` and `variants.toml` hold student code for one exercise's cell, with the
verdict that it must get. One catalogue proves the hidden tests and explains wrong answers.
"""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from autograder.course import Course
from autograder.errors import CourseError


class Raises(BaseModel):
    """The exception that an entry's code ends with, on at least one input set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str
    message: str = ""
    """A regular expression found in the exception's text."""


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    exercise: str
    title: str
    source: str
    code: str


class Variant(_Entry):
    """Correct code, written differently; it must get full marks."""

    before: str | None = None
    """A cell of its own before the answer cell."""


class Mistake(_Entry):
    """Wrong code: the hidden tests that it must lose, and no others, and the hint that its author gets."""

    loses: tuple[str, ...]
    hint: str
    raises: Raises | None = None


class Catalogue(BaseModel):
    """All entries of one assignment."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mistakes: tuple[Mistake, ...] = ()
    variants: tuple[Variant, ...] = ()


def load_catalogue(course: Course, name: str) -> Catalogue:
    """Both files of an assignment; a file that is not there has no entries. `CourseError` names file and entry."""
    folder = course.solution_notebook(name).parent
    mistakes = _load_entries(folder / "mistakes.toml", "mistake")
    variants = _load_entries(folder / "variants.toml", "variant")
    try:
        catalogue = Catalogue.model_validate({"mistakes": mistakes, "variants": variants})
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        kind, number, *key = problem["loc"]
        entry = (mistakes if kind == "mistakes" else variants)[int(number)]
        where = f"entry {entry.get('id', number)}, key {'.'.join(map(str, key))}"
        raise CourseError(f"{folder / str(kind)}.toml: {where}: {problem['msg'].lower()}") from error
    exercises = {exercise.id for exercise in course.assignment(name).exercises}
    for entries, file in ((catalogue.mistakes, "mistakes.toml"), (catalogue.variants, "variants.toml")):
        ids: set[str] = set()
        for each in entries:
            if each.exercise not in exercises:
                raise CourseError(f"{folder / file}: entry {each.id}: there is no exercise {each.exercise}")
            if each.id in ids:
                raise CourseError(f"{folder / file}: entry {each.id} stands there twice")
            ids.add(each.id)
    return catalogue


def _load_entries(file: Path, kind: str) -> list[dict[str, Any]]:
    if not file.is_file():
        return []
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CourseError(f"{file}: is not valid TOML: {error}") from error
    unknown = sorted(set(data) - {kind})
    if unknown:
        raise CourseError(f"{file}: unknown key {unknown[0]}; entries begin with [[{kind}]]")
    entries = data.get(kind, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise CourseError(f"{file}: the key {kind} holds no entries; each begins with [[{kind}]]")
    return entries


def fill_notebook(source: bytes, codes: Mapping[str, str], before: Mapping[str, str] | None = None) -> bytes:
    """A notebook whose answer cells hold other code; each keeps its marker line.

    source: a notebook whose answer cells carry the exercise's id as nbgrader `grade_id`.
    codes, before: by exercise id; `before` puts a cell of its own before the answer cell.
    """
    notebook = json.loads(source)
    cells = []
    for cell in notebook["cells"]:
        exercise = cell.get("metadata", {}).get("nbgrader", {}).get("grade_id", "")
        if before and exercise in before:
            cells.append({**_EMPTY_CELL, "id": f"{exercise}-extra", "source": before[exercise]})
        if exercise in codes:
            marker = "".join(cell["source"]).split("\n", 1)[0]
            cells.append({**cell, "source": f"{marker}\n{codes[exercise]}"})
        else:
            cells.append(cell)
    return json.dumps({**notebook, "cells": cells}, indent=1, ensure_ascii=False).encode() + b"\n"


_EMPTY_CELL: dict[str, Any] = {
    "cell_type": "code",
    "execution_count": None,
    "metadata": {},
    "outputs": [],
    "source": "",
}
