"""Each exercise starts from the lesson's own variables, and any sensible way to lay out a notebook is right."""

import pytest

BY_MATMUL = """V_first = V[0, 0]
Wv_shared = Wk
V_shared = np.matmul(X, Wv_shared)
equals_K = np.allclose(V_shared, K)
equals_Q = np.allclose(V_shared, Q)
"""

DAMAGE = {
    "Wk overwritten": "Wk = Wq",
    "everything overwritten": "X = Wq = Wk = Wv = Q = K = V = scores = text = ids = T = B = C = hs = None",
    "everything deleted": "del X, Wq, Wk, Wv, Q, K, V, scores, text, ids, T, B, C, hs, embed_table",
    "changed in place": "X *= 0; Wq *= 2; Wk *= 0; Wv -= 1; K[:] = V; Q[0, 0] = 9; V.fill(0); ids.clear()",
    "sorted in place": "X.sort(); Wk.sort(axis=0); V.resize((1, 1, 1), refcheck=False)",
    "frozen": "X.flags.writeable = Wk.flags.writeable = V.flags.writeable = False",
    "np deleted": "del np",
    "np is None": "np = None",
    "np is another module": "import math as np",
    "the lesson's helper overwritten": "start_exercise = encode = deepcopy = None",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_what_an_exercise_does_to_the_names_does_not_reach_the_next(bench, damage) -> None:
    answer = bench.read_source("shared-key")
    bench.assert_full(bench.grade(bench.build(replace={"shared-key": f"{answer}\n{damage}"})))


@pytest.mark.parametrize("damage", [*DAMAGE.values(), "globals().clear()"], ids=[*DAMAGE, "globals cleared"])
def test_what_a_cell_between_two_exercises_does_reaches_the_next_at_most(bench, damage) -> None:
    bench.assert_only(bench.grade(bench.build(after={"shared-key-check": [damage]})), "head-size")


@pytest.mark.parametrize("damage", ["X.fill(0); Wk.sort()", "del X, K", "del np", "np = None", "globals().clear()"])
def test_what_is_not_an_assignment_is_undone_before_the_next_exercise(bench, damage) -> None:
    bench.assert_full(bench.grade(bench.build(after={"shared-key-check": [damage]}, drop=["head-size-start"])))


PATCHES = {
    "np.matmul is None": "np.matmul = None",
    "np.allclose says yes": "np.allclose = lambda *a, **k: True",
    "np.ndarray is list": "np.ndarray = list\nnp.matmul = np.float64 = None",
}


@pytest.mark.parametrize("patch", PATCHES.values(), ids=PATCHES.keys())
def test_an_exercise_that_patches_numpy_is_run_apart_and_the_note_says_so(bench, patch) -> None:
    codes = {"shared-key": f"{read_code(bench, 'shared-key')}\n{patch}", "shared-value": BY_MATMUL}
    grade = bench.grade_codes(codes)
    bench.assert_full(grade)
    notes = [note for note in grade.notes if "shared-value" in note and "without the other exercises" in note]
    assert len(notes) == 1


@pytest.mark.parametrize("name", ["array", "asarray", "frombuffer", "dtype", "empty", "copyto", "ndarray"])
def test_answers_are_read_without_the_students_numpy(bench, name) -> None:
    changed = f"{bench.read_source('shared-key')}\nnp.{name} = None"
    grade = bench.grade(bench.build(replace={"shared-key": changed}, drop=["shared-value-check"]))
    bench.assert_full(grade)
    assert {each.status.value for each in grade.exercises} == {"ok"}


@pytest.mark.parametrize(
    "sabotage",
    [
        "import builtins\nbuiltins.len = builtins.isinstance = None",
        "import builtins\nvars(builtins).clear()",
        "for name in list(vars(np)):\n    if not name.startswith('_'): delattr(np, name)",
        "import sys\nsys.modules.clear()",
        "import gc\nfor each in gc.get_objects():\n    if type(each) is dict and 'send' in each: each.clear()",
    ],
)
def test_an_exercise_that_breaks_the_interpreter_costs_no_other(bench, sabotage) -> None:
    grade = bench.grade_codes({"shared-key": f"{read_code(bench, 'shared-key')}\n{sabotage}"})
    bench.assert_only(grade, "shared-key")


def test_what_is_right_together_is_not_run_apart(bench) -> None:
    grade = bench.grade_codes({"shared-key": bench.read_source("shared-key"), "shared-value": BY_MATMUL})
    bench.assert_full(grade)
    assert not [note for note in grade.notes if "without the other exercises" in note]


def test_a_helper_of_another_exercise_may_be_used(bench) -> None:
    first = "def project(W): return X @ W\n" + bench.read_source("shared-key")
    second = read_code(bench, "head-size").replace("X @ Wq6", "project(Wq6)")
    bench.assert_full(bench.grade(bench.build(replace={"shared-key": first, "head-size": marked(2, second)})))


@pytest.mark.parametrize("place", ["prelude-projections", "prelude-start", "shared-key", "shared-key-check"])
def test_a_helper_cell_derived_from_the_lessons_names_is_right_on_every_input_set(bench, place) -> None:
    helper = "def project(W): return X @ W\nlength, width = X.shape[1:]\nroot = np.sqrt(K.shape[-1])"
    code = """V_first = V[0, 0]
Wv_shared = Wk
V_shared = np.zeros((1, length, 4))
V_shared[:, :length] = project(Wv_shared)[:, :length] * root / np.sqrt(hs)
equals_K, equals_Q = np.allclose(V_shared, K), np.allclose(V_shared, Q)
"""
    grade = bench.grade(bench.build(after={place: [helper]}, replace={"shared-value": marked(3, code)}))
    bench.assert_full(grade)


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_head_size_set_in_a_cell_of_its_own_is_meant(bench, where) -> None:
    by_hs = read_code(bench, "head-size").replace("C, 6", "C, hs").replace("np.sqrt(6)", "np.sqrt(hs)")
    by_old_hs = read_code(bench, "shared-value").replace("V[0, 0]", "V.reshape(-1, hs)[0]")
    changes = {"head-size": marked(2, by_hs), "shared-value": marked(3, by_old_hs)}
    grade = bench.grade(bench.build(replace=changes, **{where: {"head-size-start": ["hs = 6"]}}))
    bench.assert_full(grade)


def test_a_name_set_within_an_exercise_is_not_kept_for_the_next(bench) -> None:
    by_hs = "hs = 6\n" + read_code(bench, "head-size").replace("C, 6", "C, hs")
    by_old_hs = read_code(bench, "shared-value").replace("V[0, 0]", "V.reshape(-1, hs)[0]")
    bench.assert_full(bench.grade_codes({"head-size": by_hs, "shared-value": by_old_hs}))


def test_a_length_taken_in_the_prelude_is_right_on_every_input_set(bench) -> None:
    changed = bench.read_source("prelude-projections") + "\nn = X.shape[1]\nlast = Q[0, n - 1]\n"
    code = read_code(bench, "shared-value") + "\nV_shared = np.stack([X[:, i] @ Wk for i in range(n)], axis=1)\n"
    bench.assert_full(
        bench.grade(bench.build(replace={"prelude-projections": changed, "shared-value": marked(3, code)}))
    )


OTHER_PRELUDE = """
import numpy as np
np.random.seed(0)
B, T, C, hs = 1, 3, 8, 4
text, ids = "abc", [2, 3, 4]
embed_table = np.ones((24, 8))
X = np.zeros((1, 3, 8))
Wq, Wk, Wv = np.ones((3, 8, 4))
Q = K = V = np.ones((1, 3, 4))
scores = np.ones((1, 3, 3))
"""

PRELUDES = {
    "with other values": {"replace": {"prelude-input": OTHER_PRELUDE, "prelude-projections": ""}},
    "with another seed": {"replace": {"prelude-input": "import numpy as np\nnp.random.seed(1)"}},
    "without the projections": {"drop": ["prelude-projections"]},
    "without the helper": {"drop": ["prelude-start"]},
    "that is gone": {"drop": ["prelude-input", "prelude-projections", "prelude-start"]},
    "with a syntax error": {"replace": {"prelude-input": "x import numpy as np"}},
    "that fails": {"replace": {"prelude-input": "1 / 0\nimport numpy as np"}},
    "that exits": {"replace": {"prelude-input": "import os\nos._exit(0)"}},
}


@pytest.mark.parametrize("change", PRELUDES.values(), ids=PRELUDES.keys())
def test_a_prelude_costs_no_exercise_its_marks(bench, change) -> None:
    bench.assert_full(bench.grade(bench.build(**change)))


def test_another_name_for_numpy_is_fine(bench) -> None:
    codes = {name: read_code(bench, name).replace("np.", "numpy.") for name in bench.full}
    grade = bench.grade(
        bench.build(
            replace={name: marked(number, code) for number, (name, code) in enumerate(codes.items(), 1)},
            after={"prelude-input": ["import numpy"]},
        )
    )
    bench.assert_full(grade)


# --- where the answers stand --------------------------------------------------------------------------------


def test_the_whole_notebook_in_one_cell_counts(bench) -> None:
    prelude = [bench.read_source(name) for name in ("prelude-input", "prelude-projections")]
    bench.assert_full(bench.grade_cells("\n".join([*prelude, *(read_code(bench, name) for name in bench.full)])))


def test_all_answers_in_one_unmarked_cell_count(bench) -> None:
    prelude = [bench.read_source(name) for name in ("prelude-input", "prelude-projections")]
    bench.assert_full(bench.grade_cells(*prelude, "\n".join(read_code(bench, name) for name in bench.full)))


def test_answers_in_one_cell_with_three_markers_count(bench) -> None:
    together = "\n".join(bench.read_source(name) for name in bench.full)
    bench.assert_full(bench.grade_cells(bench.read_source("prelude-input"), together))


def test_exercises_in_another_order_count(bench) -> None:
    sources = [bench.read_source(name) for name in ("prelude-input", "shared-value", "shared-key", "head-size")]
    bench.assert_full(bench.grade_cells(*sources))


def test_interleaved_cells_of_two_exercises_count(bench) -> None:
    key, value = (read_code(bench, name).splitlines() for name in ("shared-key", "shared-value"))
    cells = [line for pair in zip(key, value, strict=False) for line in pair] + value[len(key) :]
    bench.assert_full(bench.grade_cells(bench.read_source("prelude-input"), *cells, read_code(bench, "head-size")))


def test_answers_split_over_cells_count(bench) -> None:
    lines = read_code(bench, "head-size").splitlines()
    bench.assert_full(bench.grade(bench.build(replace={"head-size": lines[0]}, after={"head-size": lines[1:]})))


@pytest.mark.parametrize("exercise", ["shared-key", "head-size", "shared-value"])
def test_a_placeholder_cell_below_the_answer_takes_nothing_away(bench, exercise) -> None:
    stub = bench.read_source(exercise).split("### BEGIN SOLUTION")[0]
    bench.assert_full(bench.grade(bench.build(after={exercise: [stub]})))


def test_of_two_answer_cells_the_last_counts(bench) -> None:
    wrong = marked(1, "Wk_shared = Wk\nK_shared = K\nscores_shared = scores\nis_symmetric = False")
    right = bench.read_source("shared-key")
    bench.assert_full(bench.grade(bench.build(replace={"shared-key": wrong}, after={"shared-key": [right]})))
    grade = bench.grade(bench.build(after={"shared-key": [wrong]}))
    bench.assert_only(grade, "shared-key")
    assert bench.scores(grade)["shared-key"] == 0
    assert any("2 cells" in note for note in grade.notes)


def test_an_answer_changed_after_its_exercise_does_not_count(bench) -> None:
    second = "Wk_shared[:] = 0; K_shared *= 0; is_symmetric = None\n" + read_code(bench, "head-size")
    bench.assert_full(bench.grade_codes({"head-size": second}))


def test_a_view_of_the_lessons_array_is_not_changed_by_a_later_exercise(bench) -> None:
    first = "Wk_shared = Wq\nK_shared = X @ Wq\nscores_shared = Q @ K_shared.swapaxes(1, 2) / 2\nis_symmetric = True"
    second = "Wq *= 0; X *= 0\nK_shared *= 0\n" + read_code(bench, "head-size").replace("X @", "np.array(X0) @")
    grade = bench.grade_codes({"shared-key": first, "head-size": "X0 = X.copy()\n" + second})
    bench.assert_full(grade)


# --- what cells may hold ------------------------------------------------------------------------------------

LINES = {
    "%%time": "%%time\n{}",
    "%matplotlib inline": "%matplotlib inline\n{}",
    "%time on a statement": "%time x = 1\n{}",
    "%timeit": "%timeit -n 1 -r 1 1 + 1\n{}",
    "%config and %precision": "%config InlineBackend.figure_format = 'retina'\n%precision 3\n{}",
    "a shell line": "!ls\n{}",
    "a shell line into a name": "listing = !ls\n{}",
    "a help request": "np.swapaxes?\n{}",
    "display": "display(X)\n{}\ndisplay(Wq)",
    "display imported": "from IPython.display import display, HTML\ndisplay(HTML('<b>bold</b>'))\n{}",
    "get_ipython": "get_ipython().run_line_magic('matplotlib', 'inline')\n{}",
    "clear_output": "from IPython.display import clear_output\nclear_output(wait=True)\n{}",
    "top-level await": "import asyncio\nawait asyncio.sleep(0)\nvalue = await asyncio.gather(asyncio.sleep(0, 5))\n{}",
    "asyncio.run": "import asyncio\nasync def f(): return 5\nassert asyncio.run(f()) == 5\n{}",
    "a lot of printing": "for i in range(200_000): print('line', i)\n{}",
    "one long line": "print('x' * 5_000_000)\n{}",
    "bytes on the real standard output": "import os, sys\nos.write(1, b'x' * 100)\nsys.__stdout__.write('y')\n{}",
    "a plot": "import matplotlib.pyplot as plt\nplt.imshow(scores[0])\nplt.colorbar()\nplt.show()\n{}",
    "a plot saved to a file": "import matplotlib.pyplot as plt\nplt.plot([1])\nplt.savefig('plot.png')\n{}",
    "many open figures": "import matplotlib.pyplot as plt\nfor i in range(30): plt.figure()\n{}",
    "warnings": "import warnings\nwarnings.warn('careful')\nnp.log(np.zeros(3))\n{}",
    "warnings as errors": "import warnings\nwarnings.simplefilter('error')\nnp.seterr(all='raise')\n{}",
    "a file of its own": "open('note.txt', 'w').write('hello')\nassert open('note.txt').read() == 'hello'\n{}",
    "the name of the main module": "assert __name__ == '__main__'\n{}",
    "an input asked for": "try: input('? ')\nexcept (EOFError, RuntimeError, OSError): pass\n{}",
    "a dataclass": "from dataclasses import dataclass\n@dataclass\nclass A: n: int = 4\nassert A().n == 4\n{}",
    "type hints": "from __future__ import annotations\ndef f(x: Unknown) -> Unknown: return x\n{}",
    "tabs and Windows line ends": "if True:\r\n\tx = 1\r\n{}",
    "letters of other alphabets": "größe = '\u4e16\u754c \U0001f600'\nprint(größe)\n{}",
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES.keys())
def test_what_a_notebook_usually_holds_costs_nothing(bench, line) -> None:
    code = line.replace("{}", read_code(bench, "shared-key"))
    grade = bench.grade_cells(bench.read_source("prelude-input"), code, *(bench.read_source(n) for n in OTHERS))
    bench.assert_full(grade)
    assert bench.status(grade, "shared-key") == "ok"


OTHERS = ("head-size", "shared-value")


@pytest.mark.parametrize("line", ["%matplotlib inline", "%config InlineBackend.figure_format = 'svg'", "!ls /tmp"])
def test_magics_in_the_prelude_cost_nothing(bench, line) -> None:
    changed = f"{line}\n{bench.read_source('prelude-input')}\nn = X.shape[1]"
    code = read_code(bench, "shared-key") + "\nassert n == X.shape[1]"
    grade = bench.grade(bench.build(replace={"prelude-input": changed, "shared-key": marked(1, code)}))
    bench.assert_full(grade)
    assert bench.status(grade, "shared-key") == "ok"


def test_random_numbers_of_a_pass_are_the_same_each_time(bench) -> None:
    code = read_code(bench, "head-size") + "\nn_params += np.random.randint(10**6)"
    grades = [bench.grade_codes({"head-size": code}) for _ in range(2)]
    assert grades[0] == grades[1]
    assert "test_parameters_are_counted" in bench.lost(grades[0])


def read_code(bench, exercise) -> str:
    """The solution's code of an exercise without its marker line and its placeholders."""
    return (
        bench.read_source(exercise).split("### BEGIN SOLUTION\n")[1].split("### END SOLUTION")[0].replace("\n\n", "\n")
    )


def marked(number, code) -> str:
    return f"# EXERCISE {number}\n{code}"
