"""Hidden tests over many submissions in one process: pytest collects once, then runs the items again and again.

pytest has no public way to be called piece by piece, so it runs in a thread of its own and its run loop
takes submissions from a queue. Only public hooks are used.
"""

import functools
import os
import queue
import sys
import threading
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, cast

import msgspec
import pytest

from autograder.course import Course
from autograder.errors import CourseError
from autograder.marking import plugin
from autograder.marking.cases import Bench, Case, Verdict, build_cases
from autograder.marking.explain import HiddenTest, Known, build_attempt, build_mark
from autograder.marking.memory import Memory
from autograder.marking.reference import build_input_sets, load_reference
from autograder.records import Execution, Mark, Program

_QUIET = (
    "faulthandler", "logging", "unraisableexception", "threadexception", "warnings", "doctest", "junitxml",
    "pastebin", "stepwise", "setuponly", "setupplan", "debugging", "cacheprovider", "terminal", "recwarn", "tmpdir",
)  # fmt: skip
"""Plugins of pytest that hidden tests do not need."""


MARK_SECONDS = 60.0
"""How long the hidden tests may take for one submission; they compare small arrays, so one that takes longer loops."""


class _Job(msgspec.Struct, frozen=True):
    """The cases of one submission, and which hidden tests are to run on them."""

    cases: list[Case]
    tests: frozenset[int]


class MarkingSession:
    """Marks executions of one assignment. A context manager; `CourseError` when the course files are wrong."""

    def __init__(self, course: Course, assignment: str) -> None:
        self._course = course
        self._name = assignment
        self.reference: ModuleType = load_reference(course.reference(assignment))
        self.input_sets = build_input_sets(course, assignment, self.reference)
        self.tests: tuple[HiddenTest, ...] = ()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._driver = _Driver(self.reference, self._jobs, self._results)
        self._thread = threading.Thread(target=self._run_pytest, name="hidden-tests", daemon=True)
        self._stuck = ""
        self._memory = Memory()

    def __enter__(self) -> "MarkingSession":
        self._thread.start()
        self.tests = self._take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._jobs.put(None)
        self._thread.join(timeout=5)

    def mark(
        self,
        execution: Execution,
        program: Program | None = None,
        known: Known | None = None,
        exercise: str | None = None,
    ) -> tuple[Mark, ...]:
        """One mark for each hidden test, or for those of one exercise. `CourseError` when a hidden test is broken.

        With the program, what was lost is explained; `known` gives the known mistakes when one is lost.
        """
        if self._stuck:
            raise CourseError(self._stuck)
        asked = functools.cache(known) if known is not None else None
        attempt = build_attempt(execution, program, self._course.assignment(self._name)) if program else None
        before = self._memory.open(execution, attempt, with_known=asked is not None)
        wanted = [number for number, test in enumerate(self.tests) if exercise in (None, test.exercise)]
        marks = {number: mark for number in wanted if (mark := before.recall(self.tests[number])) is not None}
        missing = [number for number in wanted if number not in marks]
        if missing:
            cases = build_cases(self._course, self._name, self.input_sets, execution)
            self._jobs.put(_Job(cases, frozenset(missing)))
            for number, verdict in zip(missing, cast(list[Verdict], self._take(MARK_SECONDS)), strict=True):
                test = self.tests[number]
                marks[number] = build_mark(test, verdict, cases, attempt, asked)
                # Without the known mistakes, which may be there the next time, a lost mark is explained worse.
                if verdict.passed or asked is None or asked() is not None:
                    before.keep(test, verdict.read, marks[number])
        return tuple(marks[number] for number in wanted)

    def _take(self, seconds: float | None = None) -> Any:
        try:
            result = self._results.get(timeout=seconds)
        except queue.Empty:
            # A thread cannot be ended; nothing can be marked with it any more.
            self._stuck = (
                f"the hidden test {self._driver.running} did not end within {seconds:g} s; "
                "look for a loop that depends on the answers"
            )
            raise CourseError(self._stuck) from None
        if isinstance(result, BaseException):
            raise result
        return result

    def _run_pytest(self) -> None:
        folder = self._course.hidden_tests(self._name)
        driver = self._driver
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
                self._results.put(CourseError(driver.problem or f"{folder}: pytest ended with {code!r}"))
        except BaseException as error:
            self._results.put(error)


def _forget_modules(folder: Path) -> None:
    """Hidden tests of another course or assignment may have the same names, and pytest takes a module it knows."""
    names = {path.stem for path in folder.rglob("*.py")}
    # A copy first: other threads may import.
    for name in [each for each in tuple(sys.modules) if each.rpartition(".")[2] in names]:
        parents = Path(getattr(sys.modules[name], "__file__", None) or "").parts
        if ("tests", "hidden") in pairwise(parents):
            del sys.modules[name]


class _Driver:
    """pytest's run loop, fed with one submission at a time."""

    def __init__(
        self, reference: ModuleType, jobs: "queue.SimpleQueue[_Job | None]", results: "queue.SimpleQueue[Any]"
    ) -> None:
        self._reference = reference
        self._jobs = jobs
        self._results = results
        self.started = False
        self.problem = ""
        self.running = ""
        """The test that is running, for whoever waits in vain."""

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
        self._results.put(tests)
        while (job := self._jobs.get()) is not None:
            self._bench.cases = job.cases
            try:
                self._results.put(self._run_items(session, job))
            except BaseException as error:
                self._results.put(error)
        return True

    def _run_items(self, session: pytest.Session, job: _Job) -> list[Verdict]:
        """The verdict of each item that the job names."""
        items = cast(list[pytest.Function], session.items)
        verdicts = []
        for number, item in enumerate(items):
            if number not in job.tests:
                continue
            self.running = item.nodeid
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
