"""The rewritten prelude: a lesson's name has the input set's value after every statement that assigns it."""

import ast
import traceback
from typing import Any

import pytest

from autograder.guest.prelude import bind_after_assignments, find_assigned

NAMES = frozenset({"X", "T", "hs"})
GIVEN = {"X": "given X", "T": "given T", "hs": "given hs"}


def run(source: str) -> dict[str, Any]:
    """The names after a prelude has run."""
    tree = bind_after_assignments(ast.parse(source), NAMES, "bind")
    names: dict[str, Any] = {}
    names["bind"] = lambda *wanted: names.update({name: GIVEN[name] for name in wanted})
    exec(compile(tree, "<prelude>", "exec"), names)
    return names


REBOUND = {
    "an assignment": "X = 1\nn = X",
    "two statements in a line": "X = 1; n = X",
    "an annotated assignment": "X: int = 1\nn = X",
    "an assignment in place": "X = ''\nX += 'more'\nn = X",
    "a chain of targets": "m = X = 1\nn = X",
    "a tuple": "B, X = 1, 2\nn = X",
    "a nested tuple with a star": "[B, (C, *X)] = 1, (2, 3, 4)\nn = X",
    "a walrus": "print(X := 1)\nn = X",
    "a walrus in a condition": "if (X := 1): pass\nn = X",
    "a walrus in a comprehension": "[X := i for i in range(2)]\nn = X",
    "a for target": "for X in range(3): pass\nn = X",
    "a for target in a tuple": "for i, X in [(1, 2)]: pass\nn = X",
    "a with target": "import contextlib\nwith contextlib.nullcontext(1) as X: pass\nn = X",
    "an import": "import sys as X\nn = X",
    "an import from": "from sys import path as X\nn = X",
    "a function": "def X(): pass\nn = X",
    "a class": "class X: pass\nn = X",
    "a decorated function": "@staticmethod\ndef X(): pass\nn = X",
    "a match": "match [1, 2]:\n    case [_, X]: pass\nn = X",
    "a match with a rest": "match {'a': 1}:\n    case {**X}: pass\nn = X",
    "within an if": "if True:\n    X = 1\n    n = X",
    "within an else": "if False: pass\nelse:\n    X = 1\n    n = X",
    "within an elif": "if False: pass\nelif True:\n    X = 1\n    n = X",
    "within a for": "for i in range(2):\n    X = 1\n    n = X",
    "within a for's else": "for i in range(2): pass\nelse:\n    X = 1\n    n = X",
    "within a while": "m = 2\nwhile m:\n    X = m = m - 1\n    n = X",
    "within a with": "import contextlib\nwith contextlib.nullcontext():\n    X = 1\n    n = X",
    "within a try": "try:\n    X = 1\n    n = X\nfinally: pass",
    "within an except": "try: 1 / 0\nexcept ZeroDivisionError:\n    X = 1\n    n = X",
    "within a finally": "try: pass\nfinally:\n    X = 1\n    n = X",
    "within a case": "match 1:\n    case _:\n        X = 1\n        n = X",
    "deep within": "if True:\n for i in [1]:\n  try:\n   with open('/dev/null'):\n    X = 1\n    n = X\n  finally:0",
}  # fmt: skip


@pytest.mark.parametrize("source", REBOUND.values(), ids=REBOUND.keys())
def test_the_name_is_bound_again_before_the_next_statement(source) -> None:
    assert run(source)["n"] == "given X"


def test_an_exception_bound_to_a_lessons_name_leaves_the_given_value() -> None:
    assert run("try: 1 / 0\nexcept ZeroDivisionError as X: pass\nn = X")["n"] == "given X"


def test_several_names_of_one_statement_are_all_bound_again() -> None:
    names = run("X, T, other = 1, 2, 3\nseen = X, T, other")
    assert names["seen"] == ("given X", "given T", 3)


UNTOUCHED = {
    "a name of a function's own": "def f():\n    X = 1\n    return X\nn = f()",
    "an argument": "def f(X): return X\nn = f(1)",
    "a nested function's name": "def f():\n    def X(): return 1\n    return X()\nn = f()",
    "an async function's name": "import asyncio\nasync def f():\n    X = 1\n    return X\nn = asyncio.run(f())",
    "a class's attribute": "class A:\n    X = 1\nn = A.X",
    "a lambda's walrus": "n = (lambda: (X := 1))()",
    "another object's attribute": "class A: pass\na = A()\na.X = 1\nn = a.X",
    "a key": "d = {}\nd['X'] = 1\nn = d['X']",
    "a keyword": "n = dict(X=1)['X']",
    "a loop's variable in its own body": "for X in [1]:\n    n = X",
}


@pytest.mark.parametrize("source", UNTOUCHED.values(), ids=UNTOUCHED.keys())
def test_what_is_no_module_level_assignment_is_left_alone(source) -> None:
    assert run(source)["n"] == 1


def test_a_prelude_without_the_lessons_names_is_not_changed() -> None:
    source = "import os\n\ndef f(a):\n    return a\n\nfor i in range(3):\n    print(f(i))\n"
    tree = ast.parse(source)
    assert ast.dump(bind_after_assignments(tree, NAMES, "bind")) == ast.dump(ast.parse(source))


def test_a_function_of_the_prelude_sees_the_given_value() -> None:
    assert run("X = 1\ndef f(): return X\nn = f()")["n"] == "given X"


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("X = 1\nT = 2\n\n1 / 0", 4),
        ("X = (1,\n     2)\nif True:\n    hs = 1\n    1 / 0", 5),
        ("for X in range(1):\n    T = 1\n\n    1 / 0", 4),
        ("def f():\n    X = 1\n    1 / 0\nT = 1\nf()", 3),
    ],
)
def test_a_traceback_names_the_line_of_the_notebook(source, line) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run(source)
    frames = [frame for frame in traceback.extract_tb(caught.value.__traceback__) if frame.filename == "<prelude>"]
    assert frames[-1].lineno == line


def test_a_docstring_and_a_future_import_stay_first() -> None:
    names = run('"""What this is."""\nfrom __future__ import annotations\nX = 1\nn = X')
    assert names["n"] == "given X"
    assert names["__doc__"] == "What this is."


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("a = b, c = 1, 2", {"a", "b", "c"}),
        ("import a.b.c", {"a"}),
        ("import a.b as c, d", {"c", "d"}),
        ("from a import b, c as d", {"b", "d"}),
        ("a.b = c[d] = 1", set()),
        ("del a", set()),
        ("a: int", {"a"}),
        ("def f(a): c = 2", {"f"}),
        ("class A:\n    c = 1", {"A"}),
    ],
)
def test_assigned_names_are_found(source, found) -> None:
    assert find_assigned(ast.parse(source).body[0]) == found
