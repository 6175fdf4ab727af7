"""Commands on a course itself: prove it, build what students get, look at the machine."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from autograder.cli.shared import CourseOption, SandboxOption, app, build_console, choose_assignment
from autograder.sandbox.modes import SandboxMode


@app.command()
def validate(
    assignments: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Assignments; else all.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", metavar="N", min=0, help="Worker processes; 0: one for each core.")
    ] = 0,
    sandbox: SandboxOption = SandboxMode.AUTO,
    course: CourseOption = None,
) -> None:
    """Prove that the hidden tests mark as they must. Exit status 1 when something does not hold."""
    import msgspec

    from autograder.course import find_course_folder, load_course
    from autograder.report.validation import build_findings, build_tables
    from autograder.validation.validate import build_document, validate_assignment

    loaded = load_course(course or find_course_folder(Path.cwd()))
    console = build_console()
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

    loaded, name = choose_assignment(course, assignment)
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

    console = build_console()
    findings = examine_machine()
    for finding in findings:
        sign, style = {True: ("ok   ", "green"), False: ("NO   ", "bold red"), None: ("note ", "yellow")}[finding.ok]
        console.print(Text(sign, style=style) + Text(f"{finding.name}: {finding.found}"))
        if finding.advice:
            console.print(Text("     " + finding.advice.replace("\n", "\n     ")))
    raise typer.Exit(0 if can_grade(findings) else 1)
