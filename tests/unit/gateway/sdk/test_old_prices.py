"""What programs are told of prices that are old."""

import json
import math
from pathlib import Path

import pytest

from gateway.query.dollars import oldest_in
from gateway.sdk.accelerators import told
from gateway.sdk.client import Json
from gateway.sdk.verbs.counter import Counter

OLD, OLDER = (f"price of {day}, 90 days old" for day in ("2026-08-02", "2026-08-01"))


def price(region: str, market: str, dollars: float, *, of: str, old: str | None) -> Json:
    return {
        **{"region": region, "market": market, "micro_usd_per_hour": int(dollars * 1e6)},
        **{"as_of": of, "old_price": old, "estimate": market == "spot"},
    }


L4 = {
    **{"gpu": "L4", "count": 1, "fraction": 1, "gpu_gb": 24, "instance_type": "g6.xlarge"},
    **{"cpus": 4, "mem_mib": 16384},
    "prices": [
        price("us-east-1", "on-demand", 0.8, of="2026-08-02", old=OLD),
        price("us-east-1", "spot", 0.3, of="2026-08-01", old=OLDER),
        price("eu-west-1", "on-demand", 0.9, of="2026-11-01", old=None),
    ],
}


def test_a_record_of_an_accelerator_tells_the_day_of_its_prices_beside_sky_pilots_keys() -> None:
    east, west = told([L4], each=True)["L4"]
    assert (east["price"], east["spot_price"], east["accelerator_count"]) == (0.8, 0.3, 1)
    assert (east["as_of"], east["old_price"], east["estimate"]) == ("2026-08-01", OLDER, True)
    assert (west["as_of"], west["old_price"], west["estimate"]) == ("2026-11-01", None, False)
    assert west["spot_price"] is None and not any(
        isinstance(value, float) and math.isnan(value) for value in west.values()
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"offers": [{"old_price": OLD}, {"old_price": OLDER}, {"old_price": None}]}, OLDER),
        ([{"name": "dev", "old_price": OLD}], OLD),
        ({"L4": told([L4], each=False)["L4"]}, OLDER),
        ({"plan": {"jobs": [{"offers": [{"old_price": OLD}]}]}}, OLD),
        ([{"old_price": None}, "old_price", 3, None], None),
        ({}, None),
    ],
)
def test_json_with_old_prices_says_so_to_people_once(
    data: object, expected: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert oldest_in(data) == expected
    counter = Counter(paths=tmp_path, environ={})  # type: ignore[arg-type]
    counter.show(data, {"json": True}, lambda: "table")
    out, err = capsys.readouterr()
    assert json.loads(out) == data
    assert err == (f"spz: {expected}\n" if expected else "")


def test_a_table_says_it_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counter = Counter(paths=tmp_path, environ={})  # type: ignore[arg-type]
    counter.show([{"old_price": OLD}], {}, lambda: "table")
    assert capsys.readouterr() == ("table\n", "")
