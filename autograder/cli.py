"""The command line: parse, call one function, print. Heavy imports only where they are used."""

import os
import sys
import time
import traceback
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from autograder.errors import AutograderError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from autograder.course import Course
    from autograder.records import Grade, Skipped

DISTRIBUTION = "autograder-numpy"

_INTERRUPTED = 130
"""What typer makes of Ctrl-C, as shells do."""
_OUR_FAULT = 70
"""EX_SOFTWARE: 0, 1 and 2 have meanings of their own."""

app = typer.Typer(
    name="autograder",
    help="Grade NumPy notebooks: hidden tests and answers stay apart from student code.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

CourseOption = Annotated[
    Path | None,
    typer.Option("--course", metavar="DIR", help="The course's folder; else the nearest course.toml above."),
]


class Attempt(StrEnum):
    """Which of a student's attempts counts."""

    LAST = "last"
    FIRST = "first"


def main() -> NoReturn:
    """Entry point. Errors are caught here, once: one sentence, no traceback. 2: usage or course files are wrong."""
    try:
        # Out of standalone mode, what a command raises as typer.Exit comes back as a value.
        status = app(standalone_mode=False)
    except AutograderError as error:
        _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        status = _INTERRUPTED
    except Exception as error:
        if hasattr(error, "format_message"):
            _fail(error.format_message())
        traceback.print_exc()
        print(
            "autograder: this is a fault of the autograder; no mark was given by it. Please report it.", file=sys.stderr
        )
        raise SystemExit(_OUR_FAULT) from None
    if status == _INTERRUPTED:
        print("stopped", file=sys.stderr)
    raise SystemExit(status if isinstance(status, int) else 0)


def _fail(text: str) -> NoReturn:
    print(f"autograder: {text}", file=sys.stderr)
    raise SystemExit(2)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"autograder {metadata.version(DISTRIBUTION)}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    pass


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
    assignment: Annotated[
        str | None,
        typer.Option("--assignment", "-a", metavar="ID", help="The assignment; needed when the course has several."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Write the scores to a CSV file as well.")
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", metavar="N", min=0, help="Worker processes; 0: one for each core.")
    ] = 0,
    attempt: Annotated[
        Attempt, typer.Option("--attempt", help="Which of a student's attempts counts, where the LMS keeps several.")
    ] = Attempt.LAST,
    details: Annotated[
        bool, typer.Option("--details", "-d", help="Also print what each submission lost and why.")
    ] = False,
    course: CourseOption = None,
) -> None:
    """Grade submissions. Exit status: 0 all graded, 1 some could not be, 2 usage or course files wrong."""
    from autograder.intake.layouts import find_submissions
    from autograder.report.documents import build_csv, build_document

    loaded, name = _choose_assignment(course, assignment)
    others, zone = [each for each in loaded.assignments if each != name], loaded.zone(name)
    sources, skipped = find_submissions(
        paths or _default_paths(loaded), name, choose=attempt.value, others=others, zone=zone
    )
    if not sources:
        _refuse_nothing(skipped)
    if csv is not None and not os.access(csv if csv.exists() else csv.absolute().parent, os.W_OK):
        raise UsageError(f"{csv}: cannot be written")
    output = _keep_stdout() if json else None
    console = _build_console()
    began = time.monotonic()
    grades = _grade_with_progress(loaded, name, sources, jobs)
    seconds = time.monotonic() - began
    if csv is not None:
        _write_text(csv, build_csv(loaded.assignment(name), grades))
    if output is not None:
        with os.fdopen(output, "wb") as file:
            file.write(build_document(loaded.id, name, grades, skipped))
    else:
        _print_grades(console, loaded, name, grades, skipped, seconds, details=details)
    raise typer.Exit(0 if all(each.status == "graded" for each in grades) else 1)


def _refuse_nothing(skipped: "list[Skipped]") -> NoReturn:
    """Nothing to grade is an error, and says what was found instead."""
    found = "; ".join(f"{each.path}: {each.reason}" for each in skipped[:5])
    raise UsageError(f"no submission was found there{f' ({found})' if found else ''}")


def _keep_stdout() -> int:
    """Keep standard output for the document alone: what a hidden test or a reference prints goes to standard error."""
    kept = os.dup(1)
    os.dup2(2, 1)
    return kept


def _choose_assignment(folder: Path | None, assignment: str | None) -> "tuple[Course, str]":
    from autograder.course import find_course_folder, load_course

    course = load_course(folder or find_course_folder(Path.cwd()))
    if assignment is None:
        if len(course.assignments) > 1:
            raise UsageError(f"the course has several assignments; name one with -a: {', '.join(course.assignments)}")
        assignment = next(iter(course.assignments))
    course.assignment(assignment)
    return course, assignment


def _default_paths(course: "Course") -> list[Path]:
    folder = course.folder / "submitted"
    if not folder.is_dir():
        raise UsageError("nothing to grade; name notebooks or folders, or put them into the course's folder submitted/")
    return [folder]


def _build_console() -> "Console":
    from rich.console import Console

    # A log has no width; the default of 80 would break every row.
    return Console(width=None if sys.stdout.isatty() else 140, highlight=False, soft_wrap=not sys.stdout.isatty())


def _grade_with_progress(course: "Course", name: str, sources: list, jobs: int) -> "list[Grade]":  # type: ignore[type-arg]
    from rich.console import Console
    from rich.progress import Progress

    from autograder.gradebook import grade_all

    order = {(source.student, source.shown): number for number, source in enumerate(sources)}
    results = grade_all(course, name, sources, jobs)
    # The first worker starts before the bar's thread does.
    grades = [first] if (first := next(results, None)) is not None else []
    with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as progress:
        bar = progress.add_task(f"Grading {name}", total=len(sources), completed=len(grades))
        for each in results:
            grades.append(each)
            progress.advance(bar)
    return sorted(grades, key=lambda each: order[each.student, each.path])


def _print_grades(
    console: "Console",
    course: "Course",
    name: str,
    grades: "list[Grade]",
    skipped: "list[Skipped]",
    seconds: float,
    *,
    details: bool,
) -> None:
    from autograder.report.table import build_details, build_reasons, build_summary, build_table

    assignment = course.assignment(name)
    console.print(build_table(f"{course.title}: {assignment.title}", assignment, grades))
    console.print(build_summary(grades, skipped, seconds))
    console.print(build_reasons(grades))
    if details:
        console.print(build_details(grades))


def _write_text(file: Path, text: str) -> None:
    try:
        temporary = file.with_name(f".{file.name}.new")
        temporary.write_text(text, encoding="utf-8", newline="")
        temporary.replace(file)
    except OSError as error:
        raise UsageError(f"{file}: cannot be written ({error.strerror})") from error


@app.command()
def validate(
    assignments: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Assignments; else all.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", metavar="N", min=0, help="Worker processes; 0: one for each core.")
    ] = 0,
    course: CourseOption = None,
) -> None:
    """Prove that the hidden tests mark as they must. Exit status 1 when something does not hold."""
    import msgspec

    from autograder.course import find_course_folder, load_course
    from autograder.report.validation import build_findings, build_tables
    from autograder.validation.validate import build_document, validate_assignment

    loaded = load_course(course or find_course_folder(Path.cwd()))
    console = _build_console()
    validations = []
    names = assignments or list(loaded.assignments)
    for name in names:
        loaded.assignment(name)
    for name in names:
        validation = validate_assignment(loaded, name, jobs)
        validations.append(validation)
        if not json:
            console.print(build_tables(validation))
            console.print(build_findings(validation))
    if json:
        document = [build_document(each) for each in validations]
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")
    raise typer.Exit(0 if all(each.ok for each in validations) else 1)


