"""Each attack once more without what should stop it: an attack that bites nowhere proves nothing.

The controls wait more than they work, so some run at a time, ahead of the tests that look at them.
"""

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from autograder.course import Course

from .attacks import Attack, load_corpus
from .controls import find_bites

ATTACKS = load_corpus()
CONTROLLED = [pytest.param(each, id=name) for name, each in ATTACKS.items() if each.control != "impossible"]
HONEST = Attack(
    tries="Nothing.",
    must="All points.",
    exercise="shared-key",
    code="print('I am honest')",
    place="before",
    earns=4,
    endings=("ok",),
    control="plain",
)

Find = Callable[[Attack], set[str]]


@pytest.fixture(scope="module")
def find(
    request: pytest.FixtureRequest,
    course: Course,
    hidden_texts: frozenset[bytes],
    canary: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Find]:
    """What an attack does in its control."""
    started: dict[str, Future[set[str]]] = {}
    with ThreadPoolExecutor(3) as pool:

        def start(attack: Attack) -> Future[set[str]]:
            folder = tmp_path_factory.mktemp("control")
            return pool.submit(find_bites, attack, course, folder, hidden_texts)

        for item in request.session.items:
            parameters = item.callspec.params if item.path == request.path and hasattr(item, "callspec") else {}
            if (attack := parameters.get("attack")) is not None:
                started[attack.code] = start(attack)
        yield lambda attack: started[attack.code].result() if attack.code in started else start(attack).result()
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("attack", CONTROLLED)
def test_an_attack_bites_where_nothing_stops_it(attack: Attack, find: Find) -> None:
    assert attack.bites in find(attack)


def test_few_attacks_have_no_control(find: Find) -> None:
    reasons = {name: attack.why for name, attack in ATTACKS.items() if attack.control == "impossible"}
    assert len(reasons) <= 3, reasons


@pytest.mark.parametrize("control", ["plain", "in-process", "trusting-host"])
def test_an_honest_submission_does_no_harm_in_a_control(control: str, find: Find) -> None:
    assert find(HONEST.model_copy(update={"control": control, "earns": 4})) == set()


def test_what_a_control_leaves_ends_with_it(course: Course, tmp_path: Path) -> None:
    """The daemon of one control is gone when the control is."""
    assert "processes" in find_bites(ATTACKS["stay-daemon"], course, tmp_path)
    commands = []
    for number in [path.name for path in Path("/proc").iterdir() if path.name.isdigit()]:
        with contextlib.suppress(OSError):
            commands.append(Path(f"/proc/{number}/cmdline").read_bytes())
    assert not [command for command in commands if bytes(tmp_path) in command]
