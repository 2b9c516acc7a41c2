"""Jobs that have ended are found by when they were there."""

from itertools import pairwise

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

EDGES = (0, 1 << 8, 1 << 11, 1 << 14, 1 << 17, 1 << 20, 1 << 62)
COLUMNS = ["submitted", "ended", "job_id", "version"]


def upgrade() -> None:
    for place, (low, high) in enumerate(pairwise(EDGES)):
        told = sa.text(f"ended - submitted >= {low} AND ended - submitted < {high}")
        name = f"jobs_span_{place}"
        op.create_index(name, "jobs", COLUMNS, sqlite_where=told, postgresql_where=told)


def downgrade() -> None:
    for place in range(len(EDGES) - 1):
        op.drop_index(f"jobs_span_{place}", "jobs")
