"""Student notebooks: what is built, what is refused, what is written."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from autograder.course import Course, load_course
from autograder.errors import ReleaseError
from autograder.release import build_release, build_stub, find_difference, find_leaks, is_current, release_assignment
from autograder.release.build import parse_source, read_config

COURSE = """
id = "c"
title = "C"
[assignments.a]
title = "A"
seeds = [1, 2]
[[assignments.a.exercises]]
id = "double"
title = "Double it"
written_points = 1
[assignments.a.exercises.answers]
Y = "(T,)"
total = "number"
"""
ANSWER = """# EXERCISE 1: double it
Y = ...      # (T,)
total = ...
### BEGIN SOLUTION
Y = X * 2.0 + np.zeros(3)  # every entry
total = float(Y.sum())
### END SOLUTION"""
SECRET_LINE = "Y = X * 2.0 + np.zeros(3)"
OF = "of a solution: "


def describe(grade_id: str, **flags: Any) -> dict[str, Any]:
    flags = {"grade": False, "solution": False, "locked": False, "task": False} | flags
    return {"nbgrader": {"schema_version": 3, "grade_id": grade_id, **flags}}


def make_source(answer: str = ANSWER, *extra: NotebookNode) -> NotebookNode:
    """A small source with a prelude, an answer, a visible check with hidden lines, and a written answer."""
    check = (
        "assert Y is ... or Y.shape == X.shape\n"
        "### BEGIN HIDDEN TESTS\nassert Y[0] == 2 * X[0] > 0\n### END HIDDEN TESTS"
    )
    outputs = [new_output("stream", text="[2. 4. 6.]\n")]
    cells = [
        new_markdown_cell("# Doubling", id="title"),
        new_code_cell(
            "import numpy as np\nX = np.arange(3.0)", id="prelude", metadata=describe("prelude", locked=True)
        ),
        new_code_cell(
            answer, id="answer", metadata=describe("double", solution=True), outputs=outputs, execution_count=3
        ),
        new_code_cell(check, id="check", metadata=describe("check", grade=True, locked=True, points=0)),
        new_markdown_cell(
            "Because every entry is multiplied by the same number.",
            id="why",
            metadata=describe("double-why", grade=True, solution=True, points=1),
        ),
        *extra,
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


def to_bytes(notebook: NotebookNode) -> bytes:
    return nbformat.writes(notebook).encode()


@pytest.fixture
def course(tmp_path: Path) -> Iterator[Course]:
    (tmp_path / "course.toml").write_text(COURSE)
    (tmp_path / "solutions" / "a").mkdir(parents=True)
    (tmp_path / "tests" / "hidden" / "a").mkdir(parents=True)
    (tmp_path / "tests" / "hidden" / "a" / "test_double.py").write_text("def test_every_entry_is_doubled(): pass\n")
    write_source(tmp_path, make_source())
    return load_course(tmp_path)


def write_source(folder: Path, notebook: NotebookNode) -> None:
    (folder / "solutions" / "a" / "a.ipynb").write_bytes(to_bytes(notebook))


def read_cells(stub: bytes) -> dict[str, NotebookNode]:
    return {cell.id: cell for cell in nbformat.reads(stub.decode(), as_version=4).cells}


def test_stub_keeps_marker_and_placeholders_and_replaces_the_solution() -> None:
    cells = read_cells(build_stub(make_source()))
    assert cells["answer"].source == (
        "# EXERCISE 1: double it\nY = ...      # (T,)\ntotal = ...\n# Write your code here"
    )
    assert cells["why"].source == "YOUR ANSWER HERE"
    assert cells["check"].source == "assert Y is ... or Y.shape == X.shape"


def test_stub_has_no_output_and_locked_cells_cannot_be_edited() -> None:
    cells = read_cells(build_stub(make_source()))
    assert cells["answer"].outputs == []
    assert cells["answer"].execution_count is None
    assert cells["prelude"].metadata.editable is False
    assert cells["answer"].metadata.deletable is False
    assert "editable" not in cells["answer"].metadata


def test_same_source_gives_the_same_bytes_even_without_cell_ids() -> None:
    raw = json.loads(to_bytes(make_source()))
    for cell in raw["cells"]:
        del cell["id"]
    raw["nbformat_minor"] = 4
    source = json.dumps(raw).encode()
    assert build_stub(source) == build_stub(source)
    ids = [cell["id"] for cell in json.loads(build_stub(source))["cells"]]
    assert len(set(ids)) == len(ids)


def test_building_leaves_the_given_notebook_as_it_was() -> None:
    source = make_source()
    before = to_bytes(source)
    build_stub(source)
    assert to_bytes(source) == before


def test_options_of_nbgrader_config_decide_the_stub_text(tmp_path: Path) -> None:
    (tmp_path / "nbgrader_config.py").write_text(
        'c = get_config()\nc.ClearSolutions.code_stub = {"python": "# here"}\nc.ClearSolutions.text_stub = "Why?"\n'
    )
    cells = read_cells(build_stub(make_source(), read_config(tmp_path)))
    assert cells["answer"].source.endswith("# here")
    assert cells["why"].source == "Why?"


def test_broken_nbgrader_config_is_named(tmp_path: Path) -> None:
    (tmp_path / "nbgrader_config.py").write_text("c = nonsense\n")
    with pytest.raises(ReleaseError, match=r"nbgrader_config\.py: cannot be run \(NameError"):
        read_config(tmp_path)


def test_stub_is_what_nbgrader_generate_assignment_makes(tmp_path: Path) -> None:
    folder = tmp_path / "source" / "a"
    folder.mkdir(parents=True)
    (folder / "a.ipynb").write_bytes(to_bytes(make_source()))
    (tmp_path / "nbgrader_config.py").write_text(
        'c = get_config()\nc.ClearSolutions.code_stub = {"python": "# Write your code here"}\n'
    )
    # nbgrader makes its gradebook with the command alembic, which stands beside this Python.
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "generate_assignment", "a"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    released = (tmp_path / "release" / "a" / "a.ipynb").read_bytes()
    assert build_stub(make_source(), read_config(tmp_path)) == released


def test_building_prints_nothing_even_when_nbgrader_logs(capfd: pytest.CaptureFixture[str]) -> None:
    source = make_source()
    source.cells[1].metadata.nbgrader["cell_type"] = "markdown"
    build_stub(source)
    with pytest.raises(ReleaseError):
        build_stub(make_source(ANSWER.replace("### END SOLUTION", "")))
    assert capfd.readouterr() == ("", "")


def test_duplicate_grade_id_is_refused_by_name() -> None:
    twice = new_code_cell("pass", metadata=describe("double", solution=True))
    with pytest.raises(ReleaseError, match="nbgrader refuses the source: Duplicate grade id: double"):
        build_stub(make_source(ANSWER, twice))


def test_malformed_cell_metadata_is_refused() -> None:
    bad = new_code_cell("pass", metadata=describe("not a valid id!", locked=True))
    with pytest.raises(ReleaseError, match=r"nbgrader refuses the source: 'not a valid id!' does not match"):
        build_stub(make_source(ANSWER, bad))


def test_metadata_of_older_nbgrader_is_upgraded() -> None:
    source = make_source()
    source.cells[2].metadata.nbgrader.schema_version = 2
    del source.cells[2].metadata.nbgrader["task"]
    assert read_cells(build_stub(source))["answer"].metadata.nbgrader.schema_version == 3


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (ANSWER.replace("### END SOLUTION", ""), "no end solution statement found"),
        (ANSWER.replace("### END SOLUTION", "### BEGIN SOLUTION\n### END SOLUTION"), "nested begin solution"),
    ],
)
def test_unbalanced_solution_region_is_refused(answer: str, reason: str) -> None:
    with pytest.raises(ReleaseError, match=reason):
        build_stub(make_source(answer))


