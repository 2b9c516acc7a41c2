"""Changes of partitions are found among the events without reading all of them."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    own = sa.text("kind IN ('PartitionSet', 'PartitionGone')")
    op.create_index("events_partitions", "events", ["seq"], sqlite_where=own, postgresql_where=own)


def downgrade() -> None:
    op.drop_index("events_partitions", "events")
