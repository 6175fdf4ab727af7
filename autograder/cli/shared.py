"""What the commands share: options, and where things are."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autograder.errors import UsageError
from autograder.sandbox.modes import VARIABLE, SandboxMode
from autograder.temporary import make_temporary

if TYPE_CHECKING:
    from rich.console import Console

    from autograder.course import Course
    from autograder.finals import Finals
    from autograder.store.database import Store

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
AssignmentOption = Annotated[
    str | None,
    typer.Option("--assignment", "-a", metavar="ID", help="The assignment; needed when the course has several."),
]
JobsOption = Annotated[
    int, typer.Option("--jobs", "-j", metavar="N", min=0, help="Worker processes; 0: one for each core.")
]
SchedulerOption = Annotated[
    str,
    typer.Option("--scheduler", metavar="URL", help="Let a Dask cluster do it: the address, such as tcp://host:8786."),
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="FILE|URL",
        envvar="AUTOGRADER_STORE",
        help="Where results are kept: a file, or postgresql://user@host/database. "
        "Default: .autograder/grades.sqlite in the course's folder.",
    ),
]


def _carry_mode(mode: SandboxMode) -> SandboxMode:
    """To all that runs student code, workers included."""
    os.environ[VARIABLE] = mode
    return mode


SandboxOption = Annotated[
    SandboxMode,
    typer.Option(
        "--sandbox", envvar=VARIABLE, callback=_carry_mode, help="How student code is kept apart; see docs/sandbox.md."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


def choose_assignment(folder: Path | None, assignment: str | None) -> "tuple[Course, str]":
    """The course, and the assignment that is meant."""
    from autograder.course import find_course_folder, load_course

    course = load_course(folder or find_course_folder(Path.cwd()))
    if assignment is None:
        if len(course.assignments) > 1:
            raise UsageError(f"the course has several assignments; name one with -a: {', '.join(course.assignments)}")
        assignment = next(iter(course.assignments))
    course.assignment(assignment)
    return course, assignment


@contextmanager
def open_results(course: "Course", place: str | None, *, create: bool = True, keep: bool = True) -> "Iterator[Store]":
    """The course's store; without `keep` one that is gone afterwards."""
    from autograder.store.database import open_store
    from autograder.store.place import default_place

    with ExitStack() as stack:
        if not keep:
            place = str(stack.enter_context(make_temporary("autograder-store-")) / "grades.sqlite")
        yield stack.enter_context(open_store(place or default_place(course.folder), create=create))


def build_finals(course: "Course", name: str, store: "Store") -> "Finals":
    """What computes the grades that count, with all that people decided and the roster."""
    from autograder.decisions import find_maxima
    from autograder.finals import Finals
    from autograder.roster import read_roster

    graded = store.find_graded(name)
    numbers = {each.student: each.lms_id for each in store.list_submissions(name) if each.lms_id}
    maxima = find_maxima([graded] if graded else [])
    return Finals(course, name, store.list_decisions(name), read_roster(course), maxima, numbers)


def build_console() -> "Console":
    """For tables on standard output."""
    from rich.console import Console

    # A log has no width; the default of 80 would break every row.
    return Console(width=None if sys.stdout.isatty() else 140, highlight=False, soft_wrap=not sys.stdout.isatty())


def warn(text: str) -> None:
    """Tell something beside the result."""
    print(f"autograder: {text}", file=sys.stderr)


def keep_stdout() -> int:
    """Keep standard output for a document alone: what a hidden test or a reference prints goes to standard error."""
    kept = os.dup(1)
    os.dup2(2, 1)
    return kept


def check_writable(file: Path) -> None:
    """`UsageError` before hours of work when a file cannot be written afterwards."""
    if not os.access(file if file.exists() else file.absolute().parent, os.W_OK):
        raise UsageError(f"{file}: cannot be written")


def list_others(course: "Course", name: str) -> list[str]:
    """The course's other assignments."""
    return [each for each in course.assignments if each != name]
