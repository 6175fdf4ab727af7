"""Hidden tests over many submissions in one process; what was marked before is remembered."""

import contextlib
import functools
import math
import queue
import threading
from collections.abc import Callable
from types import ModuleType, TracebackType
from typing import Any, cast

from autograder.course import Course
from autograder.errors import CourseError
from autograder.marking.cases import Channel, Job, Verdict, build_cases
from autograder.marking.explain import Attempt, HiddenTest, Known, build_attempt, build_mark
from autograder.marking.memory import Memory
from autograder.marking.reference import build_input_sets, load_reference
from autograder.records import Execution, Mark, Program

MARK_SECONDS = 60.0
"""How long the hidden tests may take for one submission; they compare small arrays, so one that takes longer loops."""
_PART_SECONDS = 0.25


def take_within(results: "queue.SimpleQueue[Any]", seconds: float) -> Any:
    """The next result. `queue.Empty` after so many seconds, of which time in which this process is stopped is none."""
    for _ in range(math.ceil(seconds / _PART_SECONDS)):
        with contextlib.suppress(queue.Empty):
            return results.get(timeout=_PART_SECONDS)
    raise queue.Empty


class MarkingSession:
    """Marks executions of one assignment. A context manager; `CourseError` when the course files are wrong."""

    def __init__(self, course: Course, assignment: str) -> None:
        self._course = course
        self._name = assignment
        self.reference: ModuleType = load_reference(course.reference(assignment))
        self.input_sets = build_input_sets(course, assignment, self.reference)
        self.tests: tuple[HiddenTest, ...] = ()
        self._channel = Channel()
        self._thread = threading.Thread(target=self._run_items, name="hidden-tests", daemon=True)
        self._stuck = ""
        self._memory = Memory()

    def __enter__(self) -> "MarkingSession":
        self._thread.start()
        self.tests = self._take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._channel.jobs.put(None)
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
        attempt: Callable[[], Attempt] | None = None
        if program is not None:
            # Only what is lost is explained.
            attempt = functools.cache(
                functools.partial(build_attempt, execution, program, self._course.assignment(self._name))
            )
        before = self._memory.open(execution, attempt, with_known=asked is not None)
        wanted = [number for number, test in enumerate(self.tests) if exercise in (None, test.exercise)]
        marks = {number: mark for number in wanted if (mark := before.recall(self.tests[number])) is not None}
        missing = [number for number in wanted if number not in marks]
        if missing:
            cases = build_cases(self._course, self._name, self.input_sets, execution)
            self._channel.jobs.put(Job(cases, frozenset(missing)))
            for number, verdict in zip(missing, cast(list[Verdict], self._take(MARK_SECONDS)), strict=True):
                test = self.tests[number]
                explained = None if verdict.passed or attempt is None else attempt()
                marks[number] = build_mark(test, verdict, cases, explained, asked)
                # Without the known mistakes, which may be there the next time, a lost mark is explained worse.
                if verdict.passed or asked is None or asked() is not None:
                    before.keep(test, verdict.read, marks[number])
        return tuple(marks[number] for number in wanted)

    def _take(self, seconds: float | None = None) -> Any:
        try:
            result = take_within(self._channel.results, seconds) if seconds else self._channel.results.get()
        except queue.Empty:
            # A thread cannot be ended; nothing can be marked with it any more.
            self._stuck = (
                f"the hidden test {self._channel.running} did not end within {seconds:g} s; "
                "look for a loop that depends on the answers"
            )
            raise CourseError(self._stuck) from None
        if isinstance(result, BaseException):
            raise result
        return result

    def _run_items(self) -> None:
        try:
            # Beside the sandbox that starts meanwhile: pytest is slow to import.
            from autograder.marking.items import run_items
        except Exception as error:
            self._channel.results.put(error)
            return
        run_items(self._course.hidden_tests(self._name), self.reference, self._channel)
