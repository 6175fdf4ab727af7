"""The corpus in the other modes of the sandbox: all of it in `user`, and in `single` what hangs on how it is built.

In what an attack goes another way there, its file says (`modes`).
"""

import functools
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from autograder.course import load_course
from autograder.sandbox.landlock import find_version
from autograder.sandbox.modes import VARIABLE

from ..conformance.open_python import open_python
from ..soak.submissions import copy_course
from .attacks import ESCAPED, TRIED, load_corpus
from .claims import assert_attack_fails, assert_neighbour_is_untouched
from .conftest import Range, open_grader

ATTACKS = load_corpus()
IN_SINGLE = """
    harm-disk harm-limits-of-the-init harm-signal-the-init leave-by-devices leave-by-identity leave-by-namespaces
    read-environment read-other-processes stay-daemon stay-planted-files
""".split()
"""The init and the mounts are other ones there; limits are looked at by `tests/conformance`. Each costs two starts."""
MOVED = [("user", name) for name, each in ATTACKS.items() if "user" not in each.modes or not each.modes["user"].skip]
MOVED += [("single", name) for name in IN_SINGLE]


@pytest.fixture(scope="module")
def open_range_of(canary: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, bool], Range]]:
    """A range of a mode, with generous time limits or with tight ones; each is opened once."""
    folder = tmp_path_factory.mktemp("course")
    folder.chmod(0o700)
    course = load_course(copy_course(folder))
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        if os.geteuid() == 0:
            stack.enter_context(open_python())

        @functools.cache
        def find_range(mode: str, timed: bool) -> Range:
            if mode == "single":
                # What the known mistakes answer is kept with the course, and found out sooner elsewhere.
                patch.setenv(VARIABLE, "auto")
                with open_grader(course, timed) as grader:
                    Range(grader, "")
            patch.setenv(VARIABLE, mode)
            return Range(stack.enter_context(open_grader(course, timed)), secrets.token_hex(16), mode)

        yield find_range


@pytest.mark.parametrize(("mode", "name"), MOVED)
def test_an_attack_costs_its_own_exercise_at_most_in_other_modes(
    open_range_of: Callable[[str, bool], Range],
    mode: str,
    name: str,
    canary: str,
    hidden_texts: frozenset[bytes],
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    if mode == "user" and (os.geteuid() != 0 or find_version() == 0):
        pytest.skip("the mode user needs root, and what it promises of files needs Landlock")
    if mode == "single" and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed here")
    attack = ATTACKS[name].move(mode)
    firing_range = open_range_of(mode, ATTACKS[name].is_timed or mode == "single")
    firing_range.clear()
    seen = assert_attack_fails(attack, firing_range, hidden_texts, canary)
    assert ESCAPED not in b"".join(capfdbinary.readouterr()), "code of the student's ran in the grader itself"
    assert TRIED in seen or not attack.tried, seen[-2000:]
    assert_neighbour_is_untouched(firing_range)


def test_few_attacks_are_left_out() -> None:
    left_out = ATTACKS.keys() - {name for mode, name in MOVED if mode == "user"}
    assert len(left_out) <= 3, left_out
