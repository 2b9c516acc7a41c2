"""What could be bought: spz gpus list, spz offers."""

from collections.abc import Sequence
from importlib import import_module

from broker.model.errors import Refused
from gateway.query import gpulist
from gateway.sdk.client import Json
from gateway.sdk.show import below, drawn, table
from gateway.sdk.verbs.counter import Counter, as_json
from gateway.sdk.verbs.line import UsageError, Values
from gateway.sdk.verbs.sent import body_of
from sbatch_shim.grammar.values import read_digits

SIZES = "+"


def gpus(given: Values, counter: Counter) -> int:
    """All accelerators, or one, or so many of one; with --all-regions the price in each region."""
    word = given["words"][0] if given["words"] else None
    name, count = _named(word)
    regions = ",".join([*given["region"], *_regions(given["infra"] or given["cloud"])]) or None
    told = counter.service.get("/v1/gpus", name=name, regions=regions, each=given["all_regions"])
    told["gpus"] = [one for one in told["gpus"] if count in {None, one["count"]}]
    if not told["gpus"]:
        raise Refused(f"no type has accelerators {word!r}", hint="`spz gpus list` lists all")
    rows = told["gpus"]
    # What JSON has is made where programs have it made; a table waits for none of that.
    data = _for_programs(rows, each=given["all_regions"]) if as_json(given) else rows
    counter.show(data, given, lambda: gpus_text(rows))
    return 0


def _for_programs(rows: Sequence[Json], *, each: bool) -> dict[str, list[Json]]:
    found: dict[str, list[Json]] = import_module("gateway.sdk.accelerators").told(rows, each=each)
    return found


def _named(word: str | None) -> tuple[str | None, int | None]:
    """`A100:8` as name and count. Raises UsageError for a count that is none."""
    name, colon, count = (word or "").partition(":")
    number = read_digits(count)
    if colon and not number:
        raise UsageError(f"{word!r}: {count!r} is no number of accelerators", hint="as A100:8")
    return name or None, number


def _regions(infra: str | None) -> list[str]:
    """Of `aws/us-east-1`. Raises Refused for another cloud."""
    cloud, _, place = (infra or "aws").lower().partition("/")
    if cloud != "aws":
        raise UsageError(f"option --infra: {infra!r}: only aws is served")
    region = place.split("/")[0]
    return [region] if region not in {"", "*"} else []


def gpus_text(rows: Sequence[Json]) -> str:
    """The table, and when its prices were true."""
    return "\n".join([drawn(gpulist.gpus(rows)), *gpulist.price_notes(rows)])


def offers(given: Values, counter: Counter) -> int:
    """What could be bought for a request: H100:8, 4+ (cpus), or a task file; the best first."""
    body = body_of(_request(given), _files(given["words"]))
    body |= {"count": given["limit"] or 20, "partition": given["partition"]}
    body |= {key: given[key] for key in ("constraint", "prefer") if given[key]}
    if given["minutes"]:
        body["seconds"] = given["minutes"] * 60
    told = counter.service.post("/v1/offers", body)
    counter.show(told, given, lambda: offers_text(told["offers"]))
    return 0


def _files(words: Sequence[str]) -> Sequence[str]:
    """The word that is a task file; a size or an accelerator is none."""
    return [word for word in words if _is_file(word)]


def _is_file(word: str) -> bool:
    return word.endswith((".yaml", ".yml")) or "/" in word


def _request(given: Values) -> Values:
    """The word as the option that it stands for."""
    made = {**given}
    for word in given["words"]:
        if _is_file(word):
            continue
        key = "cpus" if word.rstrip(SIZES).isdigit() else "gpus"
        if made.get(key):
            raise Refused(f"{word!r} and --{key} {made[key]!r} say the same thing twice")
        made[key] = word
    return made


def offers_text(rows: Sequence[Json]) -> str:
    """A line for each; then what is known of the first, and that prices are old where any is."""
    head = ("INFRA", "INSTANCE", "vCPUs", "MEM(GB)", "GPUS", "$/h", "EXPECTED $", "PRICE OF", "WHY")
    lines = [table(head, map(_offer_cells, rows))]
    if any(row["estimate"] for row in rows):
        lines.append(gpulist.GUESSED)
    notes = rows[0]["notes"]
    return "\n".join([*lines, *(f"first: {note}" for note in notes)]) + below(rows, said=notes)


def _offer_cells(row: Json) -> tuple[object, ...]:
    zones = f"/{row['zones'][0]}" if len(row["zones"]) == 1 else ""
    spot = "[spot]" if row["market"] == "spot" else ""
    return (
        f"{row['region']}{zones}",
        row["instance_type"] + spot,
        row["cpus"],
        f"{row['mem_mib'] / 1024:g}",
        row["gpus"],
        gpulist.price_text(row),
        f"{row['expected_micro_usd'] / 1_000_000:.4f}",
        row["as_of"],
        row["reason"],
    )
