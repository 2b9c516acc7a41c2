"""A user's entries of the ledger are found without reading those of all."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ledger_user", "ledger", ["user", "at"])


def downgrade() -> None:
    op.drop_index("ledger_user", "ledger")
