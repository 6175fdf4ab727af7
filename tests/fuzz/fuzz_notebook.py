"""Any bytes that a student hands in are a program or a `NotebookError`, whatever they hold.

`python tests/fuzz/run.py notebook` looks for bytes that break it; the ordinary tests replay the corpus.
"""

import json

from autograder.course import Assignment, Exercise
from autograder.errors import NotebookError
from autograder.intake.notebook import parse_program
from autograder.records import Program

ASSIGNMENT = Assignment(
    title="Two exercises",
    seeds=(42, 7),
    exercises=(
        Exercise(id="first", title="One", answers={"a1": "number", "b1": "number"}),
        Exercise(id="second", title="Two", answers={"a2": "number", "b2": "number"}),
    ),
)


def read_notebook(data: bytes) -> Program | None:
    """Read bytes as a notebook; None where they are none. What it gives can be sent and shown.

    Bytes that begin with 1 are the texts of code cells, each ended by 0, so that the search reaches what reads code.
    """
    if data[:1] == b"\1":
        sources = data[1:].decode("utf-8", "replace").split("\0")
        data = json.dumps({"cells": [{"cell_type": "code", "source": source} for source in sources]}).encode()
    try:
        program = parse_program(data, ASSIGNMENT)
    except NotebookError as error:
        text = str(error)
        assert text.endswith(".")
        assert "\n" not in text
        return None
    for cell in program.cells:
        assert "\r" not in cell.source
        cell.source.encode()
        assert set(cell.exercises) <= {"first", "second"}
        assert all(name.isidentifier() for name in cell.assigns)
    for note in program.notes:
        assert note.isprintable()
        assert len(note) < 500
    return program


check_bytes = read_notebook
