"""Commands about people: points by hand, who has handed in what, one student's story, erasing a person."""

import os
import sys
from datetime import UTC, datetime
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autograder.cli.shared import (
    AssignmentOption,
    CourseOption,
    JsonOption,
    StoreOption,
    app,
    build_console,
    build_finals,
    choose_assignment,
    keep_stdout,
    open_results,
)
from autograder.errors import UsageError, suggest_near

if TYPE_CHECKING:
    from autograder.records import Decision


@app.command()
def mark(
    student: Annotated[str | None, typer.Argument(metavar="STUDENT", help="As in the table or the roster.")] = None,
    exercise: Annotated[str | None, typer.Argument(metavar="EXERCISE", help="The exercise's id.")] = None,
    points: Annotated[
        str | None, typer.Argument(metavar="POINTS", help="Or `withdraw`, to take an earlier decision back.")
    ] = None,
    override: Annotated[
        bool, typer.Option("--override", help="Replace the autograded points, instead of marking the written part.")
    ] = False,
    why: Annotated[str, typer.Option("--why", help="The reason; an override must have one.")] = "",
    csv: Annotated[
        Path | None,
        typer.Option("--csv", metavar="FILE", help="Many: student, exercise, points, why, kind."),
    ] = None,
    who: Annotated[str, typer.Option("--who", help="Who decides; else the name of this account.")] = "",
    assignment: AssignmentOption = None,
    store: StoreOption = None,
    course: CourseOption = None,
) -> None:
    """Give points by hand: for a written answer, or in place of what the hidden tests gave.

    Nothing that was decided before is changed; the last decision counts. Regrading keeps them all.
    """
    from autograder.decisions import Desk, build_decision, find_maxima, parse_decisions
    from autograder.roster import read_roster

    loaded, name = choose_assignment(course, assignment)
    single = (student, exercise, points)
    if (csv is None) == (None in single) or (csv is not None and any(single)):
        raise UsageError("name a student, an exercise and points, or a file with --csv")
    with open_results(loaded, store, create=False) as results:
        desk = Desk(
            assignment_id=name,
            assignment=loaded.assignment(name),
            students={each.student for each in results.list_submissions(name)},
            maxima=find_maxima([graded] if (graded := results.find_graded(name)) else []),
            who=who or _name_user(),
            when=datetime.now(UTC),
            roster=read_roster(loaded),
        )
        if csv is not None:
            try:
                data = csv.read_bytes()
            except OSError as error:
                raise UsageError(f"{csv}: cannot be read ({error.strerror})") from error
            marked = parse_decisions(data, str(csv), desk)
            results.add_decisions(marked.decisions)
            blank = f"; lines without points: {marked.blank}" if marked.blank else ""
            print(f"decisions stored: {len(marked.decisions)}{blank}")
            return
        decision = build_decision(
            str(student), str(exercise), str(points), "override" if override else "written", why, desk
        )
        results.add_decisions([decision])
        print(f"stored: {_describe(decision)}")


@app.command()
def status(
    assignment: AssignmentOption = None,
    json: JsonOption = False,
    store: StoreOption = None,
    course: CourseOption = None,
) -> None:
    """Say how far an assignment is: submitted, run, marked, pending, ungraded and why, who is missing."""
    from autograder.progress import build_progress
    from autograder.report.documents import encode_json
    from autograder.report.progress import build_overview
    from autograder.roster import read_roster

    loaded, name = choose_assignment(course, assignment)
    output = keep_stdout() if json else None
    with open_results(loaded, store, create=False) as results:
        progress = build_progress(loaded, name, results, build_finals(loaded, name, results), read_roster(loaded))
    if output is None:
        build_console().print(build_overview(loaded.assignment(name).title, progress))
        return
    with os.fdopen(output, "wb") as file:
        file.write(encode_json(progress) + b"\n")


@app.command()
def show(
    student: Annotated[str, typer.Argument(metavar="STUDENT", help="As in the table or the roster.")],
    assignment: AssignmentOption = None,
    store: StoreOption = None,
    course: CourseOption = None,
) -> None:
    """Tell one submission's whole story: what was handed in, how it was run and marked, each test, each decision."""
    from autograder.progress import read_story
    from autograder.report.story import build_story
    from autograder.roster import read_roster

    loaded, name = choose_assignment(course, assignment)
    with open_results(loaded, store, create=False) as results:
        finals = build_finals(loaded, name, results)
        story = read_story(loaded, name, results, finals, read_roster(loaded), student)
    build_console().print(build_story(loaded.assignment(name), story))


@app.command()
def forget(
    student: Annotated[str, typer.Argument(metavar="STUDENT", help="As in the table or the roster.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    store: StoreOption = None,
    course: CourseOption = None,
) -> None:
    """Erase a person from the store, in all assignments; the points stay, under a random name, for statistics."""
    from autograder.course import find_course_folder, load_course
    from autograder.roster import read_roster
    from autograder.turnout import Claim, find_names

    loaded = load_course(course or find_course_folder(Path.cwd()))
    roster = read_roster(loaded)
    with open_results(loaded, store, create=False) as results, results.exclusive("autograder forget"):
        claims = [
            Claim(each.student, each.lms_id)
            for name in loaded.assignments
            for each in results.list_submissions(name, current_only=False)
        ]
        numbers = {claim.label: claim.lms_id for claim in claims}
        decided = (each.student for name in loaded.assignments for each in results.list_decisions(name))
        claims += [Claim(label, numbers.get(label, "")) for label in decided]
        names, shared = find_names(roster, claims, student)
        names &= {claim.label for claim in claims}
        together = f"; {' and '.join(sorted(shared))} handed in together, which stays" if shared else ""
        if not names:
            near = suggest_near(student, [claim.label for claim in claims])
            results.wipe()
            raise UsageError(
                f"{student} has nothing in the store{near}{together}, and what was erased before is gone from the "
                "disk; autograder status lists who has handed in"
            )
        listed = ", ".join(sorted(names))
        if not yes:
            if not sys.stdin.isatty():
                raise UsageError("this cannot be undone; say --yes where nobody can be asked")
            typer.confirm(f"Erase {listed} from {results.place}? This cannot be undone.", abort=True)
        gone = results.forget(*names)
    print(
        f"{listed} is erased. Made anonymous: submissions {gone.submissions}, decisions {gone.decisions}; "
        f"deleted: files {gone.contents}, runs {gone.executions}{together}. Backups, downloads and the roster are "
        "yours to clean."
    )


def _name_user() -> str:
    """The account's name; its number where it has none, as in containers."""
    try:
        return getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def _describe(decision: "Decision") -> str:
    what = "override of" if decision.kind == "override" else "written part of"
    points = "withdrawn" if decision.points is None else f"{decision.points:g} points"
    return f"{decision.student}, {what} {decision.exercise}: {points}, by {decision.who}"
