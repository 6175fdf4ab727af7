"""Which LMS an id is of: two of them may number their students alike."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Of submissions that are there it is not known."""
    op.add_column("submissions", sa.Column("lms", sa.Text(), nullable=True))
