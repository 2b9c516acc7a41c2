"""Jobs as squeue lists them, and one of them with all that is known of it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from broker.model.errors import SpzError, Unknown
from gateway.query.dollars import beside
from gateway.query.listed import Listed, duration, lasted, money
from gateway.web.blocks import (
    Block,
    Cell,
    Choice,
    Entry,
    Form,
    Head,
    Table,
    below,
    facts,
    linked,
    notes,
    paged,
    plain,
    readable,
    state,
    table,
    text,
)
from gateway.web.doors import Json
from gateway.web.visit import Visit, complaints
from sbatch_shim.grammar.states import BASE_COUNT, JOB_STATES

COLUMNS = (
    *("JobArrayID", "Partition", "Name", "UserName", "Account", "State", "TimeUsed", "TimeLimit"),
    *("NumNodes", "NumCPUs", "ReasonList", "JobID"),
)
"""squeue's; by the last one its page is found."""
SORTED = {
    **{"JobArrayID": "i", "Partition": "P", "Name": "j", "UserName": "u", "State": "t"},
    **{"TimeUsed": "M", "TimeLimit": "l", "NumNodes": "D", "NumCPUs": "C"},
}
"""Letters of squeue's --sort."""
FILTERS = ("user", "states", "partition", "account", "name", "jobs")
STEPS = (
    *("JobID", "JobName", "State", "ExitCode", "Start", "End", "Elapsed", "MaxRSS", "AllocTRES"),
    "NodeList",
)
STATE = COLUMNS.index("State")
ID = re.compile(r"\AJobId=(\d+) ")
WHICH = ("run", "attempt", "rank")
TAIL = 1 << 16
"""Bytes of a log that are shown."""
ENDED = "all"


async def jobs(visit: Visit) -> Sequence[Block]:
    """squeue's table, with its filters and its order."""
    argv = [f"--{name}={visit.given(name)}" for name in FILTERS if visit.given(name)]
    order = visit.given("sort")
    argv += [f"--sort={order}"] if order else []
    found, said = await visit.table("squeue", COLUMNS, *argv)
    shown, pager = paged(found[1:], visit.query)
    heads = [_head(*pair, visit) for pair in zip(found[0] if found else (), COLUMNS, strict=False)]
    empty = "No jobs." if not said.code else "Nothing is shown."
    return [
        _filters(visit),
        *complaints(said),
        Table("Queue", heads[:-1], list(map(_row, shown)), empty, pager),
    ]


def _filters(visit: Visit) -> Form:
    states = [Choice("", "waiting, running"), Choice(ENDED, "all")]
    states += [Choice(word, word.lower()) for word, _ in JOB_STATES[:BASE_COUNT]]
    entries = [
        Entry("user", "User", visit.given("user")),
        Entry("states", "States", visit.given("states"), states),
        Entry("partition", "Partition", visit.given("partition")),
        Entry("account", "Account", visit.given("account")),
        Entry("name", "Name", visit.given("name")),
        Entry("jobs", "Ids", visit.given("jobs")),
    ]
    return Form("Which jobs", "jobs", entries)


def _head(text: str, column: str, visit: Visit) -> Head:
    letter, order = SORTED.get(column, ""), visit.given("sort")
    if not letter:
        return Head(text)
    told = {letter: "ascending", f"-{letter}": "descending"}.get(order, "")
    turned = f"-{letter}" if order == letter else letter
    return Head(text, linked(visit.query, sort=turned, page=""), told)


def _row(found: list[str]) -> list[Cell]:
    shown = [Cell(plain(text)) for text in found[:-1]]
    shown[0] = shown[0]._replace(href=below("jobs", found[-1]))
    shown[STATE] = state(found[STATE])
    return shown


async def job(visit: Visit) -> Sequence[Block]:
    """All of one: what it is, why it is where it is, what it did, cost and wrote.

    Named by its id, or as squeue shows it (`5_3`, `12+1`). Raises Unknown.
    """
    number: str | None = visit.word
    if not visit.word.isdigit():
        said = await visit.doors.run("scontrol", "show", "job", visit.word)
        number = next(iter(ID.findall(said.out)), None)
    if number is None:
        raise Unknown(f"no job {visit.word}", hint="`squeue` lists them")
    return await of_job(visit, await visit.get(f"/v1/jobs/{below(number)}"))


async def of_job(visit: Visit, found: Json) -> list[Block]:
    """Its blocks; a part that this user may not see says so."""
    blocks: list[Block] = [_about(visit, found)]
    parts = (_why, _steps, _logs, _log, _events, _script, _record)
    for part in parts:
        blocks += await part(visit, found)
    return blocks


