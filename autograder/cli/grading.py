"""Commands that grade: run and mark what is new, or mark what is stored again."""

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import msgspec
import typer

from autograder.cli.shared import (
    AssignmentOption,
    CourseOption,
    JobsOption,
    JsonOption,
    SandboxOption,
    SchedulerOption,
    StoreOption,
    app,
    build_console,
    build_finals,
    check_writable,
    choose_assignment,
    keep_stdout,
    list_others,
    open_results,
    warn,
)
from autograder.errors import UsageError
from autograder.sandbox.modes import SandboxMode

if TYPE_CHECKING:
    from autograder.batch import Workers
    from autograder.course import Course
    from autograder.gradebook import Done, Entry, Gradebook
    from autograder.intake.layouts import Source
    from autograder.records import Skipped
    from autograder.report.documents import Result
    from autograder.store.database import Store

_LOG_SECONDS = 30
"""How often a log without a terminal is told how far it is."""
_BAR_SECONDS = 0.1
_MOST_CHANGES = 30


class Attempt(StrEnum):
    """Which of a student's attempts counts."""

    LAST = "last"
    FIRST = "first"
    BEST = "best"


class Tally(msgspec.Struct):
    """What a run did, gathered while it went on."""

    entries: list["Entry"] = []
    scores: dict[str, float] = {}
    """By path; None of it for what is ungraded."""
    work: Counter[str] = msgspec.field(default_factory=Counter)
    changes: list[tuple[str, str, str, str]] = []
    """Student, what, from, to."""
    changed: int = 0
    run_alone: int = 0
    wanted: list[str] = []
    """Students with an exercise that wants a run alone."""


@app.command()
def grade(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATH]...",
            help="Notebooks, folders, submitted/ trees, or an LMS's download as folder or zip.",
            show_default=False,
        ),
    ] = None,
    assignment: AssignmentOption = None,
    json: JsonOption = False,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Write the scores to a CSV file as well.")
    ] = None,
    jobs: JobsOption = 0,
    attempt: Annotated[
        Attempt, typer.Option("--attempt", help="Which of a student's attempts counts, where the LMS keeps several.")
    ] = Attempt.LAST,
    details: Annotated[
        bool, typer.Option("--details", "-d", help="Also print what each submission lost and why.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Run and mark again what was graded before.")] = False,
    scheduler: SchedulerOption = "",
    store: StoreOption = None,
    no_store: Annotated[bool, typer.Option("--no-store", help="Keep no results, and use none that are kept.")] = False,
    sandbox: SandboxOption = SandboxMode.AUTO,
    course: CourseOption = None,
) -> None:
    """Grade submissions: run what is new, mark what is new or has new tests, and show everything.

    Exit status: 0 all graded, 1 some could not be, 2 usage or course files wrong.
    """
    from autograder.batch import Workers, count_jobs
    from autograder.gradebook import Gradebook
    from autograder.intake.layouts import find_attempts, take_attempts

    loaded, name = choose_assignment(course, assignment)
    given = paths or _default_paths(loaded)
    found, skipped = find_attempts(given, name, list_others(loaded, name), loaded.zone(name))
    sources, skipped = take_attempts(found, skipped, attempt.value)
    if not sources:
        _refuse_nothing(skipped)
    if csv is not None:
        check_writable(csv)
    output = keep_stdout() if json else None
    began = time.monotonic()
    with (
        Workers(count_jobs(jobs, len(sources))) as workers,
        _open_beside(workers, loaded, name, store, local=not scheduler, keep=not no_store) as results,
        results.exclusive(f"autograder grade, assignment {name}"),
    ):
        if sandbox is SandboxMode.USER:
            _check_files(loaded, name, given, sources, results, store)
        sources = _keep_names(sources, results, name)
        book = Gradebook(loaded, name, results, jobs=jobs, scheduler=scheduler, report=warn, workers=workers)
        # Closed before the store is, however this ends: what was graded and is not saved yet is saved then.
        with closing(book.grade(sources, force=force)) as done:
            tally = _follow(done, len(sources), f"Grading {name}")
        entries = _sort_entries(tally, sources)
        if attempt is Attempt.BEST:
            entries, skipped = _keep_best(entries, tally, skipped, results, name)
        publish = _Publisher(loaded, name, book, results, entries)
        if csv is not None:
            publish.write_csv(csv)
        if output is not None:
            publish.write_json(output, skipped)
            ungraded = publish.ungraded
        else:
            ungraded = publish.print_overview(skipped, tally, time.monotonic() - began, details=details)
            _print_changes(tally)
    raise typer.Exit(1 if ungraded else 0)


