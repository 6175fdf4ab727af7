"""What the comparison with other graders rests on: the classes, the checks, and the account of processor time."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from autograder.course import Course, load_course  # noqa: E402
from benchmarks.account import open_account  # noqa: E402
from benchmarks.classes import LOOP, build_class  # noqa: E402
from benchmarks.peers.source import CHECKS_OF, build_text  # noqa: E402

ALL_CHECKS = [check for checks in CHECKS_OF.values() for check in checks]


@pytest.fixture(scope="module")
def course() -> Course:
    return load_course(ROOT)


@pytest.fixture(scope="module")
def checks(course: Course) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(build_text(course, "qkv"), names)
    del sys.modules["reference"]
    return names


@pytest.fixture(scope="module")
def right_answers(course: Course) -> dict[str, Any]:
    reference = ModuleType("reference")
    exec((course.solution_notebook("qkv").parent / "reference.py").read_text(encoding="utf-8"), vars(reference))
    inputs = reference.inputs(42)
    return {**reference.shared_key(inputs), **reference.head_size(inputs), **reference.shared_value(inputs)}


def test_each_exercise_is_worth_as_many_checks_as_hidden_tests():
    for exercise, names in CHECKS_OF.items():
        file = ROOT / "tests" / "hidden" / "qkv" / f"test_{exercise.replace('-', '_')}.py"
        assert len(names) == file.read_text(encoding="utf-8").count("\ndef test_")


@pytest.mark.parametrize("check", ALL_CHECKS)
def test_check_accepts_the_reference_and_refuses_the_untouched_stub(check, checks, right_answers):
    checks[check](right_answers)
    with pytest.raises((AssertionError, TypeError)):
        checks[check](dict.fromkeys(right_answers, ...))


def test_check_judges_keys_on_a_wrong_matrix_of_the_students_own(checks, right_answers):
    wrong = np.random.default_rng(0).normal(size=(8, 4))
    answers = {**right_answers, "Wk_shared": wrong, "K_shared": checks["project"](checks["GIVEN"]["X"], wrong)}
    checks["check_keys"](answers)
    with pytest.raises(AssertionError):
        checks["check_key_matrix"](answers)


def test_no_two_submissions_of_a_class_have_the_same_bytes(course):
    template = course.released_notebook("qkv").read_bytes()
    made = list(build_class(course, "qkv", template, 60))
    assert len({each.sha256 for each, _ in made}) == 60
    assert [number for number, (_, lost) in enumerate(made) if lost] == list(range(0, 60, 3))


def test_class_holds_as_many_loops_as_asked(course):
    template = course.released_notebook("qkv").read_bytes()
    made = build_class(course, "qkv", template, 200, loops=20)
    assert sum(LOOP.encode().splitlines()[0] in each.data for each, _ in made) == 20


def test_processor_time_of_a_process_that_outlived_its_parent_is_counted():
    try:
        with open_account():
            pass
    except SystemExit as error:
        pytest.skip(str(error))
    burn = "import time\nwhile time.process_time() < 0.5: pass"
    orphan = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {burn!r}])"
    # In a process of its own: the meter waits for every child of its process.
    meter = (
        "import sys; from pathlib import Path; from benchmarks.meter import measure_command\n"
        f"print(measure_command([sys.executable, '-c', {orphan!r}], Path.cwd()).cpu_seconds)"
    )
    done = subprocess.run([sys.executable, "-c", meter], cwd=ROOT, check=True, capture_output=True, text=True)
    assert float(done.stdout) >= 0.5
