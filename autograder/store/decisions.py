"""What people decided about points: rows are added and never changed."""

from collections.abc import Sequence

from sqlalchemy import Connection, insert, select

from autograder.records import Decision
from autograder.store.tables import decisions

_COLUMNS = tuple(
    decisions.c["decided" if name == "when" else name] for name in Decision.__struct_fields__
)  # WHEN is a word of SQL's own


def add_decisions(connection: Connection, made: Sequence[Decision]) -> None:
    """Keep decisions, in their order."""
    if made:
        rows = [dict(zip((c.name for c in _COLUMNS), _list_values(each), strict=True)) for each in made]
        connection.execute(insert(decisions), rows)


def _list_values(decision: Decision) -> list[object]:
    return [getattr(decision, name) for name in Decision.__struct_fields__]


def list_decisions(connection: Connection, assignment: str, student: str | None) -> list[Decision]:
    """All decisions of an assignment, oldest first; the last for a student, an exercise and a kind counts."""
    query = select(*_COLUMNS).where(decisions.c.assignment == assignment).order_by(decisions.c.id)
    if student is not None:
        query = query.where(decisions.c.student == student)
    return [Decision(*row) for row in connection.execute(query)]
