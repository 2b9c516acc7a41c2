"""What is known of the site's own Slurm, and what is said where it and ours meet."""

from dataclasses import dataclass, replace

import pytest

from broker.model.errors import Busy
from broker.model.site import Partition, Site
from gateway.passthrough.facts import Facts, clashes
from gateway.passthrough.learnt import Learnt
from tests.contract.facts import FACTS, Said

OURS = Site(cluster="cloud", first_job_id=900_000, partitions=(Partition("ec2"),))


@dataclass
class Reader:
    """Says what it is told to say."""

    says: Facts | None
    name: str = "scontrol"
    asked: int = 0

    def read(self) -> Facts:
        self.asked += 1
        if self.says is None:
            raise Busy(f"{self.name}: down")
        return self.says


def learnt(*readers: Reader, listed: tuple[str, ...] = ()) -> tuple[Learnt, Said]:
    said = Said()
    made = Learnt(readers, said, clock=lambda: 0.0, every=60, listed=frozenset(listed))
    return made, said


@pytest.mark.parametrize(
    ("facts", "ours", "listed", "words"),
    [
        ({}, {}, (), []),
        ({"cluster": "cloud"}, {}, (), ["both clusters are named cloud"]),
        ({"partitions": ("cpu", "ec2")}, {}, (), ["partition ec2 is the site's, too"]),
        ({"max_job": 900_000}, {}, (), ["job ids can meet: ours are 900000 to 67043328"]),
        ({"max_job": 900_000}, {"max_job_id": 950_000}, (), ["900000 to 950000"]),
        ({"first_job": 960_000, "max_job": 999_999}, {"max_job_id": 950_000}, (), []),
        ({"max_job": 999_999, "next_job": 900_003}, {}, (), ["the site's next job is 900003"]),
        ({}, {}, ("cpu", "big"), ["names big, which the site has not"]),
    ],
)
def test_what_both_sides_claim_is_named(
    facts: dict[str, object], ours: dict[str, object], listed: tuple[str, ...], words: list[str]
) -> None:
    found = clashes(replace(FACTS, **facts), replace(OURS, **ours), frozenset(listed))  # type: ignore[arg-type]
    assert len(found) == len(words)
    for clash, part in zip(found, words, strict=True):
        assert part in clash.text
        assert clash.hint


def test_the_first_that_answers_is_believed() -> None:
    library, scontrol = Reader(None, "pyslurm"), Reader(FACTS)
    known, said = learnt(library, scontrol)
    known.refresh(OURS)
    assert known.partitions == {"cpu", "gpu"}
    assert said.lines == [("site.read", {"by": "scontrol", "cluster": "hpc",
                                         "partitions": "cpu,gpu"})]  # fmt: skip
    library.says = replace(FACTS, partitions=("new",))
    known.refresh(OURS)
    assert (known.partitions, scontrol.asked) == ({"new"}, 1)


def test_a_failure_keeps_what_was_known_and_is_told_once() -> None:
    reader = Reader(FACTS)
    known, said = learnt(reader)
    known.refresh(OURS)
    reader.says = None
    for _ in range(3):
        known.refresh(OURS)
    assert known.partitions == {"cpu", "gpu"}
    reader.says = FACTS
    known.refresh(OURS)
    assert said.events == ["site.read", "site.unread", "site.read"]
    assert said.lines[1][1] == {"error": "scontrol: down", "known": True}


def test_clashes_are_told_when_they_appear() -> None:
    reader = Reader(replace(FACTS, cluster="cloud"))
    known, said = learnt(reader)
    known.refresh(OURS)
    known.refresh(OURS)
    assert said.events == ["site.read", "site.clash"]


def test_partitions_that_the_configuration_names_go_before_what_is_read() -> None:
    known, _ = learnt(Reader(FACTS), listed=("cpu",))
    assert known.partitions == {"cpu"}
    known.refresh(OURS)
    assert known.partitions == {"cpu"}


def test_the_site_is_read_once_in_a_period() -> None:
    reader, at = Reader(FACTS), [100.0]
    known = Learnt([reader], Said(), clock=lambda: at[0], every=60)
    for at[0] in (100.0, 130.0, 160.0, 161.0):
        known.when_due(OURS)
    assert reader.asked == 2
    known.expire()
    known.when_due(OURS)
    assert reader.asked == 3
