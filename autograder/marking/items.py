"""pytest's run loop, fed with one submission at a time.

pytest has no public way to be called piece by piece, so it runs in a thread of its own and its run loop takes
submissions from a queue. Only public hooks are used.
"""

import os
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from autograder.errors import CourseError
from autograder.marking import plugin
from autograder.marking.cases import Bench, Channel, Job, Verdict
from autograder.marking.explain import HiddenTest

_QUIET = (
    "faulthandler", "logging", "unraisableexception", "threadexception", "warnings", "doctest", "junitxml",
    "pastebin", "stepwise", "setuponly", "setupplan", "debugging", "cacheprovider", "terminal", "recwarn", "tmpdir",
)  # fmt: skip
"""Plugins of pytest that hidden tests do not need."""


def run_items(folder: Path, reference: ModuleType, channel: Channel) -> None:
    """Collect the hidden tests of a folder, then run them again and again, until the channel gives None.

    The channel gets first the tests, then a list of verdicts for each job; an exception in place of either.
    """
    driver = _Driver(reference, channel)
    arguments = [str(folder), "-c", os.devnull, f"--rootdir={folder}", f"--confcutdir={folder}"]
    arguments += ["--capture=no", "--import-mode=importlib", "--assert=plain"]
    arguments += [word for name in _QUIET for word in ("-p", f"no:{name}")]
    try:
        if not folder.is_dir():
            raise CourseError(f"{folder}: the hidden tests are missing")
        before = os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        _forget_modules(folder)
        try:
            code = pytest.main(arguments, plugins=[plugin, driver])
        finally:
            if before is None:
                del os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]
        if not driver.started:
            channel.results.put(CourseError(driver.problem or f"{folder}: pytest ended with {code!r}"))
    except BaseException as error:
        channel.results.put(error)


def _forget_modules(folder: Path) -> None:
    """Hidden tests of another course or assignment may have the same names, and pytest takes a module it knows."""
    names = {path.stem for path in folder.rglob("*.py")}
    # A copy first: other threads may import.
    for name in [each for each in tuple(sys.modules) if each.rpartition(".")[2] in names]:
        parents = Path(getattr(sys.modules[name], "__file__", None) or "").parts
        if ("tests", "hidden") in pairwise(parents):
            del sys.modules[name]


class _Driver:
    """A plugin in place of pytest's run loop."""

    def __init__(self, reference: ModuleType, channel: Channel) -> None:
        self._reference = reference
        self._channel = channel
        self.started = False
        self.problem = ""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        self._bench = Bench()
        self._bench.standalone = False
        self._bench.reference = self._reference
        config.stash[plugin.BENCH] = self._bench

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.problem:
            last = str(report.longrepr).strip().splitlines()[-1]
            self.problem = f"{report.nodeid or 'hidden tests'}: cannot be collected: {last}"

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if self.problem:
            return True
        try:
            tests = tuple(describe_test(item) for item in session.items)
            if not tests:
                raise CourseError(f"{session.config.rootpath}: there are no hidden tests")
            name, times = Counter(test.name for test in tests).most_common(1)[0]
            if times > 1:
                raise CourseError(f"{session.config.rootpath}: {times} hidden tests are called {name}; rename one")
        except CourseError as error:
            self.problem = str(error)
            return True
        self.started = True
        self._tests = tests
        self._channel.results.put(tests)
        while (job := self._channel.jobs.get()) is not None:
            self._bench.cases = job.cases
            try:
                self._channel.results.put(self._run_items(session, job))
            except BaseException as error:
                self._channel.results.put(error)
        return True

    def _run_items(self, session: pytest.Session, job: Job) -> list[Verdict]:
        """The verdict of each item that the job names."""
        items = cast(list[pytest.Function], session.items)
        verdicts = []
        for number, item in enumerate(items):
            if number not in job.tests:
                continue
            self._channel.running = item.nodeid
            if self._tests[number].is_pure:
                verdict = plugin.run_on_cases(item, self._bench)
            else:
                item.stash[plugin.VERDICT] = Verdict([], [], {}, RuntimeError("it was not run"))
                # The item that follows decides which fixtures are torn down; after the last comes the first again.
                following = items[(number + 1) % len(items)]
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                verdict = item.stash[plugin.VERDICT]
            if verdict.fault is not None:
                fault = verdict.fault
                raise CourseError(f"the hidden test {item.nodeid} is broken: {type(fault).__name__}: {fault}")
            verdicts.append(verdict)
        return verdicts

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport:
        """A report without a formatted traceback, which would cost more than the test."""
        if call.excinfo is not None:
            item.stash[plugin.VERDICT] = Verdict([], [], {}, call.excinfo.value)
        outcome = "passed" if call.excinfo is None else "failed"
        return pytest.TestReport(
            item.nodeid, item.location, {}, cast(Any, outcome), None, cast(Any, call.when), start=0, stop=0
        )


def is_plain(item: pytest.Item) -> bool:
    """Whether a test needs nothing of pytest but to be called: only our fixtures, only our marks.

    pytest's own protocol around an item costs more than such a test.
    """
    known = {*plugin.FIXTURES, "reference", "request"}
    marks = {mark.name for mark in item.iter_markers()}
    return known.issuperset(getattr(item, "fixturenames", ["?"])) and marks <= {"exercise", "points"}


def describe_test(item: pytest.Item) -> HiddenTest:
    """The record of a collected hidden test. `CourseError` when it lacks an exercise, points or a sentence."""
    where = item.nodeid
    exercise, points = item.get_closest_marker("exercise"), item.get_closest_marker("points")
    if exercise is None or len(exercise.args) != 1:
        raise CourseError(
            f'{where}: it does not say its exercise; put pytestmark = pytest.mark.exercise("id") in the file'
        )
    if points is None or len(points.args) != 1 or not _is_points(points.args[0]):
        raise CourseError(f"{where}: it does not say its points; write @pytest.mark.points(1) above it")
    text = (getattr(getattr(item, "obj", None), "__doc__", None) or "").strip()
    if not text:
        raise CourseError(f"{where}: it has no docstring, which is the sentence that a student reads")
    claim = " ".join(text.split("\n\n")[0].split())
    return HiddenTest(item.name, str(exercise.args[0]), float(points.args[0]), claim, is_plain(item))


def _is_points(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")
