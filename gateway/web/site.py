"""The site: an overview, its nodes, and what could be bought where."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from gateway.query import gpulist
from gateway.query.dollars import oldest, usd
from gateway.query.listed import Listed, lasted, money
from gateway.web.blocks import Block, below, facts, linked, notes, table, text
from gateway.web.doors import Json
from gateway.web.jobs import COLUMNS as JOB_COLUMNS
from gateway.web.visit import Visit, complaints

DAY, HOUR = 86400, 3600
PARTITIONS = ("Partition", "Available", "Time", "Nodes", "StateLong", "NodeList")
NODES = (
    *("NodeList", "Partition", "StateLong", "CPUsState", "Memory", "AllocMem", "Gres", "GresUsed"),
    *("Features", "Reason"),
)
BESIDE = 3
"""So many columns stand before what a node costs."""
UNUSED = "~"
"""At the end of the state of a node that is not there, and costs nothing."""


async def overview(visit: Visit) -> Sequence[Block]:
    """Queue, nodes, money and warnings."""
    health = await visit.get("/v1/health")
    queue, said = await visit.table("squeue", ("State",), "--states=all", "-h")
    counts = Counter(row[0] for row in queue)
    parts, _ = await visit.table("sinfo", PARTITIONS)
    return [
        *await _warnings(visit, health),
        facts("Now", [*_service(health), *await _money(visit, health)]),
        *complaints(said),
        table(
            "Queue by state",
            Listed(["STATE", "JOBS"], [[*pair] for pair in sorted(counts.items())]),
            empty="No jobs.",
            links=[f"jobs{linked({}, states=one)}" for one in sorted(counts)],
        ),
        table("Partitions and nodes by state", _listed(parts), empty="No partitions."),
    ]


def _listed(found: list[list[str]]) -> Listed:
    return Listed(found[0] if found else [], [[*row] for row in found[1:]])


def _bought(health: Json) -> list[Json]:
    return [one for one in health["nodes"] if not one["declared"]]


def _service(health: Json) -> Iterable[tuple[str, object]]:
    yield "Cluster", f"{health['cluster']} (slurm {health['version']})"
    yield "Up for", lasted(health["at"] - health["started_at"])
    yield "Jobs", f"{health['jobs_live']}, {health['jobs_running']} of them on machines"
    yield "Machines", len(_bought(health))


async def _money(visit: Visit, health: Json) -> Iterable[tuple[str, object]]:
    """What is spent an hour now, its ceilings, and what today cost so far."""
    bought, limits = _bought(health), (await visit.get("/v1/infra"))["ceiling"]
    rate = usd(sum(one["micro_usd_per_hour"] for one in bought))
    return [
        ("An hour now", rate),
        ("Ceiling an hour", money(limits["micro_usd_per_hour"]) or "none"),
        ("Ceiling of an account", money(limits["account_micro_usd_per_hour"])),
        ("Ceiling of a user", money(limits["user_micro_usd_per_hour"])),
        ("Most machines", limits["nodes"]),
        ("Today", usd(await _today(visit, health["at"]))),
    ]


async def _today(visit: Visit, at: int) -> int:
    """Micro-dollars since midnight where the user is."""
    ahead = visit.doors.ahead(at)
    day = datetime.fromtimestamp(at + ahead, UTC).strftime("%Y-%m-%d")
    until = at - at % HOUR + HOUR
    told = await visit.get(
        "/v1/cost", since=until - 2 * DAY, until=until, by="day", zone=visit.doors.zone
    )
    return sum(amount for label, amount in told["rows"] if label == day)


async def _warnings(visit: Visit, health: Json) -> Sequence[Block]:
    """Old prices, budgets that warn or hold, and what `sinfo -R` has: drains, refusals, kinds
    of machines that did not come up."""
    lines = [*filter(None, [oldest(one["old_price"] for one in _bought(health))])]
    for one in (await visit.get("/v1/budgets"))["budgets"]:
        if one["standing"] != "ok":
            spent, most = usd(one["spent_micro_usd"]), usd(one["micro_usd"])
            budget = f"{one['scope']}:{one['name']}"
            lines.append(f"budget {budget} is {one['standing']}: {spent} spent of {most}")
    reasons = (await visit.doors.run("sinfo", "-R")).out.strip().splitlines()
    blocks: list[Block] = [*notes(lines)]
    return [*blocks, text("Not used, and why", "\n".join(reasons))] if reasons[1:] else blocks


async def nodes(visit: Visit) -> Sequence[Block]:
    """As `sinfo -N` lists them, those that are there first, with what they cost."""
    health = await visit.get("/v1/health")
    found, said = await visit.table("sinfo", NODES, "-N")
    prices = {one["name"]: one for one in health["nodes"]}
    body = sorted(found[1:], key=lambda row: row[2].endswith(UNUSED))
    head = found[0] if found else []
    made = Listed(
        [*head[:BESIDE], "$/HOUR", "MACHINE", *head[BESIDE:]],
        [[*row[:BESIDE], *_machine(prices.get(row[0])), *row[BESIDE:]] for row in body],
    )
    links = [below("nodes", row[0]) for row in body]
    shown = table("Nodes", made, empty="No nodes.", links=links, query=visit.query)
    return [*complaints(said), shown]


def _machine(one: Mapping[str, object] | None) -> tuple[object, object]:
    """What it costs, and what it is."""
    if one is None or one["declared"]:
        return None, None
    where = " ".join(str(one[key]) for key in ("instance_type", "zone") if one[key])
    rate = one["micro_usd_per_hour"]
    return money(rate if isinstance(rate, int) else None), where


async def node(visit: Visit) -> Sequence[Block]:
    """`scontrol show node`, and what runs there."""
    said = await visit.doors.run("scontrol", "show", "node", visit.word)
    found, _ = await visit.table("squeue", JOB_COLUMNS, f"--nodelist={visit.word}")
    made = Listed(found[0][:-1] if found else [], [[*row[:-1]] for row in found[1:]])
    links = [below("jobs", row[-1]) for row in found[1:]]
    return [
        *complaints(said),
        text("scontrol show node", said.out),
        table("Jobs on it", made, empty="None.", links=links, query=visit.query),
    ]


async def infra(visit: Visit) -> Sequence[Block]:
    """Where partitions buy, what runs where, and accelerators with their prices."""
    told, health = await visit.get("/v1/infra"), await visit.get("/v1/health")
    return [
        table("Partitions that buy", Listed(*_buying(told["partitions"])), empty="None."),
        table("Machines by region", _by_region(_bought(health)), empty="None now."),
        *await _accelerators(visit, bool(told["partitions"])),
    ]


BUYING: Sequence[tuple[str, Callable[[Json], object]]] = (
    ("PARTITION", lambda one: one["name"]),
    ("PROVIDER", lambda one: one["provider"]),
    ("REGIONS", lambda one: ", ".join(one["regions"]) or "all that are not opt-in"),
    ("TYPES", lambda one: ", ".join(one["types"]) or "all"),
    ("MARKETS", lambda one: "on-demand, spot" if one["spot"] else "on-demand"),
    ("MOST NODES", lambda one: one["max_nodes"]),
    ("DEAREST MACHINE", lambda one: money(one["max_micro_usd_per_hour"])),
)


def _buying(found: Sequence[Json]) -> tuple[list[str], list[list[object]]]:
    return [head for head, _ in BUYING], [[value(one) for _, value in BUYING] for one in found]


def _by_region(bought: Sequence[Json]) -> Listed:
    count = Counter((one["region"], one["instance_type"]) for one in bought)
    rates: Counter[tuple[str, str]] = Counter()
    for one in bought:
        rates[one["region"], one["instance_type"]] += one["micro_usd_per_hour"]
    made = [[*kind, number, usd(rates[kind])] for kind, number in sorted(count.items(), key=str)]
    return Listed(["REGION", "TYPE", "MACHINES", "$/HOUR"], made)


async def _accelerators(visit: Visit, buys: bool) -> Sequence[Block]:
    if not buys:
        return []
    found = (await visit.get("/v1/gpus", each=bool(visit.given("each"))))["gpus"]
    made = table("Accelerators", gpulist.gpus(found), empty="None.", query=visit.query)
    return [*notes(gpulist.price_notes(found), "quiet"), made]
