"""Wrong programs derived from a right one: small changes of a solution cell, one in each. Pure.

A mutant is what a slip of the pen or of thought makes of the cell: another matrix, another axis, a
dropped factor, an old value used again. Hidden tests that give one of them full marks have a hole, or
the change changes no answer.
"""

import ast
import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeGuard

import msgspec

from autograder.validation.operators import Scope, list_constants, mutate_block, mutate_expression, mutate_result


class Mutant(msgspec.Struct, frozen=True):
    """One wrong program. `change` names it independently of where it stands: statement before, statement after."""

    id: str
    """Operator, line, column and a running number at that place; the same for the same source."""
    operator: str
    line: int
    description: str
    change: str
    code: str


class _Edit(msgspec.Struct, frozen=True):
    """One change to make: in `block`, the statements from `start` to `stop` become `new`."""

    operator: str
    line: int
    column: int
    description: str
    block: list[ast.stmt]
    start: int
    stop: int
    new: tuple[ast.stmt, ...]
    change: str = ""
    """Where the statements before and after would say too little or too much."""


def derive_mutants(
    source: str, swap_names: Sequence[str], kinds: Mapping[str, str] | None = None
) -> tuple[Mutant, ...]:
    """All mutants of a cell's source, in order of their place, no two of the same code.

    swap_names: names of the lesson that a name of the cell may be mistaken for; names that the cell has
    assigned are added. kinds: the kind of value by name (see `Scope`); names of known and different kinds
    are not mistaken for each other. A statement that assigns `...` is a placeholder and stays. Nothing is changed
    before or inside what could then run forever, nor where the statement reaches outside the notebook.
    """
    tree = ast.parse(source)
    seen = {ast.dump(tree)}
    mutants: list[Mutant] = []
    places: dict[tuple[str, int, int], int] = {}
    for edit in _list_edits(tree, Scope(tuple(swap_names), kinds or {})):
        change = edit.change or f"{_join(edit.block[edit.start : edit.stop])} -> {_join(edit.new)}"
        code = _apply(tree, edit)
        try:
            shape = ast.dump(ast.parse(code))
            compile(code, "<mutant>", "exec")
        except SyntaxError:
            continue
        if shape in seen:
            continue
        seen.add(shape)
        place = (edit.operator, edit.line, edit.column)
        places[place] = places.get(place, 0) + 1
        name = f"{edit.operator}-{edit.line}-{edit.column}-{places[place]}"
        mutants.append(Mutant(name, edit.operator, edit.line, f"line {edit.line}: {edit.description}", change, code))
    return tuple(mutants)


def _apply(tree: ast.Module, edit: _Edit) -> str:
    """The code with the change made; the tree is as before afterwards."""
    old = list(edit.block)
    edit.block[edit.start : edit.stop] = edit.new
    if not edit.block:
        edit.block.append(ast.Pass())
    try:
        return ast.unparse(tree)
    finally:
        edit.block[:] = old


def _join(statements: Iterable[ast.stmt]) -> str:
    return "; ".join(_show(statement) for statement in statements) or "nothing"


def _show(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())


def _list_edits(tree: ast.Module, scope: Scope) -> Iterator[_Edit]:
    first = 1 + max((at for at, statement in enumerate(tree.body) if _may_never_end(statement)), default=-1)
    for statement in tree.body[:first]:
        scope = scope.after(statement)
    yield from _edit_block(tree.body, first, scope)
    yield from _edit_everywhere(tree.body, first)


def _may_never_end(statement: ast.stmt) -> bool:
    """Whether a change before or inside this statement might make it run forever."""
    for node in ast.walk(statement):
        if isinstance(node, ast.While):
            return True
        if isinstance(node, ast.For | ast.AsyncFor) and any(isinstance(inner, ast.Break) for inner in ast.walk(node)):
            return True
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            # A function that names itself may call itself.
            inside = (inner for child in node.body for inner in ast.walk(child))
            if any(isinstance(inner, ast.Name) and inner.id == node.name for inner in inside):
                return True
    return False


_OUTSIDE = frozenset(
    "open exec eval compile input breakpoint exit quit getattr setattr delattr globals locals vars "
    "__import__ __builtins__ get_ipython os sys io shutil subprocess socket pathlib Path tempfile signal ctypes".split()
)


def _is_left_alone(statement: ast.stmt) -> bool:
    """Placeholders, imports, definitions of names only, and what reaches outside the notebook."""
    if isinstance(statement, ast.Import | ast.ImportFrom | ast.Global | ast.Nonlocal | ast.Pass | ast.ClassDef):
        return True
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr) else ...
    if value is None or (isinstance(value, ast.Constant) and (value.value is ... or isinstance(statement, ast.Expr))):
        return True
    return any(isinstance(node, ast.Name) and node.id in _OUTSIDE for node in ast.walk(statement))


