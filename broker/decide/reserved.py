"""Jobs that ask for a reservation: whether it is there, lets them in, and has the nodes."""

from dataclasses import replace

from broker.decide.possible import NOT_AVAILABLE, must_be_possible
from broker.decide.rules import QuoteFor
from broker.model.errors import BadOption, Denied, Refused
from broker.model.job import Job
from broker.model.reservation import asked_of, names_of
from broker.model.site import Partition, Site
from broker.world import World

INVALID = "Requested reservation is invalid"
NO_ACCESS = "Access denied to requested reservation"


def must_admit(world: World, job: Job) -> None:
    """Raises Refused for one that is not there, Denied for one that is for others."""
    for name in names_of(job.spec.reservation):
        found = world.reservations.get(name)
        if found is None:
            raise Refused(INVALID)
        if not found.admits(job.owner, job.account):
            raise Denied(NO_ACCESS)


def possible_here(world: World, job: Job, quote: QuoteFor) -> tuple[Partition, str]:
    """As `must_be_possible`, on the reservation's nodes alone. Raises BadOption."""
    site, bound = within_reservation(world, job)
    return must_be_possible(site, bound, quote)


def within_reservation(world: World, job: Job) -> tuple[Site, Job]:
    """The site and the job as the reservation leaves them; a FLEX one binds nobody.

    Raises BadOption where the job names nodes that are not of it.
    """
    site, asked = world.site, job.spec.resources
    mine = asked_of(job.spec.reservation, world.reservations)
    if not mine or any(one.has("FLEX") for one in mine):
        return site, job
    nodes = {name for one in mine for name in one.nodes}
    if not set(asked.nodelist) <= nodes:
        raise BadOption("reservation", job.spec.reservation or "", NOT_AVAILABLE)
    others = tuple(node.name for node in site.nodes if node.name not in nodes)
    bound = asked.model_copy(update={"exclude": (*asked.exclude, *others)})
    fixed = tuple(replace(one, elastic=None) for one in site.partitions)
    spec = job.spec.model_copy(update={"resources": bound})
    return replace(site, partitions=fixed), replace(job, spec=spec)
