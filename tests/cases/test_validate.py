"""`autograder validate` fails for each kind of fault that an instructor can put into an assignment."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.course import load_course
from autograder.validation.validate import Validation, validate_assignment

ROOT = Path(__file__).parents[2]

MISTAKES = '''
[[mistake]]
id = "not-a-mistake"
exercise = "shared-value"
title = "It is right, and said to lose a mark"
source = "derived"
code = """
V_first = V[0, 0]
Wv_shared = Wk
V_shared = X @ Wv_shared
equals_K = True
equals_Q = False
"""
loses = ["test_values_are_recomputed"]
hint = "There is none."

[[mistake]]
id = "loses-more"
exercise = "shared-value"
title = "It loses more than it declares"
source = "derived"
code = "V_first = V[0, 1]"
loses = ["test_first_value_is_read"]
hint = "Look at the first position."

[[mistake]]
id = "same-and-says-otherwise"
exercise = "shared-value"
title = "The second position"
source = "derived"
code = "V_first = V[0][1]"
loses = ["test_first_value_is_read"]
hint = "Count from zero."

[[mistake]]
id = "ends-well"
exercise = "shared-value"
title = "It is said to raise and does not"
source = "derived"
code = "x = 1"
loses = [
    "test_first_value_is_read",
    "test_value_matrix_is_the_key_matrix",
    "test_values_are_recomputed",
    "test_comparisons_are_reported",
]
raises = { type = "ValueError", message = "never" }
hint = "Assign the names."
'''

VARIANTS = """
[[variant]]
id = "not-right"
exercise = "shared-key"
title = "It is wrong, and said to be right"
source = "derived"
code = "Wk_shared = Wq"
"""

NO_MODULE = "matplotlib.backends.backend_gtk3"
"""It is installed, and wants what is not."""

LAX_TEST = '''
@pytest.mark.points(1)
def test_scores_are_recomputed(answers):
    """The scores are looked at, and not compared."""
    assert answers.scores_shared is not None
'''


@pytest.fixture(scope="module")
def broken(tmp_path_factory) -> Validation:
    folder = tmp_path_factory.mktemp("course")
    for part in ("course.toml", "nbgrader_config.py", "solutions", "assignments", "tests/hidden"):
        target = folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / part).is_dir() else shutil.copy)(ROOT / part, target)
    settings = (folder / "course.toml").read_text(encoding="utf-8")
    assert '"matplotlib.pyplot"' in settings
    (folder / "course.toml").write_text(settings.replace("matplotlib.pyplot", NO_MODULE), encoding="utf-8")
    (folder / "solutions/qkv/mistakes.toml").write_text(MISTAKES, encoding="utf-8")
    (folder / "solutions/qkv/variants.toml").write_text(VARIANTS, encoding="utf-8")
    test_file = folder / "tests/hidden/qkv/test_shared_key.py"
    before, _, rest = test_file.read_text(encoding="utf-8").partition("@pytest.mark.points(1)\ndef test_scores_are")
    _, mark, after = rest.partition("\n\n\n@pytest.mark.points(1)\ndef test_symmetry")
    assert mark
    test_file.write_text(before + LAX_TEST.strip() + mark + after, encoding="utf-8")
    return validate_assignment(load_course(folder), "qkv")


def find(validation: Validation, subject: str) -> tuple[bool, str]:
    return next((each.ok, each.text) for each in validation.findings if each.subject == subject)


def test_a_broken_assignment_is_not_well(broken: Validation) -> None:
    assert not broken.ok


def test_a_mistake_must_lose_exactly_what_it_declares(broken: Validation) -> None:
    ok, text = find(broken, "known mistakes")
    assert not ok
    assert "not-a-mistake: does not lose test_values_are_recomputed" in text
    assert "loses-more: loses test_value_matrix_is_the_key_matrix, which is not declared" in text


def test_a_mistake_must_raise_what_it_declares(broken: Validation) -> None:
    assert "ends-well: does not end with ValueError: never" in find(broken, "known mistakes")[1]


def test_a_variant_must_keep_full_marks(broken: Validation) -> None:
    ok, text = find(broken, "accepted variants")
    assert not ok
    assert "not-right: loses test_keys_are_recomputed" in text


def test_mistakes_with_the_same_answers_must_say_the_same(broken: Validation) -> None:
    ok, text = find(broken, "hints")
    assert not ok
    assert "loses-more and same-and-says-otherwise" in text


def test_a_module_that_cannot_be_preloaded_is_named(broken: Validation) -> None:
    ok, text = find(broken, "preload")
    assert not ok
    assert NO_MODULE in text


def test_a_lax_hidden_test_lets_mutants_survive_and_they_are_listed(broken: Validation) -> None:
    ok, text = find(broken, "mutants of shared-key")
    assert not ok
    assert "survived" in text
    assert "np.sqrt(hs)" in text
    assert find(broken, "mutants of shared-value")[0]


def test_what_is_well_is_said_to_be_well(broken: Validation) -> None:
    for subject in ("reference", "solution notebook", "student notebook"):
        assert find(broken, subject)[0], subject


def test_a_name_in_loses_that_is_no_hidden_test_is_an_error_of_the_course(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "solutions", tmp_path / "solutions")
    shutil.copytree(ROOT / "tests/hidden", tmp_path / "tests/hidden")
    shutil.copy(ROOT / "course.toml", tmp_path)
    (tmp_path / "solutions/qkv/mistakes.toml").write_text(
        MISTAKES.replace('["test_first_value_is_read"]', '["test_frist"]'), encoding="utf-8"
    )
    command = [sys.executable, "-m", "autograder", "validate", "--course", str(tmp_path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert "there is no hidden test test_frist" in done.stderr
    assert done.stdout == ""


@pytest.fixture(scope="module")
def document() -> dict[str, object]:
    command = [sys.executable, "-m", "autograder", "validate", "--course", str(ROOT), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (only,) = json.loads(done.stdout)
    return only


def test_the_assignment_is_well(document) -> None:
    assert document["ok"]
    assert all(finding["ok"] for finding in document["findings"])


def test_the_catalogue_is_as_large_as_it_must_be(document) -> None:
    kinds = [entry["kind"] for entry in document["entries"]]
    assert kinds.count("mistake") >= 30
    assert kinds.count("variant") >= 20
    assert not any(entry["problems"] for entry in document["entries"])


def test_each_exercise_has_sixty_mutants_and_none_survives(document) -> None:
    assert [each["exercise"] for each in document["mutants"]] == ["shared-key", "head-size", "shared-value"]
    for each in document["mutants"]:
        assert each["count"] >= 60
        assert each["survivors"] == []
        assert each["kill_rate"] == 1.0
