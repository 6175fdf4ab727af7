"""A whole class: what is stored, what has to be done, and who got what.

The parent process is the only one that reads and writes the store. Workers get a submission with the runs that are
stored of it, and give back a grade with the runs that they made.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from autograder.batch import run_all
from autograder.course import Course
from autograder.errors import NotebookError
from autograder.fingerprint import describe_environment, describe_marking
from autograder.grading import Grader, Order
from autograder.intake.layouts import Source, find_submissions, read_submission
from autograder.records import Grade, Submission
from autograder.runs import TOGETHER
from autograder.store.packing import pack_execution, unpack_execution
from autograder.store.records import Received, Result

if TYPE_CHECKING:
    from autograder.store.database import Store

Item = TypeVar("Item")

_LOST = "the grader's own process ended twice while it worked on this file; please report it"
_CHUNK = 200
"""Submissions that are looked up together."""
_MOST_UNSAVED, _UNSAVED_SECONDS = 25, 0.5
"""What a loss of power may cost beside what is in flight."""
_UNREADABLE = "unreadable "
"""Begins what stands for the digest of a file that could not be read."""
UNFINISHED = "unfinished"
"""The marking of a submission that a fault of ours or of the machine kept from being graded; it is tried again."""


class Work(StrEnum):
    """What was done for a submission."""

    RUN = "run"
    """Its code ran, and its answers were marked."""
    MARKED = "marked"
    """Stored answers were marked."""
    KEPT = "kept"
    """Nothing: these bytes were graded before, in the same way."""


class Done(msgspec.Struct, frozen=True):
    """One submission of the class, with what it got and what was done for it."""

    grade: Grade
    work: Work
    before: Grade | None = None
    """What it had got before, where it was marked again."""
    wanted: tuple[str, ...] = ()
    """Exercises that want a run alone, which was not allowed."""


class _Task(msgspec.Struct, frozen=True):
    """What a worker gets. Runs are packed, since most of them travel between processes."""

    submission: Submission
    runs: dict[str, bytes]
    may_run: bool


class _Reply(msgspec.Struct, frozen=True):
    grade: Grade
    runs: dict[str, tuple[bytes, float]]
    wanted: tuple[str, ...]
    settled: bool


class _Waiting(msgspec.Struct):
    """Who handed in the bytes that a worker has, and what they got before."""

    submissions: list[tuple[Submission, tuple[str, ...]]]
    work: Work
    before: Grade | None


def grade(course: Course, assignment: str, paths: Sequence[str | Path], jobs: int = 0) -> list[Grade]:
    """Grade notebooks, folders and downloads, and store nothing; results in the order in which they were found."""
    sources, _ = find_submissions([Path(path) for path in paths], assignment)
    order = {(source.student, source.shown): number for number, source in enumerate(sources)}
    return sorted(grade_all(course, assignment, sources, jobs), key=lambda each: order[each.student, each.path])


def grade_all(course: Course, assignment: str, sources: Sequence[Source], jobs: int) -> Iterator[Grade]:
    """Grade every source once, in whatever order they end, and store nothing."""
    for source, result in run_all(course, assignment, _grade_source, sources, jobs):
        yield add_notes(result or Grade(source.student, source.shown, "", "ungraded", reason=_LOST), source.notes)


def _grade_source(grader: Grader, source: Source) -> Grade:
    try:
        return grader.grade_submission(read_submission(source))
    except NotebookError as error:
        return Grade(source.student, source.shown, "", "ungraded", reason=str(error))


def add_notes(grade: Grade, notes: Sequence[str]) -> Grade:
    """A grade with what intake noted about its file, said first."""
    return msgspec.structs.replace(grade, notes=(*notes, *grade.notes)) if notes else grade


class Gradebook:
    """The results of one assignment in a store, and the work that keeps them up to date."""

    def __init__(
        self,
        course: Course,
        assignment: str,
        store: "Store",
        *,
        jobs: int = 0,
        scheduler: str = "",
        report: Callable[[str], None] = print,
    ) -> None:
        self._course = course
        self._name = assignment
        self._store = store
        self._jobs = jobs
        self._scheduler = scheduler
        self._report = report
        self.environment = describe_environment(course, assignment)
        self.marking = describe_marking(course, assignment)
        self._ready: list[Done] = []
        self._waiting: dict[str, _Waiting] = {}
        self._unsaved: list[Result] = []
        self._saved_at = time.monotonic()

    def grade(self, sources: Iterable[Source], *, force: bool = False) -> Iterator[Done]:
        """Run what has not been run like this, mark what has not been marked like this; each source once.

        force: run and mark everything again.
        """
        self._store.save_environment(self.environment.digest, self.environment.description)
        self._store.save_marking(self.marking.digest, self.marking.description)
        self._store.save_marking(UNFINISHED, {})
        yield from self._work(self._receive(sources, force=force), save=True)

    def regrade(self, *, dry_run: bool = False) -> Iterator[Done]:
        """Mark the stored answers of every submission that counts, as far as this marking has not seen them.

        Student code runs for an exercise alone that newly loses marks, and not at all with `dry_run`, which
        stores nothing either. Submissions that were not run in this environment are left out.
        """
        if not dry_run:
            self._store.save_environment(self.environment.digest, self.environment.description)
            self._store.save_marking(self.marking.digest, self.marking.description)
            self._store.save_marking(UNFINISHED, {})
        yield from self._work(self._recall(may_run=not dry_run), save=not dry_run)

    def _work(self, tasks: Iterator[_Task], *, save: bool) -> Iterator[Done]:
        results = run_all(
            self._course, self._name, _work_on_task, tasks, self._jobs, self._scheduler, self._report
        )  # fmt: skip
        try:
            for task, reply in results:
                yield from self._finish(task.submission.sha256, reply, save=save)
                yield from self._take_ready()
            yield from self._take_ready()
        finally:
            self._save()

    def _take_ready(self) -> Iterator[Done]:
        ready, self._ready = self._ready, []
        yield from ready

    def _receive(self, sources: Iterable[Source], *, force: bool) -> Iterator[_Task]:
        """Store what was handed in, and ask for what is to be done for it."""
        for chunk in _cut(sources, _CHUNK):
            received, readable, faults = [], [], []
            for source in chunk:
                try:
                    submission = read_submission(source)
                    readable.append((submission, source.notes))
                except NotebookError as error:
                    digest = _UNREADABLE + hashlib.sha256(f"{source.shown}\0{error}".encode()).hexdigest()[:53]
                    submission = Submission(source.student, source.shown, b"", digest)
                    faults.append((submission, source.notes, str(error)))
                received.append(_build_received(self._name, submission, source))
            self._store.save_submissions(received)
            for submission, notes, reason in faults:
                self._refuse(submission, notes, reason)
            yield from self._plan(readable, force=force, may_run=True)

    def _recall(self, *, may_run: bool) -> Iterator[_Task]:
        """Everything that counts and has been run in this environment."""
        current = [each for each in self._store.list_submissions(self._name) if not each.sha256.startswith(_UNREADABLE)]
        for chunk in _cut(current, _CHUNK):
            digests = [each.sha256 for each in chunk]
            run = self._store.find_executions(self._name, self.environment.digest, digests)
            contents = self._store.find_contents(digests)
            known = [
                (Submission(each.student, each.path, contents[each.sha256], each.sha256), each.notes)
                for each in chunk
                if TOGETHER in run.get(each.sha256, {})
            ]
            yield from self._plan(known, force=False, may_run=may_run)

    def _plan(
        self, submissions: Sequence[tuple[Submission, tuple[str, ...]]], *, force: bool, may_run: bool
    ) -> Iterator[_Task]:
        """Tasks for what is to be done; what is there already becomes ready."""
        self._save()  # so that bytes that were handed in twice are found
        digests = list(dict.fromkeys(each.sha256 for each, _ in submissions))
        environment, marking = self.environment.digest, self.marking.digest
        kept = {} if force else self._store.find_grades(self._name, environment, marking, digests)
        open_digests = [each for each in digests if each not in kept]
        runs = {} if force else self._store.find_executions(self._name, environment, open_digests)
        standing = self._store.find_standing(self._name, digests)
        if may_run:
            back = [each for each in kept if standing.get(each) != (environment, marking)]
            self._store.choose_grades(self._name, environment, marking, back)
        before = self._find_grades({each: standing[each] for each in open_digests if each in standing})
        for submission, notes in submissions:
            digest = submission.sha256
            if digest in kept:
                self._ready.append(Done(_give(kept[digest], submission, notes), Work.KEPT))
            elif digest in self._waiting:
                self._waiting[digest].submissions.append((submission, notes))
            else:
                work = Work.MARKED if TOGETHER in runs.get(digest, {}) else Work.RUN
                self._waiting[digest] = _Waiting([(submission, notes)], work, before.get(digest))
                yield _Task(submission, runs.get(digest, {}), may_run)

    def _find_grades(self, standing: Mapping[str, tuple[str, str]]) -> dict[str, Grade]:
        """Grades by digest, each under its own environment and marking."""
        found: dict[str, Grade] = {}
        for environment, marking in set(standing.values()):
            digests = [each for each, under in standing.items() if under == (environment, marking)]
            found |= self._store.find_grades(self._name, environment, marking, digests)
        return found

    def _finish(self, digest: str, reply: _Reply | None, *, save: bool) -> Iterator[Done]:
        """What a worker gave back, for everybody who handed these bytes in."""
        waiting = self._waiting.pop(digest)
        if reply is None:
            first = waiting.submissions[0][0]
            lost = Grade(first.student, first.path, digest, "ungraded", reason=_LOST)
            reply = _Reply(lost, {}, (), settled=False)
        if save:
            marking = self.marking.digest if reply.settled else UNFINISHED
            self._unsaved.append(
                Result(self._name, digest, self.environment.digest, marking, reply.grade, reply.runs)
            )  # fmt: skip
            if len(self._unsaved) >= _MOST_UNSAVED or time.monotonic() - self._saved_at > _UNSAVED_SECONDS:
                self._save()
        for submission, notes in waiting.submissions:
            yield Done(_give(reply.grade, submission, notes), waiting.work, waiting.before, reply.wanted)

    def _refuse(self, submission: Submission, notes: tuple[str, ...], reason: str) -> None:
        grade = Grade(submission.student, submission.path, "", "ungraded", reason=reason)
        self._unsaved.append(Result(self._name, submission.sha256, self.environment.digest, self.marking.digest, grade))
        self._ready.append(Done(add_notes(grade, notes), Work.KEPT))

    def _save(self) -> None:
        unsaved, self._unsaved = self._unsaved, []
        if unsaved:
            self._store.save_results(unsaved)
        self._saved_at = time.monotonic()


def _work_on_task(grader: Grader, task: _Task) -> _Reply:
    """Runs in a worker."""
    runs = {name: unpack_execution(data) for name, data in task.runs.items()}
    graded = grader.grade_order(Order(task.submission, runs, task.may_run))
    made = {name: (pack_execution(each), each.cpu_seconds) for name, each in graded.runs.items()}
    return _Reply(graded.grade, made, graded.wanted, graded.settled)


def _build_received(assignment: str, submission: Submission, source: Source) -> Received:
    return Received(
        assignment=assignment,
        student=submission.student,
        sha256=submission.sha256,
        data=submission.data,
        path=submission.path,
        notes=source.notes,
    )


def _give(grade: Grade, submission: Submission, notes: Sequence[str]) -> Grade:
    """The grade of these bytes as that of one student's submission."""
    own = msgspec.structs.replace(grade, student=submission.student, path=submission.path, sha256=submission.sha256)
    return add_notes(own, notes)


def _cut(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk
