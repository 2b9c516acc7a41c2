"""A provider's bill read: FOCUS 1.x or AWS CUR 2.0 as CSV, to micro-dollars by machine and hour."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

HOUR = 3600
CURRENCY = "USD"
MOST_USD = 10**9
"""Of a line; a number such as 1e999999 must not be written out."""
TAX = "Tax"
USED = frozenset({"Usage", "DiscountedUsage", "SavingsPlanCoveredUsage", "SavingsPlanNegation", ""})
"""Kinds of lines that are of the time in which something ran."""
BETWEEN = re.compile("[A-Z0-9]+-([A-Z0-9]+)-AWS-Out-Bytes")
REGIONS = {
    "AFS1": "af-south-1", "APE1": "ap-east-1", "APN1": "ap-northeast-1", "APN2": "ap-northeast-2",
    "APN3": "ap-northeast-3", "APS1": "ap-southeast-1", "APS2": "ap-southeast-2",
    "APS3": "ap-south-1", "APS4": "ap-southeast-3", "APS5": "ap-south-2", "APS6": "ap-southeast-4",
    "APS7": "ap-southeast-5", "CAN1": "ca-central-1", "CAN2": "ca-west-1", "EU": "eu-west-1",
    "EUC1": "eu-central-1", "EUC2": "eu-central-2", "EUN1": "eu-north-1", "EUS1": "eu-south-1",
    "EUS2": "eu-south-2", "EUW1": "eu-west-1", "EUW2": "eu-west-2", "EUW3": "eu-west-3",
    "ILC1": "il-central-1", "MEC1": "me-central-1", "MES1": "me-south-1", "MXC1": "mx-central-1",
    "SAE1": "sa-east-1", "UGE1": "us-gov-east-1", "UGW1": "us-gov-west-1", "USE1": "us-east-1",
    "USE2": "us-east-2", "USW1": "us-west-1", "USW2": "us-west-2",
}  # fmt: skip
"""AWS's bills have short names of regions; one that is not here stands for itself."""


@dataclass(frozen=True, slots=True)
class Form:
    """Columns by what they have; the first three must be there, the others may."""

    resource: str
    begin: str
    cost: str
    end: str
    kind: str
    currency: str
    usage: str
    """Where AWS says what was used, as `USE1-EUW1-AWS-Out-Bytes`."""
    line: str = ""
    """What a line is called; one that comes twice counts once."""


FORMS = (
    Form(
        "ResourceId", "ChargePeriodStart", "BilledCost", "ChargePeriodEnd", "ChargeCategory",
        "BillingCurrency", "x_UsageType",
    ),
    Form(
        "line_item_resource_id", "line_item_usage_start_date", "line_item_unblended_cost",
        "line_item_usage_end_date", "line_item_line_item_type", "line_item_currency_code",
        "line_item_usage_type", "identity_line_item_id",
    ),
)  # fmt: skip
"""As FOCUS and as CUR name them."""
Line = tuple[str, int, Decimal]
"""A provider's id of a machine (or what was used), an instant, dollars."""
Wanted = Callable[[Mapping[str, str | None], Form], str | None]
"""By what a line counts; None if it does not."""


class BillError(ValueError):
    """A file that is no bill, with the line where that shows."""


def read_bill(lines: Iterable[str], machines: Mapping[str, str]) -> dict[tuple[str, int], int]:
    """By our names of machines, which `machines` has by the provider's ids; others are left out.

    Credits and refunds count where they begin, taxes not at all. Raises BillError.
    """

    def ours(row: Mapping[str, str | None], form: Form) -> str | None:
        resource = row[form.resource] or ""
        return resource if _id(resource) in machines else None

    return by_machine(_read(lines, ours), machines)