@pytest.mark.parametrize("data", [b"", b"not json", b"[]", b'{"cells": 3}', b'{"nbformat": 4, "cells": [{}]}'])
def test_source_that_is_no_notebook_is_refused(data: bytes) -> None:
    with pytest.raises(ReleaseError, match="the source is not a valid notebook"):
        build_stub(data)


def find_leaks_with(change: Any) -> list[str]:
    """The leaks of a right stub after a change to it."""
    stub = parse_source(build_stub(make_source()))
    change(stub)
    return find_leaks(parse_source(make_source()), stub, {"test_every_entry_is_doubled"})


def test_right_stub_has_no_leak() -> None:
    assert find_leaks_with(lambda stub: None) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda stub: stub.cells.append(new_code_cell("Y=X*2.0+np.zeros( 3 )")), f"cell 6 contains a line {OF}Y = X"),
        (lambda stub: stub.cells[0].update(source="Hint: total = float(Y.sum())"), f"cell 1 contains a line {OF}total"),
        (
            lambda stub: stub.cells[0].metadata.update(note=["x", {"y": SECRET_LINE}]),
            "cell 1, in an output or its meta",
        ),
        (lambda stub: stub.metadata.update({SECRET_LINE: 1}), "the notebook's metadata contains a line"),
        (lambda stub: stub.cells[0].update(attachments={"a": {"text/plain": SECRET_LINE}}), "cell 1, in an output"),
        (lambda stub: stub.cells[2].outputs.append(new_output("stream", text="4")), "cell 3 still has an output"),
        (lambda stub: stub.cells[2].update(execution_count=1), "cell 3 still has an output or an execution count"),
        (lambda stub: stub.cells[0].update(source="see test_every_entry_is_doubled"), "names the hidden test"),
        (lambda stub: stub.cells[0].update(source="from reference import double"), "mentions the reference"),
        (lambda stub: stub.cells[3].update(source="### BEGIN HIDDEN TESTS"), "still contains BEGIN HIDDEN TESTS"),
        (lambda stub: stub.cells[3].update(source="assert Y[0] == 2 * X[0] > 0"), f"cell 4 contains a line {OF}assert"),
        (lambda stub: stub.cells[4].update(source="Because every entry is multiplied by the same number."), "cell 5"),
        (lambda stub: stub.cells[3].update(source="### HASHED AUTOTEST Y"), "AUTOTEST"),
    ],
)
def test_leak_is_found_wherever_it_is(change: Any, problem: str) -> None:
    problems = find_leaks_with(change)
    assert any(problem in found for found in problems), problems


