"""One run at a time works on a store. The kernel, or the server, frees the lock when a process dies."""

import contextlib
import fcntl
import getpass
import os
import socket
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, delete, insert, select, text
from sqlalchemy.exc import DBAPIError

from autograder.errors import StoreBusyError, StoreError
from autograder.store.engine import begin_write, find_file, show_place
from autograder.store.tables import holder

_KEY = 0x6772616465730000
"""Of PostgreSQL, within one database: "grades"."""
_POLL_SECONDS = 0.2

_held: set[int] = set()
"""Descriptors that hold a lock. A process forked meanwhile would keep it after its parent's death."""


def _drop_held() -> None:
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for handle in _held:
        os.dup2(nothing, handle, inheritable=False)  # not closed, since its owner's copy may still close it
    os.close(nothing)
    _held.clear()


os.register_at_fork(after_in_child=_drop_held)


@contextlib.contextmanager
def hold_exclusively(engine: Engine, purpose: str, wait: float) -> Iterator[None]:
    """Hold the store's lock. `StoreBusyError` names who holds it when it is not free within `wait` seconds."""
    file = find_file(engine.url)
    with _lock_file(engine, file, wait) if file else _lock_server(engine, wait):
        with begin_write(engine) as connection:
            connection.execute(delete(holder))
            connection.execute(insert(holder).values(id=1, description=_describe(purpose)))
        yield


@contextlib.contextmanager
def _lock_file(engine: Engine, file: Path, wait: float) -> Iterator[None]:
    beside = file.with_name(f"{file.name}.lock")
    try:
        handle = os.open(beside, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"{beside}: cannot be opened ({error.strerror}); change its permissions") from error
    _held.add(handle)
    try:
        _try_until(lambda: _try_flock(handle), engine, wait)
        yield
    finally:
        _held.discard(handle)
        os.close(handle)


def _try_flock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def _lock_server(engine: Engine, wait: float) -> Iterator[None]:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        driver: Any = connection.connection.driver_connection
        handle = driver.fileno()
        connection.detach()  # from the pool: it ends here, and with it the lock
        _held.add(handle)
        try:
            _try_until(lambda: _try_advisory(connection), engine, wait)
            yield
        finally:
            _held.discard(handle)
            with contextlib.suppress(DBAPIError):  # a server that is gone holds nothing
                # The end of the connection frees it too, but only a moment later.
                connection.execute(text("SELECT pg_advisory_unlock_all()"))


def _try_advisory(connection: Connection) -> bool:
    return bool(connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": _KEY}).scalar())


def _try_until(attempt: Callable[[], bool], engine: Engine, wait: float) -> None:
    end = time.monotonic() + wait
    while not attempt():
        if time.monotonic() >= end:
            raise StoreBusyError(f"{show_place(engine.url)}: {_tell_holder(engine)}; wait for it to end, or end it")
        time.sleep(_POLL_SECONDS)


def _describe(purpose: str) -> dict[str, Any]:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name
        user = str(os.getuid())
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return {"purpose": purpose, "user": user, "host": socket.gethostname(), "pid": os.getpid(), "since": since}


def _tell_holder(engine: Engine) -> str:
    with engine.connect() as connection:
        found = connection.execute(select(holder.c.description)).scalar()
    if found is None:
        return "another run has just begun to work on this store"
    return "{user} on {host} (process {pid}) works on this store since {since}: {purpose}".format_map(found)
