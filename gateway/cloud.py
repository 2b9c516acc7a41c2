"""EC2 joined: the provider and its guard, and the way to machines."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import structlog

from broker.engine import Engine
from broker.model.build import Build
from broker.model.errors import Refused, Unknown
from broker.model.events import Event
from broker.model.ids import NodeName
from broker.model.node import Node, NodeState
from broker.model.nodeevents import MachineBought, NodeGone
from broker.model.offer import BuyPolicy, Machine, Market
from broker.model.purpose import Purpose
from broker.model.reports import Journal, Report
from broker.model.stopping import NodeStopping
from broker.optimize.costs import parts
from broker.providers.ec2.guard import Ceilings, Guard
from broker.providers.ec2.holdings import Clocks
from broker.providers.ec2.images import has_nvidia
from broker.providers.ec2.interruptions import Interruptions
from broker.providers.ec2.keys import SiteKeys, site_keys
from broker.providers.ec2.naming import Purchase
from broker.providers.ec2.naming import Site as Ec2Site
from broker.providers.ec2.pace import Paced
from broker.providers.ec2.provider import Ec2Provider
from broker.providers.ec2.provider import Outside as Aws
from broker.providers.ec2.quotas import Quotas
from broker.provision.purpose import Lifetimes, purpose
from broker.run.arrival import Arrival
from broker.run.bootstrap import answers
from broker.run.launch import agent_zipapp
from broker.run.reach import AnyReach, SshReach
from broker.run.ssh import Connections, Login
from broker.run.ssh import Target as Host
from broker.stage.s3 import Bucket
from broker.workers import Outside
from gateway.account import ec2_parts, ec2_settings, regions_of
from gateway.config.catalogs import Shelf
from gateway.config.paths import Paths
from gateway.config.settings import Config
from gateway.config.site import micro_usd
from gateway.hearing import Hearing
from gateway.staging import api_of, objects
from gateway.translate.orders import Keys, OrderBook

Whose = Callable[[Sequence[tuple[NodeName, int]], str], Purpose]
LEFTOVER_SECONDS = 60.0
RESERVED_SECONDS = 60.0
QUOTA_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Cloud:
    """EC2, joined; `nodes` are the latest that were committed."""

    provider: Ec2Provider
    guard: Guard
    reach: SshReach
    nodes: Callable[[], Mapping[NodeName, Node]]
    regions: Callable[[], Iterable[str]]
    """Where machines may be bought."""
    interruptions: Interruptions
    quotas: Quotas
    lease: int
    """Seconds after which a machine nobody speaks to ends itself; 0: never."""
    log: Any
    next: dict[str, float] = field(default_factory=dict)
    """When what is done now and then is due again, in monotonic seconds."""

    def attended(
        self,
        report: Callable[[Report], None],
        wake: Callable[[NodeName], None],
        *,
        posts: Callable[[Node], bool],
    ) -> Callable[[], None]:
        """What is to be called now and then; from now on a node is woken as soon as it answers, and
        by the end of a connection.

        Who `posts` is answered, and so need not be spoken to.
        """
        connections = self.reach.connections
        connections.ended = connections.knocker.greeted = partial(self._wake_at, wake)
        return partial(self.tidy, report, posts)

    def tidy(self, report: Callable[[Report], None], posts: Callable[[Node], bool]) -> None:
        """Called now and then: lets go of leftovers, speaks to idle machines, reads notices."""
        if self._due("leftovers", LEFTOVER_SECONDS):
            for one in self.provider.sweep():
                self.log.warning("sweep.leftover", kind=one.kind, id=one.id, region=one.region)
        if self._due("reserved", RESERVED_SECONDS):
            self.provider.reserved.read(self.regions())
        if self._due("quotas", QUOTA_SECONDS):
            self.quotas.hold(_machines(self.nodes()), all_of_them=True)
            self.quotas.read(self.regions())
        if self.lease and self._due("lease", self.lease / 4):
            for node in self.nodes().values():
                if node.state is NodeState.UP and not node.declared and not posts(node):
                    self._speak(node)
        self._pass_on(report)

    def _pass_on(self, report: Callable[[Report], None]) -> None:
        """A machine that a queue says is taken back is told of as its agent would tell it.

        The message stays until its node is drained: it comes again if the report came too late.
        """
        held = {one.machine.id: one for one in self.nodes().values() if one.machine is not None}
        for notice in self.interruptions.read():
            node = held.get(notice.instance)
            if node is None or node.drain:
                self.interruptions.done(notice)
                continue
            record = {"kind": "notice", "action": "terminate", "when": notice.when}
            here = {"start": node.journal, "position": node.journal}
            report(Journal(node=node.name, launch=node.launch, records=(record,), **here))
            self.log.info("interruption.told", node=node.name, machine=notice.instance)

    def _wake_at(self, wake: Callable[[NodeName], None], host: str) -> None:
        """The node at that address is looked at without waiting for news of it."""
        with suppress(OSError):  # one whose address cannot be told now; the sweep comes
            for node in self.nodes().values():
                if node.machine is not None and self.provider.seen(node.machine).address == host:
                    wake(node.name)

    def _due(self, what: str, every: float) -> bool:
        now = time.monotonic()
        if now < self.next.get(what, 0.0):
            return False
        self.next[what] = now + every
        return True

    def _speak(self, node: Node) -> None:
        """A machine that is kept idle on purpose shall not end itself."""
        with suppress(OSError, Unknown):
            if node.machine is not None and "/" not in node.machine.address:
                answers(node, self.reach.place(node))

    def joined(self, outside: Outside) -> Outside:
        """What effects are performed with, EC2's machines among it."""
        return replace(
            outside,
            providers={**outside.providers, self.provider.name: self.provider},
            reach=AnyReach(outside.reach, self.reach),
            volumes={**outside.volumes, self.provider.name: self.provider.volumes},
        )

    def hear(self, facts: Sequence[Event]) -> None:
        """Learns which machines there are; lets go of those that are gone."""
        for fact in facts:
            if isinstance(fact, MachineBought):
                self.quotas.hold([fact.machine])
            elif isinstance(fact, NodeStopping):
                self._stops(fact)
            elif isinstance(fact, NodeGone) and fact.machine is not None:
                self.guard.room_again(fact.machine)
                self.quotas.drop(fact.machine)
                self.reach.connections.forget(fact.machine.address)

    def _stops(self, fact: NodeStopping) -> None:
        """It may have another address later."""
        node = self.nodes().get(fact.node)
        if node is not None and node.machine is not None:
            self.reach.connections.forget(node.machine.address)

    def stop(self) -> None:
        """Closes what is open to machines and ends what watches EC2; the machines stay."""
        self.reach.connections.close()
        self.provider.close()


