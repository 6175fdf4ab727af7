"""What a cell's text shows: the names it assigns at module level, and its exercise markers.

Nothing is run and IPython is not imported. A cell may hold IPython syntax, a syntax error or hostile text.
The analysis tries Python, then Python with IPython's lines made harmless, then line by line; it never fails
and never warns.
"""

import ast
import bisect
import functools
import re
from collections.abc import Iterator, Sequence

import msgspec

from autograder.syntax import parse_python

MAX_PARSED_CHARS = 100_000
"""Longer cells are only read line by line: Python's parser needs too much time and memory for them."""

_MAX_CACHED_CHARS = 4_000
_CELL_MAGIC = re.compile(r"\s*%%(\w+)[^\n]*(?:\n|\Z)")
_OTHER_LANGUAGES = re.compile(
    r"bash|sh|script|cmd|system|sx|shell|perl|ruby|R|sql|bigquery|cython|python[23]?|pypy"
    r"|html|HTML|javascript|js|latex|markdown|svg|SVG|writefile|file"
)
# IPython runs what is timed inside a function.
_OWN_SCOPE = "timeit"
_TIMED = re.compile(r"([ \t]*)%time[ \t]+(?=\S)")
_MAGIC_VALUE = re.compile(r"([^=!%'\"#]+=[ \t]*)[!%]")
_MAGIC_LINE = re.compile(
    r"([ \t]*)(?:[%!]|\?{0,2}[%\w.*]*\?{1,2}[ \t]*\Z|\?|(?:pip[\d.]*|conda|mamba|micromamba|uv)[ \t]+(?:un)?install\b)"
)
_AFTER_NUMBER = ":.-\u2013\u2014)/|,;="
_EQUALS = re.compile(r"(?<![=!<>:])=(?!=)")
_MARKER = re.compile(
    r"^[ \t]*#{1,6}[ \t]*(EXERCISE)[ \t]*([0-9]{1,6})(?![\w'\u2019])([^\n]*)", re.IGNORECASE | re.MULTILINE
)


class Names(msgspec.Struct, frozen=True):
    """What a text does to names at module level."""

    assigned: tuple[str, ...] = ()
    """Every name that is bound, in order of first appearance."""
    filled: frozenset[str] = frozenset()
    """Names that get something other than the placeholder `...`, also in place (`name[0] = 1`)."""


def find_names(source: str, parse: bool = True) -> Names:
    """The names that `source` assigns at module level; a best guess where it is not valid Python.

    Without `parse` the text is only read line by line, which is quick for a text of any length.
    """
    if parse and len(source) <= _MAX_CACHED_CHARS:
        return _find_names_cached(source, True)
    return _find_names(source, parse)


def parse_source(source: str) -> ast.Module | None:
    """The syntax tree of a cell with IPython's lines made harmless; None when it is not valid or too long.

    Line numbers are those of `source`.
    """
    if len(source) > MAX_PARSED_CHARS:
        return None
    tree = parse_python(source)
    return tree if tree is not None else parse_python(neutralise_ipython(source))


def neutralise_ipython(source: str) -> str:
    """The same number of lines, with magics, shell lines and help requests replaced by plain Python."""
    lines: list[str] = []
    continued = False
    for line in source.split("\n"):
        plain = "" if continued else _neutralise_line(line)
        continued = (continued or plain != line) and line.endswith("\\")
        lines.append(plain)
    return "\n".join(lines)


def _neutralise_line(line: str) -> str:
    if timed := _TIMED.match(line):
        line = timed[1] + line[timed.end() :]
    if value := _MAGIC_VALUE.match(line):
        return f"{value[1]}None"
    if magic := _MAGIC_LINE.match(line):
        return f"{magic[1]}pass"
    return line


