"""Rewrites the prelude so that the lesson's names keep the input set's values.

Right after every module-level statement that assigns a lesson's name, at any depth of `if`, `for`,
`while`, `with` and `try`, stands a call that binds the name again. What is derived from it later
(`n = X.shape[1]`) is then right on every input set.
"""

import ast

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def bind_after_assignments(
    tree: ast.Module, names: frozenset[str], binder: str, stop: frozenset[str] = frozenset()
) -> ast.Module:
    """The same tree with `binder('X', ...)` after each statement that assigns some of `names`.

    Where one cell holds the prelude and answers, the prelude ends before the first statement that assigns
    one of `stop`.
    """
    end = next((at for at, statement in enumerate(tree.body) if find_assigned(statement) & stop), len(tree.body))
    tree.body = [*_rewrite_block(tree.body[:end], names, binder), *tree.body[end:]]
    return tree


def build_call(name: str, arguments: list[ast.expr], place: ast.stmt) -> ast.Expr:
    """The statement `name(arguments)` at another statement's place; only new nodes are given a place."""
    called = ast.copy_location(ast.Name(name, ast.Load()), place)
    return ast.copy_location(ast.Expr(ast.copy_location(ast.Call(called, arguments, []), place)), place)


def _rewrite_block(block: list[ast.stmt], names: frozenset[str], binder: str) -> list[ast.stmt]:
    result: list[ast.stmt] = []
    for statement in block:
        if not isinstance(statement, _SCOPES):
            _rewrite_inside(statement, names, binder)
        result.append(statement)
        assigned = sorted(find_assigned(statement) & names)
        if assigned:
            arguments: list[ast.expr] = [ast.copy_location(ast.Constant(name), statement) for name in assigned]
            result.append(build_call(binder, arguments, statement))
    return result


def _rewrite_inside(statement: ast.stmt, names: frozenset[str], binder: str) -> None:
    for field in ("body", "orelse", "finalbody"):
        block = getattr(statement, field, None)
        if isinstance(block, list) and block:
            setattr(statement, field, _rewrite_block(block, names, binder))
    for branch in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        branch.body = _rewrite_block(branch.body, names, binder)


def find_assigned(statement: ast.AST) -> set[str]:
    """Names that a statement binds in its own scope, as far as its text shows."""
    found: set[str] = set()
    stack = [statement]
    while stack:
        node = stack.pop()
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                found.update((alias.asname or alias.name).split(".")[0] for alias in aliases)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                found.add(name)
            case ast.MatchMapping(rest=str(name)):
                found.add(name)
        if not isinstance(node, _SCOPES):
            stack.extend(ast.iter_child_nodes(node))
    return found
