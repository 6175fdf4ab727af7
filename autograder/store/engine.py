"""A place -> a SQLAlchemy engine: a file of SQLite's, or a PostgreSQL server by URL."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy import create_engine as create_sqlalchemy_engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError

from autograder.errors import StoreError

BUSY_SECONDS = 30
"""How long one write waits for another process's."""

_SQLITE_ADVICE = (
    ("readonly", "the file or its folder may not be written; change its permissions or choose another --store"),
    ("unable to open", "the file or its folder cannot be opened; look at their permissions"),
    ("not a database", "the file is no store of the autograder; move it away or choose another --store"),
    ("malformed", "the file is damaged; put back a copy of it, or move it away and grade again"),
    ("full", "the disk is full; make room and run the same command again, which goes on where it stopped"),
    ("locked", "another process is writing to it; wait for it and run the same command again"),
    ("i/o error", "the disk fails or is full; make room or look at the disk, then run the same command again"),
)


def build_url(place: str | Path) -> URL:
    """The database that a path or a URL names. `StoreError` for a URL of another kind of database."""
    if isinstance(place, Path) or "://" not in place:
        return URL.create("sqlite", database=str(Path(place).absolute()))
    try:
        url = make_url(place)
    except (ArgumentError, ValueError) as error:
        raise StoreError(f"the store's URL cannot be read ({error}); write postgresql://user@host/database") from error
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername == "sqlite" and url.database:
        return url.set(database=str(Path(url.database).absolute()))
    raise StoreError(f"a store of kind {url.drivername} is not known; give a file or a postgresql:// URL")


def find_file(url: URL) -> Path | None:
    """The file of a SQLite store; None for a server."""
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


def create_engine(url: URL, *, create: bool) -> Engine:
    """An engine whose write transactions (`begin_write`) last through a loss of power once they are over."""
    file = find_file(url)
    if file is None:
        try:
            return create_sqlalchemy_engine(url, pool_size=1, pool_pre_ping=True)
        except ModuleNotFoundError as error:
            raise StoreError(
                f"the store {show_place(url)} needs the package {error.name}; "
                "install it with: pip install 'autograder-numpy[postgres]'"
            ) from error
    _prepare_file(file, create=create)
    # One connection stays open: closing the last one folds SQLite's log into the file, which takes as long as a write.
    engine = create_sqlalchemy_engine(url, pool_size=1, connect_args={"timeout": BUSY_SECONDS})
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_file(file: Path, *, create: bool) -> None:
    """The store holds what students wrote and earned: nobody else may read it, from the first byte on."""
    if file.exists():
        return
    if not create:
        raise StoreError(f"{file}: there is no store yet; grade submissions first")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreError(
            f"{file}: the store cannot be made ({error.strerror}); "
            "change the folder's permissions or choose another --store"
        ) from error


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # `_begin_sqlite` says how a transaction begins, not the driver
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "secure_delete = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get("isolation_level") != "AUTOCOMMIT":
        # A transaction that reads first and then writes could not wait for another's write.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("writes") else "BEGIN")


@contextlib.contextmanager
def begin_write(engine: Engine) -> Iterator[Connection]:
    """One transaction that writes: all of it or nothing."""
    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        yield connection


def show_place(url: URL) -> str:
    """The store's place for people, without a password."""
    file = find_file(url)
    return str(file) if file else url.render_as_string(hide_password=True)


@contextlib.contextmanager
def explain_faults(url: URL) -> Iterator[None]:
    """Faults of the database as `StoreError`: one sentence with the place, what happened and what to do."""
    try:
        yield
    except IntegrityError as error:
        raise StoreError(
            f"{show_place(url)}: the store refuses rows that refer to what it has not ({_first_line(error)}); "
            "this is a fault of the autograder, please report it"
        ) from error
    except DBAPIError as error:
        text = _first_line(error)
        if find_file(url) is None:
            advice = "look whether the server runs and lets this user in"
        else:
            known = (advice for sign, advice in _SQLITE_ADVICE if sign in text.lower())
            advice = next(known, "run the same command again")
        raise StoreError(f"{show_place(url)}: {advice} ({text})") from error


def _first_line(error: DBAPIError) -> str:
    return (str(error.orig).strip().splitlines() or [type(error.orig).__name__])[0]
