"""The schema's version: new, old, newer."""

import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from autograder.errors import StoreError
from autograder.store.database import open_store
from autograder.store.engine import begin_write, build_url, create_engine
from autograder.store.migrate import _MIGRATIONS, upgrade
from autograder.store.tables import VERSIONS, metadata

from .conftest import read_contents

FIRST = Path(__file__).parent / "first_version.sql"
"""A SQLite store as the first version of the schema made it, with a row in each table."""


@pytest.mark.parametrize("way", ["by the migrations", "at once"])
def test_a_new_store_has_exactly_the_tables_of_the_code(place: str, way: str) -> None:
    engine = create_engine(build_url(place), create=True)
    if way == "by the migrations":
        with begin_write(engine) as connection:
            upgrade(connection)
    open_store(place).__exit__(None, None, None)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, metadata) == []


def test_code_knows_exactly_the_versions_that_there_are() -> None:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    scripts = ScriptDirectory.from_config(config)
    assert tuple(each.revision for each in scripts.walk_revisions())[::-1] == VERSIONS


def test_store_of_a_newer_autograder_is_refused_and_left_alone(place: str) -> None:
    with open_store(place) as store, store._write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match="made by a newer autograder"):
        open_store(place)


def test_store_of_the_first_version_opens_with_all_that_is_in_it(tmp_path: Path) -> None:
    file = tmp_path / "grades.sqlite"
    with sqlite3.connect(file) as connection:
        connection.executescript(FIRST.read_text(encoding="utf-8"))
    connection.close()
    with open_store(file) as store:
        (latest,) = store.latest_grades("qkv")
        assert (latest.submission.student, latest.grade.score, latest.grade.max_score) == ("ada", 1.5, 4.0)
        assert latest.submission.received == datetime(2026, 5, 1, 10, tzinfo=UTC)
        assert [test.outcome for test in latest.grade.exercises[0].tests] == ["passed", "failed"]
        assert read_contents(store, ["aa"]) == {"aa": b"bytes"}
        assert store.find_executions("qkv", "e", ["aa"]) == {"aa": {"": b"packed"}}
        assert [each.points for each in store.list_decisions("qkv")] == [2.0]
        assert (store.find_description("e"), store.find_description("m")) == ({"numpy": "2"}, {})


def test_processes_that_open_a_new_store_at_once_all_succeed(place: str) -> None:
    code = f"from autograder.store.database import open_store; open_store({place!r}).list_submissions('qkv')"
    running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
    assert [each.wait() for each in running] == [0] * 4


def test_store_that_is_up_to_date_opens_without_the_migration_library(place: str) -> None:
    open_store(place).__exit__(None, None, None)
    code = f"import sys; from autograder.store.database import open_store; open_store({place!r})"
    subprocess.run([sys.executable, "-c", f"{code}; sys.exit('alembic' in sys.modules)"], check=True)
