"""Operators' errands: health, sweeps, protection, backups; what others may not do."""

import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from broker.model.boots import BootsSet, FailedBoots
from broker.model.offer import Machine, Market
from tests.api.house import ANN, BOB, BOSS, House, refusal
from tests.sim.harness import CATALOG


def test_health_counts(house: House) -> None:
    house.launch("run: x")
    house.wait(60)
    _, told = house.call("GET", "/v1/health")
    assert (told["status"], told["version"], told["pid"]) == ("ok", "25.11.7", os.getpid())
    assert (told["jobs_live"], told["jobs_running"]) == (1, 1)
    assert [n["name"] for n in told["nodes"] if not n["declared"]] == ["ec2-1"]


def _stray(house: House) -> Machine:
    offer = next(iter(CATALOG))
    assert offer.market in Market
    (machine,) = house.sim.cloud.launch(offer, [("ec2-9", 77)], token="lost")  # type: ignore[list-item]
    return machine


def test_a_sweep_finds_machines_that_nobody_knows_and_lets_them_go(house: House) -> None:
    machine = _stray(house)
    status, told = house.call("GET", "/v1/sweep", by=BOSS)
    (found,) = told["providers"]
    assert (status, [one["id"] for one in found["stray"]]) == (200, [machine.id])
    house.call("POST", "/v1/sweep", by=BOSS)
    house.wait(60)
    assert house.call("GET", "/v1/sweep", by=BOSS)[1]["providers"][0]["stray"] == []


def test_what_is_not_bought_because_it_never_comes_up_is_listed_and_ended(house: House) -> None:
    kept = FailedBoots(name="ec2:us-east-1,m7i.large", failed=2, since=1, why="late")
    house.sim.world.apply(BootsSet(at=1, record=kept))
    house.wait(1)
    assert house.call("GET", "/v1/protected", by=BOSS)[1] == {"kinds": [asdict(kept)]}
    unknown = house.call("POST", "/v1/protected/end?kind=x", by=BOSS)
    assert refusal(unknown)[0] == 404
    ended = house.call("POST", "/v1/protected/end", by=BOSS)
    assert ended == (200, {"kinds": [kept.name]})
    assert house.call("GET", "/v1/protected", by=BOSS)[1] == {"kinds": []}


def test_a_backup_is_a_new_file(house: House, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    ask = {"path": str(target)}
    assert house.call("POST", "/v1/db/backup", ask, by=BOSS)[1]["bytes"] == 4
    assert "is there already" in refusal(house.call("POST", "/v1/db/backup", ask, by=BOSS))[1]
    relative = house.call("POST", "/v1/db/backup", {"path": "x"}, by=BOSS)
    assert refusal(relative)[1] == "x: not an absolute path"


@pytest.mark.parametrize(
    ("method", "route"),
    [
        ("GET", "/v1/sweep"),
        ("POST", "/v1/sweep"),
        ("POST", "/v1/db/backup"),
        ("GET", "/v1/protected"),
        ("POST", "/v1/protected/end"),
    ],
)
def test_errands_are_for_administrators(house: House, method: str, route: str) -> None:
    body = {"path": "/tmp/x"} if "backup" in route else None
    assert refusal(house.call(method, route, body, by=BOB))[0] == 403


def test_a_users_own_service_launches_for_nobody_else(house: House) -> None:
    house.sim.world.site = replace(house.sim.world.site, service_uid=ANN.uid)
    house.wait(1)
    assert house.launch("run: x")[0] == 200
    if ANN.uid != 0:
        assert refusal(house.launch("run: x", by=BOB))[:2] == (403, "Access/permission denied")


@pytest.mark.parametrize("verb", ["down", "stop", "start", "autostop", "cancel"])
@pytest.mark.parametrize(("private", "status"), [((), 403), (("jobs",), 404)])
def test_a_cluster_that_is_not_shown_is_none_for_every_verb(
    verb: str, private: tuple[str, ...], status: int
) -> None:
    house = House(*private)
    house.launch(by=BOSS)
    assert house.call("POST", f"/v1/clusters/dev/{verb}", {}, by=BOB)[0] == status