def read_traffic(lines: Iterable[str], machines: Mapping[str, str]) -> dict[tuple[str, int], int]:
    """What bringing data to regions cost, by region and hour; that of our machines is theirs.

    Raises BillError.
    """

    def moves(row: Mapping[str, str | None], form: Form) -> str | None:
        used = row.get(form.usage) or ""
        return used if region_to(used) and _id(row[form.resource] or "") not in machines else None

    return by_region(_read(lines, moves))


def _read(lines: Iterable[str], wanted: Wanted) -> list[Line]:
    """Raises BillError."""
    reader = csv.DictReader(lines)
    try:
        return list(_lines(reader, _form(reader), wanted))
    except csv.Error as error:
        raise BillError(f"line {reader.line_num + 1}: {error}") from error


def _form(reader: "csv.DictReader[str]") -> Form:
    """Raises BillError."""
    heads = set(reader.fieldnames or ())
    for form in FORMS:
        if heads.issuperset((form.resource, form.begin, form.cost)):
            return form
    raise BillError("neither FOCUS (ResourceId, ...) nor CUR 2.0 (line_item_resource_id, ...)")


def by_machine(lines: Iterable[Line], machines: Mapping[str, str]) -> dict[tuple[str, int], int]:
    """Micro-dollars by our names of machines and hour."""
    return _summed(lines, lambda resource: machines.get(_id(resource)))


def by_region(lines: Iterable[Line]) -> dict[tuple[str, int], int]:
    """Micro-dollars by the region that data came to and hour; lines of else are left out."""
    return _summed(lines, region_to)


def _summed(
    lines: Iterable[Line], name_of: Callable[[str], str | None]
) -> dict[tuple[str, int], int]:
    found: dict[tuple[str, int], Decimal] = {}
    for what, since, dollars in lines:
        name = name_of(what)
        if name is not None:
            key = name, since - since % HOUR
            found[key] = found.get(key, Decimal(0)) + dollars
    return {key: round(dollars * 1_000_000) for key, dollars in found.items()}


def region_to(used: str) -> str | None:
    """The region that data went to, by AWS's word for what was used; None if it is of else."""
    found = BETWEEN.fullmatch(used)
    return REGIONS.get(found[1], found[1]) if found else None


def _id(resource: str) -> str:
    """The last part of an ARN, or what is none."""
    return resource.rpartition("/")[2]


def _lines(reader: "csv.DictReader[str]", form: Form, wanted: Wanted) -> Iterator[Line]:
    """Those that are wanted. Raises BillError."""
    seen: set[tuple[str, str]] = set()
    for number, row in enumerate(reader, start=2):
        name = row.get(form.line) or ""
        again = bool(name) and (name, row[form.begin] or "") in seen
        seen.add((name, row[form.begin] or ""))
        what = wanted(row, form)
        if again or what is None or row.get(form.kind) == TAX:
            continue
        try:
            yield (what, *_charge(row, form))
        except ValueError as error:
            raise BillError(f"line {number}: {error}") from error


def _charge(row: Mapping[str, str | None], form: Form) -> tuple[int, Decimal]:
    """When it begins, and dollars. Raises ValueError."""
    currency = row.get(form.currency) or CURRENCY
    if currency != CURRENCY:
        raise ValueError(f"it is in {currency}, and the ledger in {CURRENCY}")
    begin, end = _moment(row[form.begin]), row.get(form.end)
    if (row.get(form.kind) or "") in USED and end and _moment(end) > begin - begin % HOUR + HOUR:
        raise ValueError(f"it goes from {row[form.begin]} to {end}: export the bill by hour")
    return begin, _dollars(row[form.cost])


def _dollars(text: str | None) -> Decimal:
    try:
        found = Decimal(text or "")
    except InvalidOperation:
        raise ValueError(f"{text!r} is no amount") from None
    if not found.is_finite() or not -MOST_USD <= found <= MOST_USD:
        raise ValueError(f"{text} is no amount")
    return found


def _moment(text: str | None) -> int:
    when = datetime.fromisoformat((text or "").replace("Z", "+00:00"))
    return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp())
