"""Submissions and their bytes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, Table, func, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite

from autograder.store.packing import pack_bytes
from autograder.store.records import Received, StoredSubmission
from autograder.store.tables import contents, submissions

Item = TypeVar("Item")

CHUNK = 1000
"""Values in one IN; databases take no more than some tens of thousands of parameters."""

COLUMNS = tuple(submissions.c[name] for name in StoredSubmission.__struct_fields__)


def cut_chunks(items: Iterable[Item]) -> Iterator[list[Item]]:
    """The items, `CHUNK` at a time."""
    rest = iter(items)
    while chunk := list(islice(rest, CHUNK)):
        yield chunk


def insert_or_update(
    connection: Connection, table: Table, keys: Sequence[str], rows: list[dict[str, Any]], keep: Sequence[str] = ()
) -> None:
    """Insert rows of the same columns. Where one with the same keys is there, it gets the new values but for `keep`."""
    if not rows:
        return
    statement = (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(table)
    changed = {name: statement.excluded[name] for name in rows[0] if name not in (*keys, *keep)}
    if changed:
        statement = statement.on_conflict_do_update(index_elements=list(keys), set_=changed)
    else:
        statement = statement.on_conflict_do_nothing(index_elements=list(keys))
    connection.execute(statement, rows)


def save_submissions(connection: Connection, received: Sequence[Received], *, rewrite: bool) -> None:
    """Keep submissions and their bytes. Of each student, the one that is given last counts from now on."""
    rows = {(each.assignment, each.student, each.sha256): each for each in received}
    counting = {(each.assignment, each.student): each.sha256 for each in received}
    data = {each.sha256: each.data for each in received}
    for chunk in cut_chunks(data):
        there = select(contents.c.sha256).where(contents.c.sha256.in_(chunk))
        kept = set() if rewrite else set(connection.scalars(there))
        new = [{"sha256": sha256, "data": pack_bytes(data[sha256])} for sha256 in chunk if sha256 not in kept]
        insert_or_update(connection, contents, ["sha256"], new)
    pair = tuple_(submissions.c.assignment, submissions.c.student)
    for pairs in cut_chunks(counting):
        connection.execute(update(submissions).where(pair.in_(pairs), submissions.c.current).values(current=False))
    now = datetime.now(UTC)
    insert_or_update(
        connection,
        submissions,
        ["assignment", "student", "sha256"],
        [
            {
                "assignment": each.assignment,
                "student": each.student,
                "sha256": each.sha256,
                "path": each.path,
                "attempt": each.attempt,
                "received": each.received,
                "late": each.late,
                "lms_id": each.lms_id,
                "lms": each.lms,
                "notes": each.notes,
                "recorded": now,
                "current": counting[each.assignment, each.student] == each.sha256,
                "forgotten": False,
            }
            for each in rows.values()
        ],
        keep=["recorded", "forgotten"],
    )


def list_submissions(
    connection: Connection, assignment: str, student: str | None, *, current_only: bool, forgotten: bool
) -> list[StoredSubmission]:
    """Submissions of an assignment by student, each student's in the order in which the store got them."""
    query = select(*COLUMNS).where(submissions.c.assignment == assignment)
    if student is not None:
        query = query.where(submissions.c.student == student)
    if current_only:
        query = query.where(submissions.c.current)
    if not forgotten:
        query = query.where(~submissions.c.forgotten)
    found = (StoredSubmission(*row) for row in connection.execute(query.order_by(submissions.c.id)))
    return sorted(found, key=lambda each: each.student)  # here, since databases have alphabets of their own


def find_contents(connection: Connection, sha256s: Iterable[str]) -> dict[str, bytes]:
    """The submitted bytes by their SHA-256, packed; what is not there or was erased is left out."""
    found: dict[str, bytes] = {}
    for chunk in cut_chunks(sha256s):
        query = select(contents).where(contents.c.sha256.in_(chunk), contents.c.data.is_not(None))
        found |= {row.sha256: row.data for row in connection.execute(query)}
    return found


def measure_contents(connection: Connection, sha256s: Iterable[str]) -> dict[str, int]:
    """Bytes of submissions as they are packed, by their SHA-256."""
    found: dict[str, int] = {}
    for chunk in cut_chunks(sha256s):
        query = select(contents.c.sha256, func.length(contents.c.data).label("size"))
        query = query.where(contents.c.sha256.in_(chunk), contents.c.data.is_not(None))
        found |= {row.sha256: row.size for row in connection.execute(query)}
    return found


def choose_submissions(connection: Connection, assignment: str, chosen: Mapping[str, str]) -> None:
    """By student, the SHA-256 of the submission that counts from now on."""
    own = submissions.c.assignment == assignment
    for chunk in cut_chunks(chosen.items()):
        students = [student for student, _ in chunk]
        connection.execute(update(submissions).where(own, submissions.c.student.in_(students)).values(current=False))
        pair = tuple_(submissions.c.student, submissions.c.sha256)
        connection.execute(update(submissions).where(own, pair.in_(chunk)).values(current=True))
