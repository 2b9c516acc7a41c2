"""Tables and small texts that the command line prints."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from accounting.age import in_utc
from broker.model.errors import Refused, Unknown
from gateway.query.dollars import beside, oldest, usd
from gateway.query.listed import (
    USERS,
    VERBOSE,
    Json,
    Listed,
    ago,
    duration,
    lasted,
    listed,
    money,
)
from gateway.query.skylists import CLUSTERS, RUNS
from sbatch_shim.grammar.values import read_digits


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns as wide as their widest cell, two blanks between; empty cells are `-`."""
    cells = [list(head), *([_cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )
    return "\n".join(lines)


def drawn(made: Listed) -> str:
    return table(made.head, made.rows)


def wide(given: Mapping[str, Any]) -> frozenset[str]:
    """What a command line asks for beside the usual columns."""
    asked = {USERS: given["all_users"], VERBOSE: given["verbose"]}
    return frozenset(name for name, also in asked.items() if also)


def _cell(value: object) -> str:
    """What a terminal would obey, or would break the line, is written out: names may hold it."""
    text = "-" if value is None or value == "" else str(value)
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


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
    say: Callable[[str], None] | None = None,
) -> list[Json]:
    """Those of these names; all without names.

    `lists` is the verb that shows what there is. Raises Unknown for a name that is none, unless
    that can be said: then it goes on with the others, as SkyPilot does.
    """
    if not names:
        return list(found)
    for name in names:
        if not any(fnmatchcase(one["name"], name) for one in found):
            error = Unknown(f"no {what} {name!r}", hint=f"`spz {lists}` lists those there are")
            if say is None:
                raise error
            say(error.message)
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
    """One line on a service; below it the requests that wait there, if any do."""
    machines = [one for one in told["nodes"] if not one["declared"]]
    price = usd(sum(one["micro_usd_per_hour"] for one in machines))
    old = beside(oldest(one["old_price"] for one in machines))
    return (
        f"{told['cluster']} (slurm {told['version']}) runs as pid {told['pid']}: "
        f"{told['jobs_live']} jobs, {told['jobs_running']} of them on machines; "
        f"{len(machines)} machines at {price} an hour{old}{_waiting(told['requests'])}"
    )


def _waiting(found: Sequence[Json]) -> str:
    rows = ((one["request"], one["verb"]) for one in found)
    return f"\n\n{table(('REQUEST', 'VERB'), rows)}" if found else ""


def clusters(found: Sequence[Json], now: int, *, also: frozenset[str] = frozenset()) -> str:
    return drawn(listed(CLUSTERS, found, now, also=also)) + _not_started(found) + below(found)


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


def runs(found: Sequence[Json], now: int) -> str:
    return drawn(listed(RUNS, found, now, also=frozenset()))


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