def find_markers(source: str) -> tuple[tuple[int, int], ...]:
    """Line (from 0) and number of every marker line such as `# EXERCISE 2: ...`.

    Case and spaces are free. A comment further down that merely mentions an exercise
    (`# exercise 1 gave K_shared`) is no marker: there the number must end the line or be followed by `:` or the like.
    """
    if len(source) <= _MAX_CACHED_CHARS:
        return _find_markers_cached(source)
    return _find_markers(source)


def _find_markers(source: str) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    if "EXERCISE" not in source.upper():
        return ()
    first = len(source) - len(source.lstrip())
    line, counted = 0, 0
    for match in _MARKER.finditer(source):
        line, counted = line + source.count("\n", counted, match.start()), match.start()
        rest = match[3].strip()
        if match[1].isupper() or not rest or rest[0] in _AFTER_NUMBER or match.start() <= first:
            found.append((line, int(match[2])))
    return tuple(found)


_find_markers_cached = functools.lru_cache(maxsize=1024)(_find_markers)


def split_source(source: str, markers: Sequence[tuple[int, int]], parse: bool = True) -> list[tuple[str, list[int]]]:
    """Cut a cell where its marker lines begin another exercise; each part comes with the numbers it carries.

    Text before the first marker belongs to the first part. A marker within a statement (in a function, in a
    string) does not cut it. Text that is not valid Python is cut at every marker, so that a syntax error in one
    exercise does not reach the next; so is any text without `parse`, which is quick.
    """
    numbers = [number for _, number in markers]
    if len(set(numbers)) < 2:
        return [(source, numbers)]
    tree = parse_source(source) if parse else None
    starts = [min(_first_lines(node)) - 1 for node in tree.body] if tree else []
    ends = [(node.end_lineno or node.lineno) - 1 for node in tree.body] if tree else []
    lines = source.split("\n")
    parts: list[tuple[str, list[int]]] = []
    begin, carried = 0, [numbers[0]]
    for line, number in markers[1:]:
        before = bisect.bisect_left(starts, line) - 1
        inside = before >= 0 and ends[before] >= line
        if number not in carried and not inside:
            parts.append(("\n".join(lines[begin:line]), carried))
            begin, carried = line, []
        carried.append(number)
    return [*parts, ("\n".join(lines[begin:]), carried)]


def _first_lines(node: ast.stmt) -> list[int]:
    return [node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))]


def find_foreign_magic(source: str) -> str:
    """The cell magic through which a cell assigns no names (`bash`, `timeit`); empty where there is none."""
    return _skip_magics(source)[0]


def _skip_magics(source: str) -> tuple[str, int]:
    """A magic that keeps a cell from assigning names, and where the text after its magics begins."""
    begin = 0
    while match := _CELL_MAGIC.match(source, begin):
        if match[1] == _OWN_SCOPE or _OTHER_LANGUAGES.fullmatch(match[1]):
            return match[1], begin
        begin = match.end()
    return "", begin


def _find_names(source: str, parse: bool) -> Names:
    magic, begin = _skip_magics(source)
    if magic:
        return Names()
    rest = source[begin:]
    tree = parse_source(rest) if parse else None
    found = _Found()
    if tree is None:
        _read_lines(rest, found)
    else:
        _read_tree(tree, ":=" in rest, found)
    return Names(assigned=tuple(found.assigned), filled=frozenset(found.filled))


# A class hands in the same prelude and checks again and again; short texts are kept.
_find_names_cached = functools.lru_cache(maxsize=1024)(_find_names)


class _Found:
    """Names found so far in one scope."""

    def __init__(self) -> None:
        self.assigned: dict[str, None] = {}
        self.filled: set[str] = set()
        self.declared_global: set[str] = set()

    def bind(self, name: str, filled: bool = True) -> None:
        if not name.isidentifier():  # `from a import *`, a pattern without a name
            return
        self.assigned.setdefault(name)
        if filled:
            self.filled.add(name)


