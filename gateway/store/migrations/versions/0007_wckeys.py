"""Use is told apart by wckey and reservation too."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

BEFORE = ("span", "tres", "start", "account", "user", "qos", "partition", "size")
AFTER = (*BEFORE[:-1], "wckey", "reservation", "size")
NUMBERS = {"span", "start", "size"}


def upgrade() -> None:
    _made_anew(
        AFTER, BEFORE, "INSERT INTO usage ({}, wckey, reservation) SELECT {}, '', '' FROM was"
    )


def downgrade() -> None:
    _made_anew(BEFORE, BEFORE, "INSERT INTO usage ({}) SELECT {} FROM was")


def _made_anew(keys: tuple[str, ...], common: tuple[str, ...], fill: str) -> None:
    """With another key, as SQLite can change none."""
    op.rename_table("usage", "was")
    op.create_table(
        "usage",
        *(
            sa.Column(
                name,
                sa.BigInteger if name in NUMBERS else sa.Text,
                primary_key=True,
                autoincrement=False,
            )
            for name in keys
        ),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    columns = ", ".join(f'"{name}"' for name in (*common, "amount"))
    op.execute(fill.format(columns, columns))
    op.drop_table("was")
