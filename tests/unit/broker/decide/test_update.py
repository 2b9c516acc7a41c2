"""What a user may change of a job, and what only administrators may."""

from dataclasses import replace

import pytest

from broker.model import commands as cmd
from broker.model.errors import Denied
from broker.model.ids import NodeName
from broker.model.site import Partition
from tests.unit.broker.test_engine import ALICE, DECLARED, ROOT, Bench

SITE = replace(
    DECLARED,
    partitions=(
        *DECLARED.partitions,
        Partition("rootonly", root_only=True, nodes=(NodeName("n1"),)),
    ),
)
CHANGES = [
    ({"partitions": ("rootonly",)}, False),
    ({"partitions": ("down",)}, True),
    ({"time_limit": 8 * 86400}, False),
    ({"time_limit": 7 * 86400}, True),
    ({"time_limit": 8 * 86400, "partitions": ("down",)}, True),
]


@pytest.mark.parametrize(("change", "users"), CHANGES)
def test_users_stay_within_what_partitions_allow(change: dict[str, object], users: bool) -> None:
    for by, may in ((ALICE, users), (ROOT, True)):
        bench = Bench(SITE)
        job = bench.submit(hold=True)
        asked = cmd.Update(target=cmd.Target(job), by=by, **change)  # type: ignore[arg-type]
        (reply,) = bench.step(asked)
        assert isinstance(reply, Denied) is not may
