"""Clusters and managed jobs, as `spz status` and `spz jobs queue` list them; requests by id."""

from collections.abc import Sequence

from broker.model.errors import Unknown
from gateway.query.listed import EVERYTHING, listed
from gateway.query.managedlist import MANAGED, lines
from gateway.query.skylists import CLUSTERS, RUNS
from gateway.web.blocks import Block, Choice, Entry, Form, below, facts, notes, state, table
from gateway.web.doors import Json
from gateway.web.jobs import of_job
from gateway.web.visit import Visit

EVER = "all"


async def clusters(visit: Visit) -> Sequence[Block]:
    """Those that are open, of everybody."""
    told, at = await visit.get("/v1/clusters"), await _at(visit)
    found = told["clusters"]
    made = listed(CLUSTERS, found, at, also=EVERYTHING)
    links = [below("clusters", one["job"]) for one in found]
    return [table("Clusters", made, empty="No clusters.", links=links, query=visit.query)]


async def cluster(visit: Visit) -> Sequence[Block]:
    """One with its runs, and the job that it is. Raises Unknown."""
    found, at = (await visit.get("/v1/clusters"))["clusters"], await _at(visit)
    one = next((one for one in found if str(one["job"]) == visit.word), None)
    if one is None:
        raise Unknown(f"no cluster is open as job {visit.word}", hint="`spz cost-report` has it")
    about = listed(CLUSTERS, [one], at, also=EVERYTHING)
    runs = listed(RUNS, one["runs"], at, also=EVERYTHING)
    return [
        table("Cluster", about, empty=""),
        table("Runs", runs, empty="No runs.", query=visit.query),
        *await of_job(visit, await visit.get(f"/v1/jobs/{one['job']}")),
    ]


async def managed(visit: Visit) -> Sequence[Block]:
    """The newest first; tasks of a pipeline or group behind their whole.

    Those that ended long ago are read from the database, and only when they are asked for.
    """
    told = await visit.get("/v1/managed", all=visit.given("which") == EVER or None)
    shown = list(lines(told["jobs"]))
    made = listed(MANAGED, shown, told["at"], also=EVERYTHING)
    links = [below("managed", one["root"]) for one in shown]
    choices = [Choice("", "of now and lately"), Choice(EVER, "all there ever were")]
    form = Form("Which jobs", "managed", [Entry("which", "Jobs", visit.given("which"), choices)])
    jobs = table("Managed jobs", made, empty="No managed jobs.", links=links, query=visit.query)
    return [form, jobs]


async def managed_job(visit: Visit) -> Sequence[Block]:
    """One with its tasks, its attempts and what it wrote. Raises Unknown."""
    told = await visit.get("/v1/managed")
    if not _of(told, visit.word):
        told = await visit.get("/v1/managed", all=True)
    tasks = _of(told, visit.word)
    if not tasks:
        raise Unknown(f"no managed job {visit.word}", hint="`spz jobs queue -a` lists them")
    made = listed(MANAGED, tasks, told["at"], also=EVERYTHING)
    links = [below("jobs", one["id"]) for one in tasks]
    about = table("Tasks", made, empty="", links=links, query=visit.query)
    return [about, *(await of_job(visit, tasks[0]) if len(tasks) == 1 else [])]


def _of(told: Json, root: str) -> list[Json]:
    """The tasks of that whole, by id."""
    found = (one for one in told["jobs"] if str(one["root"]) == root)
    return sorted(found, key=lambda one: int(one["id"]))


async def _at(visit: Visit) -> int:
    return int((await visit.get("/v1/health"))["at"])


async def requests(visit: Visit) -> Sequence[Block]:
    """What became of one: `--async` prints its id."""
    word = visit.given("id")
    form = Form("A request", "requests", [Entry("id", "Id of the request", word)])
    if not word:
        return [form]
    try:
        told = await visit.get(f"/v1/requests/{below(word)}")
    except Unknown as error:
        return [form, *notes([error.message, error.hint], "bad")]
    job = told["job"] and state(told["job"])._replace(href=below("jobs", told["job"]))
    return [
        form,
        facts(
            f"Request {told['request']}",
            [
                ("Verb", told["verb"]),
                ("State", state(told["state"])),
                ("Cluster", told["cluster"]),
                ("Run", told["run"]),
                ("Job", job),
            ],
        ),
        *notes(told["told"]),
    ]
