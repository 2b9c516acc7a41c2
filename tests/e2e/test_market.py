"""spz gpus list and spz offers as processes, and arrays that share what is bought for them."""

import json
import sys
from pathlib import Path

import pytest

from tests.e2e.agents import until
from tests.e2e.service import Ran, Service

pytestmark = pytest.mark.e2e
SPZ = str(Path(sys.executable).parent / "spz")


def spz(served: Service, *words: str) -> Ran:
    environ = {"SKYPURZA_SOCKET": str(served.socket), "HOME": str(served.work)}
    return served.run(SPZ, *words, env=environ, cwd=served.work)


def test_accelerators_are_listed_with_their_cheapest_prices(served: Service) -> None:
    told = spz(served, "gpus", "list", "A10G")
    assert told.code == 0, told
    head, first, *_ = told.out.splitlines()
    assert head.split()[:5] == ["GPU", "QTY", "CLOUD", "INSTANCE_TYPE", "DEVICE_MEM"]
    assert first.split()[:7] == ["A10G", "1", "AWS", "g5.xlarge", "24GB", "4", "16GB"]
    assert "$ 1.006" in first and "us-east-1" in first
    assert "days old: `spz catalog refresh`" in told.out, "the package's figures are of a day"
    asked = spz(served, "show-gpus", "A10G", "--all-regions", "--json")
    everywhere = json.loads(asked.out)["A10G"]
    assert len({one["region"] for one in everywhere}) > 10
    assert all(one["as_of"] and "days old" in one["old_price"] for one in everywhere)
    assert asked.err.count("days old: `spz catalog refresh`") == 1, "beside what programs read"
    eight = json.loads(spz(served, "gpus", "list", "A10G:8", "-o", "json").out)["A10G"]
    assert {row["accelerator_count"] for row in eight} == {8}
    assert spz(served, "gpus", "list", "A10G:x").code == 2
    assert "no type has accelerators 'A10G:3'" in spz(served, "gpus", "list", "A10G:3").err
    missing = spz(served, "gpus", "list", "Z9")
    assert (missing.code, missing.out) == (1, "")
    assert "no type has accelerators 'Z9'" in missing.err


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("A10G:1",), "g5.xlarge"),
        (("--gpus", "H100:8", "--num-nodes", "2"), "p5.48xlarge"),
        (("2+", "--memory", "4+"), "c6a.large"),
    ],
)
def test_offers_for_a_request_are_ranked(
    served: Service, words: tuple[str, ...], kind: str
) -> None:
    told = spz(served, "offers", *words, "--json", "-l", "3")
    assert told.code == 0, told
    rows = json.loads(told.out)["offers"]
    assert rows[0]["instance_type"] == kind
    assert [row["expected_micro_usd"] for row in rows] == sorted(
        row["expected_micro_usd"] for row in rows
    )
    assert spz(served, "offers", *words).out.splitlines()[0].split()[0] == "INFRA"


def test_a_request_that_nothing_serves_is_told_why(served: Service) -> None:
    told = spz(served, "offers", "Z9:1")
    assert told.code == 1
    assert "try one of" in told.err


def test_elements_of_an_array_share_the_machines_that_are_bought(served: Service) -> None:
    sent = served.run("sbatch", "--parsable", "-p", "ec2", "-a", "1-8", "-t", "5", "--wrap", "true")
    assert sent.code == 0, sent
    job = sent.out.strip()

    def over() -> str | None:
        left = served.run("squeue", "-h", "-j", job)
        return "over" if not left.out.strip() else None

    until(over, "the array")
    told = served.run("sacct", "-n", "-P", "-X", "-j", job, "-o", "state,nodelist")
    rows = [line.split("|") for line in told.out.splitlines()]
    assert [state for state, _ in rows] == ["COMPLETED"] * 8
    assert len({node for _, node in rows}) < 8
