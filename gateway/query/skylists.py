"""The columns of clusters, their runs, volumes, buckets and budgets."""

from datetime import UTC, datetime

from gateway.query.dollars import usd
from gateway.query.listed import (
    MINUTE,
    USERS,
    VERBOSE,
    Column,
    Json,
    ago,
    duration,
    lasted,
    money,
)


def _cluster_status(one: Json, now: int) -> str:
    return str(one["status"]) if one["status"] != "INIT" else f"INIT ({_waits(one)})"


def _waits(one: Json) -> str:
    return "booting" if one["nodes"] else str(one["reason"])


def _autostop(one: Json, now: int) -> str | None:
    """As SkyPilot writes it."""
    seconds = one["idle_seconds"]
    down = "" if one["idle_stops"] else " (down)"
    return None if seconds is None else f"{seconds // MINUTE}m{down}"


CLUSTERS = (
    Column("NAME", lambda one, now: one["name"]),
    Column("USER", lambda one, now: one["user"], USERS),
    Column("INFRA", lambda one, now: one["infra"]),
    Column("RESOURCES", lambda one, now: one["resources"]),
    Column("STATUS", _cluster_status),
    Column("AUTOSTOP", _autostop),
    Column("LAUNCHED", lambda one, now: ago(one["submitted"], now)),
    Column("HEAD_IP", lambda one, now: next(iter(one["addresses"]), None), VERBOSE),
    Column("JOB", lambda one, now: one["job"], VERBOSE),
    Column("$/HOUR", lambda one, now: money(one["micro_usd_per_hour"])),
    Column("COST ($)", lambda one, now: money(one["cost_micro_usd"])),
)
RUNS = (
    Column("ID", lambda one, now: one["id"]),
    Column("NAME", lambda one, now: one["name"]),
    Column("USER", lambda one, now: one["user"]),
    Column("SUBMITTED", lambda one, now: ago(one["submitted"], now)),
    Column("STARTED", lambda one, now: ago(one["started"], now)),
    Column("DURATION", lambda one, now: lasted(duration(one, now))),
    Column("RESOURCES", lambda one, now: one["resources"]),
    Column("STATUS", lambda one, now: one["status"]),
    Column("LOG", lambda one, now: one["log"]),
    Column("GIT COMMIT", lambda one, now: one["commit"]),
    Column("STEP", lambda one, now: one["step"]),
)


def _infra(one: Json, now: int) -> str:
    return "/".join(filter(None, (one["cloud"], one["region"], one["zone"])))


def _moment(at: int | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


VOLUMES = (
    Column("NAME", lambda one, now: one["name"]),
    Column("TYPE", lambda one, now: one["type"]),
    Column("INFRA", _infra),
    Column("SIZE", lambda one, now: f"{one['size']}Gi"),
    Column("USER", lambda one, now: one["user_name"]),
    Column("AGE", lambda one, now: lasted(max(0, now - one["launched_at"]))),
    Column("STATUS", lambda one, now: one["status"]),
    Column("LAST_USE", lambda one, now: _moment(one["last_attached_at"])),
    Column("USED_BY", lambda one, now: ", ".join(one["usedby_clusters"])),
    Column("$/HOUR", lambda one, now: usd(one["micro_usd_per_hour"])),
    Column("NAME_ON_CLOUD", lambda one, now: one["name_on_cloud"], VERBOSE),
    Column("MESSAGE", lambda one, now: one["error_message"], VERBOSE),
)
STORAGES = (
    Column("NAME", lambda one, now: one["name"]),
    Column("UPDATED", lambda one, now: ago(one["updated"], now)),
    Column("STORE", lambda one, now: one["store"]),
    Column("COMMAND", lambda one, now: one["command"]),
)


def _action(one: Json, now: int) -> str:
    running = "" if one["running"] == "never" else f" ({one['running']})"
    return f"{one['action']}{running}"


BUDGETS = (
    Column("BUDGET", lambda one, now: f"{one['scope']}:{one['name']}"),
    Column("USD", lambda one, now: usd(one["micro_usd"])),
    Column("SPENT", lambda one, now: usd(one["spent_micro_usd"])),
    Column("PROMISED", lambda one, now: usd(one["promised_micro_usd"])),
    Column("WINDOW", lambda one, now: one["window"]),
    Column("ZONE", lambda one, now: one["zone"]),
    Column("ACTION", _action),
    Column("STANDING", lambda one, now: one["standing"]),
)
