"""Kinds of machines that did not come up are found among the events without reading all of them."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    own = sa.text("kind IN ('BootsSet', 'BootsGone')")
    op.create_index("events_boots", "events", ["seq"], sqlite_where=own, postgresql_where=own)


def downgrade() -> None:
    op.drop_index("events_boots", "events")
