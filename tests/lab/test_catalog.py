"""spz catalog refresh as a process, against a box."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.optimize.bundled import bundled
from gateway.config.catalogs import Shelf
from tests.lab.boxed import SPZ
from tests.lab.running import CREDENTIALS, Running, running

pytestmark = pytest.mark.e2e


def spz(home: Path, *words: str, endpoint: str = "") -> "subprocess.CompletedProcess[str]":
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("SKYPURZA_", "AWS_"))}
    environ = {**plain, **CREDENTIALS, "SKYPURZA_HOME": str(home)}
    if endpoint:
        environ["AWS_ENDPOINT_URL"] = endpoint
    return subprocess.run(
        [SPZ, *words], env=environ, cwd=home, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def box() -> Iterator[Running]:
    with running("--speed", "30") as made:
        yield made


def test_figures_are_read_from_a_region_and_bear_their_day(box: Running, short_tmp: Path) -> None:
    done = spz(short_tmp, "catalog", "refresh", "us-east-1", "--json", endpoint=box.endpoint)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    (region,) = told["regions"]
    assert region["types"] > 500 and region["zones"] == 6
    assert "[1/1] us-east-1:" in done.stderr
    fresh = Shelf(short_tmp).get("ec2")
    days = {source.as_of for source in fresh.sources}
    assert told["day"] in days
    assert region["rates"] == 13
    rates = {rate.as_of for rate in fresh.rates if rate.region == "us-east-1"}
    assert rates == {told["day"]}, "what volumes, addresses and traffic cost is of that day, too"
    shown = spz(short_tmp, "catalog", "rates", "us-east-1", "--json")
    rows = {row["item"]: row for row in json.loads(shown.stdout)["rates"]}
    assert (rows["gp3"]["source"], rows["gp3"]["old_price"]) == ("price-list", None)
    zones = {zone for group in fresh.zone_sets for zone in group}
    assert {zone for zone in zones if zone.startswith("us-east-1")} == set(), "zones go by id"
    elsewhere = {(o.instance_type, o.region) for o in bundled("ec2") if o.region == "eu-west-1"}
    assert elsewhere == {(o.instance_type, o.region) for o in fresh if o.region == "eu-west-1"}


def test_without_a_word_the_regions_of_all_partitions_are_read(
    box: Running, short_tmp: Path
) -> None:
    (short_tmp / "config.yaml").write_text(
        "partitions:\n"
        "- {name: far, elastic: {name_prefix: far-, regions: [eu-north-1]}}\n"
        "- {name: near, elastic: {provider: ec2, regions: [ca-central-1]}}\n"
    )
    done = spz(short_tmp, "catalog", "refresh", "--json", endpoint=box.endpoint)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [one["region"] for one in told["regions"]] == ["ca-central-1", "eu-north-1"]


def test_a_region_that_does_not_answer_is_told_and_the_figures_stay(short_tmp: Path) -> None:
    done = spz(short_tmp, "catalog", "refresh", "us-east-1", endpoint="http://127.0.0.1:9")
    assert done.returncode == 1
    assert "no region answered: the figures stay as they were" in done.stderr
    assert not (short_tmp / "catalog.json.z").exists()
