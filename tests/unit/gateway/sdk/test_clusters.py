"""Clusters that come up again where there is no room for them, and that end gracefully."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from broker.model.errors import Refused
from gateway.sdk import clusters
from gateway.sdk.client import Client
from gateway.sdk.show import clusters as shown

FULL = "m7i.large (on-demand) in use1-az1: InsufficientInstanceCapacity"
ONE = {"name": "dev", "job": 7}
INFRA = "aws/us-east-1/use1-az1"
STOPPED = {**ONE, "status": "STOPPED", "detail": FULL, "reason": "Resources", "infra": INFRA}
UP = {**ONE, "status": "UP", "detail": "", "reason": "None"}


@dataclass
class Service:
    """Tells these states in turn."""

    states: Iterator[dict[str, object]]
    asked: list[str] = field(default_factory=list)

    def get(self, _route: str) -> Any:
        return {"clusters": [next(self.states)]}

    def persist(self, route: str) -> Any:
        self.asked.append(route)


@pytest.mark.parametrize(
    ("again", "found", "waits"), [(False, "STOPPED", []), (True, "UP", [30.0, 60.0])]
)
def test_a_cluster_without_room_is_started_again_with_growing_pauses_where_that_is_wanted(
    again: bool, found: str, waits: list[float]
) -> None:
    service, waited, said = Service(iter([STOPPED, STOPPED, UP])), [], []  # type: ignore[var-annotated]
    client = cast("Client", service)
    told = clusters.came_up(client, ONE, again=again, say=said.append, wait=waited.append)
    assert (told["status"], waited) == (found, waits)
    assert service.asked == ["/v1/clusters/dev/start"] * len(waits)
    first, *last = dict.fromkeys(said)
    assert first == f"cluster dev did not start: {FULL}"
    wait = f"its disks are in {INFRA} alone: `spz start -r dev` asks there until there is room"
    assert [one.split(";")[0] for one in last] == ([] if again else [wait])


def test_why_a_cluster_did_not_start_stands_below_the_table() -> None:
    row = {
        **STOPPED,
        "user": "alice",
        "infra": "aws/us-east-1",
        "resources": "1x m7i.large",
        "idle_seconds": None,
        "idle_stops": False,
        "submitted": 0,
        "micro_usd_per_hour": 4_000,
        "cost_micro_usd": 1,
        "old_price": None,
    }
    assert shown([row], 60).splitlines()[-1] == f"dev did not start: {FULL}"
    assert "did not start" not in shown([row | {"detail": ""}], 60)


def test_a_time_that_is_none_is_refused_before_any_run_ends() -> None:
    nobody = cast(Client, None)
    with pytest.raises(Refused, match="--graceful-timeout -5: no time"):
        clusters.end_gracefully(nobody, {"name": "dev"}, down=True, within=-5)
