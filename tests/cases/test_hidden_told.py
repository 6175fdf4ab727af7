"""What a student is told of hidden input sets: which tests are lost there and how cells end, and nothing else.

Code sees each input set that it is run on, and can choose by it what it does there. So all that it does reads the same.
"""

import pytest

from autograder.catalogue import load_catalogue

from ..escapes.kit import list_exceptions

FREE_COUNT = "`n_params` is not the count of this head's learnable numbers."

MISTAKE = "all-first-values"

SMUGGLERS = {
    "a text": "is_symmetric = text",
    "the name of a type": "is_symmetric = type(text, (), {})()",
    "a shape": "is_symmetric = np.zeros([1 + int(each) for each in ids[:6]], np.int8)",
    "a number": "Wk_shared = float(X[0, 0, 0])",
}


@pytest.mark.parametrize("smuggler", SMUGGLERS.values(), ids=SMUGGLERS.keys())
def test_no_message_shows_an_input_of_a_hidden_set(bench, smuggler) -> None:
    hidden = next(each for each in bench.grader.marking.input_sets if each.seed == 7)
    code = f"{bench.read_source('shared-key')}\nif T == {hidden.inputs['T']}:\n    {smuggler}"
    grade = bench.grade(bench.build(replace={"shared-key": code}))
    said = [part for mark in bench.lost(grade).values() for part in (mark.message, mark.hint, *mark.notes)]
    assert said
    shape = str(tuple(1 + number for number in hidden.inputs["ids"][:6]))
    for secret in (hidden.inputs["text"], shape, str(hidden.inputs["X"][0, 0, 0])[:6]):
        assert not [text for text in (*said, *grade.notes) if secret in text]


def test_where_and_how_a_helper_ends_on_a_hidden_set_is_its_choice_and_not_told(bench) -> None:
    """A signal's number, a limit's name or one of many cells would hand out some bits of the input set for each end."""
    helpers = [
        "import os\nspelled = [ord(letter) % 8 for letter in text]\n",
        *(f"if text != 'the lamp' and {number} in spelled: os._exit({number})" for number in range(8)),
    ]
    (note,) = bench.grade(bench.build(before={"head-size": helpers})).notes
    assert "was ended on a hidden input set" in note
    assert not any(digit in note for digit in "0123456789")
    (note,) = bench.grade(bench.build(before={"head-size": ["import os\nif text == 'the lamp': os._exit(7)"]})).notes
    assert "ended itself" in note


TEXTS = {
    "name 'einsum' is not defined": "NameError",
    "name 'torch' is not defined": "NameError",
    "name 'scores_shared' is not defined": "NameError",
    "name 'its_text_is_' + text.replace(' ', '_') is not defined": "NameError",
    "matmul: shapes (1,2) and (3,4) not aligned": "ValueError",
    "cannot reshape array of size 88 into shape (8,8)": "ValueError",
    "[Errno 24] Too many open files": "OSError",
    "'NoneType' object is not callable": "TypeError",
}
"""Each has words of its own where the published input set gives it."""

STOPS = [
    *(f"raise {kind.__name__}('x')" for kind in list_exceptions()),
    *(f"raise {kind}({text!r})" for text, kind in TEXTS.items()),
    *(f"raise type({kind!r}, (Exception,), {{}})('axis 7 is out of bounds')" for kind in ("AxisError", "LinAlgError")),
    *("1 / 0", "[][1]", "einsum", "import torch", "exec('(')", "assert False", "K_shared @ ids"),
]
"""Ways to stop with an error."""

WRONG = [
    *(f"K_shared = {change}" for change in ("K_shared * 2", "-K_shared", "K_shared / 0", "K_shared.round(1)")),
    *(f"K_shared = {change}" for change in ("K_shared.swapaxes(1, 2)", "K_shared.reshape(-1)", "K_shared[0, 0]")),
    *(f"K_shared = {other}" for other in ("X", "K", "Wq", "text", "None", "True", "...", "np.zeros((1, T, C))")),
    *("K_shared = K_shared.astype(str)", "K_shared = [text]", "del K_shared"),
]
"""Ways to be wrong."""


def tell(bench, way: str) -> str:
    """What is said of lost marks where the first exercise does this on hidden input sets, and is right on the other."""
    code = f"{bench.read_source('shared-key')}\nif text != 'the lamp':\n    {way}"
    graded = bench.grade(bench.build(replace={"shared-key": code}))
    told = [(mark.name, mark.message, mark.hint, mark.notes) for mark in bench.lost(graded).values()]
    assert told
    return repr((told, [each.status.value for each in graded.exercises]))


def test_every_error_that_a_cell_has_on_hidden_sets_alone_reads_the_same(bench) -> None:
    said = {tell(bench, f"del K_shared; {way}") for way in STOPS}
    assert len(said) == 1, said
    assert "On some input your cell stops with an error." in said.pop()


def test_every_answer_that_is_wrong_on_hidden_sets_alone_reads_the_same(bench) -> None:
    said = {tell(bench, way) for way in WRONG}
    assert len(said) == 1, said
    assert "Right for the published input, and not for every other." in said.pop()


def test_every_error_on_hidden_sets_reads_the_same_where_the_published_set_loses_the_mark_too(bench) -> None:
    wrong = "pass\nK_shared = K_shared * 3 + text.count('e')\nif text != 'the lamp':\n    "
    said = {tell(bench, f"{wrong}del K_shared; {way}") for way in STOPS}
    assert len(said) == 1, said


