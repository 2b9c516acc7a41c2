"""What was spent, the budgets, and disks and buckets that are paid for."""

from collections.abc import Sequence

from broker.model.errors import Refused
from gateway.query.costpicture import labelled, picture
from gateway.query.costwords import COLUMNS, FILTERS
from gateway.query.dollars import oldest, usd
from gateway.query.listed import EVERYTHING, Listed, listed
from gateway.query.skylists import BUDGETS, STORAGES, VOLUMES
from gateway.web.blocks import Block, Choice, Entry, Form, Picture, notes, table
from gateway.web.visit import Visit

DAY, HOUR = 86400, 3600
SPANS = ("1", "7", "30", "90", "365")
USUAL_SPAN = "30"
EVERYBODY = "all"
WHOSE = (Choice("", "yourself"), Choice(EVERYBODY, "everybody"))
SHOWN_FILTERS = ("user", "account", "partition")


async def costs(visit: Visit) -> Sequence[Block]:
    """As `spz cost` tells them, and the picture that it draws."""
    by, days = visit.given("by", "account"), int(USUAL_SPAN)
    if visit.given("days") in SPANS:
        days = int(visit.given("days"))
    until = (await visit.get("/v1/health"))["at"] // HOUR * HOUR + HOUR
    filters = {name: visit.given(name) or None for name in FILTERS}
    span_of = {"since": until - days * DAY, "until": until}
    try:
        told = await visit.get("/v1/cost", **span_of, by=by, zone=visit.doors.zone, **filters)
    except Refused as error:
        return [_choice(visit, by, str(days)), *notes([error.message, error.hint], "bad")]
    made: list[list[object]] = [[*labels, usd(amount)] for labels, amount in labelled(told)]
    head = [*(word.upper() for word in told["by"]), "USD"]
    old = notes([told["old_price"]])
    drawn = [Picture("Picture", picture(told))] if made else []
    total = usd(told["micro_usd"])
    title = f"Costs of {days} days: {total}"
    return [
        _choice(visit, by, str(days)),
        *old,
        *drawn,
        table(title, Listed(head, made), empty="Nothing was spent.", query=visit.query),
    ]


def _choice(visit: Visit, by: str, days: str) -> Form:
    entries = [
        Entry("by", "By", by, [Choice(word, word) for word in COLUMNS]),
        Entry("days", "Days", days, [Choice(word, word) for word in SPANS]),
        *(Entry(name, name.capitalize(), visit.given(name)) for name in SHOWN_FILTERS),
    ]
    return Form("Which costs", "costs", entries)


async def budgets(visit: Visit) -> Sequence[Block]:
    """As `spz budget show` has them."""
    found = (await visit.get("/v1/budgets"))["budgets"]
    made = listed(BUDGETS, found, 0, also=EVERYTHING)
    return [table("Budgets", made, empty="No budgets.", query=visit.query)]


async def storage(visit: Visit) -> Sequence[Block]:
    """Volumes of everybody, and the user's buckets; those of others on demand."""
    everybody = visit.given("whose") == EVERYBODY
    told = await visit.get("/v1/volumes", all_users=True)
    buckets = await visit.get("/v1/storage", all_users=everybody)
    volumes = listed(VOLUMES, told["volumes"], told["at"], also=EVERYTHING)
    named = listed(STORAGES, buckets["storages"], buckets["at"], also=EVERYTHING)
    old = oldest(one["old_price"] for one in told["volumes"])
    return [
        *notes([old]),
        table("Volumes", volumes, empty="No volumes.", query=visit.query),
        Form("Whose buckets", "storage", [Entry("whose", "Of", visit.given("whose"), WHOSE)]),
        table("Buckets that tasks name", named, empty="No buckets."),
    ]