def _edit_block(block: list[ast.stmt], first: int, scope: Scope) -> Iterator[_Edit]:
    """The changes of a list of statements from `first` on, and of the lists nested in them."""
    for at in range(first, len(block)):
        statement = block[at]
        if not _is_left_alone(statement):
            yield from _edit_expressions(block, at, scope)
            yield from _edit_result(block, at, scope)
            free = at + 1 < len(block) and not _is_left_alone(block[at + 1])
            for change in mutate_block(statement, block[at + 1] if free else None, scope):
                place = (change.operator, statement.lineno, statement.col_offset, change.text)
                yield _Edit(*place, block, at, at + change.taken, change.new)
            for inner in _find_blocks(statement):
                yield from _edit_block(inner, 0, scope.enter(statement))
        scope = scope.after(statement)


def _find_blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for field in ("body", "orelse", "finalbody"):
        inner = getattr(statement, field, None)
        if isinstance(inner, list) and inner:
            yield inner


def _edit_expressions(block: list[ast.stmt], at: int, scope: Scope) -> Iterator[_Edit]:
    """One changed expression in a statement or in the head of a compound one."""
    statement = block[at]
    for path, node in list(_find_expressions(statement, scope)):
        for operator, new in mutate_expression(node, scope):
            changed = _replace(statement, path, new)
            text = f"`{_show(node)}` became `{_show(new)}`"
            yield _Edit(operator, node.lineno, node.col_offset, text, block, at, at + 1, (changed,))


def _edit_result(block: list[ast.stmt], at: int, scope: Scope) -> Iterator[_Edit]:
    """The whole right side of an assignment to one name, changed."""
    statement = block[at]
    if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1):
        return
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Name):
        for operator, new in mutate_result(target.id, value, scope):
            changed = _replace(statement, (("value", None),), new)
            text = f"`{target.id}` became `{_show(new)}`"
            yield _Edit(operator, statement.lineno, statement.col_offset, text, block, at, at + 1, (changed,))


def _edit_everywhere(block: list[ast.stmt], first: int) -> Iterator[_Edit]:
    """A number that stands at several places, changed at all of them."""
    free = [statement for statement in block[first:] if not _is_left_alone(statement)]
    numbers = [node for statement in free for node in ast.walk(statement) if _is_number(node)]
    by_value: dict[tuple[type, object], list[ast.Constant]] = {}
    for node in numbers:
        by_value.setdefault((type(node.value), node.value), []).append(node)
    for (_, value), same in by_value.items():
        if len(same) < 2:
            continue
        for other in list_constants(value):
            swap = _Swap(value, other)
            new = tuple(each if each not in free else swap.visit(copy.deepcopy(each)) for each in block)
            text = f"{value} became {other} everywhere"
            yield _Edit(
                "constant-everywhere", same[0].lineno, same[0].col_offset, text, block, 0, len(block), new,
                f"{value} -> {other} everywhere",
            )  # fmt: skip


def _is_number(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


class _Swap(ast.NodeTransformer):
    """Puts one number in place of another; the tree given to it is changed."""

    def __init__(self, old: object, new: bool | int | float) -> None:
        self._old = old
        self._new = new

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        same = type(node.value) is type(self._old) and node.value == self._old
        return ast.Constant(self._new) if same else node


_Path = tuple[tuple[str, int | None], ...]


def _find_expressions(node: ast.AST, scope: Scope, path: _Path = ()) -> Iterator[tuple[_Path, ast.expr]]:
    """Every expression that is read below a node, with the way to it; nested statements are left out."""
    for field, value in ast.iter_fields(node):
        children = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, child in children:
            if isinstance(child, ast.stmt | ast.expr_context) or not isinstance(child, ast.AST):
                continue
            way = (*path, (field, index))
            if isinstance(child, ast.expr):
                if isinstance(getattr(child, "ctx", None), ast.Store | ast.Del):
                    continue
                yield way, child
                if isinstance(child, ast.UnaryOp) and isinstance(child.operand, ast.Constant):
                    # A number and its sign are one.
                    continue
            yield from _find_expressions(child, scope, way)


def _replace(statement: ast.stmt, path: _Path, new: ast.expr) -> ast.stmt:
    """A statement with the node at the end of the path replaced; everything along the path is copied."""
    return _rebuild(statement, path, new)  # type: ignore[return-value]  # a copy has the kind of its original


def _rebuild(node: ast.AST, path: _Path, new: ast.expr) -> ast.AST:
    if not path:
        return new
    (field, index), rest = path[0], path[1:]
    fields = dict(ast.iter_fields(node))
    old = fields[field]
    if index is None:
        fields[field] = _rebuild(old, rest, new)
    else:
        fields[field] = [*old[:index], _rebuild(old[index], rest, new), *old[index + 1 :]]
    return ast.copy_location(type(node)(**fields), node)
