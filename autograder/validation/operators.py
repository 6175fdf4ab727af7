"""The single changes that make a wrong program of a right one: of an expression, a result, a statement. Pure."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

import msgspec

Changed = tuple[str, ast.expr]
"""An operator's name and the expression that it puts in place of another."""

_OPERATORS: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.MatMult: (ast.Mult, ast.Add),
    ast.Div: (ast.Mult, ast.Add, ast.Sub),
    ast.Mult: (ast.Div, ast.Add),
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add,),
    ast.Pow: (ast.Mult,),
    ast.FloorDiv: (ast.Mult, ast.Mod),
    ast.Mod: (ast.FloorDiv,),
}
_ONE_WAY = (ast.MatMult, ast.Div, ast.Sub, ast.Pow, ast.FloorDiv, ast.Mod)
_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq, ast.Is, ast.Lt, ast.Gt),
    ast.NotEq: (ast.Eq, ast.IsNot),
    ast.Lt: (ast.GtE, ast.LtE),
    ast.LtE: (ast.Gt, ast.Lt),
    ast.Gt: (ast.LtE, ast.GtE),
    ast.GtE: (ast.Lt, ast.Gt),
    ast.Is: (ast.IsNot, ast.Eq),
    ast.IsNot: (ast.Is, ast.NotEq),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_FUNCTIONS: dict[str, tuple[str, ...]] = {
    "sqrt": ("square", "log", "cbrt", "exp"),
    "sum": ("mean", "max"),
    "mean": ("sum", "max"),
    "max": ("min", "mean"),
    "min": ("max", "mean"),
    "all": ("any",),
    "any": ("all",),
    "zeros": ("ones",),
    "ones": ("zeros",),
    "zeros_like": ("ones_like",),
    "ones_like": ("zeros_like",),
    "randn": ("rand",),
    "standard_normal": ("random",),
    "normal": ("uniform",),
    "dot": ("multiply",),
    "matmul": ("multiply", "add"),
    "swapaxes": ("moveaxis",),
}
_SAME = ("allclose", "array_equal", "array_equiv")
"""Functions that compare two arrays as a whole, in whatever order they are given."""
_TRUTHS = (*_SAME, "all", "any", "isclose", "bool")
_DRAWS = frozenset("randn rand random normal standard_normal uniform choice randint integers permutation".split())


class Scope(msgspec.Struct, frozen=True):
    """Names that may stand for each other at one place: the lesson's, and what the cell has assigned before it.

    kinds: `bool`, `number`, `whole number`, `array 2` for two axes; anything else only tells names apart.
    """

    names: tuple[str, ...]
    kinds: Mapping[str, str]

    def after(self, statement: ast.stmt) -> "Scope":
        """The scope behind a statement."""
        placeholder = isinstance(statement, ast.Assign) and ast.unparse(statement.value) == "..."
        nodes = () if placeholder else ast.walk(statement)
        stored = (node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        return self._extend(stored)

    def enter(self, statement: ast.stmt) -> "Scope":
        """The scope inside a compound statement: with its loop variables or its parameters."""
        parameters = (node.arg for node in ast.walk(statement) if isinstance(node, ast.arg))
        target = getattr(statement, "target", None)
        loop = (node.id for node in ast.walk(target) if isinstance(node, ast.Name)) if target is not None else ()
        return self._extend([*parameters, *loop])

    def _extend(self, names: "Iterator[str] | Sequence[str]") -> "Scope":
        return Scope(tuple(dict.fromkeys([*self.names, *names])), self.kinds)

    def kind(self, name: str) -> str:
        """The kind of a name's value, empty if it is not known."""
        return self.kinds.get(name, "")

    def is_array(self, name: str) -> bool:
        """Whether the name's value is known to be an array; its kind then begins with this word."""
        return self.kind(name).startswith("array")

    def list_others(self, name: str) -> list[str]:
        """Names that may be mistaken for this one."""
        kind = self.kind(name)
        return [each for each in self.names if each != name and (not kind or self.kind(each) in ("", kind))]


class BlockChange(msgspec.Struct, frozen=True):
    """`taken` statements from the changed one on become `new`."""

    operator: str
    text: str
    taken: int
    new: tuple[ast.stmt, ...]


def mutate_expression(node: ast.expr, scope: Scope) -> Iterator[Changed]:
    """All changes of one expression itself, not of its parts."""
    match node:
        case ast.BinOp():
            yield from _change_operation(node)
        case ast.Compare(ops=[comparison]):
            for kind in _COMPARISONS.get(type(comparison), ()):
                yield "comparison", ast.Compare(node.left, [kind()], node.comparators)
        case ast.BoolOp():
            yield "operator", ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)) if not isinstance(value, bool):
            yield "drop-sign", node.operand
            yield from (("constant", _number(-each)) for each in list_constants(value))
        case ast.UnaryOp():
            yield "drop-sign", node.operand
        case ast.Constant():
            yield from (("constant", ast.Constant(value)) for value in list_constants(node.value))
        case ast.Name():
            yield from (("name", _name(other)) for other in scope.list_others(node.id))
        case ast.Attribute():
            yield from _change_attribute(node)
        case ast.Subscript():
            yield from _change_subscript(node)
        case ast.Call():
            yield from _change_call(node)
        case _:
            pass


