"""The version of the schema: a new store gets the newest, an old one is brought there."""

from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from autograder.errors import StoreError
from autograder.store.engine import begin_write
from autograder.store.tables import VERSIONS, metadata

_MIGRATIONS = Path(__file__).parent / "migrations"
_LOCK = 0x6175746F67726164
"""Of PostgreSQL: "autograd". One process migrates, others wait."""


def bring_up_to_date(engine: Engine, place: str, *, create: bool) -> None:
    """Migrate the tables, with `create` also make them.

    `StoreError` for an empty database without `create`, one of somebody else, or one of a newer autograder.
    """
    with engine.connect() as connection:
        found = read_version(connection, place)
    if found == VERSIONS[-1]:
        return
    if found is None and not create:
        raise StoreError(f"{place}: there is no store yet; grade submissions first")
    with begin_write(engine) as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        there = read_version(connection, place)
        if there is None:
            # As the migrations make it, which a test proves, without the time to load them.
            metadata.create_all(connection)
            connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
            connection.execute(text("INSERT INTO alembic_version VALUES (:version)"), {"version": VERSIONS[-1]})
        elif there != VERSIONS[-1]:
            upgrade(connection)


def read_version(connection: Connection, place: str) -> str | None:
    """The schema's version; None in an empty database."""
    tables = inspect(connection).get_table_names()
    if not tables:
        return None
    if "alembic_version" not in tables:
        raise StoreError(f"{place}: this database holds other things than a store; name an empty one")
    version = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if version is not None and version not in VERSIONS:
        raise StoreError(
            f"{place}: this store was made by a newer autograder (schema {version}, this one knows {VERSIONS[-1]}); "
            "install that version"
        )
    return version


def upgrade(connection: Connection, version: str = "head") -> None:
    """Run the migrations up to a version, within the connection's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, version)
