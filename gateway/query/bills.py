"""A provider's bill read: FOCUS 1.x or AWS CUR 2.0 as CSV, to micro-dollars by machine and hour."""

import csv
from collections.abc import Iterable, Iterator, Mapping
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


@dataclass(frozen=True, slots=True)
class Form:
    """Columns by what they have; the first three must be there, the others may."""

    resource: str
    begin: str
    cost: str
    end: str
    kind: str
    currency: str
    line: str = ""
    """What a line is called; one that comes twice counts once."""


FORMS = (
    Form(
        "ResourceId", "ChargePeriodStart", "BilledCost", "ChargePeriodEnd", "ChargeCategory",
        "BillingCurrency",
    ),
    Form(
        "line_item_resource_id", "line_item_usage_start_date", "line_item_unblended_cost",
        "line_item_usage_end_date", "line_item_line_item_type", "line_item_currency_code",
        "identity_line_item_id",
    ),
)  # fmt: skip
"""As FOCUS and as CUR name them."""
Line = tuple[str, int, Decimal]
"""A provider's id of a machine, an instant, dollars."""


class BillError(ValueError):
    """A file that is no bill, with the line where that shows."""


def read_bill(lines: Iterable[str], machines: Mapping[str, str]) -> dict[tuple[str, int], int]:
    """By our names of machines, which `machines` has by the provider's ids; others are left out.

    Credits and refunds count where they begin, taxes not at all. Raises BillError.
    """
    reader = csv.DictReader(lines)
    try:
        return by_machine(_lines(reader, _form(reader), machines), machines)
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
    found: dict[tuple[str, int], Decimal] = {}
    for resource, since, dollars in lines:
        name = machines.get(_id(resource))
        if name is not None:
            key = name, since - since % HOUR
            found[key] = found.get(key, Decimal(0)) + dollars
    return {key: round(dollars * 1_000_000) for key, dollars in found.items()}


def _id(resource: str) -> str:
    """The last part of an ARN, or what is none."""
    return resource.rpartition("/")[2]


def _lines(
    reader: "csv.DictReader[str]", form: Form, machines: Mapping[str, str]
) -> Iterator[Line]:
    """Those of our machines. Raises BillError."""
    seen: set[tuple[str, str]] = set()
    for number, row in enumerate(reader, start=2):
        name = row.get(form.line) or ""
        again = bool(name) and (name, row[form.begin] or "") in seen
        seen.add((name, row[form.begin] or ""))
        if again or _id(row[form.resource] or "") not in machines or row.get(form.kind) == TAX:
            continue
        try:
            yield _line(row, form)
        except ValueError as error:
            raise BillError(f"line {number}: {error}") from error


def _line(row: Mapping[str, str | None], form: Form) -> Line:
    """Raises ValueError."""
    currency = row.get(form.currency) or CURRENCY
    if currency != CURRENCY:
        raise ValueError(f"it is in {currency}, and the ledger in {CURRENCY}")
    begin, end = _moment(row[form.begin]), row.get(form.end)
    if (row.get(form.kind) or "") in USED and end and _moment(end) > begin - begin % HOUR + HOUR:
        raise ValueError(f"it goes from {row[form.begin]} to {end}: export the bill by hour")
    return row[form.resource] or "", begin, _dollars(row[form.cost])


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