def _change_attribute(node: ast.Attribute) -> Iterator[Changed]:
    if node.attr == "T":
        yield "transpose", node.value
    elif node.attr == "size":
        yield "attribute", ast.Attribute(node.value, "ndim", ast.Load())
        yield "attribute", _call_name("len", node.value)


def _change_operation(node: ast.BinOp) -> Iterator[Changed]:
    yield "drop-operand", node.left
    yield "drop-operand", node.right
    if isinstance(node.op, _ONE_WAY):
        yield "swap-operands", ast.BinOp(node.right, node.op, node.left)
    for kind in _OPERATORS.get(type(node.op), ()):
        yield "operator", ast.BinOp(node.left, kind(), node.right)
    if isinstance(node.op, ast.MatMult):
        for turn in (_transpose, _swap_last_axes):
            yield "transpose", ast.BinOp(turn(node.left), node.op, node.right)
            yield "transpose", ast.BinOp(node.left, node.op, turn(node.right))


def list_constants(value: object) -> list[bool | int | float]:
    """Other constants that a slip puts in the place of one."""
    near: list[bool | int | float] = []
    if isinstance(value, bool):
        near = [not value]
    elif isinstance(value, int):
        near = [value + 1, value - 1, value + 2, value - 2, 2 * value]
    elif isinstance(value, float):
        # Half of it is left out: of so few random draws no test can tell it without refusing right ones.
        near = [1.0, 0.0, value * 10, value / 10, value * 2, -value]
    return [each for each in dict.fromkeys(near) if each != value]


def _change_subscript(node: ast.Subscript) -> Iterator[Changed]:
    yield "index", node.value
    if not isinstance(node.slice, ast.Tuple):
        return
    parts = node.slice.elts
    for at in range(len(parts)):
        rest = [*parts[:at], *parts[at + 1 :]]
        yield "index", ast.Subscript(node.value, rest[0] if len(rest) == 1 else ast.Tuple(rest, ast.Load()), ast.Load())
        if not isinstance(parts[at], ast.Slice):
            everything = [*parts[:at], ast.Slice(), *parts[at + 1 :]]
            yield "index", ast.Subscript(node.value, ast.Tuple(everything, ast.Load()), ast.Load())
            last = [*parts[:at], ast.Constant(-1), *parts[at + 1 :]]
            yield "index", ast.Subscript(node.value, ast.Tuple(last, ast.Load()), ast.Load())
    if len(parts) == 2:
        yield "index", ast.Subscript(node.value, ast.Tuple(parts[::-1], ast.Load()), ast.Load())


