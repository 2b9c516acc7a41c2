"""A service whose EC2 is a box; what its books and the box's say."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.service import Preloaded, Service, service
from tests.lab.running import CREDENTIALS, Running

SPZ = str(Path(sys.executable).with_name("spz"))
PATIENCE = 120.0
ONE_TYPE = "instance_types: [m7i.large]"
CONFIG = """\
cluster: boxed
kill_wait: 1
partitions:
  - name: ec2
    default: true
    def_mem_per_cpu: 100
    elastic: {{provider: ec2, max_nodes: 20, idle_seconds: {idle}, {buy}}}
{more}scheduling: {{requeue_delay: 0}}
"""


@contextmanager
def boxed(
    preloaded: Preloaded,
    lab: Running,
    buy: str = ONE_TYPE,
    *,
    idle: int = 2,
    more: str = "",
    aws: str = "",
) -> Iterator[Service]:
    """What its partition may buy, after how many idle seconds it lets go, what stands beside it."""
    config = CONFIG.format(idle=idle, buy=buy, more=more)
    with service(preloaded, config + lab.aws() + aws, environ=CREDENTIALS) as made:
        yield made


def nodes_gone(gateway: Service) -> bool:
    return not gateway.rows("select 1 from nodes where gone = 0 and launch > 0")


def posted(gateway: Service) -> int:
    """Micro-dollars of machines in the ledger."""
    entries = (json.loads(doc) for (doc,) in gateway.rows("select doc from ledger"))
    return sum(entry.get("cost", 0) for entry in entries if entry.get("machine"))


def billed(lab: Running, since: int) -> int:
    """Micro-dollars of the bill's lines from that one on."""
    return sum(line["micro_usd"] for line in lab.get("bill")["lines"][since:])


def saved(gateway: Service, job: int) -> int:
    """Checkpoints of it so far."""
    statement = "select count(*) from events where kind = 'Checkpointed' and job = ?"
    return int(gateway.rows(f"{statement} and doc like '%saved%'", job)[0][0])
