"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = (
    *("leases", "counters", "requests", "blobs", "ledger"),
    *("nodes", "events", "runs", "jobs", "specs"),
)


def upgrade() -> None:
    op.create_table(
        "specs",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("doc", sa.Text, nullable=False),
    )
    _jobs()
    _past()
    _money_and_machines()
    _service()


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("job_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("array_base", sa.BigInteger),
        sa.Column("array_task", sa.BigInteger),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("uid", sa.BigInteger, nullable=False),
        sa.Column("account", sa.Text, nullable=False),
        sa.Column("partition", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("over", sa.SmallInteger, nullable=False),
        sa.Column("submitted", sa.BigInteger, nullable=False),
        sa.Column("eligible", sa.BigInteger),
        sa.Column("started", sa.BigInteger),
        sa.Column("ended", sa.BigInteger),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("spec", sa.Text, sa.ForeignKey("specs.digest"), nullable=False),
        sa.Column("doc", sa.Text, nullable=False),
    )
    op.create_index("jobs_over_ended", "jobs", ["over", "ended"])
    op.create_index("jobs_user", "jobs", ["user"])
    op.create_index("jobs_array_base", "jobs", ["array_base"])


def _past() -> None:
    op.create_table(
        "runs",
        sa.Column("job_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("attempt", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("spec", sa.Text, sa.ForeignKey("specs.digest"), nullable=False),
        sa.Column("doc", sa.Text, nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("job", sa.BigInteger),
        sa.Column("node", sa.Text),
        sa.Column("launch", sa.BigInteger),
        sa.Column("spec", sa.Text, sa.ForeignKey("specs.digest")),
        sa.Column("doc", sa.Text, nullable=False),
    )
    op.create_index("events_job", "events", ["job"])


def _money_and_machines() -> None:
    op.create_table(
        "nodes",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("launch", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("gone", sa.SmallInteger, nullable=False),
        sa.Column("doc", sa.Text, nullable=False),
    )
    op.create_index("nodes_gone", "nodes", ["gone"])
    op.create_table(
        "ledger",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("job", sa.BigInteger),
        sa.Column("account", sa.Text, nullable=False),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("cost", sa.BigInteger, nullable=False),
        sa.Column("doc", sa.Text, nullable=False),
    )
    op.create_index("ledger_at", "ledger", ["at"])
    op.create_index("ledger_job", "ledger", ["job"])


def _service() -> None:
    op.create_table(
        "blobs",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("bytes", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "requests",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("reply", sa.Text, nullable=False),
    )
    op.create_index("requests_at", "requests", ["at"])
    op.create_table(
        "counters",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "leases",
        sa.Column("role", sa.Text, primary_key=True),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    for table in TABLES:
        op.drop_table(table)
