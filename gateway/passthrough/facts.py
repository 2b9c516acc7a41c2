"""What is read of a site's own Slurm, and where it and ours would meet. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from broker.model.site import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The site's Slurm as it is configured now."""

    cluster: str
    version: str
    partitions: tuple[str, ...]
    """All of them, hidden ones too, in the site's order."""
    default: str | None
    """The partition of jobs that name none."""
    first_job: int
    max_job: int
    next_job: int
    """The id of its next job."""


class SiteFacts(Protocol):
    """Reads what is true of the site's Slurm; as the service, never in a user's way."""

    @property
    def name(self) -> str:
        """By what it reads, for the log."""
        ...

    def read(self) -> Facts:
        """Raises Busy, saying why, where it does not answer."""
        ...


@dataclass(frozen=True, slots=True)
class Clash:
    """Something that both sides claim, and the way out."""

    text: str
    hint: str


def clashes(facts: Facts, site: Site, listed: frozenset[str] = frozenset()) -> list[Clash]:
    """Where ours and the site's meet; `listed` are the partitions that the configuration names."""
    return [
        *_names(facts, site),
        *_partitions(facts, site),
        *_job_ids(facts, site),
        *_listed(facts, listed),
    ]


def _names(facts: Facts, site: Site) -> Iterator[Clash]:
    if facts.cluster == site.cluster:
        yield Clash(
            f"both clusters are named {site.cluster}: -M cannot tell them apart",
            "set `cluster` to another name",
        )


def _partitions(facts: Facts, site: Site) -> Iterator[Clash]:
    for part in site.partitions:
        if part.name in facts.partitions:
            yield Clash(
                f"partition {part.name} is the site's, too: jobs that name it come to us",
                "give ours another name",
            )


def _job_ids(facts: Facts, site: Site) -> Iterator[Clash]:
    """One that has been reached is worse than one that may be."""
    ours, theirs = (site.first_job_id, site.max_job_id), (facts.first_job, facts.max_job)
    if ours[0] > theirs[1] or theirs[0] > ours[1]:
        return
    hint = f"set MaxJobId={ours[0] - 1} in slurm.conf, or first_job_id and max_job_id here"
    if ours[0] <= facts.next_job <= ours[1]:
        yield Clash(
            f"the site's next job is {facts.next_job}, and {_span(*ours)} are our job ids: "
            "commands about it come to us",
            hint,
        )
        return
    yield Clash(f"job ids can meet: ours are {_span(*ours)}, the site's {_span(*theirs)}", hint)


def _span(first: int, last: int) -> str:
    return f"{first} to {last}"


def _listed(facts: Facts, listed: frozenset[str]) -> Iterator[Clash]:
    for name in sorted(listed.difference(facts.partitions)):
        yield Clash(
            f"passthrough.partitions names {name}, which the site has not",
            f"it has {', '.join(facts.partitions) or 'none'}",
        )
