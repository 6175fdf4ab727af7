"""Executions, and gradings as rows for each test. A `Grade` is rebuilt from them, never kept."""

import operator
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import astuple
from sqlalchemy import Connection, Select, Table, delete, func, insert, select, tuple_, update

from autograder.records import Ending, ExerciseGrade, Grade, Mark
from autograder.store.records import Result, StoredGrade, StoredSubmission
from autograder.store.submissions import COLUMNS, cut_chunks, insert_or_update
from autograder.store.tables import environments, executions, exercise_results, gradings, markings, marks, submissions

_KEYS = ("assignment", "sha256", "environment", "marking")
_MARK = tuple(marks.c[name] for name in Mark.__struct_fields__)
_EXERCISES = select(exercise_results)


def save_environment(connection: Connection, digest: str, description: Mapping[str, Any]) -> None:
    """Keep what an environment's digest stands for."""
    row = {"digest": digest, "description": dict(description)}
    insert_or_update(connection, environments, ["digest"], [row], keep=["description"])


def save_marking(connection: Connection, digest: str, description: Mapping[str, Any]) -> None:
    """Keep what a marking's digest stands for."""
    row = {"digest": digest, "description": dict(description)}
    insert_or_update(connection, markings, ["digest"], [row], keep=["description"])


def find_description(connection: Connection, digest: str) -> dict[str, Any] | None:
    """What the digest of an environment or a marking stands for; None when it is not known."""
    for table in (environments, markings):
        found = connection.execute(select(table.c.description).where(table.c.digest == digest)).scalar()
        if found is not None:
            return dict(found)
    return None


def save_results(connection: Connection, results: Sequence[Result]) -> None:
    """Keep results with their executions. One of the same submission, environment and marking is replaced."""
    newest = {(each.assignment, each.sha256, each.environment, each.marking): each for each in results}
    now = datetime.now(UTC)
    _save_executions(connection, newest.values(), now)
    for chunk in cut_chunks(newest):
        connection.execute(delete(gradings).where(tuple_(*(gradings.c[key] for key in _KEYS)).in_(chunk)))
    chosen = _count_up(connection)
    rows = [
        {
            **dict(zip(_KEYS, key, strict=True)),
            "status": each.grade.status,
            "reason": each.grade.reason,
            "notes": each.grade.notes,
            "graded": now,
            "chosen": chosen,
        }
        for key, each in newest.items()
    ]
    if rows:
        returning = insert(gradings).returning(gradings.c.id, sort_by_parameter_order=True)
        numbers = connection.scalars(returning, rows).all()
        _insert_parts(connection, [(number, each.grade) for number, each in zip(numbers, newest.values(), strict=True)])


def _save_executions(connection: Connection, results: Iterable[Result], now: datetime) -> None:
    rows = [
        {
            "assignment": each.assignment,
            "sha256": each.sha256,
            "environment": each.environment,
            "exercise": exercise,
            "data": data,
            "cpu_seconds": cpu_seconds,
            "executed": now,
        }
        for each in results
        for exercise, (data, cpu_seconds) in each.executions.items()
    ]
    insert_or_update(connection, executions, ["assignment", "sha256", "environment", "exercise"], rows)


def _count_up(connection: Connection) -> int:
    return (connection.execute(select(func.max(gradings.c.chosen))).scalar() or 0) + 1


def _insert_parts(connection: Connection, graded: Sequence[tuple[int, Grade]]) -> None:
    """The rows below gradings, given by their numbers."""
    exercise_rows = [
        {
            "grading": number,
            "position": position,
            "exercise": exercise.id,
            "status": exercise.status.value,
            "written_points": exercise.pending,
        }
        for number, grade in graded
        for position, exercise in enumerate(grade.exercises)
    ]
    if exercise_rows:
        connection.execute(insert(exercise_results), exercise_rows)
    _insert_marks(connection, graded)


def _insert_marks(connection: Connection, graded: Sequence[tuple[int, Grade]]) -> None:
    """Most rows of all: so they are made as the driver takes them, which costs half of what SQLAlchemy's way does."""
    fields = Mark.__struct_fields__
    statement = insert(marks).compile(dialect=connection.dialect, column_keys=["grading", "position", *fields])
    write = [marks.c[name].type.dialect_impl(connection.dialect).bind_processor(connection.dialect) for name in fields]
    tests = [(number, [test for each in grade.exercises for test in each.tests]) for number, grade in graded]
    # Most marks of a class are the same few.
    written = {
        test: tuple(each(value) if each else value for each, value in zip(write, astuple(test), strict=True))
        for test in {test for _, own in tests for test in own}
    }
    rows = [(number, position, *written[test]) for number, own in tests for position, test in enumerate(own)]
    if not rows:
        return
    names = ("grading", "position", *fields)
    if statement.positional:
        assert statement.positiontup is not None
        take = operator.itemgetter(*(names.index(name) for name in statement.positiontup))
        connection.exec_driver_sql(statement.string, list(map(take, rows)))
    else:
        connection.exec_driver_sql(statement.string, [dict(zip(names, row, strict=True)) for row in rows])


