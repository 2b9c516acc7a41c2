"""Whether a cluster that is there will do for another task, as in SkyPilot; else what it lacks."""

from collections.abc import Iterator, Sequence

from accounting.tres import Tres, gres_counts
from broker.model.build import TIERS, USUAL, Build, tier_of
from broker.model.errors import Conflict
from broker.model.job import Job
from broker.model.node import Node
from broker.model.spec import Gres, Resources, Where
from broker.optimize.gpus import gpu_key, gres_type
from broker.schedule.demand import demand, need_of
from broker.world import Snapshot
from gateway.api.job_views import nodes_of
from gateway.translate.skypilot_task import Translated
from gateway.translate.volumes import lacking

EXPECTED_SECONDS = 3600
"""What a run is taken to last where nobody says, as in SkyPilot."""
OUT = "launch under another name, or `spz down` it first"
TOO_SMALL = "too small"
PLACES = ("region", "zone", "instance_type")


def must_do(there: Job, made: Translated, seen: Snapshot, *, said: frozenset[str]) -> None:
    """In cpus and memory only where these were said. Raises Conflict."""
    held = there.shares or there.kept
    if not held:
        raise Conflict(
            f"cluster {there.spec.cluster!r} is not up yet ({there.reason})",
            hint=f"`spz why {there.id}` tells what it waits for",
        )
    has, wishes = there.spec.resources.build or USUAL, made.spec.resources.build or USUAL
    anew = bool(wishes.images) and wishes.images != has.images  # it is of its own region
    other = [] if anew else list(_another(made.spec.resources, nodes_of(there, seen)))
    lacks = [
        *other,
        *lacking(there.spec.volumes, made.spec.volumes),
        *_sizes(there, made, seen, said=said),
        *_wishes(has, wishes),
    ]
    _must_lack_nothing(there, lacks, what="another" if other else TOO_SMALL)


def must_hold(there: Job, *, nodes: int, gpus: int) -> None:
    """Of a run, which gets a part of what is there. Raises Conflict for more."""
    shares = [share.tres for share in there.shares]
    if shares:
        lacks = _fewer(("nodes", nodes, len(shares)), ("GPUs", gpus, min(map(gpus_of, shares))))
        _must_lack_nothing(there, list(lacks), what=TOO_SMALL)


def _must_lack_nothing(there: Job, lacks: Sequence[str], *, what: str) -> None:
    if lacks:
        told = f"cluster {there.spec.cluster!r} is {what}: asked for {'; '.join(lacks)}"
        raise Conflict(told, hint=OUT)


def _fewer(*rows: tuple[str, int, int]) -> Iterator[str]:
    """Of what, how much is wanted, how much there is: what there is too little of."""
    for name, wanted, got in rows:
        if wanted > got:
            yield f"{wanted} {name}, has {got}"


def _sizes(there: Job, made: Translated, seen: Snapshot, *, said: frozenset[str]) -> Iterator[str]:
    ask = demand(made.spec, seen.site.partition(there.partitions[0]))
    need = need_of(made.spec, ask, EXPECTED_SECONDS)
    shares = [share.tres for share in there.shares or there.kept]
    of_size = {
        "cpus": ("cpus", need.cpus, min(share.cpu for share in shares)),
        "memory": ("MiB of memory", need.mem_mib, min(share.mem_mib for share in shares)),
    }
    return _fewer(
        ("nodes", made.spec.resources.min_nodes or 1, len(shares)),
        *(row for name, row in of_size.items() if name in said),
        ("GPUs", need.gpus, min(map(gpus_of, shares))),
    )


def gpus_of(share: Tres) -> int:
    """How many, of whatever type."""
    return dict(gres_counts(share.gres)).get("gpu", 0)


def _another(asked: Resources, nodes: Sequence[Node]) -> Iterator[str]:
    """Why no alternative is what the machines are; the first one's reason speaks for all."""
    named = next((one for one in asked.gres if one.name == "gpu"), None)
    for node in nodes[:1]:
        found = [_strange(where, where.gpu or named, node) for where in asked.any_of or (Where(),)]
        if all(found):
            yield str(found[0])


def _strange(where: Where, gpu: Gres | None, node: Node) -> str | None:
    """None for a machine that is so, and for a declared node wherever it is."""
    machine = node.machine
    for key in PLACES if machine is not None else ():
        wanted, has = getattr(where, key), getattr(machine, key)
        if wanted is not None and wanted != has:
            return f"{key.replace('_', ' ')} {wanted}, has {has}"
    if machine is not None and where.market not in {None, machine.market.value}:
        return f"{where.market} machines, has {machine.market.value} ones"
    types = {name.partition(":")[2] for name, _ in node.whole.gres if name.startswith("gpu:")}
    if gpu is None or gpu.type is None or not types or not _is_name(gpu.type):
        return None
    if gpu_key(gpu.type) in map(gpu_key, types):
        return None
    return f"{gpu.type}, has {', '.join(sorted(types))}"


def _is_name(text: str) -> bool:
    """Not a size of memory such as `80GB+`."""
    return not gres_type(text).rstrip("gb").isdigit()


def _wishes(there: Build, asked: Build) -> Iterator[str]:
    """Labels are those of the first launch."""
    if asked.images and asked.images != there.images:
        yield "another image"
    if asked.disk_gib and asked.disk_gib > (there.disk_gib or 0):
        yield f"a disk of {asked.disk_gib} GB, has {there.disk_gib or 'the usual one'}"
    if asked.disk_tier and _rank(asked) > _rank(there):
        yield f"disk tier {asked.disk_tier}, has {there.disk_tier or 'the usual one'}"
    if asked.fabric and not there.fabric:
        yield "network tier best, has the usual one"


def _rank(build: Build) -> int:
    """Of its disk's tier; without one it ranks before all of them."""
    kinds = list(TIERS.values())
    return kinds.index(tier_of(build.disk_tier)) if build.disk_tier else -1