@app.command()
def regrade(
    assignment: AssignmentOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would change, store nothing and run nothing.")
    ] = False,
    json: JsonOption = False,
    jobs: JobsOption = 0,
    scheduler: SchedulerOption = "",
    store: StoreOption = None,
    sandbox: SandboxOption = SandboxMode.AUTO,
    course: CourseOption = None,
) -> None:
    """Mark the stored answers again after a change of tests, points or catalogue, and say whose marks change.

    Student code does not run, but for an exercise alone that newly loses marks. Points given by hand stay.
    """
    from autograder.batch import Workers, count_jobs
    from autograder.gradebook import Gradebook

    loaded, name = choose_assignment(course, assignment)
    output = keep_stdout() if json else None
    began = time.monotonic()
    with (
        Workers(count_jobs(jobs)) as workers,
        _open_beside(workers, loaded, name, store, local=not scheduler, create=False) as results,
        results.exclusive(f"autograder regrade, assignment {name}"),
    ):
        if sandbox is SandboxMode.USER:
            _check_files(loaded, name, [], [], results, store)
        book = Gradebook(loaded, name, results, jobs=jobs, scheduler=scheduler, report=warn, workers=workers)
        left_out = book.count_unexecuted()
        size = len(results.list_submissions(name)) - left_out
        with closing(book.regrade(dry_run=dry_run)) as done:
            tally = _follow(done, size, f"Marking {name} again")
    if output is not None:
        _write_changes(output, tally, left_out, dry_run=dry_run)
        return
    print(
        f"{'would be ' if dry_run else ''}marked again: {tally.work['marked']}, had been marked like this before: "
        f"{tally.work['kept']}, changed exercises: {tally.changed}, in {time.monotonic() - began:.1f} s"
    )
    _print_changes(tally)
    if tally.run_alone:
        print(f"{tally.run_alone} exercises that newly lost marks were run alone first; the better result counts.")
    if tally.wanted:
        print(
            f"{len(tally.wanted)} submissions newly lose marks that a run of the exercise alone might save; "
            f"such a run is made without --dry-run: {', '.join(tally.wanted[:10])}"
        )
    if left_out:
        print(f"{left_out} submissions were not run in this environment and are left out; autograder grade runs them.")


def _open_beside(
    workers: "Workers",
    course: "Course",
    name: str,
    store: str | None,
    *,
    local: bool,
    keep: bool = True,
    create: bool = True,
) -> "AbstractContextManager[Store]":
    """The store; the workers get ready meanwhile where there will be work for them.

    They run all where there was no store, and mark what is in one that must be there.
    """
    from autograder.store.place import default_place, may_exist

    is_there = keep and may_exist(store or default_place(course.folder))
    if local and is_there is not create:
        workers.get_ready(course, name, eager=create)
    return open_results(course, store, keep=keep, create=create)


def _default_paths(course: "Course") -> list[Path]:
    folder = course.folder / "submitted"
    if not folder.is_dir():
        raise UsageError("nothing to grade; name notebooks or folders, or put them into the course's folder submitted/")
    return [folder]


def _refuse_nothing(skipped: "Sequence[Skipped]") -> NoReturn:
    """Nothing to grade is an error, and says what was found instead."""
    found = "; ".join(f"{each.path}: {each.reason}" for each in skipped[:5])
    raise UsageError(f"no submission was found there{f' ({found})' if found else ''}")


def _check_files(
    course: "Course", name: str, given: Sequence[Path], sources: "Sequence[Source]", results: "Store", store: str | None
) -> None:
    """What mode `user` wants to be closed to others is closed."""
    from autograder.sandbox.access import check_files

    stored = [
        each.path
        for each_name in course.assignments
        for each in results.list_submissions(each_name, current_only=False)
    ]
    check_files(given, [source.path for source in sources], stored, store, course.assignment(name).preload)


def _keep_names(sources: "Sequence[Source]", store: "Store", name: str) -> "list[Source]":
    """Names as the store knows them; tells of points by hand whose student cannot be found any more."""
    from autograder.naming import adopt_names, find_orphans

    named = adopt_names(sources, store.list_submissions(name))
    decided = dict.fromkeys(decision.student for decision in store.list_decisions(name))
    for student in find_orphans(named, decided):
        warn(
            f"there are points by hand for {student}, and several students of that name now; none of them gets these "
            f"points: give them again with autograder mark, under the name in the table"
        )
    return named


def _follow(results: "Iterator[Done]", size: int, title: str) -> Tally:
    """Let it happen, show how far it is, and gather what came of it."""
    from rich.console import Console
    from rich.progress import Progress

    from autograder.changes import list_changes

    tally = Tally()

    def take(done: "Done") -> None:
        tally.entries.append(done.entry)
        tally.work[done.work.value] += 1
        if done.grade.score is not None:
            tally.scores[done.entry.path] = done.grade.score
        changes = list_changes(done.before, done.grade) if done.before else []
        tally.changed += bool(changes)
        tally.changes += [(done.entry.student, *change) for change in changes]
        if done.work.value == "marked":
            tally.run_alone += done.ran_alone
        if done.wanted:
            tally.wanted.append(done.entry.student)

    on_terminal = sys.stderr.isatty()
    told = time.monotonic()
    # Without a thread of its own: workers are forked from this process.
    with Progress(
        console=Console(stderr=True), disable=not on_terminal, transient=True, auto_refresh=False
    ) as progress:
        bar = progress.add_task(title, total=size)
        for done in results:
            take(done)
            progress.advance(bar)
            now = time.monotonic()
            if now - told < (_BAR_SECONDS if on_terminal else _LOG_SECONDS):
                continue
            told = now
            if on_terminal:
                progress.refresh()
            else:
                print(f"{title}: {len(tally.entries)} of {size}", file=sys.stderr)
    # They ended in any order; two runs are to say the same.
    tally.changes.sort(key=lambda each: each[0])
    tally.wanted.sort()
    return tally


