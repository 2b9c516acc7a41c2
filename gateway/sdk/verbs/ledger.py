"""spz ledger: entries of the ledger, as a table, CSV or JSON."""

import csv
import json
import sys
from collections.abc import Iterator
from itertools import chain

from accounting.age import in_utc
from broker.model.errors import Refused
from gateway.query.costwords import FILTERS
from gateway.query.dollars import usd
from gateway.sdk.client import Json
from gateway.sdk.show import table
from gateway.sdk.verbs.counter import Counter, as_json
from gateway.sdk.verbs.line import Values
from gateway.sdk.verbs.money import window
from sbatch_shim.grammar.values import read_digits

HEAD = ("SINCE", "UNTIL", "KIND", "WHY", "WHOSE", "ACCOUNT", "USER", "MACHINE", "USD", "USE")


def show(given: Values, counter: Counter) -> int:
    """Of jobs, else those posted in the last thirty days. Raises Refused."""
    if given["csv"] and as_json(given):
        raise Refused("--csv and --json do not go together", hint="ask for one of them")
    found = _found(given, counter)
    if as_json(given):
        print(json.dumps(list(found), indent=2))
    elif given["csv"]:
        _write_csv(found)
    else:
        print(table(HEAD, map(_cells, found)))
    return 0


def _found(given: Values, counter: Counter) -> Iterator[Json]:
    since, until = window(given)
    asked = {"since": since, "until": until, **{word: given[word] for word in FILTERS}}
    for job in map(_job, given["words"]) if given["words"] else (None,):
        parts = counter.service.stream("/v1/ledger", **asked, job=job)
        yield from map(json.loads, _lines(parts))


def _job(word: str) -> int:
    """Raises Refused."""
    number = read_digits(word)
    if number is None:
        raise Refused(f"{word!r} is no number of a job", hint="`sacct -X` lists jobs")
    return number


def _lines(parts: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for part in parts:
        *whole, rest = (rest + part).split(b"\n")
        yield from whole


def _cells(one: Json) -> tuple[str, ...]:
    return (
        in_utc(one["since"]),
        in_utc(one["at"]),
        one["kind"],
        one["why"],
        _whose(one),
        one["account"],
        one["user"],
        one["machine"] or "",
        usd(one["micro_usd"]) if one["micro_usd"] else "",
        _use(one),
    )


def _whose(one: Json) -> str:
    """`4711/1.batch`: job, attempt, step."""
    if one["job"] is None:
        return ""
    step = f".{one['step']}" if one["step"] else ""
    return f"{one['job']}/{one['attempt']}{step}"


def _use(one: Json) -> str:
    return _pairs({**one["tres_seconds"], **{f"{n} used": v for n, v in one["sampled"].items()}})


def _pairs(counts: Json) -> str:
    return ",".join(f"{name}={count}" for name, count in counts.items())


def _write_csv(found: Iterator[Json]) -> None:
    """Micro-dollars and seconds as they are; what has several counts as NAME=COUNT,..."""
    first = next(found, None)
    if first is None:
        return
    writer = csv.DictWriter(sys.stdout, fieldnames=list(first), lineterminator="\n")
    writer.writeheader()
    for one in chain([first], found):
        writer.writerow({k: _pairs(v) if isinstance(v, dict) else v for k, v in one.items()})
