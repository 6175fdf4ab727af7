"""What is proved of a cell by its text is true, whatever else is said there."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.intake.reach import find_assigned, find_bound, find_used

KNOWN = set("X W x a b Q K Wq hs B d".split())
HARMLESS = {
    "Wk_shared = Wq\nK_shared = X @ Wk_shared": {"Wk_shared", "K_shared"},
    "s = Q @ K.transpose(0, 2, 1) / np.sqrt(hs)": {"s"},
    "a = np.einsum('btc,ch->bth', X, W)\nb = bool(np.abs(a - a.swapaxes(1, 2)).max() < 1e-8)": {"a", "b"},
    "a, (b, c) = 1, (X.shape[-1], -X.T[..., 0])\nprint(f'{a} {b:.2f}', c)": {"a", "b", "c"},
    "# EXERCISE 1\nassert x.shape == (1, 2), 'no'\nn = 3 * X.size if B > 1 else 0\npass": {"n"},
    "m = np.max(x, axis=-1, keepdims=True)": {"m"},
    "": set(),
}
CAN_DO_MORE = [
    "np.matmul = None",
    "X[0] = 1",
    "X += 1",
    "X.fill(0)",
    "np.copyto(X, 0)",
    "np.exp(X, X)",
    "X.max(0, X)",
    "np.add(X, 1, out=X)",
    "np.sum(X, axis=0, out=X)",
    "f = np.seterr",
    "print = np.exp\nprint(X, X)",
    "np = X\nnp.round(2, W)",
    "abs = exec\nabs('np.sqrt = None')",
    "max = setattr\nmax(np, 'sqrt', abs)",
    "a, (print, b) = exec, 1",
    "A = type('A', (), d)",
    "f = X.sort\nf()",
    "print(1, file=sys.stderr)",
    "import os",
    "from numpy import *",
    "def f(): pass",
    "f = lambda: 0",
    "class A: pass",
    "for i in range(3): a = i",
    "a = [x for x in X]",
    "(a := 3)",
    "del X",
    "__builtins__ = {}",
    "x = X.__class__",
    "x = X._private",
    "exec('X = 1')",
    "globals().clear()",
    "setattr(np, 'matmul', None)",
    "softmax(X)",
    "f(X)()",
    "X[0]()",
    "np.random.seed(1)",
    "np.set_printoptions(3)",
    "%run other.ipynb",
    "!rm *",
    "a = !ls",
    "x = await y",
    "try: a = 1\nexcept Exception: pass",
    "with a: pass",
    "print(*X)",
    "print(**d)",
    "a = 1" + " " * 5000,
    "a = (",
    "found = list(scales)",
    "first, second = batches",
    "found = 3 in batches",
    "found = list(scales)\nscales = 1",
]
LOOKS_EVERYWHERE = [
    "M = np.bmat('X W')",
    "rows = np.empty((4, 4))",
    "try:\n    table = np.ones((4000, 4000))\nexcept MemoryError:\n    table = 0",
    "from numpy import bmat as join",
    "globals()['X']",
    "eval('X')",
    "get_ipython().user_ns['X']",
    "f = vars",
    "import sys\nsys.modules['__main__'].X",
    "from __main__ import X",
    "from . import x",
    "import numpy, gc",
    "x = (lambda: 0).__globals__",
    "x = __builtins__",
    "%who",
    "a = (",
    "a = X" + " " * 5000,
]


@pytest.mark.parametrize("source", HARMLESS)
def test_a_cell_that_only_computes_is_proved_to(source: str) -> None:
    assert find_assigned(source, KNOWN) == HARMLESS[source]


@pytest.mark.parametrize("source", CAN_DO_MORE)
def test_nothing_is_proved_of_a_cell_that_can_do_more(source: str) -> None:
    assert find_assigned(source, KNOWN) is None


def test_the_names_that_a_cell_looks_at_are_all_that_stand_in_it() -> None:
    source = "import numpy as np\ndef f(x):\n    return [x + k for k in K]\nWv[0] = f(X)\ndel a\nn += 1"
    assert find_used(source) == {"x", "k", "K", "Wv", "f", "X", "a", "n"}


@pytest.mark.parametrize("source", LOOKS_EVERYWHERE)
def test_a_cell_that_can_look_at_any_name_is_known_to(source: str) -> None:
    assert find_used(source) is None


WORDS = st.sampled_from(
    "X W a np print len bool = == @ + - ( ) [ ] , . : 0 1 'x' T shape exp sum copy matmul sort fill out axis "
    "it it list( in if else f( np.exp( X.copy( *X **k \n += lambda: import def".split(" ")
)


@given(st.lists(WORDS, max_size=14).map(" ".join))
def test_what_is_proved_harmless_changes_no_array_and_no_other_name(source: str) -> None:
    assigned = find_assigned(source, {"X", "W", "a"})
    if assigned is None:
        return
    names = {"X": np.arange(4.0).reshape(2, 2), "W": np.ones((2, 2)), "np": np, "a": [1], "it": iter([1, 2])}
    arrays = {id(value): (value, value.copy()) for value in names.values() if isinstance(value, np.ndarray)}
    before = dict(names)
    module = dict(vars(np))
    with contextlib.suppress(Exception):
        exec(source, names)
    names = {name: value for name, value in names.items() if not name.startswith("__")}
    assert {name for name in names if name not in before or names[name] is not before[name]} <= assigned
    assert all(np.array_equal(value, old) for value, old in arrays.values())
    assert vars(np) == module
    assert before["a"] == [1]
    assert list(before["it"]) == [1, 2]


BINDS = {
    "import numpy as np\nx = 1": {"x"},
    "def f(a):\n    global g\n    g = a": {"f", "g"},
    "from os import path as p, sep\nimport os.path": {"p", "sep", "os"},
    "for i, (j, *k) in x: pass\nwith a as b: pass\ntry: pass\nexcept E as e: pass": {"i", "j", "k", "b", "e"},
    "match a:\n    case [b, *c]: pass\n    case {'d': d, **r}: pass": {"b", "c", "d", "r"},
    "(w := 1)\nclass A: y = 2\ndel z": {"w", "A", "y", "z"},
}


@pytest.mark.parametrize("source", BINDS)
def test_what_a_cell_may_bind_is_found_at_any_depth(source: str) -> None:
    assert find_bound(source) == BINDS[source]


@pytest.mark.parametrize(
    "source",
    [
        "def print(*a): log.append(a)", "from numpy import *", "from numpy import sum", "import jax.numpy as np",
        "np = X", "for max in X: pass", "try: pass\nexcept E as abs: pass", "a = (",
    ],
)  # fmt: skip
def test_a_cell_that_binds_what_proofs_stand_on_is_known_to(source: str) -> None:
    assert find_bound(source) is None
