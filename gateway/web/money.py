"""What was spent, the budgets, and disks and buckets that are paid for."""

from collections.abc import Sequence

from broker.model.errors import Refused
from gateway.query.costpicture import labelled, picture
from gateway.query.costwords import COLUMNS, FILTERS
from gateway.query.dollars import oldest, usd
from gateway.query.listed import EVERYTHING, Listed, listed
from gateway.query.skylists import BUDGETS, STORAGES, VOLUMES
from gateway.web.asked import Asked
from gateway.web.blocks import Block, Choice, Entry, Form, Picture, notes, table

DAY, HOUR = 86400, 3600
SPANS = ("1", "7", "30", "90", "365")
USUAL_SPAN = "30"
EVERYBODY = "all"
WHOSE = (Choice("", "yourself"), Choice(EVERYBODY, "everybody"))
SHOWN_FILTERS = ("user", "account", "partition")


async def costs(asked: Asked) -> Sequence[Block]:
    """As `spz cost` tells them, and the picture that it draws."""
    by, days = asked.given("by", "account"), int(USUAL_SPAN)
    if asked.given("days") in SPANS:
        days = int(asked.given("days"))
    until = (await asked.get("/v1/health"))["at"] // HOUR * HOUR + HOUR
    filters = {name: asked.given(name) or None for name in FILTERS}
    span_of = {"since": until - days * DAY, "until": until}
    try:
        told = await asked.get("/v1/cost", **span_of, by=by, zone=asked.doors.zone, **filters)
    except Refused as error:
        return [_choice(asked, by, str(days)), *notes([error.message, error.hint], "bad")]
    made: list[list[object]] = [[*labels, usd(amount)] for labels, amount in labelled(told)]
    head = [*(word.upper() for word in told["by"]), "USD"]
    old = notes([told["old_price"]])
    drawn = [Picture("Picture", picture(told))] if made else []
    total = usd(told["micro_usd"])
    title = f"Costs of {days} days: {total}"
    return [
        _choice(asked, by, str(days)),
        *old,
        *drawn,
        table(title, Listed(head, made), empty="Nothing was spent.", query=asked.query),
    ]


def _choice(asked: Asked, by: str, days: str) -> Form:
    entries = [
        Entry("by", "By", by, [Choice(word, word) for word in COLUMNS]),
        Entry("days", "Days", days, [Choice(word, word) for word in SPANS]),
        *(Entry(name, name.capitalize(), asked.given(name)) for name in SHOWN_FILTERS),
    ]
    return Form("Which costs", "costs", entries)


async def budgets(asked: Asked) -> Sequence[Block]:
    """As `spz budget show` has them."""
    found = (await asked.get("/v1/budgets"))["budgets"]
    made = listed(BUDGETS, found, 0, also=EVERYTHING)
    return [table("Budgets", made, empty="No budgets.", query=asked.query)]


async def storage(asked: Asked) -> Sequence[Block]:
    """Volumes of everybody, and the user's buckets; those of others on demand."""
    everybody = asked.given("whose") == EVERYBODY
    told = await asked.get("/v1/volumes", all_users=True)
    buckets = await asked.get("/v1/storage", all_users=everybody)
    volumes = listed(VOLUMES, told["volumes"], told["at"], also=EVERYTHING)
    named = listed(STORAGES, buckets["storages"], buckets["at"], also=EVERYTHING)
    old = oldest(one["old_price"] for one in told["volumes"])
    return [
        *notes([old]),
        table("Volumes", volumes, empty="No volumes.", query=asked.query),
        Form("Whose buckets", "storage", [Entry("whose", "Of", asked.given("whose"), WHOSE)]),
        table("Buckets that tasks name", named, empty="No buckets."),
    ]
