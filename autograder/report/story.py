"""One submission's whole story, for the terminal."""

from datetime import datetime

from rich.console import Group, RenderableType
from rich.text import Text

from autograder.course import Assignment
from autograder.policy import describe_lateness
from autograder.progress import Story
from autograder.records import Decision, ExerciseGrade, FinalExercise, FinalGrade, Mark
from autograder.report.table import show_safely
from autograder.store.records import StoredGrade, StoredSubmission

_DIGEST_SHOWN = 12


def build_story(assignment: Assignment, story: Story) -> RenderableType:
    """What was handed in, where the marks come from, each test, each decision, the sum."""
    lines = [Text(f"{show_safely(story.student)}: {assignment.title}", style="bold")]
    lines += [Text(f"shared with {show_safely(', '.join(story.sharers))}")] if story.sharers else []
    lines.append(Text(""))
    lines += [_describe_submission(each) for each in story.submissions]
    if story.stored is None or story.final is None:
        lines.append(Text("It has not been graded yet; run autograder grade.", style="magenta"))
        return Group(*lines)
    lines += _describe_provenance(story, story.stored)
    lines += [Text(f"note: {show_safely(note)}", style="dim") for note in story.stored.grade.notes]
    parts = {exercise.id: exercise for exercise in story.stored.grade.exercises}
    for exercise in story.final.exercises:
        lines += _describe_exercise(exercise, parts.get(exercise.id))
    lines += _describe_decisions(story.decisions)
    lines += _describe_sum(assignment, story.final)
    return Group(*lines)


def _show_time(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M %Z}" if moment else "unknown"


def _describe_submission(each: StoredSubmission) -> Text:
    told = f"received {_show_time(each.received)}" if each.received else f"first seen {_show_time(each.recorded)}"
    late = ", late as the LMS says" if each.late else ""
    attempt = f", attempt {each.attempt}" if each.attempt else ""
    counts = "counts" if each.current else "older  "
    digest = each.sha256[:_DIGEST_SHOWN]
    text = f"{counts}  {show_safely(each.path)}  sha256 {digest}, {told}{attempt}{late}"
    return Text(text, style="" if each.current else "dim")


def _describe_provenance(story: Story, stored: StoredGrade) -> list[Text]:
    environment = story.environment
    packages = environment.get("packages", {})
    run = f"Python {environment.get('python', '?')}, NumPy {packages.get('numpy', '?')}, {environment.get('blas', '?')}"
    lines = [
        Text(f"run in environment {stored.environment[:_DIGEST_SHOWN]} ({run})"),
        Text(
            f"marked {_show_time(stored.graded)} with {stored.marking[:_DIGEST_SHOWN]} "
            f"(hidden tests {story.marking.get('hidden tests', '?')}, reference {story.marking.get('reference', '?')}, "
            f"catalogue {story.marking.get('catalogue', '?')})"
        ),
    ]
    if story.executed:
        lines.append(Text(f"run alone besides: {', '.join(story.executed)}"))
    if story.outdated:
        lines.append(Text(f"changed since: {', '.join(story.outdated)}; autograder grade brings it up to date"))
    return lines


def _describe_exercise(final: FinalExercise, automatic: ExerciseGrade | None) -> list[Text]:
    points = "-" if final.points is None else f"{final.points:g}"
    most = "" if final.max_score is None else f" of {final.max_score:g}"
    how = f", {automatic.status.value}" if automatic else ""
    lines = [Text(f"\n{final.id}: {points}{most}{how}", style="bold")]
    if final.override is not None:
        lines.append(Text(f"  {final.override:g} by hand in place of {final.automatic or 0:g}", style="cyan"))
    if final.written is not None:
        lines.append(Text(f"  {final.written:g} for the written part", style="cyan"))
    if final.pending:
        lines.append(Text(f"  {final.pending:g} points for the written part wait for a person", style="yellow"))
    for mark in automatic.tests if automatic else ():
        lines += _describe_mark(mark)
    return lines


def _describe_mark(mark: Mark) -> list[Text]:
    style = {"passed": "green", "failed": "red"}.get(mark.outcome, "yellow")
    lines = [Text(f"  {mark.score:g}/{mark.max_score:g} {mark.name}: {mark.outcome}", style=style)]
    lines += [Text(f"      {show_safely(mark.message)}")] if mark.message else []
    lines += [Text(f"      hint: {show_safely(mark.hint)}", style="cyan")] if mark.hint else []
    lines += [Text(f"      for you: {show_safely(mark.detail)}", style="dim")] if mark.detail else []
    return lines


def _describe_decisions(decisions: tuple[Decision, ...]) -> list[Text]:
    if not decisions:
        return []
    lines = [Text("\nDecisions, oldest first", style="bold")]
    for each in decisions:
        what = "withdrew the points" if each.points is None else f"gave {each.points:g}"
        kind = "in place of the autograded points" if each.kind == "override" else "for the written part"
        why = f": {show_safely(each.why)}" if each.why else ""
        lines.append(Text(f"  {_show_time(each.when)}  {show_safely(each.who)} {what} for {each.exercise} {kind}{why}"))
    return lines


def _describe_sum(assignment: Assignment, final: FinalGrade) -> list[Text]:
    lines = [Text("")]
    late = describe_lateness(final.late, assignment.late) if final.late else ""
    lines += [Text(show_safely(late), style="red" if final.late and final.late.taken else "")] if late else []
    lines += [Text(f"note: {show_safely(note)}", style="dim") for note in final.notes]
    if final.total is None:
        return [*lines, Text(f"ungraded: {show_safely(final.reason or '')}", style="bold magenta")]
    pending = f", {final.pending:g} pending" if final.pending else ""
    return [*lines, Text(f"Score: {final.total:g} / {final.max_score:g}{pending}", style="bold")]
