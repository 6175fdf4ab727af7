"""The pytest plugin: marks, fixtures, and one item that runs over all input sets.

`pytest tests/hidden/qkv` runs the solution notebook through the sandbox and marks it;
`--submission FILE` marks a notebook. The marking session uses the same plugin to mark many submissions
in one process.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autograder.errors import AutograderError
from autograder.marking.answers import CheckFailed, get_sheet
from autograder.marking.cases import Bench, Verdict

FIXTURES = ("answers", "expected", "inputs")


BENCH = pytest.StashKey[Bench]()
VERDICT = pytest.StashKey[Verdict]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("autograder")
    group.addoption("--submission", metavar="FILE", help="mark this notebook instead of the solution notebook")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "exercise(id): the exercise that a hidden test belongs to")
    config.addinivalue_line("markers", "points(number): what a hidden test is worth")
    config.stash.setdefault(BENCH, Bench())
    named = config.getoption("--submission", None)
    if named and not Path(named).is_file():
        raise pytest.UsageError(f"--submission {named}: there is no such file")


@pytest.fixture
def answers() -> Any:
    """The student's answers on the input set under test (`Answers`)."""
    return None


@pytest.fixture
def expected() -> Any:
    """The reference's answers on the same input set, by attribute."""
    return None


@pytest.fixture
def inputs() -> Any:
    """The lesson's variables on the same input set, by attribute."""
    return None


@pytest.fixture
def reference(request: pytest.FixtureRequest) -> Any:
    """The assignment's `reference.py`."""
    return find_bench(request.node).reference


def find_bench(item: pytest.Item) -> Bench:
    """The bench of this run; standing alone, it is filled from `--submission` or the solution notebook."""
    bench = item.config.stash[BENCH]
    if bench.standalone and not bench.cases:
        # Imported here: every pytest of this environment loads the plugin, and only this one needs a sandbox.
        from autograder.marking.standalone import fill_bench

        try:
            fill_bench(bench, Path(item.path), item.config.getoption("--submission"))
        except AutograderError as error:
            pytest.exit(str(error), returncode=2)
    return bench


def is_hidden_test(item: pytest.Item) -> bool:
    """Whether an item is a hidden test: it says which exercise it belongs to."""
    return item.get_closest_marker("exercise") is not None


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object | None:
    """Run a hidden test on each input set and keep what it said; alone, fail like any test."""
    if not is_hidden_test(pyfuncitem):
        return None
    bench = find_bench(pyfuncitem)
    verdict = run_on_cases(pyfuncitem, bench)
    pyfuncitem.stash[VERDICT] = verdict
    if bench.standalone:
        if verdict.fault is not None:
            raise verdict.fault
        for case, failure in zip(bench.cases, verdict.failures, strict=True):
            if failure is not None:
                pytest.fail(f"seed {case.seed}: {failure.rationale} {failure.detail}".strip(), pytrace=False)
    return True


def run_on_cases(item: pytest.Function, bench: Bench) -> Verdict:
    """One verdict over all input sets; every set is run, so that what holds on all can be told."""
    wanted: dict[str, Any] = {name: item.funcargs.get(name) for name in item._fixtureinfo.argnames}
    verdict = Verdict([], [], {})
    for case in bench.cases:
        for name in FIXTURES:
            if name in wanted:
                wanted[name] = getattr(case, name)
        if "reference" in wanted:
            wanted["reference"] = bench.reference
        sheet = get_sheet(case.answers)
        sheet.forget_reading()
        try:
            with np.errstate(all="ignore"):
                said = item.obj(**wanted)
            if said is not None:
                raise TypeError("a hidden test returns nothing; it calls checks, or fails")
            verdict.failures.append(None)
        except CheckFailed as failure:
            verdict.failures.append(failure)
        except AssertionError as failure:
            verdict.failures.append(CheckFailed("", detail=str(failure)))
        except BaseException as fault:
            verdict.fault = fault
            break
        if case is bench.cases[0]:
            # Students read them: code could choose by a hidden set what it leaves to be repaired there.
            verdict.notes += dict.fromkeys(sheet.notes)
        verdict.read |= sheet.read
    return verdict