def _sort_entries(tally: Tally, sources: "Sequence[Source]") -> "list[Entry]":
    order = {(source.student, source.shown): number for number, source in enumerate(sources)}
    return sorted(tally.entries, key=lambda each: order[each.student, each.path])


def _keep_best(
    entries: "list[Entry]", tally: Tally, skipped: "list[Skipped]", store: "Store", name: str
) -> "tuple[list[Entry], list[Skipped]]":
    """Of each student the attempt with the most points; of equal ones the last."""
    from autograder.records import Skipped

    best: dict[str, Entry] = {}
    for entry in entries:
        held = best.get(entry.student)
        if held is None or tally.scores.get(entry.path, -1) >= tally.scores.get(held.path, -1):
            best[entry.student] = entry
    store.choose_submissions(name, {student: entry.key for student, entry in best.items()})
    kept = [entry for entry in entries if best[entry.student] is entry]
    reason = "another attempt of this student; the best one counts"
    rest = [Skipped(entry.path, reason) for entry in entries if best[entry.student] is not entry]
    return kept, [*skipped, *rest]


class _Publisher:
    """Reads results back from the store, one at a time, and writes them where they are wanted."""

    def __init__(
        self, course: "Course", name: str, book: "Gradebook", store: "Store", entries: "Sequence[Entry]"
    ) -> None:
        self._course = course
        self._name = name
        self._book = book
        self._entries = entries
        self._finals = build_finals(course, name, store)
        self.ungraded = 0

    def _read(self) -> "Iterator[Result]":
        self.ungraded = 0
        for entry, grade in zip(self._entries, self._book.read_grades(self._entries), strict=True):
            final = self._finals.compute(grade, entry)
            self.ungraded += final.status != "graded"
            yield grade, final

    def write_csv(self, file: Path) -> None:
        """Put the file in place at one stroke."""
        from autograder.report.documents import write_csv

        try:
            temporary = file.with_name(f".{file.name}.new")
            with open(temporary, "w", encoding="utf-8", newline="") as target:
                write_csv(target, self._course.assignment(self._name), self._read())
            temporary.replace(file)
        except OSError as error:
            raise UsageError(f"{file}: cannot be written ({error.strerror})") from error

    def write_json(self, output: int, skipped: "Sequence[Skipped]") -> None:
        """Write the document to a descriptor, and close it."""
        from autograder.report.documents import write_document

        with os.fdopen(output, "wb") as file:
            write_document(file, self._course.id, self._name, self._read(), skipped)

    def print_overview(self, skipped: "Sequence[Skipped]", tally: Tally, seconds: float, *, details: bool) -> int:
        """Print the table and what belongs to it; how many are ungraded."""
        from autograder.report.table import Overview

        assignment = self._course.assignment(self._name)
        title = f"{self._course.title}: {assignment.title}"
        overview = Overview(title, assignment, len(self._entries), details=details)
        for grade, final in self._read():
            overview.add(grade, final)
        graded, ungraded = overview.count()
        summary = f"{graded} graded, {ungraded} ungraded, {len(skipped)} skipped in {seconds:.1f} s"
        build_console().print(overview.build(skipped, f"{summary} ({_describe_work(tally)})"))
        return ungraded


def _describe_work(tally: Tally) -> str:
    run, marked, kept = (tally.work[each] for each in ("run", "marked", "kept"))
    if not run and not marked:
        return "nothing to do: all were graded before, in the same way"
    parts = [f"{run} run now"] if run else []
    parts += [f"{marked} marked again"] if marked else []
    parts += [f"{kept} as before"] if kept else []
    return ", ".join(parts)


def _print_changes(tally: Tally) -> None:
    """Whose marks are others than before."""
    if not tally.changes:
        return
    print(f"Changed for {tally.changed} {'student' if tally.changed == 1 else 'students'}:")
    for student, what, old, new in tally.changes[:_MOST_CHANGES]:
        print(f"  {student}: {what} {old} -> {new}")
    if len(tally.changes) > _MOST_CHANGES:
        print("  ... and more; --json lists them")


def _write_changes(output: int, tally: Tally, left_out: int, *, dry_run: bool) -> None:
    document = {
        "dry_run": dry_run,
        "marked": tally.work["marked"],
        "kept": tally.work["kept"],
        "changed": tally.changed,
        "changes": [dict(zip(("student", "what", "from", "to"), each, strict=True)) for each in tally.changes],
        "run_alone": tally.run_alone,
        "wanted": tally.wanted,
        "left_out": left_out,
    }
    from autograder.report.documents import encode_json

    with os.fdopen(output, "wb") as file:
        file.write(encode_json(document) + b"\n")
