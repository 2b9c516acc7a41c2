"""What past jobs used is kept as it counts, faded, by whose they were."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    keys = ("user", "account", "qos", "partition")
    op.create_table(
        "charges",
        *(sa.Column(name, sa.Text, primary_key=True) for name in keys),
        sa.Column("doc", sa.Text, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("charges")
