"""The columns of managed jobs, a pipeline or group before its tasks: SkyPilot's."""

from collections.abc import Iterator, Sequence

from gateway.query.listed import USERS, VERBOSE, Column, Json, ago, duration, lasted, money

PART = " ↳"
"""In place of the id of a task that is one of several."""


def _total(one: Json, now: int) -> str | None:
    return lasted((one["ended"] or now) - one["submitted"])


def _task(one: Json, now: int) -> object:
    return one["rank"] if one["rank"] is not None else one["task"]


def _details(one: Json, now: int) -> object:
    return one["detail"] or (None if one["reason"] == "None" else one["reason"])


def _id(one: Json, now: int) -> object:
    """As Slurm tells it (`12_3`); of a whole, or a part of one, as it stands in the line."""
    return one["slurm_id"] if one["tasks"] < 2 else one["id"]


MANAGED = (
    Column("ID", _id),
    Column("TASK", _task),
    Column("NAME", lambda one, now: one["name"]),
    Column("USER", lambda one, now: one["user"], USERS),
    Column("REQUESTED", lambda one, now: one["tres"]),
    Column("SUBMITTED", lambda one, now: ago(one["submitted"], now)),
    Column("TOT. DURATION", _total),
    Column("JOB DURATION", lambda one, now: lasted(duration(one, now))),
    Column("#RECOVERIES", lambda one, now: one["restarts"]),
    Column("STATUS", lambda one, now: one["status"]),
    Column("STARTED", lambda one, now: ago(one["started"], now), VERBOSE),
    Column("INFRA", lambda one, now: one["infra"], VERBOSE),
    Column("DETAILS", _details, VERBOSE),
    Column("COST ($)", lambda one, now: money(one["cost_micro_usd"])),
)


def lines(found: Sequence[Json]) -> Iterator[Json]:
    """Tasks of one whole stand together, behind a line for all of them."""
    for root in dict.fromkeys(one["root"] for one in found):
        tasks = sorted((one for one in found if one["root"] == root), key=_place)
        if tasks[0]["tasks"] < 2:
            yield from tasks
            continue
        yield _whole(tasks)
        yield from ({**one, "id": PART} for one in tasks)


def _place(one: Json) -> tuple[int, int]:
    return int(one["task"]), int(one["id"])


def _whole(tasks: Sequence[Json]) -> Json:
    """One line for all: its status is that of the first primary task that has not succeeded."""
    primary = [one for one in tasks if one["primary"]] or tasks
    first = next((one for one in primary if one["status"] != "SUCCEEDED"), primary[0])
    started = [one["started"] for one in tasks if one["started"] is not None]
    ended = [one["ended"] for one in tasks]
    costs = [one["cost_micro_usd"] for one in tasks if one["cost_micro_usd"] is not None]
    return {
        **first,
        "id": tasks[0]["root"],
        "task": None,
        "rank": None,
        "name": first["whole"],
        "tres": None,
        "submitted": min(one["submitted"] for one in tasks),
        "started": min(started, default=None),
        "ended": None if None in ended else max(ended),
        "restarts": sum(one["restarts"] for one in tasks),
        "cost_micro_usd": sum(costs) if costs else None,
    }
