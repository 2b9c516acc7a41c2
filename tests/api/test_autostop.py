"""When a cluster stops or is let go, as its owner sets it while it is up."""

import pytest

from accounting.ids import JobId
from tests.api.house import House


@pytest.fixture
def house() -> House:
    made = House()
    made.launch("resources: {cpus: 2}\nrun: x")
    made.wait(600)
    return made


def set_to(house: House, **body: object) -> None:
    assert house.call("POST", "/v1/clusters/dev/autostop", body)[0] == 200


def is_up(house: House) -> bool:
    found = house.call("GET", "/v1/clusters")[1]["clusters"]
    return [one["status"] for one in found] == ["UP"]


def test_the_time_without_a_run_counts_from_when_it_was_set(house: House) -> None:
    set_to(house, idle_seconds=300, down=True)
    house.wait(240)
    assert is_up(house)
    house.wait(120)
    assert not is_up(house)


def test_setting_it_anew_begins_anew(house: House) -> None:
    set_to(house, idle_seconds=300, down=True)
    house.wait(240)
    set_to(house, idle_seconds=300, down=True)
    house.wait(240)
    assert is_up(house)
    set_to(house, idle_seconds=None, down=True)
    house.wait(3600)
    assert is_up(house)


def test_a_limit_ends_it_whatever_runs(house: House) -> None:
    set_to(house, idle_seconds=300, limit=True)
    house.call("POST", "/v1/clusters/dev/exec", house.body("run: sleep"))
    house.wait(240)
    assert is_up(house)
    house.wait(180)
    assert not is_up(house)
    (job,) = house.call("GET", "/v1/jobs")[1]["jobs"]
    assert job["state"] == "TIMEOUT"


@pytest.mark.parametrize("waits", ["jobs", "jobs_and_ssh"])
def test_the_autostop_of_a_further_launch_holds_from_then_on(house: House, waits: str) -> None:
    set_to(house, idle_seconds=7200, down=False, past_logins=waits != "jobs")
    autostop = f"{{idle_minutes: 0, down: true, wait_for: {waits}}}"
    assert house.launch(f"resources: {{autostop: {autostop}}}\nrun: x")[0] == 200
    (cluster,) = house.call("GET", "/v1/clusters")[1]["clusters"]
    assert (cluster["idle_seconds"], cluster["idle_stops"]) == (0, False)
    assert house.desk.snapshot().jobs[JobId(1)].spec.idle_past_logins is (waits == "jobs")
    house.wait(600)
    assert not is_up(house)


def test_a_further_launch_that_asks_for_no_autostop_leaves_it(house: House) -> None:
    set_to(house, idle_seconds=300, down=True)
    house.launch("run: x")
    (cluster,) = house.call("GET", "/v1/clusters")[1]["clusters"]
    assert cluster["idle_seconds"] == 300
