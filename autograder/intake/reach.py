"""What a cell can have done to cells below it, as far as its text proves.

A proof is there for cells like the lesson's own, which assign names to what they compute. Of all others nothing is
said: functions, loops, imports, what is changed in place, attributes of modules.
"""

import ast
import builtins
import functools
from collections.abc import Collection, Iterable

from autograder.intake.names import parse_source
from autograder.syntax import parse_python

_MOST_CHARS = 4_000
"""Longer cells prove nothing, and cost no time."""

_NODES = (
    ast.Module, ast.Assign, ast.Expr, ast.Assert, ast.Pass, ast.Name, ast.Constant, ast.Tuple, ast.List, ast.BinOp,
    ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Subscript, ast.Slice, ast.Attribute, ast.Call, ast.keyword,
    ast.JoinedStr, ast.FormattedValue, ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip
_FUNCTIONS = {
    "abs": 1, "all": 1, "allclose": 4, "any": 1, "arange": 4, "argmax": 2, "argsort": 2, "array": 2, "array_equal": 3,
    "asarray": 2, "astype": 2, "concatenate": 2, "copy": 1, "dot": 2, "einsum": 9, "exp": 1, "eye": 3, "isclose": 4,
    "isfinite": 1, "isnan": 1, "item": 9, "log": 1, "matmul": 2, "max": 1, "mean": 2, "min": 1, "multiply": 2,
    "ones": 2, "prod": 2, "reshape": 9, "round": 2, "sqrt": 1, "stack": 2, "subtract": 2, "sum": 2, "swapaxes": 3,
    "tensordot": 3, "tolist": 1, "transpose": 9, "tril": 2, "triu": 2, "zeros": 2,
}  # fmt: skip
"""Functions of NumPy and methods of arrays that change nothing, with so many arguments; a further one may be `out`."""
_VALUES = set("T dtype e float64 inf int64 nan ndim newaxis pi shape size".split())
_BUILTINS = set("abs all any bool float int len list max min print range round str sum tuple".split())
_ALL_BUILTINS = frozenset(dir(builtins))
_KEYWORDS = set("axis axes dtype equal_nan keepdims k atol rtol sep end".split())
_DYNAMIC = set(
    "bmat breakpoint compile dir eval exec get_ipython getattr globals input locals open setattr vars who".split()
)
"""What comes to names by their text."""
_LEFT_OVER = {"empty", "empty_like"}
"""What shows the memory that others have let go of."""
_PACKAGES = {"numpy", "math", "matplotlib", "random", "time"}


def find_assigned(source: str, known: Collection[str]) -> frozenset[str] | None:
    """The names that a cell assigns, where it can do nothing else; None where that is not proved.

    known: names of arrays, numbers, texts and lists. Of any other object nobody knows what it does when it is only
    looked at: an iterator is used up by `list`.
    """
    tree = parse_python(source) if len(source) <= _MOST_CHARS else None
    if tree is None or not all(_is_harmless(node) for node in ast.walk(tree)):
        return None
    # An attribute may be read of an array, and a function called, but not put under another name and called there.
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    attributes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    if any(node.attr not in _VALUES and id(node) not in called for node in attributes):
        return None
    assigned: set[str] = set()
    for statement in tree.body:
        names = list(_list_names(statement))
        loaded = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        if not loaded <= {"np"} | _BUILTINS | assigned | set(known):
            return None
        assigned |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return frozenset(assigned)


def find_used(source: str) -> frozenset[str] | None:
    """The names that a cell may look at or change; None where it may come to others in some other way."""
    tree = parse_python(source) if len(source) <= _MOST_CHARS else None
    if tree is None:
        return None
    for node in ast.walk(tree):
        # Who catches an exception may do without the memory that others have taken.
        if isinstance(node, ast.Try | ast.TryStar):
            return None
        if isinstance(node, ast.Attribute) and (node.attr.startswith("_") or node.attr in _DYNAMIC | _LEFT_OVER):
            return None
        if isinstance(node, ast.alias) and node.name in _DYNAMIC | _LEFT_OVER:
            return None
        if isinstance(node, ast.Import) and not {each.name.partition(".")[0] for each in node.names} <= _PACKAGES:
            return None
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").partition(".")[0] not in _PACKAGES):
            return None
    names = frozenset(node.id for node in _list_names(tree))
    return None if any(name in _DYNAMIC or name.startswith("__") for name in names) else names


@functools.lru_cache(maxsize=256)
def find_names_of_course(source: str) -> frozenset[str] | None:
    """All names that stand in a cell of the course's own; None where it cannot be read."""
    tree = parse_source(source)
    return None if tree is None else frozenset(node.id for node in _list_names(tree))


@functools.lru_cache(maxsize=256)
def find_bound(source: str) -> frozenset[str] | None:
    """All names that a cell may bind, at any depth; None where it cannot be read, or binds what proofs stand on.

    That is a built-in function's name, or `np` to anything but NumPy.
    """
    tree = parse_source(source)
    if tree is None:
        return None
    found = {name for node in ast.walk(tree) for name in _list_bound(node)}
    return None if found & (_ALL_BUILTINS | {"np", "*"}) else frozenset(found)


def _list_bound(node: ast.AST) -> Iterable[str]:
    """The names that a node by itself may bind."""
    if isinstance(node, ast.Name):
        return () if isinstance(node.ctx, ast.Load) else (node.id,)
    if isinstance(node, ast.alias):
        is_numpy = (node.name, node.asname) == ("numpy", "np")
        return () if is_numpy else (node.asname or node.name.partition(".")[0],)
    # Functions, classes, exceptions and patterns.
    return filter(None, (getattr(node, "name", None), getattr(node, "rest", None)))


def _list_names(tree: ast.AST) -> Iterable[ast.Name]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Name))


def _is_harmless(node: ast.AST) -> bool:
    """Whether a node by itself only computes, or assigns a name."""
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Store):
            # As another name for an array, `np` would make methods of functions, which take one argument less; and
            # another function called `abs` might do anything.
            return not node.id.startswith("_") and node.id != "np" and node.id not in _ALL_BUILTINS
        return not node.id.startswith("_")
    if isinstance(node, ast.Attribute):
        return isinstance(node.ctx, ast.Load) and (node.attr in _VALUES or node.attr in _FUNCTIONS)
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.keyword):
        return node.arg in _KEYWORDS
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Name):
            return function.id in _BUILTINS
        if not isinstance(function, ast.Attribute):
            return False
        of_module = isinstance(function.value, ast.Name) and function.value.id == "np"
        return len(node.args) <= _FUNCTIONS.get(function.attr, -1) - (not of_module)
    return isinstance(node, _NODES)
