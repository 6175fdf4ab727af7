"""What hidden tests run on: a submission's answers beside the expected ones, and what the tests said of them."""

import queue
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec

from autograder.course import Course
from autograder.marking.answers import Answers, CheckFailed
from autograder.marking.reference import InputSet, build_namespace
from autograder.records import Execution


class Case(msgspec.Struct, frozen=True):
    """What a hidden test sees of one input set."""

    seed: int
    answers: Answers
    expected: SimpleNamespace
    inputs: SimpleNamespace


class Verdict(msgspec.Struct):
    """What a test said of each input set: None where it passed. `fault` is an error of the test itself."""

    failures: list[CheckFailed | None]
    notes: list[str]
    """What was repaired or carried on the published input set."""
    read: dict[str, None]
    """Names of the answers that the test has looked at."""
    fault: BaseException | None = None

    @property
    def passed(self) -> bool:
        """Whether the test passed on every input set."""
        return self.fault is None and not any(self.failures)


class Bench:
    """The cases that the items run on; a marking session lays others on it for each submission."""

    def __init__(self) -> None:
        self.cases: list[Case] = []
        self.reference: ModuleType | None = None
        self.standalone = True


class Job(msgspec.Struct, frozen=True):
    """The cases of one submission, and which hidden tests are to run on them."""

    cases: list[Case]
    tests: frozenset[int]


class Channel:
    """Between a marking session and the thread in which the items run (`items.run_items`)."""

    def __init__(self) -> None:
        self.jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self.results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.running = ""
        """The test that is running, for whoever waits in vain."""


def build_cases(course: Course, assignment: str, sets: tuple[InputSet, ...], execution: Execution) -> list[Case]:
    """The cases of one submission: its answers beside the expected ones, input set by input set."""
    exercises = course.assignment(assignment).exercises
    cases = []
    for input_set, one_pass in zip(sets, execution.passes, strict=True):
        inputs, expected = build_namespace(input_set.inputs), build_namespace(input_set.expected)
        cases.append(Case(input_set.seed, Answers(one_pass.answers, exercises, inputs, expected), expected, inputs))
    return cases
