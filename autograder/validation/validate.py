"""Proves that an assignment marks as it must.

Reference and solution get full marks, the stub nothing; every variant is accepted in full, every known
mistake loses exactly what it declares; and no mutant of the solution slips through.
"""

from collections.abc import Sequence

import msgspec

from autograder.batch import run_all
from autograder.catalogue import Mistake, Variant, load_catalogue
from autograder.course import Course
from autograder.errors import CourseError, NotebookError, SandboxUnavailable
from autograder.grading import Grader
from autograder.intake.layouts import Source, read_submission
from autograder.marking.session import MarkingSession
from autograder.records import Execution, Grade, Mark, Pass
from autograder.solution import batch_by_exercise
from autograder.validation.catalogue import JudgedEntry, find_ambiguous, judge_entry, list_unknown_tests
from autograder.validation.equivalents import Equality, build_fresh_grader
from autograder.validation.mutants import (
    Job,
    Judged,
    MutationReport,
    build_report,
    find_unequal,
    judge_batch,
    list_equivalents,
    list_jobs,
)


class Finding(msgspec.Struct, frozen=True):
    """One thing that was proved, or what is wrong with it."""

    subject: str
    ok: bool
    text: str


class Validation(msgspec.Struct, frozen=True):
    """All that was found out about an assignment."""

    assignment: str
    findings: tuple[Finding, ...]
    tests: tuple[tuple[str, str], ...]
    """Exercise and name of each hidden test."""
    entries: tuple[JudgedEntry, ...]
    mutation: MutationReport

    @property
    def ok(self) -> bool:
        """Whether all holds."""
        return all(finding.ok for finding in self.findings)


def validate_assignment(course: Course, name: str, jobs: int = 0) -> Validation:
    """Try what must hold of an assignment, by the real path. `CourseError` when it cannot be tried."""
    with MarkingSession(course, name) as marking:
        tests = tuple((test.exercise, test.name) for test in marking.tests)
        full = sum(test.points for test in marking.tests)
        findings = [_validate_reference(marking, full)]
        mutants = tuple(batch_by_exercise(list_jobs(course, name, marking)))
    catalogue = load_catalogue(course, name)
    unknown = list_unknown_tests(course, name, catalogue.mistakes, {test for _, test in tests})
    if unknown:
        raise CourseError("\n".join(unknown))
    notebooks = (_Notebook("solution notebook", full), _Notebook("student notebook", 0.0))
    preload = [_Preload(course.assignment(name).preload)] if course.assignment(name).preload else []
    work: list[_Item] = [*preload, *notebooks, *catalogue.variants, *catalogue.mistakes, *mutants]
    entries: list[JudgedEntry] = []
    judged: list[Judged] = []
    for item, result in run_all(course, name, _try_item, work, jobs):
        if isinstance(result, Finding):
            findings.append(result)
        elif isinstance(result, JudgedEntry):
            entries.append(result)
        elif result is not None:
            judged += result
        else:
            findings.append(Finding("worker", False, f"a worker process died on {item!r:.200}"))
    order = {each.id: n for n, each in enumerate((*catalogue.variants, *catalogue.mistakes))}
    entries.sort(key=lambda each: order[each.entry.id])
    report = build_report(course, name, judged)
    findings += _judge_entries(entries) + _judge_mutants(report) + _judge_equivalents(course, name, report, jobs)
    return Validation(name, tuple(findings), tests, tuple(entries), report)


class _Notebook(msgspec.Struct, frozen=True):
    """One of the assignment's own notebooks and the points that it must get."""

    subject: str
    points: float


class _Preload(msgspec.Struct, frozen=True):
    """What the course wants to be imported; only submissions that name it would find out that it cannot be."""

    modules: tuple[str, ...]


_Item = _Preload | _Notebook | Variant | Mistake | tuple[Job, ...]


def _try_item(grader: Grader, item: _Item) -> Finding | JudgedEntry | tuple[Judged, ...]:
    if isinstance(item, _Preload):
        return _judge_preload(grader, item)
    if isinstance(item, _Notebook):
        find = grader.course.solution_notebook if item.points else grader.course.released_notebook
        path = find(grader.name)
        return _judge_notebook(item, _grade(grader, Source("validate", path, str(path))))
    if isinstance(item, Variant | Mistake):
        return judge_entry(grader, item)
    return judge_batch(grader, item)


def _validate_reference(marking: MarkingSession, full: float) -> Finding:
    passes = tuple(Pass(each.seed, (), dict(each.expected)) for each in marking.input_sets)
    marks = marking.mark(Execution(passes))
    seeds = ", ".join(str(each.seed) for each in marking.input_sets)
    score = sum(mark.score for mark in marks)
    text = f"{score:g} of {full:g} points on the seeds {seeds}{_list_lost(marks)}"
    return Finding("reference", score == full, text)