def _about(visit: Visit, one: Json) -> Block:
    times = (("Submitted", one["submitted"]), ("Started", one["started"]), ("Ended", one["ended"]))
    hourly = money(one["micro_usd_per_hour"])
    return facts(
        "What it is",
        [
            ("Job", one["slurm_id"]),
            ("State", state(one["state"])),
            ("Reason", None if one["reason"] == "None" else one["reason"]),
            ("Name", one["name"]),
            ("User", one["user"]),
            ("Account", one["account"]),
            ("Partition", one["partition"]),
            ("Cluster", one["cluster"]),
            ("Nodes", one["node_list"]),
            ("TRES", one["tres"]),
            *((name, _moment(visit, at)) for name, at in times),
            ("Ran for", _ran(one)),
            ("Recoveries", one["restarts"] or None),
            ("Cost", money(one["cost_micro_usd"])),
            ("An hour", hourly and hourly + beside(one["old_price"])),
        ],
    )


def _moment(visit: Visit, at: int | None) -> str | None:
    """As Slurm's commands write it for this user."""
    if at is None:
        return None
    return datetime.fromtimestamp(at + visit.doors.ahead(at), UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _ran(one: Json) -> str | None:
    return lasted(duration(one, one["ended"])) if one["ended"] else None


async def _why(visit: Visit, one: Json) -> Sequence[Block]:
    told = await visit.get(f"/v1/jobs/{one['id']}/why")
    return [text("Why", "\n".join(told["lines"]))]


async def _steps(visit: Visit, one: Json) -> Sequence[Block]:
    """As sacct has them."""
    found, _ = await visit.accounted(STEPS, "-j", str(one["id"]))
    made = Listed(found[0] if found else [], [[*row] for row in found[1:]])
    heads = [text.upper() for text in made.head]
    return [table("Steps", made._replace(head=heads), empty="It has not run yet.")]


def _written(one: Json) -> Iterator[tuple[str, object, int, str]]:
    """What a text is of (an attempt, a run), its number, the node's rank, and the file."""
    for number, texts in enumerate(one["attempts"], 1):
        yield from (("attempt", number, rank, path) for rank, path in enumerate(texts))
    for run in one["runs"]:
        yield from (("run", run["id"], rank, path) for rank, path in enumerate(run["texts"]))
    if not one["attempts"] and not one["runs"]:
        yield from (("job", None, rank, path) for rank, path in enumerate(one["texts"]))


async def _logs(visit: Visit, one: Json) -> Sequence[Block]:
    """Where there are several, each leads to its text."""
    found = list(_written(one))
    links = [
        below("jobs", one["id"]) + linked({}, **{what: number or ""}, rank=rank)
        for what, number, rank, _ in found
    ]
    made = [[path, what, number, rank] for what, number, rank, path in found]
    listed = Listed(["LOG", "OF", "NUMBER", "RANK"], made)
    return [table("Logs", listed, empty="", links=links)] if len(found) > 1 else []


async def _log(visit: Visit, one: Json) -> Sequence[Block]:
    """The one that the address names, else that of the latest run or attempt."""
    wanted = {name: visit.query[name] for name in WHICH if name in visit.query}
    latest = {"run": one["runs"][-1]["id"]} if one["runs"] else {}
    try:
        data = await visit.doors.read(
            f"/v1/jobs/{one['id']}/log", tail=TAIL, **{**latest, **wanted}
        )
    except SpzError as error:
        return notes([f"Log: {error.message}"], "quiet")
    title = f"Log, its last {TAIL >> 10} KiB" if len(data) >= TAIL else "Log"
    return [text(title, readable(data) or "It has written nothing yet.")]


async def _events(visit: Visit, one: Json) -> Sequence[Block]:
    told = await visit.get(f"/v1/jobs/{one['id']}/events")
    made = [
        [_moment(visit, event["at"]), event["event"], _told(event["told"])]
        for event in told["events"]
    ]
    return [
        table("Events", Listed(["TIME", "EVENT", "DETAIL"], made), empty="Nothing happened yet.")
    ]


def _told(fields: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in fields.items() if value not in (None, ""))


async def _script(visit: Visit, one: Json) -> Sequence[Block]:
    """For its owner and operators: to others scontrol does not write it."""
    said = await visit.doors.run("scontrol", "write", "batch_script", str(one["id"]), "-")
    return [] if said.code or not said.out.strip() else [text("Script", said.out)]


async def _record(visit: Visit, one: Json) -> Sequence[Block]:
    """As long as it is in the controller's memory."""
    said = await visit.doors.run("scontrol", "show", "job", str(one["id"]))
    return [] if said.code else [text("scontrol show job", said.out)]
