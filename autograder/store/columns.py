"""Column types: Python's texts and times as every database can keep them."""

import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import DateTime, Dialect
from sqlalchemy import Text as PlainText
from sqlalchemy.types import TypeDecorator

from autograder.store.texts import escape_text, restore_text


class Text(TypeDecorator[str]):
    """Any Python text, file names with undecodable bytes included."""

    impl = PlainText
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Python to database."""
        return None if value is None else escape_text(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """Database to Python."""
        return None if value is None else restore_text(value)


class Texts(TypeDecorator[tuple[str, ...]]):
    """A tuple of texts as a JSON list; JSON's own escapes carry what a database refuses."""

    impl = PlainText
    cache_ok = True

    def process_bind_param(self, value: tuple[str, ...] | None, dialect: Dialect) -> str:
        """Python to database."""
        return json.dumps(value) if value else "[]"

    def process_result_value(self, value: str | None, dialect: Dialect) -> tuple[str, ...]:
        """Database to Python."""
        return () if value is None or value == "[]" else tuple(json.loads(value))


class Description(TypeDecorator[dict[str, Any]]):
    """A JSON object."""

    impl = PlainText
    cache_ok = True

    def process_bind_param(self, value: dict[str, Any] | None, dialect: Dialect) -> str:
        """Python to database."""
        return json.dumps(value or {}, sort_keys=True)

    def process_result_value(self, value: str | None, dialect: Dialect) -> dict[str, Any]:
        """Database to Python."""
        return dict(json.loads(value or "{}"))


class Instant(TypeDecorator[datetime]):
    """A moment. It goes in with its time zone and comes back in UTC, also where the database knows no time zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Python to database. `ValueError` for a time without a time zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Database to Python."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