def _grade(grader: Grader, source: Source) -> Grade:
    try:
        return grader.grade_submission(read_submission(source))
    except NotebookError as error:
        return Grade(source.student, source.shown, "", "ungraded", reason=str(error))


def _judge_preload(grader: Grader, item: _Preload) -> Finding:
    try:
        grader.sandbox.try_preload()
    except SandboxUnavailable as error:
        return Finding("preload", False, f"{', '.join(item.modules)}: {error}")
    return Finding("preload", True, f"{', '.join(item.modules)} can be imported in the sandbox")


def _judge_notebook(item: _Notebook, grade: Grade) -> Finding:
    if grade.status != "graded":
        return Finding(item.subject, False, f"ungraded: {grade.reason}")
    marks = [mark for exercise in grade.exercises for mark in exercise.tests]
    text = f"{grade.score:g} points, {item.points:g} expected, {grade.pending:g} pending"
    return Finding(item.subject, grade.score == item.points, text + (_list_lost(marks) if item.points else ""))


def _list_lost(marks: Sequence[Mark]) -> str:
    lost = [f"\n    {mark.name}: {mark.message} {mark.detail}" for mark in marks if mark.outcome != "passed"]
    return "".join(lost)


def _judge_entries(entries: Sequence[JudgedEntry]) -> list[Finding]:
    findings = []
    for kind, subject, must in (
        (Variant, "accepted variants", "get full marks"),
        (Mistake, "known mistakes", "lose exactly what they declare"),
    ):
        own = [each for each in entries if isinstance(each.entry, kind)]
        wrong = [f"\n    {each.entry.id}: {'; '.join(each.problems)}" for each in own if each.problems]
        text = f"{len(own) - len(wrong)} of {len(own)} {must}{''.join(wrong)}"
        findings.append(Finding(subject, not wrong, text))
    pairs = find_ambiguous(entries)
    listed = "".join(f"\n    {one.id} and {other.id}" for one, other in pairs)
    text = f"{len(pairs)} pairs of mistakes give the same answers and different hints{listed}"
    return [*findings, Finding("hints", not pairs, text)]


def _judge_mutants(report: MutationReport) -> list[Finding]:
    findings = []
    for each in report.exercises:
        text = (
            f"{each.killed} of {each.count - len(each.equivalents)} killed ({each.kill_rate:.1%}), "
            f"{len(each.equivalents)} more recorded as equivalent"
        )
        text += "".join(f"\n    survived, {mutant.description}" for mutant in each.survivors)
        text += "".join(f"\n    recorded as equivalent, but no mutant makes it: {change}" for change in each.unused)
        findings.append(Finding(f"mutants of {each.exercise}", not each.survivors and not each.unused, text))
    return findings


def _judge_equivalents(course: Course, name: str, report: MutationReport, jobs: int) -> list[Finding]:
    """Recorded equivalents against the reference on fresh input sets."""
    batches = tuple(batch_by_exercise(list_equivalents(report)))
    with build_fresh_grader(course, name) as fresh:
        count = len(fresh.marking.input_sets)
        fresh_course = fresh.course
    unequal: list[Job] = []
    for _, result in run_all(fresh_course, name, _find_unequal, batches, jobs):
        unequal += result or ()
    listed = "".join(f"\n    {job.exercise}, {job.mutant.description}" for job in unequal)
    total = sum(len(batch) for batch in batches)
    text = f"{total - len(unequal)} of {total} equal the reference on {count} fresh input sets{listed}"
    return [Finding("recorded equivalents", not unequal, text)]


_equalities: dict[int, Equality] = {}


def _find_unequal(grader: Grader, batch: Sequence[Job]) -> tuple[Job, ...]:
    if id(grader) not in _equalities:
        _equalities[id(grader)] = Equality(grader)
    return find_unequal(_equalities[id(grader)], batch)


def build_document(validation: Validation) -> dict[str, object]:
    """A validation as plain data, for `--json`."""
    return {
        "assignment": validation.assignment,
        "ok": validation.ok,
        "findings": [msgspec.to_builtins(finding) for finding in validation.findings],
        "entries": [
            {
                "id": each.entry.id,
                "kind": "mistake" if isinstance(each.entry, Mistake) else "variant",
                "exercise": each.entry.exercise,
                "lost": each.lost,
                "problems": each.problems,
            }
            for each in validation.entries
        ],
        "mutants": [
            {
                "exercise": each.exercise,
                "count": each.count,
                "killed": each.killed,
                "equivalent": len(each.equivalents),
                "survivors": [mutant.description for mutant in each.survivors],
                "kill_rate": each.kill_rate,
            }
            for each in validation.mutation.exercises
        ],
    }
