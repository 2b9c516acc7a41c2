"""The box's own pages below `/lab`: what a test or an operator sets and reads, as JSON."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from tests.lab.bill import bill
from tests.lab.box import Box
from tests.lab.machines import Machine, by_luck, moment
from tests.lab.stock import ANY, Limit, Reservation
from tests.lab.wares import SPOT
from tests.lab.weather import Rule

Given = Mapping[str, Any]
CALLS_KEPT = 20_000


def state(box: Box) -> Any:
    shown = [_shown(machine) for machine in box.machines.made.values()]
    return {"now": box.now(), "delays": asdict(box.delays), "machines": shown}


def _shown(machine: Machine) -> dict[str, Any]:
    names = ("id", "number", "region", "zone", "instance_type", "market", "address", "state")
    more = ("launched_at", "running_at", "stopped_at", "reason", "tags")
    return {name: getattr(machine, name) for name in (*names, *more)}


def calls(box: Box) -> Any:
    return [asdict(call) for call in box.calls]


def bill_now(box: Box) -> Any:
    return bill(box.machines.billed(), int(box.now()), hour=int(box.delays.of("price")))


def set_weather(box: Box, given: Given) -> None:
    box.weather.change(given)


def set_delays(box: Box, given: Given) -> None:
    for name, value in given.items():
        if name not in asdict(box.delays):
            raise ValueError(f"there is no delay {name!r}")
        setattr(box.delays, name, float(value))


def set_capacity(box: Box, given: Given) -> None:
    box.stock.limit(Limit(**given))


def set_reservation(box: Box, given: Given) -> None:
    box.stock.reservations[given["id"]] = Reservation(**given)


def set_quota(box: Box, given: Given) -> None:
    box.stock.quotas[given["code"], given.get("region", ANY)] = int(given["vcpus"])


def set_price(box: Box, given: Given) -> None:
    """Machines that run cost otherwise, too, where they are spot ones."""
    pool = given["instance_type"], given["market"], given["place"]
    price, now = int(given["micro_usd_per_hour"]), box.now()
    box.wares.change(pool, price=price, at=now)
    if given["market"] == SPOT:
        box.machines.reprice(pool, now, price)


def add_rule(box: Box, given: Given) -> None:
    box.weather.rules.append(Rule(**given))


def clear_rules(box: Box, _given: Given) -> None:
    box.weather.rules.clear()
    box.stock.limits.clear()
    box.stock.quotas.clear()
    box.stock.reservations.clear()


def interrupt(box: Box, given: Given) -> Any:
    """By `id`, or a `share` of the spot machines that run; says which."""
    running = [m for m in box.machines.living() if m.market == "spot" and m.state == "running"]
    if "id" in given:
        chosen = [machine for machine in running if machine.id == given["id"]]
    else:
        chosen = by_luck(running, float(given.get("share", 1.0)), box.luck.random)
    for machine in chosen:
        box.machines.interrupt(machine, box.now(), notice=float(given.get("notice", 120)))
    return [machine.id for machine in chosen]


def kill(box: Box, given: Given) -> None:
    """A machine is lost as broken hardware is, by whatever reason is given."""
    machine = box.machines.made[given["id"]]
    box.machines.end(machine, given.get("reason", "Server.InternalError"), box.now())


SHOWN: Mapping[str, Callable[[Box], Any]] = {"state": state, "calls": calls, "bill": bill_now}
SET: Mapping[str, Callable[[Box, Given], Any]] = {
    "weather": set_weather,
    "delays": set_delays,
    "capacity": set_capacity,
    "quota": set_quota,
    "reservation": set_reservation,
    "price": set_price,
    "rule": add_rule,
    "clear": clear_rules,
    "interrupt": interrupt,
    "kill": kill,
}


def control(box: Box, *, method: str, name: str, body: bytes) -> tuple[int, Any]:
    """HTTP status and answer."""
    with box.lock:
        if method == "GET" and name in SHOWN:
            return 200, SHOWN[name](box)
        if method == "POST" and name in SET:
            try:
                return 200, SET[name](box, json.loads(body or b"{}"))
            except (ValueError, TypeError, KeyError) as error:
                return 400, {"error": repr(error)}
    return 404, {"error": f"no {name!r}; there are {[*SHOWN]} to read, {[*SET]} to set"}


def metadata(box: Box, id: str, path: str) -> str | None:
    """What the instance metadata service says to that machine; None is 404."""
    machine = box.machines.made.get(id)
    if machine is None:
        return None
    told: dict[str, str | None] = {
        "api/token": "token",
        "meta-data/instance-id": machine.id,
        "meta-data/instance-type": machine.instance_type,
        "meta-data/ami-launch-index": str(machine.index),
        "meta-data/placement/region": machine.region,
        "meta-data/placement/availability-zone-id": machine.zone,
        "meta-data/local-ipv4": machine.address,
        "meta-data/instance-life-cycle": machine.market,
        "meta-data/spot/instance-action": _notice(machine),
        "meta-data/events/recommendations/rebalance": _rebalance(machine),
    }
    return told.get(path)


def _notice(machine: Machine) -> str | None:
    if machine.taken_at is None:
        return None
    at = moment(machine.taken_at).replace(" ", "T") + "Z"
    return json.dumps({"action": "terminate", "time": at})


def _rebalance(machine: Machine) -> str | None:
    if machine.notice_at is None:
        return None
    return json.dumps({"noticeTime": moment(machine.notice_at).replace(" ", "T") + "Z"})
