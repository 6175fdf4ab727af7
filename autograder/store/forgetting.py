"""Erasing a person: bytes, answers, names and words go, points stay without a name."""

import secrets

from sqlalchemy import Connection, Engine, delete, func, insert, select, text, update

from autograder.errors import StoreError
from autograder.store.engine import find_file, show_place
from autograder.store.records import Forgotten
from autograder.store.tables import contents, decisions, executions, exercise_results, gradings, marks, submissions


def forget(connection: Connection, *names: str) -> Forgotten:
    """Erase a person of these names from all assignments. What an equal submission of somebody else needs stays."""
    anybody = f"forgotten-{secrets.token_hex(8)}"
    own = connection.execute(
        select(submissions.c.id, submissions.c.assignment, submissions.c.sha256)
        .where(submissions.c.student.in_(names), ~submissions.c.forgotten)
        .order_by(submissions.c.id)
    ).all()
    erased = executed = 0
    for number, assignment, sha256 in own:
        anonymous = secrets.token_hex(32)
        connection.execute(insert(contents).values(sha256=anonymous, data=None))
        connection.execute(
            update(submissions)
            .where(submissions.c.id == number)
            .values(
                student=anybody,
                sha256=anonymous,
                path="",
                attempt=0,
                received=None,
                lms_id="",
                notes=(),
                forgotten=True,
            )
        )
        _copy_points(connection, assignment, sha256, anonymous)
        if not _is_shared(connection, sha256, assignment):
            for table in (gradings, executions):
                where = (table.c.assignment == assignment) & (table.c.sha256 == sha256)
                count = connection.execute(delete(table).where(where)).rowcount
                executed += count if table is executions else 0
        if not _is_shared(connection, sha256):
            erased += connection.execute(delete(contents).where(contents.c.sha256 == sha256)).rowcount
    decided = connection.execute(
        update(decisions).where(decisions.c.student.in_(names)).values(student=anybody, who="", why="")
    ).rowcount
    return Forgotten(len(own), erased, executed, decided)


def _is_shared(connection: Connection, sha256: str, assignment: str | None = None) -> bool:
    query = select(func.count()).select_from(submissions).where(submissions.c.sha256 == sha256)
    if assignment is not None:
        query = query.where(submissions.c.assignment == assignment)
    return bool(connection.execute(query).scalar())


def _copy_points(connection: Connection, assignment: str, sha256: str, anonymous: str) -> None:
    """The grading that counts, under the anonymous digest: points and kinds of mistakes, nobody's words."""
    number = connection.execute(
        select(gradings.c.id)
        .where(gradings.c.assignment == assignment, gradings.c.sha256 == sha256)
        .order_by(gradings.c.chosen.desc(), gradings.c.id.desc())
        .limit(1)
    ).scalar()
    if number is None:
        return
    row = dict(connection.execute(select(gradings).where(gradings.c.id == number)).one()._mapping)
    del row["id"]
    row |= {"sha256": anonymous, "notes": (), "reason": None if row["status"] == "graded" else "forgotten"}
    copy = connection.execute(insert(gradings).values(**row).returning(gradings.c.id)).scalar_one()
    blank = {"message": "", "hint": "", "detail": "", "notes": ()}
    for table, changed in ((exercise_results, {}), (marks, blank)):
        rows = connection.execute(select(table).where(table.c.grading == number)).mappings()
        copies = [{**each, "grading": copy, **changed} for each in rows]
        if copies:
            connection.execute(insert(table), copies)


def wipe(engine: Engine) -> None:
    """Rewrite the database's own files, so that what was deleted is gone from the disk too."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if find_file(engine.url) is None:
            connection.execute(text("VACUUM FULL"))
            return
        connection.execute(text("VACUUM"))
        busy = connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)")).one()[0]
    if busy:
        raise StoreError(
            f"{show_place(engine.url)}: another process reads the store, so that erased bytes are still in its log; "
            "wait for it to end and run the same command again"
        )
