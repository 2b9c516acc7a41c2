"""Tables and small texts that the command line prints."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from accounting.age import in_utc
from broker.model.errors import Refused, Unknown
from gateway.query.dollars import beside, oldest, usd
from sbatch_shim.grammar.values import read_digits

Json = Mapping[str, Any]
MINUTE, HOUR, DAY = 60, 3600, 86400


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns as wide as their widest cell, two blanks between; empty cells are `-`."""
    cells = [list(head), *([_cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )
    return "\n".join(lines)


USERS, VERBOSE = "users", "verbose"


class Column(NamedTuple):
    """A heading, what stands below it (of a record, at an instant), and when it is shown."""

    heading: str
    cell: Callable[[Json, int], object]
    shown: str = ""


def listed(
    columns: Iterable[Column], found: Iterable[Json], now: int, *, also: frozenset[str]
) -> str:
    """The usual columns, and those that `also` names."""
    shown = [one for one in columns if not one.shown or one.shown in also]
    rows = ([column.cell(one, now) for column in shown] for one in found)
    return table([one.heading for one in shown], rows)


def wide(given: Mapping[str, Any]) -> frozenset[str]:
    """What a command line asks for beside the usual columns."""
    asked = {USERS: given["all_users"], VERBOSE: given["verbose"]}
    return frozenset(name for name, also in asked.items() if also)


def _cell(value: object) -> str:
    return "-" if value is None or value == "" else str(value)


def lasted(seconds: int | None) -> str | None:
    """`12s`, `3m 4s`, `2h 5m`, `3d 4h`."""
    if seconds is None:
        return None
    for unit, name, below, less in ((DAY, "d", HOUR, "h"), (HOUR, "h", MINUTE, "m")):
        if seconds >= unit:
            return f"{seconds // unit}{name} {seconds % unit // below}{less}"
    return f"{seconds // MINUTE}m {seconds % MINUTE}s" if seconds >= MINUTE else f"{seconds}s"


def ago(instant: int | None, now: int) -> str | None:
    told = lasted(None if instant is None else max(0, now - instant))
    return None if told is None else f"{told} ago"


def money(micro_usd: int | None) -> str | None:
    return None if micro_usd is None else usd(micro_usd)


def candidates(offers: Sequence[Json], nodes: int) -> str:
    """What could be bought, as SkyPilot shows it: an hour of all nodes; the first is tried."""
    head = ("INFRA", "INSTANCE", "vCPUs", "Mem(GB)", "GPUS", "COST ($)", "CHOSEN")
    rows = (_candidate(one, number, nodes=nodes) for number, one in enumerate(offers))
    return table(head, rows) + below(offers, said=offers[0]["notes"])


def below(rows: Iterable[Json], *, said: Iterable[str] = ()) -> str:
    """A line below a table with prices: how old the oldest is, if it is and nobody said so."""
    found = oldest(row["old_price"] for row in rows)
    return f"\n{found}" if found and not any(found in note for note in said) else ""


def _candidate(offer: Json, number: int, *, nodes: int) -> tuple[object, ...]:
    spot = "[spot]" if offer["market"] == "spot" else ""
    zones = f"/{offer['zones'][0]}" if len(offer["zones"]) == 1 else ""
    return (
        f"AWS ({offer['region']}{zones})",
        offer["instance_type"] + spot,
        offer["cpus"],
        f"{offer['mem_mib'] / 1024:g}",
        offer["gpus"],
        usd(nodes * offer["micro_usd_per_hour"]).removeprefix("$"),
        "✔" if number == 0 else " ",
    )


def run_number(text: str) -> int:
    """Raises Refused for what is no number of a run or job."""
    number = read_digits(text)
    if number is None:
        raise Refused(f"{text!r} is no number", hint="`spz queue`, `spz jobs queue` list them")
    return number


def matching(
    found: Sequence[Json],
    names: Sequence[str] | None,
    *,
    what: str = "cluster",
    lists: str = "status",
) -> list[Json]:
    """Those of these names; all without names. Raises Unknown for a name that is none.

    `lists` is the verb that shows what there is.
    """
    if not names:
        return list(found)
    for name in names:
        if not any(fnmatchcase(one["name"], name) for one in found):
            raise Unknown(f"no {what} {name!r}", hint=f"`spz {lists}` lists those there are")
    return [one for one in found if any(fnmatchcase(one["name"], name) for name in names)]


def overview(
    found: Sequence[Json], others: Sequence[Json], now: int, *, also: frozenset[str] = frozenset()
) -> str:
    """Clusters, then other jobs; `also` names what is shown beside the usual."""
    parts = [clusters(found, now, also=also) if found else "No clusters."]
    return "\n\n".join([*parts, jobs(others, now)] if others else parts)


def queues(found: Mapping[str, Sequence[Json]], now: int) -> str:
    """Runs, by cluster."""
    return "\n\n".join(f"{name}\n{runs(of, now)}" for name, of in found.items()) or "No clusters."


def service_text(told: Json) -> str:
    """One line on a service."""
    machines = [one for one in told["nodes"] if not one["declared"]]
    price = usd(sum(one["micro_usd_per_hour"] for one in machines))
    old = beside(oldest(one["old_price"] for one in machines))
    return (
        f"{told['cluster']} (slurm {told['version']}) runs as pid {told['pid']}: "
        f"{told['jobs_live']} jobs, {told['jobs_running']} of them on machines; "
        f"{len(machines)} machines at {price} an hour{old}"
    )


CLUSTERS = (
    Column("NAME", lambda one, now: one["name"]),
    Column("USER", lambda one, now: one["user"], USERS),
    Column("INFRA", lambda one, now: one["infra"]),
    Column("RESOURCES", lambda one, now: one["resources"]),
    Column("STATUS", lambda one, now: _cluster_status(one)),
    Column("AUTOSTOP", lambda one, now: _autostop(one)),
    Column("LAUNCHED", lambda one, now: ago(one["submitted"], now)),
    Column("HEAD_IP", lambda one, now: next(iter(one["addresses"]), None), VERBOSE),
    Column("JOB", lambda one, now: one["job"], VERBOSE),
    Column("$/HOUR", lambda one, now: money(one["micro_usd_per_hour"])),
    Column("COST ($)", lambda one, now: money(one["cost_micro_usd"])),
)


def clusters(found: Sequence[Json], now: int, *, also: frozenset[str] = frozenset()) -> str:
    return listed(CLUSTERS, found, now, also=also) + _not_started(found) + below(found)


def _cluster_status(one: Json) -> str:
    return str(one["status"]) if one["status"] != "INIT" else f"INIT ({_waits(one)})"


def protected(found: Sequence[Json]) -> str:
    """Kinds of machines that did not come up."""
    head = ("KIND", "IN A ROW", "NONE BOUGHT UNTIL", "THE LAST ONE")
    rows = (
        (one["name"], one["failed"], one["until"] and in_utc(one["until"]), one["why"])
        for one in found
    )
    return table(head, rows) if found else "Every kind of machine came up the last time."


def _not_started(found: Sequence[Json]) -> str:
    """Why those that are stopped did not start when that was asked last."""
    why = (one for one in found if one["status"] == "STOPPED" and one["detail"])
    return "".join(f"\n{one['name']} did not start: {one['detail']}" for one in why)


def _autostop(one: Json) -> str | None:
    """As SkyPilot writes it."""
    seconds = one["idle_seconds"]
    down = "" if one["idle_stops"] else " (down)"
    return None if seconds is None else f"{seconds // MINUTE}m{down}"


def _waits(one: Json) -> str:
    return "booting" if one["nodes"] else str(one["reason"])


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


def runs(found: Sequence[Json], now: int) -> str:
    return listed(RUNS, found, now, also=frozenset())


def jobs(found: Sequence[Json], now: int) -> str:
    head = ("JOBID", "NAME", "USER", "STATE", "TIME", "NODES", "TRES", "COST ($)")
    rows = (
        (
            one["slurm_id"],
            one["name"],
            one["user"],
            one["state"],
            lasted(duration(one, now)),
            one["node_list"] or (None if one["over"] else f"({one['reason']})"),
            one["tres"],
            money(one["cost_micro_usd"]),
        )
        for one in found
    )
    return table(head, rows)


def duration(one: Json, now: int) -> int | None:
    """Seconds that it has run, or did."""
    if one["started"] is None:
        return None
    end = now if one["ended"] is None else int(one["ended"])
    return max(0, end - int(one["started"]))


def pools(found: Mapping[str, Sequence[Json]]) -> str:
    """Workers, by pool."""
    head = ("POOL", "WORKER", "STATUS", "INFRA", "RESOURCES", "RUNS", "COST ($)")
    rows = (
        (
            name,
            one["name"].rpartition("-")[2],
            one["status"],
            one["infra"],
            one["resources"],
            sum(not run["over"] for run in one["runs"]),
            money(one["cost_micro_usd"]),
        )
        for name, workers in found.items()
        for one in workers
    )
    return table(head, rows) if found else "No pools."


def report(found: Sequence[Json], now: int) -> str:
    """What clusters cost, the dearest first."""
    head = ("NAME", "USER", "LAUNCHED", "DURATION", "RESOURCES", "STATUS", "COST/hr", "COST ($)")
    dearest = sorted(found, key=lambda one: -(one["cost_micro_usd"] or 0))
    rows = (
        (
            one["cluster"],
            one["user"],
            ago(one["submitted"], now),
            lasted(duration(one, now)),
            one["tres"],
            "TERMINATED" if one["over"] else "STOPPED" if one["stopped"] else "UP",
            money(one["micro_usd_per_hour"]),
            money(one["cost_micro_usd"]),
        )
        for one in dearest
    )
    total = sum(one["cost_micro_usd"] or 0 for one in found)
    told = f"{table(head, rows)}\nTotal: {money(total)}{below(found)}"
    return told if found else "No clusters."
