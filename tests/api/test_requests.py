"""Requests of verbs: seen through until each thing has become what it was to, across restarts."""

import asyncio
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from broker.model.commands import ASKED, Remember
from broker.model.errors import Busy, Denied, Unknown
from broker.world import Snapshot
from gateway.api.desk import Desk
from gateway.api.goals import MOST_GOALS, MOST_TEXT, Asked, Goal
from gateway.api.keeper import FIRST_GAP, MOST_HELD, MOST_OPEN, Keeper
from gateway.observe.processes import birth
from gateway.sdk.requested import cancel
from tests.api.house import ANN, BOB, BOSS, House, refusal

ID = "0123456789abcdef0123456789abcdef"
TYPE = "c5.large"


@pytest.fixture
def house() -> House:
    made = House()
    made.launch(f"resources: {{instance_type: {TYPE}}}")
    made.wait(60)
    return made


def take(house: House, verb: str, *goals: dict[str, Any], **more: Any) -> tuple[int, Any]:
    body = {"request": ID, "verb": verb, "goals": list(goals), **more}
    return house.call("POST", "/v1/requests", body)


def look(house: House, keeper: Keeper | None = None) -> tuple[str, list[str]]:
    """How it stands once what is due was done."""
    asyncio.run((keeper or house.keeper).look())
    told = house.call("GET", f"/v1/requests/{ID}")[1]
    assert told["over"] is (told["state"] != "RUNNING")
    return told["state"], told["told"]


def to(goal: str, **more: Any) -> dict[str, Any]:
    return {"to": goal, "job": 1, "name": "dev", **more}


def stop(house: House) -> None:
    house.call("POST", "/v1/clusters/dev/stop")
    house.wait(60)


def test_a_stop_is_over_once_the_last_machine_is_stopped(house: House) -> None:
    house.call("POST", "/v1/clusters/dev/stop")
    assert take(house, "stop", to("stopped"), said=["Stopping dev"])[0] == 200
    assert look(house) == ("RUNNING", ["Stopping dev", "dev: STOPPING"])
    house.wait(60)
    assert look(house) == ("SUCCEEDED", ["Stopping dev", "dev: STOPPED"])
    assert house.keeper.open == {}


@pytest.mark.parametrize(
    ("verb", "route", "goal", "before", "after"),
    [
        ("down", "/v1/clusters/dev/down", to("gone"), "dev: TERMINATING", "dev: GONE"),
        ("cancel", "/v1/clusters/dev/cancel", to("over"), "dev: run 1 ends", "dev: run 1 is over"),
    ],
)
def test_each_verb_is_over_when_what_it_asked_for_is(
    verb: str, route: str, goal: dict[str, Any], before: str, after: str
) -> None:
    house = House()
    house.launch("run: x")
    house.wait(50)
    house.call("POST", route)
    take(house, verb, goal)
    assert look(house) == ("RUNNING", [before])
    house.wait(200)
    assert look(house) == ("SUCCEEDED", [after])


@pytest.mark.parametrize("goal", ["up", "stopped"])
def test_what_cannot_come_any_more_has_failed(house: House, goal: str) -> None:
    house.call("POST", "/v1/clusters/dev/down")
    take(house, "stop", to(goal))
    assert look(house) == ("FAILED", ["dev: GONE"])


def test_what_is_done_at_once_is_over_at_once(house: House) -> None:
    take(house, "autostop", said=["set"])
    assert look(house) == ("SUCCEEDED", ["set"])


def test_a_start_waits_until_its_machines_are_stopped_and_is_over_when_they_are_up(
    house: House,
) -> None:
    house.call("POST", "/v1/clusters/dev/stop")
    take(house, "start", to("up"))
    assert look(house)[0] == "RUNNING"
    house.wait(60)
    assert look(house)[0] == "RUNNING"
    house.wait(90)
    assert look(house) == ("SUCCEEDED", ["dev: UP"])


