"""Facts of volumes are found among the events without reading all of them."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    own = sa.text("kind IN ('VolumeSet', 'VolumeGone')")
    op.create_index("events_volumes", "events", ["seq"], sqlite_where=own, postgresql_where=own)


def downgrade() -> None:
    op.drop_index("events_volumes", "events")