def find_standing(connection: Connection, assignment: str, sha256s: Iterable[str]) -> dict[str, tuple[str, str]]:
    """By SHA-256, the environment and the marking of the grading that counts."""
    columns = (gradings.c.sha256, gradings.c.environment, gradings.c.marking)
    found: dict[str, tuple[str, str]] = {}
    for chunk in cut_chunks(sha256s):
        query = select(*columns).where(gradings.c.assignment == assignment, gradings.c.sha256.in_(chunk))
        for sha256, environment, marking in connection.execute(query.order_by(gradings.c.chosen, gradings.c.id)):
            found[sha256] = environment, marking
    return found


def choose_grades(
    connection: Connection, assignment: str, environment: str, marking: str, sha256s: Iterable[str]
) -> None:
    """Gradings that are there already count again, before others of the same submissions."""
    number = _count_up(connection)
    for chunk in cut_chunks(sha256s):
        query = _where(update(gradings), assignment, environment, marking).where(gradings.c.sha256.in_(chunk))
        connection.execute(query.values(chosen=number))


def _where(query: Any, assignment: str, environment: str, marking: str) -> Any:
    return query.where(
        gradings.c.assignment == assignment, gradings.c.environment == environment, gradings.c.marking == marking
    )


def find_executions(
    connection: Connection, assignment: str, environment: str, sha256s: Iterable[str]
) -> dict[str, dict[str, bytes]]:
    """Packed executions by SHA-256 and exercise; the joint run under ""."""
    found: dict[str, dict[str, bytes]] = defaultdict(dict)
    for chunk in cut_chunks(sha256s):
        query = select(executions.c.sha256, executions.c.exercise, executions.c.data).where(
            executions.c.assignment == assignment,
            executions.c.environment == environment,
            executions.c.sha256.in_(chunk),
        )
        for sha256, exercise, data in connection.execute(query):
            found[sha256][exercise] = data
    return dict(found)


def measure_executions(
    connection: Connection, assignment: str, environment: str, sha256s: Iterable[str]
) -> dict[str, int]:
    """Bytes of the packed executions by SHA-256."""
    found: dict[str, int] = {}
    for chunk in cut_chunks(sha256s):
        query = select(executions.c.sha256, func.sum(func.length(executions.c.data))).where(
            executions.c.assignment == assignment,
            executions.c.environment == environment,
            executions.c.sha256.in_(chunk),
        )
        found |= {sha256: int(size) for sha256, size in connection.execute(query.group_by(executions.c.sha256))}
    return found


def find_executed(connection: Connection, assignment: str, environment: str) -> dict[str, frozenset[str]]:
    """Which submissions, by SHA-256, have executions of which exercises; the joint run is ""."""
    query = select(executions.c.sha256, executions.c.exercise).where(
        executions.c.assignment == assignment, executions.c.environment == environment
    )
    found: dict[str, set[str]] = defaultdict(set)
    for sha256, exercise in connection.execute(query):
        found[sha256].add(exercise)
    return {sha256: frozenset(names) for sha256, names in found.items()}


def find_grades(
    connection: Connection, assignment: str, environment: str, marking: str, sha256s: Iterable[str]
) -> dict[str, Grade]:
    """Grades by SHA-256, without student and path; ungraded ones too."""
    found: dict[str, Grade] = {}
    columns = (gradings.c.id, gradings.c.sha256, gradings.c.status, gradings.c.reason, gradings.c.notes)
    for chunk in cut_chunks(sha256s):
        query = _where(select(*columns), assignment, environment, marking).where(gradings.c.sha256.in_(chunk))
        rows = connection.execute(query).all()
        parts = load_exercises(connection, [row.id for row in rows])
        for number, sha256, status, reason, notes in rows:
            found[sha256] = build_grade("", "", sha256, status, reason, notes, parts[number])
    return found


def find_points(
    connection: Connection, assignment: str, environment: str, marking: str, sha256s: Iterable[str]
) -> dict[str, Grade]:
    """As `find_grades`, without notes and without the tests, which are most of what is stored."""
    found: dict[str, Grade] = {}
    columns = (gradings.c.id, gradings.c.sha256, gradings.c.status, gradings.c.reason)
    for chunk in cut_chunks(sha256s):
        query = _where(select(*columns), assignment, environment, marking).where(gradings.c.sha256.in_(chunk))
        rows = connection.execute(query).all()
        parts = _load_points(connection, [row.id for row in rows])
        for number, sha256, status, reason in rows:
            found[sha256] = build_grade("", "", sha256, status, reason, (), parts[number])
    return found


