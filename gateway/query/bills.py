"""A provider's bill read: FOCUS 1.x or AWS CUR 2.0 as CSV, to micro-dollars by machine and hour."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

HOUR = 3600
FORMS = (
    ("ResourceId", "ChargePeriodStart", "BilledCost"),
    ("line_item_resource_id", "line_item_usage_start_date", "line_item_unblended_cost"),
)
"""Machine, begin, cost: as FOCUS and as CUR name them."""


class BillError(ValueError):
    """A file that is no bill, with the line where that shows."""


def read_bill(lines: Iterable[str], machines: Mapping[str, str]) -> dict[tuple[str, int], int]:
    """By our names of machines, which `machines` has by the provider's ids; others are left out.

    Raises BillError.
    """
    reader = csv.DictReader(lines)
    heads = set(reader.fieldnames or ())
    form = next((form for form in FORMS if heads.issuperset(form)), None)
    if form is None:
        raise BillError("neither FOCUS (ResourceId, ...) nor CUR 2.0 (line_item_resource_id, ...)")
    return by_machine(_lines(reader, form), machines)


def by_machine(
    lines: Iterable[tuple[str, int, Decimal]], machines: Mapping[str, str]
) -> dict[tuple[str, int], int]:
    """Micro-dollars by our names of machines and hour, of a provider's ids, instants, dollars."""
    found: dict[tuple[str, int], Decimal] = {}
    for resource, since, dollars in lines:
        name = machines.get(resource.rpartition("/")[2])
        if name is not None:
            key = name, since - since % HOUR
            found[key] = found.get(key, Decimal(0)) + dollars
    return {key: round(dollars * 1_000_000) for key, dollars in found.items()}


def _lines(
    reader: "csv.DictReader[str]", form: tuple[str, str, str]
) -> Iterator[tuple[str, int, Decimal]]:
    """Raises BillError."""
    resource, begin, cost = form
    for number, row in enumerate(reader, start=2):
        try:
            yield row[resource] or "", _moment(row[begin]), _dollars(row[cost])
        except (TypeError, ValueError, AttributeError, InvalidOperation) as error:
            raise BillError(f"line {number}: {error}") from error


def _dollars(text: str) -> Decimal:
    found = Decimal(text)
    if not found.is_finite():
        raise ValueError(f"{text} is no amount")
    return found


def _moment(text: str) -> int:
    when = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp())
