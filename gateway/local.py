"""Machines that are folders of this host joined: their provider, and the way to them."""

import os
import time
from dataclasses import dataclass

from broker.model.errors import Refusal, Unknown, Width
from broker.model.node import Node
from broker.model.offer import Market
from broker.optimize.catalog import Catalog
from broker.ports import Place
from broker.providers.local import Behaviour, LocalProvider, Processes
from broker.providers.local_volumes import LocalVolumes
from broker.providers.refusals import Rule
from broker.run.bootstrap import ARCHIVE
from broker.run.local import LocalChannel, end_node, reopen_node
from broker.stage.courier import Courier
from broker.workers import Outside
from gateway.config.paths import Paths
from gateway.config.settings import Config
from gateway.translate.orders import OrderBook

AGENT_PYTHON = "/usr/bin/python3"
AGENT_IDLE_SECONDS = 600
"""An agent that runs nothing and that nobody speaks to leaves; it is started again when needed."""


@dataclass(frozen=True, slots=True)
class LocalReach:
    """`broker.ports.Reach` where every node is a folder of this host."""

    paths: Paths
    slots: int
    provider: LocalProvider

    def place(self, node: Node) -> Place:
        """Raises Unknown while its machine is not known."""
        idle = ("--idle-exit", str(AGENT_IDLE_SECONDS))
        usual = ("--wake", str(self.paths.socket), *idle)
        if node.declared:
            folder = str(self.paths.nodes / node.name)
            return Place(LocalChannel(lambda: True), folder, AGENT_PYTHON, usual)
        if node.machine is None:
            raise Unknown(f"node {node.name} has no machine yet")
        slots = ("--slots", str(self.paths.home / "slots"), "--slot-count", str(self.slots))
        channel = LocalChannel(lambda: self.provider.is_up(node.name, node.launch))
        return Place(channel, node.machine.address, AGENT_PYTHON, (*usual, *slots))


def local_outside(
    paths: Paths, config: Config, *, local: LocalProvider, orders: OrderBook, files: Courier
) -> Outside:
    """What effects are performed with where every node is of this host."""
    return Outside(
        providers={local.name: local},
        reach=LocalReach(paths, _slots(config), local),
        orders=orders,
        kill_wait=config.kill_wait,
        files=files,
        volumes={local.name: LocalVolumes(paths.home / "volumes")},
    )


def _slots(config: Config) -> int:
    """Steps that really run at a time on bought local machines, so that this host survives."""
    return config.providers.local.max_processes or max(8, 4 * (os.cpu_count() or 1))


def local_provider(paths: Paths, config: Config, catalog: Catalog) -> LocalProvider:
    """As it is configured, refusals that it plays among that."""
    settings = config.providers.local
    rules = tuple(
        Rule(
            refusal=Refusal(rule.refusal),
            width=Width(rule.width),
            instance_type=rule.instance_type,
            region=rule.region,
            zone=rule.zone,
            market=Market(rule.market) if rule.market else None,
            times=rule.times,
        )
        for rule in settings.refusals
    )
    return LocalProvider(
        paths.home / "machines",
        catalog=lambda: catalog,
        processes=Processes(
            end=lambda folder: end_node(folder, archive=ARCHIVE, python=AGENT_PYTHON),
            reopen=reopen_node,
        ),
        clock=time.time,
        behaviour=Behaviour(
            boot_seconds=float(settings.boot_seconds),
            max_machines=settings.max_machines,
            capacity=settings.capacity,
            refusals=rules,
        ),
    )