def _change_call(node: ast.Call) -> Iterator[Changed]:
    called = node.func
    if isinstance(called, ast.Attribute):
        owner = called.value
        if isinstance(owner, ast.Name) and owner.id in ("np", "numpy", "math"):
            if node.args and called.attr not in _TRUTHS:
                yield "drop-call", node.args[0]
        elif not (isinstance(owner, ast.Attribute) and owner.attr == "random"):
            yield "drop-call", owner
        for other in _FUNCTIONS.get(called.attr, ()):
            yield "function", ast.Call(ast.Attribute(owner, other, ast.Load()), node.args, node.keywords)
        if called.attr in ("transpose", "swapaxes", "permute"):
            yield from _change_axes(node, called)
        if called.attr in _SAME and len(node.args) == 2:
            yield from _change_same(node, called)
    if called_name(node) in _TRUTHS:
        yield "negate", ast.UnaryOp(ast.Not(), node)
    if len(node.args) == 2 and called_name(node) not in _SAME:
        yield "swap-arguments", ast.Call(called, node.args[::-1], node.keywords)


def _change_axes(node: ast.Call, called: ast.Attribute) -> Iterator[Changed]:
    """The other orders of axes that a call might name, and `.T`."""
    axes = node.args[0].elts if len(node.args) == 1 and isinstance(node.args[0], ast.Tuple) else node.args
    numbers = [axis.value for axis in axes if isinstance(axis, ast.Constant)]
    if called.attr == "swapaxes":
        for pair in ((0, 1), (0, -1), (0, 2), (1, 2)):
            yield "transpose", ast.Call(called, [_number(axis) for axis in pair], [])
    elif len(numbers) == len(axes) and 2 <= len(axes) <= 3:
        for order in permutations(numbers):
            yield "transpose", ast.Call(called, [ast.Constant(axis) for axis in order], [])
        yield "transpose", ast.Call(called, [], [])
    yield "transpose", _transpose(called.value)


def _change_same(node: ast.Call, called: ast.Attribute) -> Iterator[Changed]:
    """Other ways to compare two arrays: exactly, too loosely, by shape, by identity, entry by entry, or in part."""
    left, right = node.args
    for other in _SAME:
        if other != called.attr:
            yield "function", ast.Call(ast.Attribute(called.value, other, ast.Load()), [left, right], [])
    yield "function", ast.Call(called, node.args, [ast.keyword("atol", ast.Constant(1.0))])
    shapes: list[ast.expr] = [ast.Attribute(each, "shape", ast.Load()) for each in node.args]
    yield "comparison", ast.Compare(shapes[0], [ast.Eq()], [shapes[1]])
    for comparison in (ast.Eq(), ast.Is()):
        yield "comparison", ast.Compare(left, [comparison], [right])
    equal = ast.Compare(left, [ast.Eq()], [right])
    for whole in ("all", "any"):
        yield "comparison", ast.Call(ast.Attribute(equal, whole, ast.Load()), [], [])
    close = ast.Call(ast.Attribute(called.value, "isclose", ast.Load()), [left, right], [])
    yield "comparison", ast.Call(ast.Attribute(close, "any", ast.Load()), [], [])