@app.command()
def release(
    assignment: Annotated[str, typer.Argument(metavar="ID", help="The assignment.")],
    check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing; fail when the released notebook is not what the source builds."),
    ] = False,
    course: CourseOption = None,
) -> None:
    """Build the student notebook from the source notebook, and check that it gives nothing away."""
    from autograder.release.publish import find_difference, release_assignment

    loaded, name = _choose_assignment(course, assignment)
    if not check:
        print(f"written: {release_assignment(loaded, name)}")
        return
    difference = find_difference(loaded, name)
    if difference is not None:
        print(f"autograder: {difference}", file=sys.stderr)
        raise typer.Exit(1)
    print(f"up to date: {loaded.released_notebook(name)}")


@app.command()
def doctor() -> None:
    """Say what this machine can do, and what to do about what it cannot. Exit status 1 when it cannot grade."""
    from rich.text import Text

    from autograder.doctor import can_grade, examine_machine

    console = _build_console()
    findings = examine_machine()
    for finding in findings:
        sign, style = {True: ("ok   ", "green"), False: ("NO   ", "bold red"), None: ("note ", "yellow")}[finding.ok]
        console.print(Text(sign, style=style) + Text(f"{finding.name}: {finding.found}"))
        if finding.advice:
            console.print(Text("     " + finding.advice.replace("\n", "\n     ")))
    raise typer.Exit(0 if can_grade(findings) else 1)


if __name__ == "__main__":
    main()