def test_naming_an_alias_or_an_import_is_no_leak() -> None:
    answer = ANSWER.replace("### END SOLUTION", "import numpy as np\nY_shared_by_all = Y\n### END SOLUTION")
    source = make_source(answer, new_markdown_cell("Set `Y_shared_by_all = Y` after import numpy as np."))
    stub = parse_source(build_stub(source))
    assert find_leaks(parse_source(source), stub, set()) == []


def test_comment_of_a_solution_is_secret_too() -> None:
    answer = ANSWER.replace("### BEGIN SOLUTION", "### BEGIN SOLUTION\n# multiply by two and nothing else")
    source = make_source(answer, new_markdown_cell("Multiply? multiply by two and nothing else."))
    stub = parse_source(build_stub(source))
    assert any("multiply by two" in problem for problem in find_leaks(parse_source(source), stub, set()))


def test_release_writes_the_stub_and_is_then_current(course: Course) -> None:
    assert not is_current(course, "a")
    assert "is not there; run autograder release a" in str(find_difference(course, "a"))
    target = release_assignment(course, "a")
    assert target == course.folder / "assignments" / "a" / "a.ipynb"
    assert target.read_bytes() == build_release(course, "a")
    assert target.stat().st_mode & 0o777 == 0o644
    assert [file.name for file in target.parent.iterdir()] == ["a.ipynb"]
    assert is_current(course, "a")


def test_edited_release_is_not_current(course: Course) -> None:
    target = release_assignment(course, "a")
    target.write_bytes(target.read_bytes().replace(b"Doubling", b"Tripling"))
    assert not is_current(course, "a")
    assert "is not what" in str(find_difference(course, "a"))


def test_refused_release_leaves_the_old_one(course: Course) -> None:
    target = release_assignment(course, "a")
    before = target.read_bytes()
    write_source(course.folder, make_source(ANSWER, new_code_cell(SECRET_LINE)))
    with pytest.raises(
        ReleaseError, match=r"a\.ipynb: the student notebook is not fit to be released: cell 6 contains"
    ):
        release_assignment(course, "a")
    assert target.read_bytes() == before


@pytest.mark.parametrize(
    ("answer", "gap"),
    [
        (ANSWER.replace("# EXERCISE 1: double it\n", ""), "its answer cell must begin with the marker # EXERCISE 1:"),
        (ANSWER.replace("EXERCISE 1", "EXERCISE 2"), "the marker # EXERCISE 2: belongs to no exercise"),
        (ANSWER.replace("total = ...\n", ""), "its answer cell has no placeholder `name = ...` for total"),
        (ANSWER.replace("Y = ...", "Y = ("), "exercise double: its answer cell does not parse"),
        # Without a region the whole cell is the solution, so its marker goes too.
        (re.sub("### (BEGIN|END) SOLUTION", "", ANSWER), "must begin with the marker # EXERCISE 1:"),
    ],
)
def test_answer_cell_that_breaks_the_contract_is_refused(course: Course, answer: str, gap: str) -> None:
    write_source(course.folder, make_source(answer))
    with pytest.raises(ReleaseError) as caught:
        build_release(course, "a")
    assert gap in str(caught.value)


def test_exercise_without_answer_cell_is_named(course: Course) -> None:
    source = make_source()
    source.cells[2].metadata.nbgrader.grade_id = "dubble"
    write_source(course.folder, source)
    with pytest.raises(
        ReleaseError, match="exercise double has no answer cell: no cell has the nbgrader grade_id 'double'"
    ):
        build_release(course, "a")


def test_marker_that_stands_twice_is_refused(course: Course) -> None:
    write_source(course.folder, make_source(ANSWER, new_code_cell("# EXERCISE 1: again")))
    with pytest.raises(ReleaseError, match="the marker # EXERCISE 1: stands there 2 times"):
        build_release(course, "a")


def test_written_points_must_be_those_of_the_course(course: Course) -> None:
    source = make_source()
    source.cells[4].metadata.nbgrader.points = 3
    write_source(course.folder, source)
    with pytest.raises(ReleaseError, match=r"carry 3 points, course\.toml promises 1"):
        build_release(course, "a")


def test_missing_source_is_named(course: Course) -> None:
    course.solution_notebook("a").unlink()
    with pytest.raises(ReleaseError, match=r"a\.ipynb: cannot be read \(No such file or directory\)"):
        build_release(course, "a")
