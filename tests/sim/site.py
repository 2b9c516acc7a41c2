"""A site for the simulation: declared nodes with GPUs, elastic ones, and both together."""

from accounting.tres import Tres, gres_counts
from broker.model.job import Owner
from broker.model.offer import BuyPolicy
from broker.model.site import DeclaredNode, Elastic, Partition, Site

ALICE = Owner(2001, 2001, "alice", "alice")
BOB = Owner(2002, 2002, "bob", "bob")
ROOT = Owner(0, 0, "root", "root")

NODES = tuple(
    DeclaredNode(
        name=f"n{i}",  # type: ignore[arg-type]
        whole=Tres(cpu=4, mem_mib=16000, node=1, gres=gres_counts({"gpu:a10g": 2})),
        weight=i,
        micro_usd_per_hour=100_000 * (i % 2),
    )
    for i in (1, 2, 3, 4)
)
NAMES = tuple(node.name for node in NODES)


def elastic(prefix: str, most: int, *, spot: bool = False, idle: int = 120) -> Elastic:
    policy = BuyPolicy(provider="fake", spot=spot, root_gib=30, public_address=True)
    return Elastic(prefix, most, buy=policy, idle_seconds=idle, boot_timeout=300)


SITE = Site(
    partitions=(
        Partition("ec2", default=True, elastic=elastic("ec2-", 10), def_mem_per_cpu_mib=1024),
        Partition("spot", elastic=elastic("spot-", 6, spot=True), def_mem_per_cpu_mib=1024),
        Partition("own", nodes=NAMES, def_mem_per_cpu_mib=1024, default_time=3600),
        Partition("both", nodes=NAMES[2:], elastic=elastic("ec2-", 10), def_mem_per_cpu_mib=2048),
    ),
    nodes=NODES,
    requeue_delay=30,
)