def test_a_start_without_room_fails_and_says_why(house: House) -> None:
    stop(house)
    house.sim.cloud.capacity[TYPE] = 0
    take(house, "start", to("up"))
    look(house)
    house.wait(20)
    state, (line,) = look(house)
    assert (state, line.startswith("dev: STOPPED (")) == ("FAILED", True)


def test_a_start_that_is_asked_for_until_there_is_room_outlives_the_service(house: House) -> None:
    stop(house)
    house.sim.cloud.capacity[TYPE] = 0
    take(house, "start", to("up"), again=True)
    for _ in range(3):
        assert look(house)[0] == "RUNNING"
        house.wait(FIRST_GAP * 4)
    later = Keeper(house.desk, house.log)
    asyncio.run(later.take_up())
    assert list(later.open) == [ID]
    del house.sim.cloud.capacity[TYPE]
    house.keeper.open.clear()
    assert look(house, later)[0] == "RUNNING"
    house.wait(120)
    assert look(house, later) == ("SUCCEEDED", ["dev: UP"])
    done = Keeper(house.desk, house.log)
    asyncio.run(done.take_up())
    assert done.open == {}


OTHER = "f" * 32


class Snag(Desk):
    """What nobody foresaw, where one user's things are looked at, or where requests are read."""

    def __init__(self, desk: Desk, fault: Exception, *, unread: int = 0) -> None:
        parts = ("engine", "snapshot", "history", "clock", "names")
        super().__init__(**{part: getattr(desk, part) for part in parts})
        self.fault, self.unread, self.looks = fault, unread, 0
        self.pause = self._pause

    async def _pause(self, seconds: float) -> None:
        self.looks += 1
        if self.looks > 3:
            raise asyncio.CancelledError

    async def seen(self, uid: int) -> Snapshot:
        if uid == BOB.uid:
            raise self.fault
        return await super().seen(uid)

    async def read(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        if function == self.history.open_requests and self.unread:
            self.unread -= 1
            raise self.fault
        return await super().read(function, *args, **kwargs)


def run(house: House, fault: Exception, *, unread: int = 0) -> list[str]:
    """What a keeper of the next service has open after three looks, but for one without end."""
    keeper = Keeper(Snag(house.desk, fault, unread=unread), house.log)
    ever = Asked(request="e" * 32, verb="x", goals=(Goal(to="told", pid=os.getpid()),), uid=ANN.uid)
    keeper.open[ever.request] = ever
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(keeper.run())
    return [name for name in keeper.open if name != ever.request]


@pytest.mark.parametrize(
    ("fault", "why", "logged"),
    [
        (
            ZeroDivisionError("odd"),
            "it could not be seen through: ZeroDivisionError: odd",
            [f"request.broken {OTHER}"],
        ),
        (Unknown("no such thing"), "no such thing", []),
        (Denied("Invalid user id"), "Invalid user id", []),
    ],
)
def test_one_requests_fault_is_its_own_end_and_the_keeper_lives_on(
    house: House, fault: Exception, why: str, logged: list[str]
) -> None:
    body = {"request": OTHER, "verb": "stop", "goals": [to("stopped")], "said": ["Stopping"]}
    assert house.call("POST", "/v1/requests", body, by=BOB)[0] == 200
    house.call("POST", "/v1/clusters/dev/stop")
    take(house, "stop", to("stopped"))
    house.wait(60)
    assert run(house, fault) == []
    assert house.call("GET", f"/v1/requests/{ID}")[1]["state"] == "SUCCEEDED"
    told = house.call("GET", f"/v1/requests/{OTHER}", by=BOB)[1]
    assert (told["state"], told["told"]) == ("FAILED", ["Stopping", why])
    assert house.log.events == logged


def test_a_request_for_which_there_is_no_time_now_holds_up_no_other(house: House) -> None:
    body = {"request": OTHER, "verb": "x", "goals": [to("up")]}
    house.call("POST", "/v1/requests", body, by=BOB)
    take(house, "x", said=["set"])
    assert run(house, Busy("the disk is full")) == [OTHER]
    assert house.call("GET", f"/v1/requests/{ID}")[1]["state"] == "SUCCEEDED"
    assert house.log.events == []


def test_requests_that_cannot_be_read_at_first_are_read_again(house: House) -> None:
    take(house, "x", said=["set"])
    assert run(house, OSError("disk"), unread=1) == []
    assert house.call("GET", f"/v1/requests/{ID}")[1]["state"] == "SUCCEEDED"
    assert house.log.events == ["requests.unread"]


@pytest.mark.parametrize("text", ["", "{}", '{"verb": "x", "goals": 7}'])
def test_a_kept_request_that_fits_no_more_loses_no_other(house: House, text: str) -> None:
    asyncio.run(house.desk.ask(Remember(request=ASKED + OTHER, text=text)))
    take(house, "stop", to("up"))
    later = Keeper(house.desk, house.log)
    asyncio.run(later.take_up())
    assert list(later.open) == [ID]
    assert house.log.events == ["request.unfit"]
    assert refusal(house.call("GET", f"/v1/requests/{OTHER}"))[0] == 404


def test_who_cancels_a_start_ends_the_asking(house: House) -> None:
    stop(house)
    house.sim.cloud.capacity[TYPE] = 0
    take(house, "start", to("up"), again=True)
    end = {"state": "CANCELLED"}
    assert house.call("POST", f"/v1/requests/{ID}/end", end)[1]["state"] == "CANCELLED"
    assert look(house)[0] == "CANCELLED"
    assert refusal(house.call("POST", f"/v1/requests/{ID}/end", end))[0] == 409
    assert house.call("GET", "/v1/requests")[1] == {"requests": []}


def idle(house: House) -> tuple[Any, ...]:
    """The autostop of the only cluster."""
    (one,) = house.call("GET", "/v1/clusters")[1]["clusters"]
    return one["idle_seconds"], one["idle_stops"], one["idle_past_logins"]


@pytest.fixture
def busy() -> House:
    """A cluster with an autostop of its own, whose end something holds off."""
    house = House()
    house.launch("resources: {autostop: {idle_minutes: 10, wait_for: jobs}}\nrun: long")
    house.wait(60)
    house.call("POST", "/v1/clusters/dev/autostop", {"idle_seconds": 7200, "down": True})
    return house


UNDO = {"idle_seconds": 600, "idle_stops": True, "idle_past_logins": True}


def test_who_cancels_a_graceful_end_gives_the_cluster_its_autostop_back(busy: House) -> None:
    take(busy, "down", to("gone", undo=UNDO))
    assert (look(busy)[0], idle(busy)) == ("RUNNING", (7200, False, False))
    busy.call("POST", f"/v1/requests/{ID}/end", {"state": "CANCELLED"})
    assert (look(busy)[0], idle(busy)) == ("CANCELLED", (600, True, True))


def test_an_administrator_who_cancels_undoes_nothing_for_a_user_who_may_not(busy: House) -> None:
    asked = {"request": ID, "verb": "down", "goals": [to("gone", undo=UNDO)]}
    assert busy.call("POST", "/v1/requests", asked, by=BOB)[0] == 200
    ended = busy.call("POST", f"/v1/requests/{ID}/end", {"state": "CANCELLED"}, by=BOSS)
    assert (ended[0], ended[1]["state"], idle(busy)) == (200, "CANCELLED", (7200, False, False))


def test_what_is_undone_of_a_cluster_that_is_gone_is_nothing(busy: House) -> None:
    take(busy, "down", to("gone", undo=UNDO), {"to": "up", "job": 99, "undo": UNDO})
    busy.call("POST", "/v1/clusters/dev/down")
    busy.wait(200)
    assert busy.call("POST", f"/v1/requests/{ID}/end", {"state": "CANCELLED"})[0] == 200


@pytest.mark.parametrize(
    ("goal", "way", "after"),
    [("gone", "TERMINATING", "GONE"), ("stopped", "STOPPING", "STOPPED")],
)
def test_a_graceful_end_takes_no_longer_than_it_may(
    busy: House, goal: str, way: str, after: str
) -> None:
    take(busy, "end", to(goal, within=120))
    assert look(busy)[0] == "RUNNING"
    busy.wait(60)
    assert busy.call("GET", "/v1/clusters")[1]["clusters"][0]["status"] == "UP"
    assert look(busy)[0] == "RUNNING"
    busy.wait(90)
    assert look(busy)[0] == "RUNNING"
    assert look(busy) == ("RUNNING", [f"dev: {way}"])
    busy.wait(200)
    assert look(busy) == ("SUCCEEDED", [f"dev: {after}"])


def test_a_request_taken_twice_is_one(house: House) -> None:
    take(house, "stop", to("stopped"))
    take(house, "down", to("gone"))
    assert house.call("GET", f"/v1/requests/{ID}")[1]["verb"] == "stop"


def test_requests_of_others_are_none_but_for_administrators(house: House) -> None:
    take(house, "stop", to("stopped"))
    listed = [{"request": ID, "verb": "stop"}]
    assert house.call("GET", "/v1/requests")[1] == {"requests": listed}
    assert house.call("GET", "/v1/requests?all_users=true", by=BOB)[1] == {"requests": []}
    assert house.call("GET", "/v1/requests?all_users=true", by=BOSS)[1] == {"requests": listed}
    refused = house.call("GET", f"/v1/requests/{ID}", by=BOB)
    assert refusal(refused)[0] == 404
    refused = house.call("POST", f"/v1/requests/{ID}/end", {"state": "CANCELLED"}, by=BOB)
    assert refusal(refused)[0] == 404
    assert house.call("GET", f"/v1/requests/{ID}", by=BOSS)[0] == 200


@pytest.mark.parametrize(("private", "line"), [((), "dev: UP"), (("jobs",), "dev: GONE")])
def test_a_goal_tells_nothing_of_jobs_that_its_user_may_not_see(
    private: tuple[str, ...], line: str
) -> None:
    house = House(*private)
    house.launch(f"resources: {{instance_type: {TYPE}}}", by=BOSS)
    house.wait(60)
    body = {"request": ID, "verb": "start", "goals": [to("up")]}
    assert house.call("POST", "/v1/requests", body, by=BOB)[1]["told"] == [line]
    asyncio.run(house.keeper.look())
    assert house.call("GET", f"/v1/requests/{ID}", by=BOB)[1]["told"] == [line]


def test_only_what_a_client_does_itself_is_ended_by_its_word(house: House) -> None:
    end = {"state": "SUCCEEDED", "told": ["done"]}
    take(house, "stop", to("stopped"))
    assert refusal(house.call("POST", f"/v1/requests/{ID}/end", end))[0] == 409


def test_what_a_client_does_itself_is_over_when_it_says_so(house: House) -> None:
    many = ", ".join("bucket" * 10 for _ in range(100))
    told = take(house, "storage delete", to("told", name=many, pid=os.getpid()))[1]
    assert told["processes"] == [{"pid": os.getpid(), "birth": ""}]
    assert house.call("GET", f"/v1/requests/{ID}", by=BOSS)[1]["processes"] == []
    assert look(house) == ("RUNNING", [f"{many}: under way"])
    end = {"state": "SUCCEEDED", "told": ["Deleted storage x"]}
    assert house.call("POST", f"/v1/requests/{ID}/end", end, by=ANN)[0] == 200
    assert look(house) == ("SUCCEEDED", ["Deleted storage x"])


def test_a_client_that_dies_before_it_is_done_has_failed(house: House) -> None:
    gone = subprocess.Popen([sys.executable, "-S", "-c", ""])
    gone.wait()
    take(house, "storage delete", to("told", pid=gone.pid))
    state, (line,) = look(house)
    assert (state, "ended without a word" in line) == ("FAILED", True)


@pytest.mark.parametrize("boot", ["another", None])
def test_another_process_of_the_same_number_is_another(house: House, boot: str | None) -> None:
    """After a reboot, or once the number was given again."""
    mine = birth(os.getpid())
    take(house, "x", to("told", pid=os.getpid(), birth=mine))
    assert look(house)[0] == "RUNNING"
    here, start = mine.split()
    other = f"{boot or here} {int(start) - (boot is None)}"
    body = {"request": OTHER, "verb": "x", "goals": [to("told", pid=os.getpid(), birth=other)]}
    house.call("POST", "/v1/requests", body)
    asyncio.run(house.keeper.look())
    assert house.call("GET", f"/v1/requests/{OTHER}")[1]["state"] == "FAILED"


@pytest.mark.parametrize(("born", "ends"), [(None, True), ("", False), ("another 1", False)])
def test_who_cancels_ends_that_very_process_and_no_other_of_its_number(
    born: str | None, ends: bool
) -> None:
    class Service:
        def __init__(self, process: dict[str, Any]) -> None:
            self.told = {"job": None, "processes": [process]}

        def get(self, route: str) -> Any:
            return self.told

        def post(self, route: str, body: Any) -> None:
            assert body == {"state": "CANCELLED"}

    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as cat:
        process = {"pid": cat.pid, "birth": birth(cat.pid) if born is None else born}
        cancel(Service(process), ID)  # type: ignore[arg-type]
        cat.communicate()
    assert cat.returncode == (-signal.SIGTERM if ends else 0)


LIVES = Goal(to="told", pid=os.getpid())
MANY = {
    "in number": Asked(request="0" * 32, verb="x", goals=(LIVES,), uid=BOB.uid),
    "in text": Asked(request="0" * 32, verb="x", goals=(), said=("s" * MOST_TEXT,), uid=BOB.uid),
    "in goals": Asked(
        request="0" * 32, verb="x", goals=(to("stopped"),) * (MOST_GOALS // 4), uid=BOB.uid
    ),
}
AT_MOST = {"in number": MOST_OPEN, "in text": MOST_HELD // MOST_TEXT, "in goals": 4}


@pytest.mark.parametrize("which", MANY)
def test_what_nobody_ends_keeps_nobody_else_out(house: House, which: str) -> None:
    """Nor is there an end to one user's."""
    ids = [f"{number:032}" for number in range(AT_MOST[which])]
    house.keeper.open.update({one: MANY[which].model_copy(update={"request": one}) for one in ids})
    asyncio.run(house.keeper.take(MANY[which]))
    with pytest.raises(Busy, match="too many requests"):
        asyncio.run(house.keeper.take(MANY[which].model_copy(update={"request": ID})))
    assert take(house, "stop", to("stopped"))[0] == 200


@pytest.mark.parametrize(("more", "status"), [(0, 200), (1, 422)])
def test_a_request_is_no_larger_than_it_may_be(house: House, more: int, status: int) -> None:
    goals = [to("told", name="n" * (1 << 16), pid=os.getpid())]
    said = ["s" * (MOST_TEXT - (1 << 16) - 1), "s" * (1 + more)]
    assert take(house, "x", *goals, said=said)[0] == status


@pytest.mark.parametrize(
    "goals",
    [
        [{"to": "rich"}],
        [{"to": "up", "run": 0}],
        [{"to": "told", "pid": 1}, {"to": "told", "pid": 2}],
        "none",
    ],
)
def test_goals_that_are_none_are_refused(house: House, goals: Any) -> None:
    body = {"request": ID, "verb": "stop", "goals": goals}
    assert house.call("POST", "/v1/requests", body)[0] == 422
