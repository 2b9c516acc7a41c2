"""Refusals among the lines of `sinfo -R`."""

from dataclasses import replace

from broker.model.boots import FailedBoots
from broker.model.errors import Refusal
from broker.model.site import Site
from broker.optimize.cooldown import Cooling
from gateway.query.context import Context
from gateway.query.cooling import MOST_LINES, lines, protected

ONE = Cooling(
    key=("type in zone", "ec2", "us-east-1", "use1-az6", "p5.48xlarge", "on-demand"),
    refusal=Refusal.CAPACITY,
    strikes=3,
    nodes=1,
    since=1_800_000_000,
    until=1_800_000_240,
    message="InsufficientInstanceCapacity",
)
CTX = Context(now=1_800_000_000, site=Site(cluster="skypurza", version="25.11.7", partitions=()))


def test_a_refusal_is_told_with_its_kind_its_place_and_the_next_try() -> None:
    whole = replace(ONE, key=("provider", "ec2"), strikes=1, since=1_700_000_000)
    assert lines([whole, ONE], CTX) == [
        "refused: capacity x3 root      2027-01-15T08:00:00 "
        "ec2:us-east-1,use1-az6,p5.48xlarge,on-demand until 2027-01-15T08:04:00",
        "refused: capacity    root      2023-11-14T22:13:20 ec2:all until 2027-01-15T08:04:00",
    ]


def test_of_a_quota_its_code_and_its_number_are_told() -> None:
    said = "quota L-1216C47A (Standard, on-demand) in us-east-1 allows 5 vCPUs, 4 in use"
    key = ("quota", "ec2", "us-east-1", "L-1216C47A")
    entry = replace(ONE, key=key, refusal=Refusal.QUOTA, strikes=1, message=said)
    assert lines([entry], CTX) == [
        "refused: quota       root      2027-01-15T08:00:00 "
        f"ec2:us-east-1,L-1216C47A until 2027-01-15T08:04:00: {said}"
    ]


def test_a_kind_that_never_comes_up_is_told_with_why_until_when_none_is_bought() -> None:
    known = FailedBoots(
        name="ec2:us-east-1,m7i.large",
        failed=3,
        since=1_800_000_000,
        until=1_800_001_800,
        why="did not boot in time",
    )
    assert protected([known, replace(known, until=None)], CTX) == [
        "protected mode x3    root      2027-01-15T08:00:00 "
        "ec2:us-east-1,m7i.large until 2027-01-15T08:30:00: did not boot in time"
    ]


def test_of_very_many_the_latest_are_told() -> None:
    many = [replace(ONE, since=1_800_000_000 + n) for n in range(MOST_LINES + 7)]
    found = lines(many, CTX)
    assert len(found) == MOST_LINES + 1
    assert found[-1] == "(7 more)"