def find_graded(connection: Connection, assignment: str) -> Grade | None:
    """The grade that was given last, whoever's it is, also under older tests; None where nobody was graded yet."""
    query = select(gradings.c.id, gradings.c.sha256, gradings.c.notes).where(
        gradings.c.assignment == assignment, gradings.c.status == "graded"
    )
    row = connection.execute(query.order_by(gradings.c.chosen.desc(), gradings.c.id.desc()).limit(1)).one_or_none()
    if row is None:
        return None
    return build_grade("", "", row.sha256, "graded", None, row.notes, load_exercises(connection, [row.id])[row.id])


def list_latest(connection: Connection, assignment: str, student: str | None, *, forgotten: bool) -> list[StoredGrade]:
    """The grading that counts of each submission that counts, by student; those without a grading are left out."""
    join = (submissions.c.assignment == gradings.c.assignment) & (submissions.c.sha256 == gradings.c.sha256)
    query = (
        select(*COLUMNS, *(gradings.c[name] for name in ("id", "status", "reason", "notes", *_KEYS[2:], "graded")))
        .select_from(submissions.join(gradings, join))
        .where(submissions.c.assignment == assignment, submissions.c.current)
        .order_by(gradings.c.chosen, gradings.c.id)
    )
    if student is not None:
        query = query.where(submissions.c.student == student)
    if not forgotten:
        query = query.where(~submissions.c.forgotten)
    width = len(COLUMNS)
    latest = {row[1]: row for row in connection.execute(query)}  # by student; a later row replaces an earlier one
    parts = load_exercises(connection, [row[width] for row in latest.values()])
    found = []
    for row in latest.values():
        submission = StoredSubmission(*row[:width])
        number, status, reason, notes, environment, marking, graded = row[width:]
        grade = build_grade(
            submission.student, submission.path, submission.sha256, status, reason, notes, parts[number]
        )
        found.append(StoredGrade(submission, grade, environment, marking, graded))
    return sorted(found, key=lambda each: each.submission.student)


def load_exercises(connection: Connection, numbers: Sequence[int]) -> dict[int, list[ExerciseGrade]]:
    """The exercises of gradings, by the gradings' numbers."""
    found: dict[int, list[ExerciseGrade]] = defaultdict(list)
    for chunk in cut_chunks(numbers):
        tests: dict[tuple[int, str], list[Mark]] = defaultdict(list)
        for number, *row in connection.execute(_order(select(marks.c.grading, *_MARK), marks, chunk)):
            mark = Mark(*row)
            tests[number, mark.exercise].append(mark)
        for number, _, name, status, written in connection.execute(_order(_EXERCISES, exercise_results, chunk)):
            own = tests[number, name]
            points = [(test.score, test.max_score) for test in own]
            found[number].append(_build_exercise(name, status, written, points, tuple(own)))
    return found


def _load_points(connection: Connection, numbers: Sequence[int]) -> dict[int, list[ExerciseGrade]]:
    """As `load_exercises`, without the tests."""
    found: dict[int, list[ExerciseGrade]] = defaultdict(list)
    columns = (marks.c.grading, marks.c.exercise, marks.c.score, marks.c.max_score)
    for chunk in cut_chunks(numbers):
        points: dict[tuple[int, str], list[tuple[float, float]]] = defaultdict(list)
        for number, name, score, max_score in connection.execute(_order(select(*columns), marks, chunk)):
            points[number, name].append((score, max_score))
        for number, _, name, status, written in connection.execute(_order(_EXERCISES, exercise_results, chunk)):
            found[number].append(_build_exercise(name, status, written, points[number, name], ()))
    return found


def _order(query: Select[Any], table: Table, numbers: Sequence[int]) -> Select[Any]:
    """The rows of a table that belong to some gradings, in their order."""
    return query.where(table.c.grading.in_(numbers)).order_by(table.c.grading, table.c.position)


def _build_exercise(
    name: str, status: str, written: float, points: Sequence[tuple[float, float]], tests: tuple[Mark, ...]
) -> ExerciseGrade:
    """As `marking.score.total_exercises` adds up, also to the last bit."""
    return ExerciseGrade(
        id=name,
        status=Ending(status),
        score=sum(score for score, _ in points),
        max_score=sum(max_score for _, max_score in points) + written,
        pending=written,
        tests=tests,
    )


def build_grade(
    student: str,
    path: str,
    sha256: str,
    status: str,
    reason: str | None,
    notes: tuple[str, ...],
    exercises: Sequence[ExerciseGrade],
) -> Grade:
    """A grade of its rows: points are added up anew each time."""
    if status != "graded":
        return Grade(student, path, sha256, status, reason, notes)
    return Grade(
        student,
        path,
        sha256,
        status,
        reason,
        notes,
        score=sum(each.score for each in exercises),
        max_score=sum(each.max_score for each in exercises),
        pending=sum(each.pending for each in exercises),
        exercises=tuple(exercises),
    )