@pytest.mark.parametrize("published", ["K_shared * 2", "K_shared.swapaxes(1, 2)", "X", "None"])
def test_hidden_sets_choose_no_words_for_what_is_wrong_on_the_published_set(bench, published) -> None:
    wrong = f"pass\nif text == 'the lamp':\n    K_shared = {published}\nelse:\n    "
    plain = tell(bench, f"pass\nK_shared = {published}")
    said = {tell(bench, f"{wrong}{way}") for way in WRONG}
    assert len(said - {plain}) <= 1, "either what the published set says, or the test's own words"


@pytest.mark.parametrize(
    "wrong", ["None", "len", "[]", "{}", "'144'", "True", "1j", "np.zeros(3)", "1e400", "-144", "72", "..."]
)
def test_hidden_sets_choose_no_words_where_the_published_set_has_none_of_its_own(bench, wrong) -> None:
    """The test says of this count what it says, and names no answer that was compared."""
    counts = [f"n_params = 48\nif text != 'the lamp': n_params = {value}" for value in ("48", wrong)]
    source = bench.read_source("head-size")
    grades = [bench.grade(bench.build(replace={"head-size": f"{source}\n{count}"})) for count in counts]
    plain, other = (bench.lost(grade)["test_parameters_are_counted"] for grade in grades)
    assert other.message == f"{plain.message.partition(' Found:')[0]} Found: {FREE_COUNT}"


def test_what_is_repaired_on_hidden_sets_alone_is_not_told(bench) -> None:
    """Each array that is asked for could be turned, or lose its batch axis, by a bit of the text."""
    repairs = "Wk_shared, K_shared = Wk_shared.T, K_shared[0]"
    code = "{}\nif text {} 'the lamp':\n    {}"
    notes = []
    for when in ("==", "!="):
        source = code.format(bench.read_source("shared-key"), when, repairs)
        graded = bench.grade(bench.build(replace={"shared-key": source}))
        bench.assert_full(graded)
        notes.append([note for note in graded.notes if "came " in note])
    assert (len(notes[0]), notes[1]) == (2, [])


def test_hidden_sets_choose_no_name_where_the_published_failure_has_none(bench) -> None:
    """That all entries of a matrix are no numbers is what the test says, and of no answer in particular."""
    said = set()
    for name in ("Q6", "K6", "V6"):
        code = f"{bench.read_source('head-size')}\nif text == 'the lamp': Wq6 = Wq6 * np.nan\n"
        code += f"else: {name} = np.arange(42.0).reshape(1, 7, 6)"
        graded = bench.grade(bench.build(replace={"head-size": code}))
        lost = bench.lost(graded)["test_projections_use_the_new_matrices"]
        said.add((lost.message, lost.hint))
    assert len(said) == 1, said


def test_that_an_answer_is_the_same_on_all_input_sets_is_told(bench) -> None:
    code = f"{bench.read_source('shared-value')}\nV_first = np.array([0.25, -0.5, 0.125, 0.75])"
    mark = bench.lost(bench.grade(bench.build(replace={"shared-value": code})))["test_first_value_is_read"]
    assert "`V_first` holds the same numbers for every input" in mark.message


def test_no_known_mistake_is_named_in_a_run_alone(bench) -> None:
    """Of many that fit, code that has seen the hidden sets could choose one."""
    head = bench.read_source("head-size") + "\nimport sys\nsys.together = True\n"
    mistake = next(each for each in load_catalogue(bench.course, "qkv").mistakes if each.id == MISTAKE)
    for guard in ("", "import sys\nif hasattr(sys, 'together'): raise KeyError\n"):
        value = bench.read_source("shared-value").split("\n", 1)[0] + f"\n{guard}{mistake.code}"
        graded = bench.grade(bench.build(replace={"head-size": head, "shared-value": value}))
        (mark,) = bench.lost(graded).values()
        assert (f"mistake:{MISTAKE}" in mark.explanations) is not bool(guard)
        assert (mistake.hint == mark.hint) is not bool(guard)


def test_whatever_is_wrong_in_a_run_alone_reads_the_same(bench) -> None:
    """It begins when the hidden sets were seen, so that its published set may have been answered by these."""
    head = bench.read_source("head-size") + "\nimport sys\nsys.together = True\n"
    value = "import sys\nif hasattr(sys, 'together'): raise KeyError\n" + bench.read_source("shared-value")

    def tell_alone(way: str) -> str:
        way = way.replace("K_shared", "V_shared")
        graded = bench.grade(bench.build(replace={"head-size": head, "shared-value": f"{value}\n{way}"}))
        assert any("without the other" in note for note in graded.notes), "the run alone counts"
        mark = bench.lost(graded)["test_values_are_recomputed"]
        return repr((mark.message, mark.hint, mark.notes))

    wrong = [way for way in WRONG if way != "K_shared = K"]
    said = {tell_alone(way) for way in (*wrong, *(f"del K_shared; {way}" for way in STOPS[::3]))}
    assert len(said) == 1, said
    assert "when the exercise is run without the others" in said.pop()


@pytest.mark.parametrize("name", ["its_text", "einsum", "torch"])
def test_which_name_is_missing_is_told_where_the_published_set_misses_it(bench, name) -> None:
    code = f"if text == 'the lamp': {name}\n{bench.read_source('shared-key')}\nif T < 0: {name} = 1"
    said = repr(bench.lost(bench.grade(bench.build(replace={"shared-key": code}))))
    assert "NameError" in said
    assert f"`{name}`" in said


def test_the_instructor_reads_how_a_test_fails_on_hidden_sets_alone(bench) -> None:
    code = f"{bench.read_source('shared-key')}\nif text != 'the lamp':\n    K_shared = np.zeros((1, T, C))"
    (mark,) = bench.lost(bench.grade(bench.build(replace={"shared-key": code}))).values()
    assert "the last axis is C where hs is asked" in mark.detail
    assert "axis" not in mark.message + mark.hint
