"""Every test of the store runs on SQLite and on a real PostgreSQL server."""

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import psycopg
import pytest

from autograder.store.database import Store, open_store
from autograder.store.packing import unpack_bytes

START_SECONDS = 60


def find_server_programs() -> Path | None:
    folders = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    on_path = shutil.which("initdb")
    if on_path:
        folders.append(Path(on_path).resolve().parent)
    return max(folders, default=None, key=lambda folder: folder.parent.name)


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The URL of a PostgreSQL server that lives as long as the tests; without a database's name."""
    programs = find_server_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed here: apt-get install postgresql")
    if not shutil.which("setpriv"):
        pytest.skip("setpriv (util-linux) is not installed here")
    # Not below pytest's own folder, which the server's user may not enter.
    folder = Path(tempfile.mkdtemp(prefix="autograder-postgres-"))
    prefix = ["setpriv", "--pdeathsig", "INT"]
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        shutil.chown(folder, "nobody")
        prefix += ["--reuid", "nobody", "--clear-groups"]
    data = folder / "data"
    try:
        initdb = [programs / "initdb", "-D", data, "-U", "teacher", "-A", "trust", "-E", "UTF8", "--locale", "C", "-N"]
        subprocess.run([*prefix, *initdb], check=True, stdout=subprocess.DEVNULL, cwd=folder)
        settings = ["-c", "listen_addresses=", "-c", "fsync=off", "-c", f"unix_socket_directories={folder}"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [*prefix, programs / "postgres", "-D", data, *settings], stdout=log, stderr=log, cwd=folder
            )
        try:
            url = f"postgresql://teacher@/{{}}?host={folder}"
            wait_for_server(url.format("postgres"), process, folder / "log")
            yield url
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()
    finally:
        shutil.rmtree(folder)


def wait_for_server(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > end:
                pytest.fail(f"the PostgreSQL server did not start: {log.read_text()}")
            time.sleep(0.05)


_numbers = itertools.count()


@pytest.fixture(params=["sqlite", "postgresql"])
def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Gives places for stores that are not there yet."""
    if request.param == "sqlite":
        return lambda: str(tmp_path / f"store{next(_numbers)}" / "grades.sqlite")
    server: str = request.getfixturevalue("server")

    def build() -> str:
        name = f"store{next(_numbers)}"
        with psycopg.connect(server.format("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return server.format(name)

    return build


@pytest.fixture
def place(new_place: Callable[[], str]) -> str:
    return new_place()


@pytest.fixture
def store(place: str) -> Iterator[Store]:
    with open_store(place) as opened:
        yield opened


def read_contents(store: Store, sha256s: Iterable[str]) -> dict[str, bytes]:
    """The submitted bytes that are stored, by SHA-256."""
    return {sha256: unpack_bytes(data) for sha256, data in store.find_contents(sha256s).items()}
