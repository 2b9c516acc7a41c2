"""Entries are numbered; use and cost by hour and day."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

NUMBERED = """
UPDATE ledger SET seq = numbered.place
FROM (SELECT key AS entry, row_number() OVER (ORDER BY at, key) AS place FROM ledger) AS numbered
WHERE ledger.key = numbered.entry
"""
PARTIES = ("account", "user", "qos", "partition")


def upgrade() -> None:
    op.add_column("ledger", sa.Column("seq", sa.BigInteger))
    op.execute(NUMBERED)
    op.create_index("ledger_seq", "ledger", ["seq"])
    op.create_table(
        "usage",
        _key("span", sa.BigInteger),
        _key("tres", sa.Text),
        _key("start", sa.BigInteger),
        *(_key(name, sa.Text) for name in PARTIES),
        _key("size", sa.BigInteger),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "costs",
        _key("span", sa.BigInteger),
        _key("start", sa.BigInteger),
        *(_key(name, sa.Text) for name in (*PARTIES, "instance_type", "region", "market", "why")),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "positions",
        _key("consumer", sa.Text),
        sa.Column("seq", sa.BigInteger, nullable=False),
    )


def _key(name: str, of: type[sa.types.TypeEngine[Any]]) -> sa.Column[Any]:
    return sa.Column(name, of, primary_key=True, autoincrement=False)


def downgrade() -> None:
    for table in ("positions", "costs", "usage"):
        op.drop_table(table)
    op.drop_index("ledger_seq", "ledger")
    op.drop_column("ledger", "seq")
