"""A provider's bill read: FOCUS 1.x or AWS CUR 2.0 as CSV, to micro-dollars by machine and hour."""

import csv
from collections.abc import Iterable, Mapping
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
    resource, begin, cost = form
    found: dict[tuple[str, int], int] = {}
    for number, row in enumerate(reader, start=2):
        name = machines.get((row[resource] or "").rpartition("/")[2])
        if name is None:
            continue
        try:
            since, micro = _moment(row[begin]), int(Decimal(row[cost]) * 1_000_000)
        except (ValueError, InvalidOperation) as error:
            raise BillError(f"line {number}: {error}") from error
        key = name, since - since % HOUR
        found[key] = found.get(key, 0) + micro
    return found


def _moment(text: str) -> int:
    when = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp())
