"""The tables. A change here needs a migration (`migrations/versions/`) and its name at the end of `VERSIONS`."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    UniqueConstraint,
)

from autograder.store.columns import Description, Instant, Text, Texts

VERSIONS = ("0001", "0002")
"""Versions of the schema that this code knows, oldest first; it works with the last."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

_Id = BigInteger().with_variant(Integer, "sqlite")  # only INTEGER counts up by itself there

contents = Table(
    "contents",
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("data", LargeBinary),  # zlib; null: erased
)

submissions = Table(
    "submissions",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("assignment", Text, nullable=False),
    Column("student", Text, nullable=False),
    Column("sha256", Text, ForeignKey(contents.c.sha256), nullable=False, index=True),
    Column("path", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("received", Instant),
    Column("late", Boolean),
    Column("lms_id", Text, nullable=False),  # what the LMS knows the student by
    Column("notes", Texts, nullable=False),
    Column("recorded", Instant, nullable=False),
    Column("current", Boolean, nullable=False),
    Column("forgotten", Boolean, nullable=False),
    Column("lms", Text),
    UniqueConstraint("assignment", "student", "sha256"),
    Index(None, "student"),
)

environments = Table(
    "environments",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("description", Description, nullable=False),
)

markings = Table(
    "markings",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("description", Description, nullable=False),
)

executions = Table(
    "executions",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("assignment", Text, nullable=False),
    Column("sha256", Text, ForeignKey(contents.c.sha256), nullable=False, index=True),
    Column("environment", Text, ForeignKey(environments.c.digest), nullable=False),
    Column("exercise", Text, nullable=False),  # empty: all exercises together
    Column("data", LargeBinary, nullable=False),
    Column("cpu_seconds", Double, nullable=False),
    Column("executed", Instant, nullable=False),
    UniqueConstraint("assignment", "sha256", "environment", "exercise"),
)

gradings = Table(
    "gradings",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("assignment", Text, nullable=False),
    Column("sha256", Text, ForeignKey(contents.c.sha256), nullable=False, index=True),
    Column("environment", Text, ForeignKey(environments.c.digest), nullable=False),
    Column("marking", Text, ForeignKey(markings.c.digest), nullable=False),
    Column("status", Text, nullable=False),
    Column("reason", Text),
    Column("notes", Texts, nullable=False),
    Column("graded", Instant, nullable=False),
    Column("chosen", BigInteger, nullable=False),  # of a submission's gradings the one with the highest number counts
    UniqueConstraint("assignment", "sha256", "environment", "marking"),
)

exercise_results = Table(
    "exercise_results",
    metadata,
    Column("grading", _Id, ForeignKey(gradings.c.id, ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("exercise", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("written_points", Double, nullable=False),
    sqlite_with_rowid=False,
)

marks = Table(
    "marks",
    metadata,
    Column("grading", _Id, ForeignKey(gradings.c.id, ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("exercise", Text, nullable=False),
    Column("score", Double, nullable=False),
    Column("max_score", Double, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("hint", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("explanations", Texts, nullable=False),
    Column("notes", Texts, nullable=False),
    Column("visible", Boolean, nullable=False),
    sqlite_with_rowid=False,
)

decisions = Table(
    "decisions",
    metadata,
    Column("id", _Id, primary_key=True),
    Column("assignment", Text, nullable=False),
    Column("student", Text, nullable=False, index=True),
    Column("exercise", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("points", Double),  # null: an earlier decision of the kind is withdrawn
    Column("who", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("decided", Instant, nullable=False),
    Index(None, "assignment"),
)

holder = Table(
    "holder",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("description", Description, nullable=False),  # who works on the store; says nothing once the lock is free
)
