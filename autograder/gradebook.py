"""A whole class: what is stored, what has to be done, and who got what.

The parent process is the only one that reads and writes the store. Workers get a submission with the runs that are
stored of it, and give back a grade with the runs that they made.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from autograder.batch import Workers, run_all
from autograder.course import Course
from autograder.errors import NotebookError, StoreError
from autograder.fingerprint import describe_environment, describe_marking
from autograder.grading import Grader, Order
from autograder.intake.layouts import Source, find_submissions, read_submission
from autograder.records import Grade, Submission
from autograder.runs import TOGETHER
from autograder.store.packing import pack_execution, unpack_bytes, unpack_execution
from autograder.store.records import Received, Result, StoredSubmission

if TYPE_CHECKING:
    from autograder.store.database import Store

Item = TypeVar("Item")
Look = Callable[[str, str, str, list[str]], dict[str, Grade]]
"""Assignment, environment, marking and digests -> grades."""

_LOST = "the grader's own process ended twice while it worked on this file; please report it"
_CHUNK = 200
"""Submissions that are looked up together."""
_CHUNK_BYTES = 64 * 2**20
"""Of their files, which are all in memory then; one more may come on top."""
_RUNS_TOGETHER = 32
_RUNS_BYTES = 64 * 2**20
"""Submissions whose stored runs are read together, to wait in memory for a worker; one more may come on top."""
_SMALL_BYTES = 2**17
"""Of the stored runs of a submission that is marked in a millisecond or two."""
_MOST_UNSAVED, _UNSAVED_SECONDS = 25, 0.5
"""Submissions that ran, and the time: what a loss of power may cost beside what is in flight."""
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


class Entry(msgspec.Struct, frozen=True):
    """One submission of the class, without its bytes."""

    student: str
    path: str
    key: str
    """The SHA-256 of its bytes; what stands for it where they could not be read."""
    notes: tuple[str, ...] = ()
    received: datetime | None = None
    late: bool | None = None
    lms_id: str = ""


class Done(msgspec.Struct, frozen=True):
    """What a submission got and what was done for it."""

    entry: Entry
    grade: Grade
    work: Work
    before: Grade | None = None
    """What it had got before, where it was marked again; without words."""
    wanted: tuple[str, ...] = ()
    """Exercises that want a run alone, which was not allowed."""
    ran_alone: int = 0
    """Exercises that were run alone now."""


class _Task(msgspec.Struct, frozen=True):
    """What a worker gets. Runs are packed, since most of them travel between processes.

    packed: the submission's bytes as the store has them, where it comes without; seldom needed.
    """

    submission: Submission
    packed: bytes
    runs: dict[str, bytes]
    may_run: bool


class _Reply(msgspec.Struct, frozen=True):
    grade: Grade
    runs: dict[str, tuple[bytes, float]]
    wanted: tuple[str, ...]
    settled: bool


class _Waiting(msgspec.Struct):
    """Who handed in the bytes that a worker has, and what they got before."""

    entries: list[Entry]
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
        workers: Workers | None = None,
    ) -> None:
        self._course = course
        self._name = assignment
        self._store = store
        self._jobs = jobs
        self._scheduler = scheduler
        self._report = report
        self._workers = workers
        self.environment = describe_environment(course, assignment)
        self.marking = describe_marking(course, assignment)
        self._ready: list[Done] = []
        self._waiting: dict[str, _Waiting] = {}
        self._unsaved: list[Result] = []
        self._ran = 0
        self._saved_at = time.monotonic()

    def grade(self, sources: Iterable[Source], *, force: bool = False) -> Generator[Done, None, None]:
        """Run what has not been run like this, mark what has not been marked like this; each source once.

        force: run and mark everything again.
        """
        self._store.save_environment(self.environment.digest, self.environment.description)
        self._store.save_marking(self.marking.digest, self.marking.description)
        self._store.save_marking(UNFINISHED, {})
        yield from self._work(self._receive(sources, force=force), save=True, eager=True)

    def regrade(self, *, dry_run: bool = False) -> Generator[Done, None, None]:
        """Mark the stored answers of every submission that counts, as far as this marking has not seen them.

        Student code runs for an exercise alone that newly loses marks, and not at all with `dry_run`, which
        stores nothing either. Submissions that were not run in this environment are left out.
        """
        if not dry_run:
            self._store.save_environment(self.environment.digest, self.environment.description)
            self._store.save_marking(self.marking.digest, self.marking.description)
            self._store.save_marking(UNFINISHED, {})
        yield from self._work(self._recall(may_run=not dry_run), save=not dry_run)

    def _work(self, tasks: Iterator[_Task], *, save: bool, eager: bool = False) -> Iterator[Done]:
        results = run_all(
            self._course,
            self._name,
            _work_on_task,
            tasks,
            self._jobs,
            self._scheduler,
            self._report,
            eager,
            self._workers,
            _is_small,
        )
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
        for chunk in _read_chunks(sources):
            received: list[Received] = []
            readable: list[tuple[Entry, bytes]] = []
            faults: list[tuple[Entry, str]] = []
            for source, read in chunk:
                if isinstance(read, Submission):
                    data, key = read.data, read.sha256
                    readable.append((_build_entry(source, key), data))
                else:
                    data, key = b"", _UNREADABLE + hashlib.sha256(f"{source.shown}\0{read}".encode()).hexdigest()[:53]
                    faults.append((_build_entry(source, key), read))
                received.append(_build_received(self._name, source, key, data))
            self._store.save_submissions(received, rewrite=force)
            for entry, reason in faults:
                self._refuse(entry, reason)
            yield from self._plan(readable, force=force, may_run=True)

    def _recall(self, *, may_run: bool) -> Iterator[_Task]:
        """Everything that counts and has been run in this environment."""
        executed = self._store.find_executed(self._name, self.environment.digest)
        current = [
            each for each in self._store.list_submissions(self._name) if TOGETHER in executed.get(each.sha256, ())
        ]
        for chunk in _cut(current, _CHUNK):
            yield from self._plan([(build_stored_entry(each), None) for each in chunk], force=False, may_run=may_run)

    def count_unexecuted(self) -> int:
        """Submissions that count and are still to be run in this environment; `regrade` leaves them out."""
        executed = self._store.find_executed(self._name, self.environment.digest)
        keys = [each.sha256 for each in self._store.list_submissions(self._name)]
        lacking = [key for key in keys if TOGETHER not in executed.get(key, ()) and not key.startswith(_UNREADABLE)]
        standing = self._store.find_standing(self._name, lacking)
        # What has a result without a run is no notebook, and nothing would be run.
        done = {
            key
            for key, (environment, marking) in standing.items()
            if environment == self.environment.digest and marking != UNFINISHED
        }
        return sum(key not in done for key in lacking)

    def _plan(
        self, submissions: Sequence[tuple[Entry, bytes | None]], *, force: bool, may_run: bool
    ) -> Iterator[_Task]:
        """Tasks for what is to be done; what is there already becomes ready. Where no bytes are given, stored ones."""
        self._save()  # so that bytes that were handed in twice are found
        keys = list(dict.fromkeys(entry.key for entry, _ in submissions))
        environment, marking = self.environment.digest, self.marking.digest
        kept = {} if force else self._store.find_grades(self._name, environment, marking, keys)
        missing = [each for each in keys if each not in kept]
        standing = self._store.find_standing(self._name, keys)
        back = [each for each in kept if standing.get(each) != (environment, marking)]
        if back and may_run:
            self._store.choose_grades(self._name, environment, marking, back)
        before = self._find(
            {each: standing[each] for each in (*missing, *back) if each in standing}, self._store.find_points
        )
        wanted: list[tuple[Entry, bytes | None]] = []
        for entry, data in submissions:
            if entry.key in kept:
                self._ready.append(_build_kept(entry, kept[entry.key], before.get(entry.key)))
            elif entry.key in self._waiting:
                self._waiting[entry.key].entries.append(entry)
            else:
                self._waiting[entry.key] = _Waiting([entry], Work.RUN, before.get(entry.key))
                wanted.append((entry, data))
        sizes = Counter({} if force else self._store.measure_executions(self._name, environment, missing))
        sizes.update(self._store.measure_contents(entry.key for entry, data in wanted if data is None))
        for few in _cut(wanted, _RUNS_TOGETHER, _RUNS_BYTES, lambda each: sizes[each[0].key]):
            keys = [entry.key for entry, _ in few]
            runs = {} if force else self._store.find_executions(self._name, environment, keys)
            contents = self._store.find_contents(entry.key for entry, data in few if data is None)
            for entry, data in few:
                if data is None and entry.key not in contents:
                    del self._waiting[entry.key]
                    continue
                stored, packed = runs.pop(entry.key, {}), contents.get(entry.key, b"")
                if TOGETHER in stored:
                    self._waiting[entry.key].work = Work.MARKED
                yield _Task(Submission(entry.student, entry.path, data or b"", entry.key), packed, stored, may_run)

    def _find(self, standing: Mapping[str, tuple[str, str]], look: Look) -> dict[str, Grade]:
        """Grades by digest, each under its own environment and marking."""
        found: dict[str, Grade] = {}
        for under in set(standing.values()):
            found |= look(self._name, *under, [each for each, own in standing.items() if own == under])
        return found

    def _finish(self, key: str, reply: _Reply | None, *, save: bool) -> Iterator[Done]:
        """What a worker gave back, for everybody who handed these bytes in."""
        waiting = self._waiting.pop(key)
        if reply is None:
            reply = _Reply(Grade("", "", key, "ungraded", reason=_LOST), {}, (), settled=False)
        if save:
            marking = self.marking.digest if reply.settled else UNFINISHED
            self._unsaved.append(Result(self._name, key, self.environment.digest, marking, reply.grade, reply.runs))
            self._ran += bool(reply.runs)
            if self._ran >= _MOST_UNSAVED or time.monotonic() - self._saved_at > _UNSAVED_SECONDS:
                self._save()
        for entry in waiting.entries:
            ran_alone = sum(each != TOGETHER for each in reply.runs)
            yield Done(entry, _give(reply.grade, entry), waiting.work, waiting.before, reply.wanted, ran_alone)

    def _refuse(self, entry: Entry, reason: str) -> None:
        """A file that cannot be read has its result at once."""
        grade = Grade("", "", entry.key, "ungraded", reason=reason)
        self._unsaved.append(Result(self._name, entry.key, self.environment.digest, self.marking.digest, grade))
        self._ready.append(Done(entry, _give(grade, entry), Work.KEPT))

    def read_grades(self, entries: Iterable[Entry]) -> Iterator[Grade]:
        """The grade of each that counts, in their order; ungraded with a reason where it was never graded."""
        for chunk in _cut(entries, _CHUNK):
            found = self._find(
                self._store.find_standing(self._name, {entry.key for entry in chunk}), self._store.find_grades
            )
            never = Grade("", "", "", "ungraded", reason="it has not been graded yet; run autograder grade")
            yield from (_give(found.get(entry.key, never), entry) for entry in chunk)

    def _save(self) -> None:
        unsaved, self._unsaved, self._ran = self._unsaved, [], 0
        if unsaved:
            self._store.save_results(unsaved)
        self._saved_at = time.monotonic()


def _work_on_task(grader: Grader, task: _Task) -> _Reply:
    """Runs in a worker."""
    try:
        order = _build_order(task)
    except StoreError as error:
        reason = str(error)
        return _Reply(Grade("", "", task.submission.sha256, "ungraded", reason=reason), {}, (), settled=False)
    graded = grader.grade_order(order)
    made = {
        name: (pack_execution(each, graded.program if name == TOGETHER else None), each.cpu_seconds)
        for name, each in graded.runs.items()
    }
    return _Reply(graded.grade, made, graded.wanted, graded.settled)


def _build_order(task: _Task) -> Order:
    """`StoreError` where what is stored is damaged and nothing else is there to go by."""
    try:
        found = {name: unpack_execution(data) for name, data in task.runs.items()}
    except StoreError:
        if not task.may_run:
            raise
        found = {}  # what is damaged is run again
    runs = {name: execution for name, (execution, _) in found.items()}
    program = found[TOGETHER][1] if TOGETHER in found else None
    submission = task.submission
    if program is None and task.packed:
        submission = msgspec.structs.replace(submission, data=unpack_bytes(task.packed))
    return Order(submission, runs, task.may_run, program)


def _build_kept(entry: Entry, grade: Grade, before: Grade | None) -> Done:
    """Nothing was to be done. Many of these wait together, so that words that nobody compares are left out."""
    slim = grade if before else msgspec.structs.replace(grade, exercises=())
    return Done(entry, _give(slim, entry), Work.KEPT, before)


def _build_entry(source: Source, key: str) -> Entry:
    return Entry(source.student, source.shown, key, source.notes, source.received, source.late, source.id)


def build_stored_entry(stored: StoredSubmission) -> Entry:
    """A stored submission as an entry."""
    return Entry(stored.student, stored.path, stored.sha256, stored.notes, stored.received, stored.late, stored.lms_id)


def _build_received(assignment: str, source: Source, key: str, data: bytes) -> Received:
    return Received(
        assignment=assignment,
        student=source.student,
        sha256=key,
        data=data,
        path=source.shown,
        attempt=source.attempt,
        received=source.received,
        late=source.late,
        lms_id=source.id,
        lms=source.lms,
        notes=source.notes,
    )


def _give(grade: Grade, entry: Entry) -> Grade:
    """The grade of these bytes as that of one student's submission."""
    digest = "" if entry.key.startswith(_UNREADABLE) else entry.key
    own = msgspec.structs.replace(grade, student=entry.student, path=entry.path, sha256=digest)
    return add_notes(own, entry.notes)


def _read_chunks(sources: Iterable[Source]) -> Iterator[list[tuple[Source, Submission | str]]]:
    """Sources with what was read, or why not; as many together as memory is meant for."""
    read = ((source, _read(source)) for source in sources)
    return _cut(read, _CHUNK, _CHUNK_BYTES, lambda each: len(each[1].data) if isinstance(each[1], Submission) else 0)


def _read(source: Source) -> Submission | str:
    try:
        return read_submission(source)
    except NotebookError as error:
        return str(error)


def _is_small(task: _Task) -> bool:
    return (
        TOGETHER in task.runs and sum(map(len, (task.submission.data, task.packed, *task.runs.values()))) < _SMALL_BYTES
    )


def _cut(
    items: Iterable[Item], most: int, most_bytes: float = inf, measure: Callable[[Item], int] = lambda _: 0
) -> Iterator[list[Item]]:
    """The items in their order, so many together and no more than so many bytes; one more may come on top."""
    chunk: list[Item] = []
    size = 0
    for item in items:
        chunk.append(item)
        size += measure(item)
        if len(chunk) >= most or size >= most_bytes:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