def cloud(
    paths: Paths, config: Config, engine: Engine, *, orders: OrderBook, shelf: Shelf
) -> Cloud:
    """Everything of EC2 joined. Raises Refused or OSError where it cannot be."""
    aws, log = config.aws, structlog.get_logger()
    keys = site_keys(paths.home / "ec2")
    whose = _whose(config, engine)
    api = api_of(config)
    clocks = Clocks()
    quotas = Quotas(api, keys.id, catalog=lambda: shelf.get("ec2"), clocks=clocks)
    guard = Guard(_ceilings(config), whose, time.monotonic, quotas.over, _beside(config, engine))
    provider = Ec2Provider(
        Aws(
            api=Paced(api, time.monotonic, time.sleep),
            site=Ec2Site(keys.id, config.cluster, aws.stage, tuple(aws.tags.items())),
            keys=keys,
            settings=ec2_settings(config),
            folder=paths.home / "ec2",
            catalog=lambda: shelf.get("ec2"),
            purpose=whose,
            guard=guard,
            clocks=clocks,
            recalled=lambda: _machines(engine.snapshot.nodes),
        )
    )
    orders.keys, orders.seal = _attempt_keys(keys), keys.seal()
    return Cloud(
        provider=provider,
        guard=guard,
        reach=_reach(config, provider, keys, whose=whose, log=log),
        nodes=lambda: engine.snapshot.nodes,
        regions=lambda: regions_of(ec2_parts(config), config, shelf.get("ec2").regions),
        interruptions=Interruptions(api, aws.interruption_queues),
        quotas=quotas,
        lease=aws.lease_seconds,
        log=log,
    )


def _reach(
    config: Config, provider: Ec2Provider, keys: SiteKeys, *, whose: Whose, log: Any
) -> SshReach:
    """The way to machines."""
    aws = config.aws
    sharing = tuple(
        part.elastic.name_prefix
        for part in config.partitions
        if part.elastic is not None and part.elastic.files == "shared"
    )
    return SshReach(
        connections=Connections(
            most=aws.keep_connections, tell=lambda text: log.warning("ssh.refused", error=text)
        ),
        seen=provider.seen,
        target=_targets(config, provider, keys),
        folder=aws.node_folder,
        python=aws.python,
        options=_agent_options(config, whose),
        shares=lambda node: node.name.startswith(sharing),
    )


def _machines(nodes: Mapping[NodeName, Node]) -> list[Machine]:
    return [node.machine for node in nodes.values() if node.machine is not None]


def _attempt_keys(keys: SiteKeys) -> Keys:
    """By which nodes of an attempt enter each other."""

    def pair(attempt: str) -> tuple[str, str]:
        made = keys.attempt(attempt)
        return made.private, made.public

    return pair