def _read_lines(source: str, found: _Found) -> None:
    """`name = value`, `a, b = value` and `a = b = value` at the start of a line, indented or not."""
    for line in source.split("\n"):
        *targets, value = _EQUALS.split(line)
        filled = value.partition("#")[0].strip() not in ("...", "Ellipsis")
        for target in targets:
            names = target.partition(":")[0].rstrip("+-*/@ \t").strip("()[] \t").rstrip(", \t")
            words = [name.strip("* \t") for name in names.split(",")]
            if not all(word.isidentifier() for word in words):
                break
            for word in words:
                found.bind(word, filled)


def _read_tree(tree: ast.Module, has_walrus: bool, found: _Found) -> None:
    scopes = _read_scope(tree.body, has_walrus, found)
    while scopes:
        inner = _Found()
        scopes += _read_scope(scopes.pop(), has_walrus, inner)
        for name in inner.declared_global.intersection(inner.assigned):
            found.bind(name, name in inner.filled)


def _read_scope(body: list[ast.stmt], has_walrus: bool, found: _Found) -> list[list[ast.stmt]]:
    """Read one scope's own statements, blocks included; the bodies of inner functions and classes are returned."""
    inner: list[list[ast.stmt]] = []
    waiting: list[ast.AST] = list(reversed(body))
    while waiting:
        node = waiting.pop()
        if has_walrus:
            for name in _find_walrus(node):
                found.bind(name)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.bind(node.name)
            inner.append(node.body)
            continue
        _read_statement(node, found)
        blocks = [child for block in _BLOCKS for child in getattr(node, block, ())]
        waiting += reversed(blocks)
    return inner


_BLOCKS = ("body", "handlers", "cases", "orelse", "finalbody")


def _read_statement(node: ast.AST, found: _Found) -> None:
    match node:
        case ast.Assign():
            for target in node.targets:
                _bind_target(target, node.value, found)
        case ast.AnnAssign(value=ast.expr()):
            _bind_target(node.target, node.value, found)
        case ast.AugAssign() | ast.For() | ast.AsyncFor():
            _bind_target(node.target, None, found)
        case ast.With() | ast.AsyncWith():
            for item in filter(None, (item.optional_vars for item in node.items)):
                _bind_target(item, None, found)
        case ast.Import() | ast.ImportFrom():
            for name in (alias.asname or alias.name.partition(".")[0] for alias in node.names):
                found.bind(name)
        case ast.Global():
            found.declared_global.update(node.names)
        case ast.match_case():
            for part in ast.walk(node.pattern):
                found.bind(getattr(part, "rest", None) or getattr(part, "name", None) or "")
        case _:
            pass


def _bind_target(target: ast.expr, value: ast.expr | None, found: _Found) -> None:
    waiting: list[tuple[ast.expr, ast.expr | None]] = [(target, value)]
    while waiting:
        target, value = waiting.pop()
        match target:
            case ast.Name():
                found.bind(target.id, not _is_placeholder(value))
            case ast.Starred():
                waiting.append((target.value, None))
            case ast.Tuple() | ast.List():
                waiting += reversed(list(_pair(target.elts, value)))
            case ast.Subscript() | ast.Attribute():
                while isinstance(target, ast.Subscript | ast.Attribute):
                    target = target.value
                if isinstance(target, ast.Name):
                    found.filled.add(target.id)
            case _:
                pass


def _pair(targets: list[ast.expr], value: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(targets):
        return zip(targets, value.elts, strict=True)
    return ((target, None) for target in targets)


def _is_placeholder(value: ast.expr | None) -> bool:
    return (isinstance(value, ast.Constant) and value.value is ...) or (
        isinstance(value, ast.Name) and value.id == "Ellipsis"
    )


def _find_walrus(statement: ast.AST) -> Iterator[str]:
    """Names bound by `:=` in a statement's own expressions. One in a comprehension binds outside of it."""
    waiting: list[ast.AST] = [child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.NamedExpr):
            yield node.target.id
        if not isinstance(node, ast.Lambda | ast.stmt | ast.excepthandler | ast.match_case):
            waiting += ast.iter_child_nodes(node)
