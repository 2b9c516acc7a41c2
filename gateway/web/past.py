"""Jobs of the past, as sacct tells of them."""

from collections.abc import Sequence

from gateway.query.listed import Listed
from gateway.web.blocks import Block, Choice, Entry, Form, below, table
from gateway.web.visit import Visit, complaints
from sbatch_shim.grammar.states import BASE_COUNT, JOB_STATES

COLUMNS = (
    *("JobID", "JobName", "User", "Account", "Partition", "State", "ExitCode", "Start", "End"),
    *("Elapsed", "AllocCPUS", "Cost", "JobIDRaw"),
)
"""By the last one a job's page is found."""
FILTERS = ("user", "state", "partition", "accounts", "name")
SPANS = ("1", "7", "30", "90")


async def history(visit: Visit) -> Sequence[Block]:
    """Those that were there in the last days, the latest first."""
    days = visit.given("days") if visit.given("days") in SPANS else SPANS[0]
    argv = [f"--{name}={visit.given(name)}" for name in FILTERS if visit.given(name)]
    argv += [] if visit.given("user") else ["--allusers"]
    since = f"--starttime=now-{days}days"
    found, said = await visit.accounted(COLUMNS, "--allocations", since, *argv)
    latest = found[:0:-1]
    head = [text.upper() for text in found[0][:-1]] if found else []
    made = Listed(head, [[*row[:-1]] for row in latest])
    links = [below("jobs", row[-1]) for row in latest]
    shown = table("History", made, empty="No jobs.", links=links, query=visit.query)
    return [_choice(visit, days), *complaints(said), shown]


def _choice(visit: Visit, days: str) -> Form:
    states = [
        Choice("", "any"),
        *(Choice(word, word.lower()) for word, _ in JOB_STATES[:BASE_COUNT]),
    ]
    entries = [
        Entry("days", "Days", days, [Choice(word, word) for word in SPANS]),
        Entry("user", "User", visit.given("user")),
        Entry("state", "State", visit.given("state"), states),
        Entry("partition", "Partition", visit.given("partition")),
        Entry("accounts", "Account", visit.given("accounts")),
        Entry("name", "Name", visit.given("name")),
    ]
    return Form("Which jobs", "history", entries)