def mutate_result(target: str, value: ast.expr, scope: Scope) -> Iterator[Changed]:
    """All changes of what is assigned to a name, by the kind of the name."""
    kind = scope.kind(target)
    if not isinstance(value, ast.Name):
        others = [name for name in scope.list_others(target) if kind]
        yield from (("stale", _name(other)) for other in others)
    if kind == "bool" or _is_truth(value):
        yield from (("constant-result", ast.Constant(each)) for each in (True, False))
        yield "kind", _call_name("str", value)
        yield "kind", _call_name("int", value)
        yield "negate", ast.UnaryOp(ast.Not(), value)
    elif kind in ("number", "whole number"):
        yield from (("result", ast.BinOp(value, ast.Add(), ast.Constant(each))) for each in (1, -1))
        yield "result", ast.BinOp(ast.Constant(2), ast.Mult(), value)
        yield "result", ast.UnaryOp(ast.USub(), value)
        yield "constant-result", ast.Constant(0)
        yield "kind", _call_name("str", value)
    elif scope.is_array(target):
        for made in ("zeros_like", "ones_like"):
            yield "constant-result", _call_numpy(made, value)
        yield from (("round", _call_numpy("round", value, ast.Constant(digits))) for digits in (2, 3))
        yield "round", ast.Call(ast.Attribute(value, "astype", ast.Load()), [_name("int")], [])
        yield "result", ast.UnaryOp(ast.USub(), value)
        yield "result", ast.BinOp(value, ast.Mult(), ast.Constant(2))
        yield "result", ast.BinOp(value, ast.Add(), ast.Constant(1))
        yield "transpose", _swap_last_axes(value)
        backwards = ast.Tuple([ast.Constant(...), ast.Slice(step=ast.Constant(-1))], ast.Load())
        yield "index", ast.Subscript(value, backwards, ast.Load())
        rows = ast.Tuple([ast.Constant(...), ast.Slice(step=ast.Constant(-1)), ast.Slice()], ast.Load())
        yield "index", ast.Subscript(value, rows, ast.Load())
        yield "axis", ast.Subscript(value, _name("None"), ast.Load())
        yield "axis", ast.Call(ast.Attribute(value, "ravel", ast.Load()), [], [])
        yield "axis", _call_numpy("mean", value, ast.Constant(-1))


def mutate_block(statement: ast.stmt, following: ast.stmt | None, scope: Scope) -> Iterator[BlockChange]:
    """A statement dropped, moved behind the next one, or with another statement put beside it."""
    shown = " ".join(ast.unparse(statement).split())
    yield BlockChange("drop-statement", f"`{shown}` was dropped", 1, ())
    if following is not None:
        yield BlockChange("move", f"`{shown}` was moved down by one", 2, (following, statement))
    for name in _list_arrays(statement, scope):
        doubled = _parse(f"{name} *= 2")
        yield BlockChange("in-place", f"`{name} *= 2` was put before it", 1, (doubled, statement))
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        name = statement.targets[0].id
        if scope.is_array(name):
            yield BlockChange("in-place", f"`{name} *= 2` was put after it", 1, (statement, _parse(f"{name} *= 2")))
    # A seed before the first draw alone is no mistake.
    if following is not None and _draws(statement) and _draws(following):
        seeded = _parse("np.random.seed(42)")
        both = (seeded, statement, seeded, following)
        yield BlockChange("seed", "the seed was set before it and before the next one", 2, both)


def _draws(statement: ast.stmt) -> bool:
    return any(called_name(node) in _DRAWS for node in ast.walk(statement))


def _list_arrays(statement: ast.stmt, scope: Scope) -> list[str]:
    names = (node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    return [name for name in dict.fromkeys(names) if scope.is_array(name)]


def called_name(node: ast.AST) -> str:
    """The last part of a called function's name; empty for anything else."""
    if not isinstance(node, ast.Call):
        return ""
    called = node.func
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def _is_truth(node: ast.expr) -> bool:
    negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return negated or isinstance(node, ast.Compare | ast.BoolOp) or called_name(node) in _TRUTHS


def _name(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _number(value: int | float) -> ast.expr:
    return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))


def _parse(line: str) -> ast.stmt:
    return ast.parse(line).body[0]


def _call_name(name: str, *values: ast.expr) -> ast.expr:
    return ast.Call(_name(name), list(values), [])


def _call_numpy(name: str, *values: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(_name("np"), name, ast.Load()), list(values), [])


def _transpose(node: ast.expr) -> ast.expr:
    return ast.Attribute(node, "T", ast.Load())


def _swap_last_axes(node: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(node, "swapaxes", ast.Load()), [_number(-2), _number(-1)], [])
