"""Equal answers get the mark that they got before, and only what a hidden test has read makes them equal."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.course import load_course
from autograder.errors import CourseError
from autograder.intake.notebook import parse_program
from autograder.marking.memory import _digest
from autograder.marking.session import MarkingSession
from autograder.records import CellRun, Execution, Mark, Missing, Opaque, Pass
from autograder.sandbox.watch import build_budget

ROOT = Path(__file__).parents[2]
COUNTED = """
import pathlib
import pytest

pytestmark = pytest.mark.exercise("shared-key")


@pytest.fixture
def calls():
    return pathlib.Path({calls!r})


@pytest.mark.points(1)
def test_pure(answers):
    \"\"\"The matrix is small.\"\"\"
    with open({calls!r}, "a") as file:
        file.write("p")
    if answers.Wk_shared.max() > 50:
        assert answers.K_shared.max() < 50


@pytest.mark.points(1)
def test_with_a_fixture_of_its_own(answers, calls):
    \"\"\"Something else is asked.\"\"\"
    with calls.open("a") as file:
        file.write("f")
"""


class Marked:
    """A session whose course has two more hidden tests, which note each call."""

    def __init__(self, folder: Path) -> None:
        self.calls = folder / "calls"
        self.calls.write_text("")
        for name in ("assignments", "solutions", "tests/hidden"):
            shutil.copytree(ROOT / name, folder / name)
        shutil.copy(ROOT / "course.toml", folder)
        (folder / "tests/hidden/qkv/test_counted.py").write_text(COUNTED.format(calls=str(self.calls)))
        self.session = MarkingSession(load_course(folder), "qkv")

    def build(self, runs: tuple[CellRun, ...] = (), **changed: object) -> Execution:
        """An execution with the reference's answers but for these."""
        return Execution(
            tuple(Pass(each.seed, runs, dict(each.expected) | changed) for each in self.session.input_sets)
        )

    def mark(self, execution: Execution) -> dict[str, Mark]:
        self.calls.write_text("")
        return {mark.name: mark for mark in self.session.mark(execution)}

    def count(self) -> tuple[int, int]:
        """Calls of the pure test and of the other, on all input sets."""
        text = self.calls.read_text()
        return text.count("p"), text.count("f")


@pytest.fixture
def marked(tmp_path: Path) -> Iterator[Marked]:
    made = Marked(tmp_path)
    with made.session:
        yield made


def test_equal_answers_are_not_compared_again(marked: Marked) -> None:
    first = marked.mark(marked.build())
    assert marked.count() == (4, 4)
    assert marked.mark(marked.build()) == first
    assert marked.count() == (0, 4), "a test with a fixture of its own may depend on anything"


def test_another_answer_that_the_test_has_not_read_changes_nothing(marked: Marked) -> None:
    marked.mark(marked.build())
    marks = marked.mark(marked.build(K_shared=np.full((2, 2), 99.0)))
    assert marked.count()[0] == 0
    assert marks["test_pure"].outcome == "passed"
    assert marks["test_keys_are_recomputed"].outcome == "failed"


def test_what_is_read_only_for_some_answers_counts_for_those(marked: Marked) -> None:
    shape = marked.session.input_sets[0].expected["Wk_shared"].shape
    large = np.full(shape, 60.0)
    wrong = {each.seed: np.full_like(each.expected["K_shared"], 99.0) for each in marked.session.input_sets}
    marked.mark(marked.build())
    lost = Execution(
        tuple(
            Pass(each.seed, (), dict(each.expected) | {"Wk_shared": large, "K_shared": wrong[each.seed]})
            for each in marked.session.input_sets
        )
    )
    assert marked.mark(lost)["test_pure"].outcome == "failed"
    assert marked.mark(marked.build(Wk_shared=large))["test_pure"].outcome == "passed"
    assert marked.count()[0] == 4
    assert marked.mark(lost)["test_pure"].outcome == "failed"
    assert marked.count()[0] == 0


def test_a_lost_mark_is_explained_anew_where_the_cells_ended_otherwise(bench) -> None:
    silent = bench.grade_codes({"shared-key": "pass"})
    failing = bench.grade_codes({"shared-key": "raise KeyError('Wq')"})
    again = bench.grade_codes({"shared-key": "pass  # once more"})
    assert [bench.lost(each)["test_keys_are_recomputed"].message for each in (silent, again)] == [
        bench.lost(silent)["test_keys_are_recomputed"].message
    ] * 2
    assert bench.lost(failing)["test_keys_are_recomputed"] != bench.lost(silent)["test_keys_are_recomputed"]


def test_what_is_said_of_a_test_does_not_hang_on_which_submission_came_first(marked: Marked, tmp_path: Path) -> None:
    """A repaired answer is told of by each test that reads it, whether or not another test has read it before."""
    flat = {each.seed: each.expected["K6"][0] for each in marked.session.input_sets}

    def build(**changed: object) -> Execution:
        return Execution(
            tuple(
                Pass(each.seed, (), dict(each.expected) | {"K6": flat[each.seed]} | changed)
                for each in marked.session.input_sets
            )
        )

    right, wrong = build(), build(Q6=np.zeros(3))
    both = [marked.mark(each) for each in (right, wrong)]
    (tmp_path / "again").mkdir()
    other = Marked(tmp_path / "again")
    with other.session:
        assert [other.mark(each) for each in (wrong, right)] == both[::-1]


def test_an_explanation_without_the_known_mistakes_is_not_kept(bench) -> None:
    grader = bench.grader
    program = parse_program(bench.fill({"shared-key": "Wk_shared = Wk\nK_shared = K * 3"}), grader.assignment)
    inputs = [(each.seed, each.inputs) for each in grader.marking.input_sets]
    execution = grader.sandbox.execute(program, inputs, build_budget(grader.assignment), evidence=False)
    asked = []

    def cannot_be_had() -> None:
        asked.append(1)

    for _ in range(2):
        grader.marking.mark(execution, program, cannot_be_had)
    assert len(asked) == 2, "once for each submission, and again for the next"


def test_two_hidden_tests_of_one_name_are_refused(tmp_path: Path) -> None:
    marked = Marked(tmp_path)
    folder = tmp_path / "tests/hidden/qkv"
    shutil.copy(folder / "test_counted.py", folder / "test_counted_again.py")
    with pytest.raises(CourseError, match="2 hidden tests are called test_"), marked.session:
        pass


VALUES = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.none(),
    st.just(Missing()),
    st.builds(Opaque, st.text(max_size=5)),
    arrays.arrays(st.sampled_from(["<f8", "<f4", "<i8", "|b1"]), arrays.array_shapes(max_dims=2, max_side=3)),
)


def build_plain(value: object) -> tuple[object, ...]:
    """What two values must share to be one."""
    if isinstance(value, np.ndarray):
        return "array", value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, float):
        return "float", value.hex()
    return type(value).__name__, value


@given(st.lists(VALUES, max_size=3), st.lists(VALUES, max_size=3))
def test_digests_are_equal_for_equal_values_only(left: list[object], right: list[object]) -> None:
    same = [build_plain(value) for value in left] == [build_plain(value) for value in right]
    assert (_digest(left) == _digest(right)) == same


def test_a_digest_tells_apart_what_is_equal_in_python() -> None:
    alike = [True, 1, 1.0, "1", np.array(1), np.array(1.0), np.array([1.0]), np.array([[1.0]]), None, ..., Missing()]
    assert len({_digest([value]) for value in alike}) == len(alike)
    assert _digest([1, 2]) != _digest([12])