def _whose(config: Config, engine: Engine) -> Whose:
    """For whom machines are, as the latest snapshot has it."""
    boots = [part.elastic.boot_timeout for part in config.partitions if part.elastic]
    lives = Lifetimes(
        spare=max(boots, default=0) + config.kill_wait + config.aws.grace_seconds,
        unlimited=config.aws.max_hours * 3600,
    )
    return lambda nodes, _token: purpose(nodes, engine.snapshot, lives)


def _ceilings(config: Config) -> Ceilings:
    most = config.ceiling
    limits = (most.usd_per_hour, most.account_usd_per_hour, most.user_usd_per_hour)
    return Ceilings(*(None if limit is None else micro_usd(limit) for limit in limits))


def _beside(config: Config, engine: Engine) -> Callable[[str, Build], int]:
    """What counts against ceilings beside the price of a machine."""
    aws = config.aws
    policy = BuyPolicy(root_gib=aws.root_gb, public_address=aws.address == "public")

    def cost(region: str, build: Build) -> int:
        known = engine.snapshot.site.rates
        return sum(parts(policy, region, known, build=build).values())

    return cost


def _agent_options(config: Config, whose: Whose) -> Callable[[Node], tuple[str, ...]]:
    """What its keeper has to know: when the machine ends itself, whether it may be taken back."""

    def options(node: Node) -> tuple[str, ...]:
        machine = node.machine
        if machine is None:
            return ()
        deadline = machine.launched_at + whose([node.identity], machine.token).seconds
        return _words(config, machine.market, deadline)

    return options


def _words(config: Config, market: Market, deadline: int) -> tuple[str, ...]:
    notices = ("--notices", "ec2") if market is Market.SPOT else ()
    lease = ("--lease", str(config.aws.lease_seconds))
    ours = ("--ours", "yes") if config.aws.write_etc else ()
    own = ("--commands", f"slurm {config.slurm_version}", *ours)
    return (*own, *lease, "--deadline", str(deadline), *notices)


def arrives(
    paths: Paths, config: Config, heard: Hearing | None
) -> Callable[[Purchase, str], Sequence[str]]:
    """How the agent comes to what is bought: from the service, if that hears it, or from the site's
    bucket; else it comes by the first connection.
    """
    aws, digest = config.aws, sha256(agent_zipapp()).hexdigest()
    store = objects(paths, config)

    def where(name: str) -> tuple[str, str]:
        """The archive's address, and the pin of who is there."""
        own = None if heard is None else heard.archive(name, digest)
        if heard is not None and own is not None:
            return own, heard.pin
        return _in_bucket(store, digest) if isinstance(store, Bucket) else "", ""

    def arrival(bought: Purchase, user: str) -> Sequence[str]:
        names = [name for name, _ in bought.nodes]
        (url, pin), runs_as = where(names[0]), "root" if aws.sudo else aws.ssh_user or user
        if not url or (aws.sudo and aws.node_folder.startswith("~")):
            return ()
        made = Arrival(
            url=url,
            digest=digest,
            pin=pin,
            names=names,
            folder=aws.node_folder,
            python=aws.python,
            user=runs_as,
            options=_words(config, bought.offer.market, bought.at + bought.purpose.seconds),
        )
        return made.argv()

    return arrival


def _in_bucket(store: Bucket, digest: str) -> str:
    """Its signed address there, for an hour; empty where the bucket takes nothing now."""
    key = f"agent/{digest}.pyz"
    try:
        if store.head(key) is None:
            store.put(key, BytesIO(agent_zipapp()), digest=digest)
        return store.url(key, put=False)
    except (Refused, OSError) as error:
        structlog.get_logger().warning("agent.not_in_bucket", error=str(error))
        return ""


def _targets(
    config: Config, provider: Ec2Provider, keys: SiteKeys
) -> Callable[[Node, Machine], Host]:
    """How a machine is entered."""
    aws, own = config.aws, keys.login().private
    bastion = None
    if aws.bastion is not None:
        gate = aws.bastion
        bastion = Login(
            host=gate.host,
            port=gate.port,
            user=gate.user,
            private_key=Path(gate.key_file).read_text(encoding="ascii"),
            host_key=gate.host_key,
        )

    def target(node: Node, machine: Machine) -> Host:
        nvidia = "gpu" in node.gres_text and has_nvidia(machine.instance_type)
        user = aws.ssh_user or provider.login(node, machine, nvidia=nvidia)
        login = Login(
            host=machine.address,
            port=aws.ssh_port,
            user=user,
            private_key=own,
            host_key=provider.host_key(machine),
        )
        sudo = aws.sudo and user != "root"
        return Host(login=login, bastion=bastion, sudo=sudo, python=aws.python)

    return target
