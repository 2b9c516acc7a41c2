"""The multifactor priority: each factor by its formula, the sum, the order (Slurm 25.11)."""

from dataclasses import replace

import pytest

from accounting.assoc import Account, Association, Qos, book
from accounting.ids import AccountName, JobId, UserName
from accounting.order import Factors, Ranking, priority, steady
from accounting.tres import Tres
from broker.model.ids import NodeName
from broker.model.job import Job, Owner
from broker.model.site import DeclaredNode, Partition, Site
from broker.model.spec import Resources, TaskSpec
from broker.schedule.priority import TOP, Ranks, initial, scale_of

NOW, DAY = 1_700_000_000, 86400
NODES = tuple(DeclaredNode(NodeName(f"n{n}"), Tres(4, 1000, 1, (("gpu", 2),))) for n in range(1, 5))
WEIGHED = Ranking(
    multifactor=True, age=1000, assoc=100, fairshare=10_000, job_size=1000, partition=1000,
    qos=2000,
    tres={"cpu": 100.0, "mem": 100.0, "gres/gpu": 300.0},
)  # fmt: skip
SITE = Site(
    nodes=NODES,
    partitions=(
        Partition("slow", default=True, nodes=tuple(n.name for n in NODES), priority_job_factor=10),
        Partition("fast", nodes=tuple(n.name for n in NODES[:2]), priority_job_factor=20),
        Partition("first", nodes=tuple(n.name for n in NODES), priority_tier=2),
    ),
    book=book(
        [Account(name=AccountName("lab"), priority=5)],
        [Association(user=UserName("alice"), account=AccountName("lab"), priority=10)],
        qos=[Qos(name="high", priority=1000), Qos(name="low", priority=250)],
    ),
    ranking=WEIGHED,
)
ALICE = Owner(uid=1, gid=1, user="alice", group="g", home="/", shell="/bin/sh", groups=())


def job(number: int = 1, *, partitions: tuple[str, ...] = ("slow",), **more: object) -> Job:
    return Job(
        id=JobId(number),
        spec=TaskSpec(name="j", resources=Resources()),
        owner=ALICE,
        account="lab",
        qos="low",
        partitions=partitions,
        submitted=NOW,
        eligible=NOW,
        time_limit=600,
        want=Tres(8, 1000, 2, (("gpu", 1),)),
        priority=initial(JobId(number), held=False),
        **more,  # type: ignore[arg-type]
    )


def ranks(ranking: Ranking = WEIGHED, *, now: int = NOW, share: float = 0.5) -> Ranks:
    site = replace(SITE, ranking=ranking)
    return Ranks(site, now, {("lab", "alice"): share}, scale_of(site))


FLAGS = (
    # flags, factor, its value
    ((), "age", 1 / 7),
    ((), "fairshare", 0.5),
    ((), "size", (2 / 4 + 8 / 16) / 2),
    ((), "partition", 0.5),
    ((), "qos", 0.25),
    ((), "assoc", 1.0),
    (("SMALL_RELATIVE_TO_TIME",), "size", 8 / 10 / 16),
    (("NO_NORMAL_PART",), "partition", 10.0),
    (("NO_NORMAL_QOS",), "qos", 250.0),
    (("NO_NORMAL_ASSOC",), "assoc", 10.0),
)


@pytest.mark.parametrize(("flags", "name", "value"), FLAGS)
def test_each_factor_is_slurms(flags: tuple[str, ...], name: str, value: float) -> None:
    ranking = replace(WEIGHED, flags=frozenset(flags))
    found = ranks(ranking, now=NOW + DAY).factors(job(), "slow")
    assert getattr(found, name) == pytest.approx(value)


def test_tres_are_parts_of_the_partition() -> None:
    found = ranks().factors(job(), "fast").tres
    assert found == {"cpu": 1.0, "mem": 0.5, "gres/gpu": 0.25}


def test_small_jobs_come_first_where_the_site_says_so() -> None:
    assert ranks(replace(WEIGHED, favor_small=True)).factors(job(), "slow").size == 0.5


def test_the_sum_is_weighed_less_nice_and_never_below_one() -> None:
    factors = Factors(fairshare=0.25, size=0.5, partition=1.0, qos=0.5, tres={"cpu": 0.5})
    weighed = steady(WEIGHED, factors)
    assert priority(500.0, weighed) == 500 + 2500 + 500 + 1000 + 1000 + 50
    assert priority(500.0, weighed, nice=100) == 5450
    assert priority(500.0, weighed, nice=10_000) == 1


def test_jobs_that_ask_alike_are_weighed_once_and_others_by_themselves() -> None:
    several = ranks()
    asked = [
        job(),
        replace(job(), account="other"),
        replace(job(), qos="high"),
        replace(job(), want=Tres(1, 10, 1)),
        replace(job(), time_limit=60),
        replace(job(), eligible=NOW - DAY),
    ]
    for one in [*asked, *asked]:
        for partition in ("fast", "slow"):
            alone = ranks().in_partition(one, partition)
            assert several.in_partition(one, partition) == alone


def test_longer_waiting_jobs_come_first_and_those_of_a_higher_tier_before_all() -> None:
    late, early = job(1), job(2, partitions=("slow",))
    early = replace(early, eligible=NOW - DAY)
    tier = job(3, partitions=("first",))
    order = sorted([late, early, tier], key=ranks().order)
    assert [one.id for one in order] == [3, 2, 1]


def test_a_priority_that_was_set_by_hand_stands() -> None:
    assert ranks().priority(replace(job(), priority=77)) == 77
    assert ranks().priority(replace(job(), priority=0)) == 0
    assert ranks().priority(job()) != TOP - 1


def test_without_weights_the_order_is_that_of_submission() -> None:
    basic = ranks(Ranking())
    assert [basic.priority(job(n)) for n in (1, 2)] == [TOP - 1, TOP - 2]
