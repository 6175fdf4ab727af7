"""Whether a student notebook has what `course.toml` promises. Pure functions over notebooks."""

import ast
import re

from nbformat import NotebookNode

from autograder.course import Assignment, Exercise

_MARKER = re.compile(r"^\s*#\s*EXERCISE\s+(\d+)\s*:", re.MULTILINE | re.IGNORECASE)


def find_gaps(assignment: Assignment, notebook: NotebookNode) -> list[str]:
    """What is missing in a source or a stub: one sentence for each, none when it is complete.

    Every exercise needs an answer cell (a code cell whose nbgrader `grade_id` is the exercise's id and that
    is a solution) that begins with its marker `# EXERCISE n:` and has a placeholder `name = ...` for each
    answer; markers of no exercise and wrong points for written answers are gaps too.
    """
    cells = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell for cell in notebook.cells}
    gaps = []
    for number, exercise in enumerate(assignment.exercises, start=1):
        gaps += _find_exercise_gaps(number, exercise, cells.get(exercise.id))
    numbers = [
        int(match[1]) for cell in notebook.cells if cell.cell_type == "code" for match in _MARKER.finditer(cell.source)
    ]
    for number in sorted(set(numbers)):
        if number > len(assignment.exercises):
            gaps.append(f"the marker # EXERCISE {number}: belongs to no exercise of course.toml")
        elif numbers.count(number) > 1:
            gaps.append(f"the marker # EXERCISE {number}: stands there {numbers.count(number)} times")
    return gaps + _find_written_gaps(assignment, notebook)


def list_placeholders(source: str) -> set[str]:
    """The names that a cell's code sets to `...`. Raises `SyntaxError` when the code is none."""
    return {
        target.id
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is Ellipsis
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _find_exercise_gaps(number: int, exercise: Exercise, cell: NotebookNode | None) -> list[str]:
    name = f"exercise {exercise.id}"
    if cell is None:
        return [f"{name} has no answer cell: no cell has the nbgrader grade_id {exercise.id!r}"]
    if cell.cell_type != "code" or not cell.metadata["nbgrader"].get("solution"):
        return [f"{name}: the cell with its grade_id must be a code cell that is an nbgrader solution cell"]
    gaps = []
    first = next((line for line in cell.source.split("\n") if line.strip()), "")
    marker = _MARKER.match(first)
    if marker is None or int(marker[1]) != number:
        gaps.append(f"{name}: its answer cell must begin with the marker # EXERCISE {number}:")
    try:
        placeholders = list_placeholders(cell.source)
    except SyntaxError as error:
        return [*gaps, f"{name}: its answer cell does not parse ({error.msg}, line {error.lineno})"]
    missing = [answer for answer in exercise.answers if answer not in placeholders]
    if missing:
        gaps.append(f"{name}: its answer cell has no placeholder `name = ...` for {', '.join(missing)}")
    return gaps


def _find_written_gaps(assignment: Assignment, notebook: NotebookNode) -> list[str]:
    promised = sum(exercise.written_points for exercise in assignment.exercises)
    found = 0.0
    for cell in notebook.cells:
        meta = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "markdown" and meta.get("grade") and (meta.get("solution") or meta.get("task")):
            found += float(meta.get("points", 0))
    if found == promised:
        return []
    return [f"its cells for written answers carry {found:g} points, course.toml promises {promised:g}"]
