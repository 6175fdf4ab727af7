"""The first version of the schema. Frozen: what stands here was made on other people's disks."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "contents",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_contents")),
    )
    op.create_table(
        "decisions",
        sa.Column("id", number, nullable=False),
        sa.Column("assignment", sa.Text(), nullable=False),
        sa.Column("student", sa.Text(), nullable=False),
        sa.Column("exercise", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("points", sa.Double(), nullable=True),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("decided", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_decisions")),
    )
    op.create_index(op.f("ix_decisions_assignment"), "decisions", ["assignment"], unique=False)
    op.create_index(op.f("ix_decisions_student"), "decisions", ["student"], unique=False)
    op.create_table(
        "environments",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_environments")),
    )
    op.create_table(
        "holder",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_holder")),
    )
    op.create_table(
        "markings",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_markings")),
    )
    op.create_table(
        "executions",
        sa.Column("id", number, nullable=False),
        sa.Column("assignment", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("environment", sa.Text(), nullable=False),
        sa.Column("exercise", sa.Text(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("cpu_seconds", sa.Double(), nullable=False),
        sa.Column("executed", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["environment"], ["environments.digest"], name=op.f("fk_executions_environment")),
        sa.ForeignKeyConstraint(["sha256"], ["contents.sha256"], name=op.f("fk_executions_sha256")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_executions")),
        sa.UniqueConstraint(
            "assignment",
            "sha256",
            "environment",
            "exercise",
            name=op.f("uq_executions_assignment_sha256_environment_exercise"),
        ),
    )
    op.create_index(op.f("ix_executions_sha256"), "executions", ["sha256"], unique=False)
    op.create_table(
        "gradings",
        sa.Column("id", number, nullable=False),
        sa.Column("assignment", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("environment", sa.Text(), nullable=False),
        sa.Column("marking", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("graded", sa.DateTime(timezone=True), nullable=False),
        sa.Column("chosen", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["environment"], ["environments.digest"], name=op.f("fk_gradings_environment")),
        sa.ForeignKeyConstraint(["marking"], ["markings.digest"], name=op.f("fk_gradings_marking")),
        sa.ForeignKeyConstraint(["sha256"], ["contents.sha256"], name=op.f("fk_gradings_sha256")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gradings")),
        sa.UniqueConstraint(
            "assignment",
            "sha256",
            "environment",
            "marking",
            name=op.f("uq_gradings_assignment_sha256_environment_marking"),
        ),
    )
    op.create_index(op.f("ix_gradings_sha256"), "gradings", ["sha256"], unique=False)
    op.create_table(
        "submissions",
        sa.Column("id", number, nullable=False),
        sa.Column("assignment", sa.Text(), nullable=False),
        sa.Column("student", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("received", sa.DateTime(timezone=True), nullable=True),
        sa.Column("late", sa.Boolean(), nullable=True),
        sa.Column("lms_id", sa.Text(), nullable=False),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("recorded", sa.DateTime(timezone=True), nullable=False),
        sa.Column("current", sa.Boolean(), nullable=False),
        sa.Column("forgotten", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["sha256"], ["contents.sha256"], name=op.f("fk_submissions_sha256")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_submissions")),
        sa.UniqueConstraint("assignment", "student", "sha256", name=op.f("uq_submissions_assignment_student_sha256")),
    )
    op.create_index(op.f("ix_submissions_sha256"), "submissions", ["sha256"], unique=False)
    op.create_index(op.f("ix_submissions_student"), "submissions", ["student"], unique=False)
    op.create_table(
        "exercise_results",
        sa.Column("grading", number, autoincrement=False, nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("exercise", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("written_points", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["grading"], ["gradings.id"], name=op.f("fk_exercise_results_grading"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("grading", "position", name=op.f("pk_exercise_results")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "marks",
        sa.Column("grading", number, autoincrement=False, nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("exercise", sa.Text(), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("max_score", sa.Double(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("hint", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("explanations", sa.Text(), nullable=False),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("visible", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["grading"], ["gradings.id"], name=op.f("fk_marks_grading"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("grading", "position", name=op.f("pk_marks")),
        sqlite_with_rowid=False,
    )
