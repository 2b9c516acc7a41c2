"""What everything of ours in EC2 is called, and the tags it bears; pure."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from accounting.age import in_utc
from broker.model.ids import NodeName
from broker.model.offer import Offer
from broker.model.purpose import Purpose
from broker.model.volume import NamedVolume

PROJECT = "skypurza"
SITE = "skypurza:site"
TOKEN = "skypurza:token"
NODES = "skypurza:nodes"
PRICE = "skypurza:price"
PRICE_OF = "skypurza:price-of"
JOB = "skypurza:job"
USER = "skypurza:user"
ACCOUNT = "skypurza:account"
DEADLINE = "skypurza:deadline"
VOLUME = "skypurza:volume"
"""The key of a volume that is somebody's by name."""
PORTS = "ports"
"""Component of security groups that open ports to the world."""
LONGEST_VALUE = 256
"""Characters that EC2 takes for the value of a tag."""
Identity = tuple[NodeName, int]
Tags = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Site:
    """Whose things they are: a service acts only on those that bear its own site id."""

    id: str
    cluster: str
    stage: str = "prod"
    extra: tuple[tuple[str, str], ...] = ()
    """Tags that the site wants on everything."""


def name(site: Site, component: str, purpose: str) -> str:
    """`skypurza-STAGE-COMPONENT-PURPOSE`."""
    return f"{PROJECT}-{site.stage}-{component}-{purpose}"


def common(site: Site, component: str, purpose: str) -> dict[str, str]:
    """The tags of anything of this site."""
    return {
        **dict(site.extra),
        "Name": name(site, component, purpose),
        "Project": PROJECT,
        "Stage": site.stage,
        "ManagedBy": PROJECT,
        SITE: site.id,
        "skypurza:cluster": site.cluster,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """What is bought: these nodes from one offer; `at` in seconds UTC."""

    offer: Offer
    nodes: tuple[Identity, ...]
    token: str
    purpose: Purpose
    at: int
    partial: bool = False
    """Whether fewer than all will do."""


def of_machines(site: Site, bought: Purchase) -> dict[str, str]:
    """The tags of machines and their volumes, in the launch call itself."""
    purpose = bought.purpose
    return {
        **dict(purpose.build.labels),
        **common(site, "node", bought.nodes[0][0]),
        **_chunks([f"{node}.{launch}" for node, launch in bought.nodes]),
        TOKEN: bought.token,
        PRICE: str(bought.offer.micro_usd_per_hour),
        PRICE_OF: bought.offer.as_of,
        JOB: purpose.job,
        USER: purpose.user,
        ACCOUNT: purpose.account,
        DEADLINE: in_utc(bought.at + purpose.seconds),
    }


def _chunks(words: Iterable[str]) -> dict[str, str]:
    """A long list over several tags: `skypurza:nodes`, `skypurza:nodes.1`, ..."""
    values: list[str] = [""]
    for word in words:
        longer = f"{values[-1]},{word}".lstrip(",")
        if len(longer) > LONGEST_VALUE:
            values.append(word)
        else:
            values[-1] = longer
    return {NODES if n == 0 else f"{NODES}.{n}": value for n, value in enumerate(values)}


def nodes_of(tags: Tags) -> tuple[Identity, ...]:
    """The nodes for which a purchase was made, in their order; empty where tags tell none."""
    found: list[Identity] = []
    key, number = NODES, 0
    while key in tags:
        words = (word.rpartition(".") for word in tags[key].split(",") if word)
        found += [(NodeName(node), int(launch)) for node, _, launch in words if launch.isdigit()]
        number += 1
        key = f"{NODES}.{number}"
    return tuple(found)


def ports_group(site: Site, ports: Iterable[str]) -> str:
    """The security group that opens these; what it is for is told by how it begins."""
    digest = hashlib.sha256(",".join(ports).encode()).hexdigest()[:12]
    return name(site, PORTS, f"{digest}-{site.id}")


def tag_list(tags: Tags) -> list[dict[str, str]]:
    """As EC2's calls take them."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def tags_of(thing: Mapping[str, object]) -> dict[str, str]:
    """Of anything that EC2 described."""
    listed = thing.get("Tags") or []
    return {tag["Key"]: tag["Value"] for tag in listed}  # type: ignore[attr-defined]


def client_token(site: Site, bought: Purchase, pool: str) -> str:
    """EC2's idempotency token of one purchase from one pool; at most 64 characters."""
    nodes = (f"{node}.{launch}" for node, launch in bought.nodes)
    return _token(site.id, bought.token, *nodes, str(bought.at), pool)


def volume_token(site: Site, volume: NamedVolume) -> str:
    """The same of a volume that is asked for once."""
    return _token(site.id, volume.key)


def _token(*words: str) -> str:
    return "spz-" + hashlib.sha256("\0".join(words).encode()).hexdigest()[:40]


def prefix(node: NodeName) -> str:
    """`ec2-` of `ec2-17`: all nodes of a partition bear it."""
    return node.rstrip("0123456789")
