"""Whether a student notebook gives away what its source keeps to itself. Pure functions over notebooks."""

import ast
import re
from collections.abc import Collection, Iterator
from typing import Any

from nbformat import NotebookNode

REGIONS = (("BEGIN SOLUTION", "END SOLUTION"), ("BEGIN HIDDEN TESTS", "END HIDDEN TESTS"))
MARK_SCHEME = ("BEGIN MARK SCHEME", "END MARK SCHEME")
DELIMITERS = tuple(word for pair in (*REGIONS, MARK_SCHEME) for word in pair)
_REFERENCE = re.compile(r"\b(?:import|from)\s+reference\b|\breference\.py\b|\bsolutions/", re.IGNORECASE)
_AUTOTEST = re.compile(r"^\s*#.*\bAUTOTEST\b", re.MULTILINE)
_SHORTEST = 10
"""A shorter line, counted without spaces, says too little to be told from any other (`hs = 6`)."""


def find_leaks(source: NotebookNode, stub: NotebookNode, hidden_test_names: Collection[str]) -> list[str]:
    """What of the source's secrets is in the stub: one sentence for each, none when it is clean.

    Secret are the lines of solution, hidden-test and mark-scheme regions and of whole solution cells, the
    names of hidden tests, the reference, and every output. Sources, outputs, attachments and metadata of
    the stub are searched, without regard to spaces.
    """
    places = [(where, text, _squeeze(text)) for where, text in _list_texts(stub)]
    problems = []
    for line in sorted({line for cell in source.cells for line in list_secret_lines(cell)}):
        needle = _squeeze(line)
        found = next((where for where, _, squeezed in places if needle in squeezed), None)
        if found:
            problems.append(f"{found} contains a line of a solution: {line}")
    for name in sorted(hidden_test_names):
        pattern = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])")
        problems += [f"{where} names the hidden test {name}" for where, text, _ in places if pattern.search(text)]
    for where, text, _ in places:
        problems += [f"{where} still contains {word}" for word in DELIMITERS if word in text]
        if _REFERENCE.search(text):
            problems.append(f"{where} mentions the reference or the solutions folder")
        if _AUTOTEST.search(text):
            problems.append(f"{where} asks for nbgrader's AUTOTEST, which is not supported")
    for index, cell in enumerate(stub.cells):
        if cell.cell_type == "code" and (cell.get("outputs") or cell.get("execution_count") is not None):
            problems.append(f"cell {index + 1} still has an output or an execution count")
    return problems


def list_secret_lines(cell: NotebookNode) -> list[str]:
    """The lines of a source cell that a student must not get, without those that say nothing."""
    secret, inside, replaced = [], False, False
    for line in cell.source.split("\n"):
        if any(begin in line for begin, _ in (*REGIONS, MARK_SCHEME)):
            inside, replaced = True, replaced or "BEGIN SOLUTION" in line
        elif any(end in line for _, end in (*REGIONS, MARK_SCHEME)):
            inside = False
        elif inside:
            secret.append(line)
    if cell.metadata.get("nbgrader", {}).get("solution") and not replaced:
        secret = cell.source.split("\n")
    is_code = cell.cell_type == "code"
    lines = (_strip_comment(line) if is_code else line.strip() for line in secret)
    return [line for line in lines if len(_squeeze(line)) >= _SHORTEST and not (is_code and _is_trivial(line))]


def find_test_names(source: str) -> list[str]:
    """The names of the test functions and classes of one hidden test module. Raises `SyntaxError`."""
    return [
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and node.name.lower().startswith("test")
    ]


def _strip_comment(line: str) -> str:
    """The code of a line, or its comment where it has no code; kept whole when that cannot be told."""
    code = line.strip()
    for place in (match.start() for match in re.finditer("#", code)):
        if place == 0:
            return code.lstrip("# ")
        head = code[:place].rstrip()
        # A # inside a string leaves an open quote, so the head does not parse.
        if _parse(head) is not None:
            return head
    return code


def _parse(line: str) -> ast.stmt | None:
    """The single statement of a line; None when the line is none by itself (`for`, half a call, prose)."""
    try:
        body = ast.parse(line).body
    except (SyntaxError, ValueError):
        return None
    return body[0] if len(body) == 1 else None


def _is_trivial(line: str) -> bool:
    """Whether a line of code gives nothing away: an import, or a name for another name (`a = b`), which the
    text of an exercise may have to say."""
    statement = _parse(line)
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return True
    return isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Name)


def _squeeze(text: str) -> str:
    return re.sub(r"\s+", "", text)


def _list_texts(stub: NotebookNode) -> Iterator[tuple[str, str]]:
    """Every text of a notebook with its place: each cell's source, then all else that it carries."""
    for index, cell in enumerate(stub.cells):
        place = f"cell {index + 1}"
        yield place, cell.source
        rest = {key: value for key, value in cell.items() if key != "source"}
        yield f"{place}, in an output or its metadata,", "\n".join(_list_strings(rest))
    yield "the notebook's metadata", "\n".join(_list_strings(stub.metadata))


def _list_strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _list_strings(item)
    elif isinstance(value, list | tuple):
        if value and all(isinstance(item, str) for item in value):
            yield "".join(value)
        else:
            for item in value:
                yield from _list_strings(item)
