"""spz cost: what was spent, as a table, JSON, CSV or a picture; the bill as FOCUS."""

import csv
import io
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

from broker.model.errors import Refused
from gateway.api.zone import is_zone, read_zone
from gateway.query.costpicture import labelled, picture
from gateway.query.costwords import FILTERS
from gateway.query.dollars import usd
from gateway.sdk.client import Json
from gateway.sdk.show import below, table
from gateway.sdk.verbs.counter import Counter, as_json
from gateway.sdk.verbs.line import UsageError, Values

DAYS = 30
EXPLORER_DAYS = 13
"""Cost Explorer knows of hours for fourteen days."""
HOUR = 3600


def cost(given: Values, counter: Counter) -> int:
    """Of the last thirty days by account unless said otherwise. Raises Refused."""
    _must_go_together(given)
    zone = _zone(given, counter.environ)
    since, until = window(given, zone=zone)
    asked = {"since": since, "until": until, **{word: given[word] for word in FILTERS}}
    if given["focus"]:
        for part in counter.service.stream("/v1/focus", **asked):
            sys.stdout.buffer.write(part)
        sys.stdout.flush()
        return 0
    by = ",".join(given["by"]) or "account"
    told = counter.service.get("/v1/cost", **asked, by=by, zone=zone)
    if given["svg"]:
        _write(Path(given["svg"]), picture(told))
        counter.say(f"wrote {given['svg']}")
        return 0
    if given["csv"]:
        sys.stdout.write(as_csv(told))
        return 0
    if as_json(given):
        counter.show(told, given, lambda: "")
    else:
        print(as_table(told))
    return 0


def _must_go_together(given: Values) -> None:
    """Raises Refused for a form of output beside another one, or beside what it does not tell."""
    forms = [f"--{name}" for name in ("focus", "svg", "csv") if given[name]]
    forms += ["--json"] if as_json(given) else []
    if len(forms) > 1:
        raise Refused(f"{' and '.join(forms)} do not go together", hint="ask for one of them")
    if given["focus"] and given["by"]:
        raise Refused("--by does not go with --focus, which has a line for every entry")


def _zone(given: Values, environ: Mapping[str, str]) -> str:
    """That of --zone, else of TZ if it names one: a path such as `:/etc/localtime` does not.

    Raises Refused for an option that names none.
    """
    asked, usual = given["zone"], environ.get("TZ", "")
    if asked is None:
        return usual if is_zone(usual) else "UTC"
    if not is_zone(asked):
        raise UsageError(f"option --zone: no time zone {asked!r}", hint="such as Europe/Berlin")
    return str(asked)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from error


def reconcile(given: Values, counter: Counter) -> int:
    """Exits 1 where the bill and the ledger differ and nothing was posted. Raises Refused."""
    told = counter.service.post("/v1/reconcile", {**_billed(given), "post": given["post"]})
    counter.show(told, given, lambda: "\n".join([differences(told), *traffic(told)]))
    return 1 if told["differences"] and not told["posted"] else 0


def _billed(given: Values) -> Json:
    """The bill of a file, or of which time Cost Explorer is to be asked. Raises Refused."""
    if not given["words"]:
        since, until = window(given, days=EXPLORER_DAYS)
        return {"since": since, "until": until}
    path = Path(given["words"][0])
    try:
        return {"bill": path.read_text(encoding="utf-8-sig")}
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Refused(f"{path} is no text", hint="a bill as CSV: FOCUS 1.x or CUR 2.0") from error


def differences(told: Json) -> str:
    """A line for each hour of a machine that differs."""
    head = f"{told['hours']} hours of machines, {usd(told['billed_micro_usd'])} billed"
    if not told["differences"]:
        return f"{head}; the ledger agrees"
    lines = [
        (
            one["machine"],
            _hour(one["hour"]),
            usd(one["billed"]),
            usd(one["posted"]),
            usd(one["missing"]),
        )
        for one in told["differences"]
    ]
    tail = "posted as corrections" if told["posted"] else "`--post` sets the ledger right"
    return "\n".join([head, table(("MACHINE", "HOUR", "BILLED", "POSTED", "MISSING"), lines), tail])


def traffic(told: Json) -> list[str]:
    """What the bill has for bringing data to regions, where jobs were charged otherwise."""
    lines = [
        (one["region"], usd(one["billed"]), usd(one["posted"]), usd(one["missing"]))
        for one in told["data"]
    ]
    head = "data to regions, of all that the bill is for; no corrections come of it"
    return [head, table(("REGION", "BILLED", "POSTED", "MISSING"), lines)] if lines else []


def _hour(instant: int) -> str:
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:00Z")


def window(given: Values, *, days: int = DAYS, zone: str = "UTC") -> tuple[int, int]:
    """Whole hours, from --since until --until as the zone has them.

    Raises Refused for what is no moment, and for an end that is not after the beginning.
    """
    now, here = datetime.now(UTC), read_zone(zone)
    since = _moment("since", given["since"], here) if given["since"] else now - timedelta(days=days)
    until = _moment("until", given["until"], here) if given["until"] else now + timedelta(hours=1)
    first, last = int(since.timestamp()), int(until.timestamp())
    first, last = first - first % HOUR, last - last % HOUR
    if first >= last:
        raise Refused(f"nothing lies between {since:%Y-%m-%dT%H:%M%z} and {until:%Y-%m-%dT%H:%M%z}")
    return first, last


def _moment(name: str, text: str, zone: tzinfo) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"option --{name}: {text!r} is no moment", hint="as 2026-11-01 or 2026-11-01T12:00"
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=zone)


def as_table(told: Json) -> str:
    head = (*(word.upper() for word in told["by"]), "USD")
    lines = [(*labels, usd(amount)) for labels, amount in labelled(told)]
    total = (*("TOTAL" if place == 0 else "" for place in range(len(told["by"]))),)
    return table(head, [*lines, (*total, usd(told["micro_usd"]))]) + below([told])


def as_csv(told: Json) -> str:
    """Micro-dollars as dollars with six decimals."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*told["by"], "usd"])
    for labels, amount in labelled(told):
        writer.writerow([*labels, f"{amount / 1_000_000:.6f}"])
    return out.getvalue()
