"""The only place that builds adapters and joins them."""

import contextlib
import os
import platform
import pwd
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import structlog

from broker.engine import Engine
from broker.heart import Heart
from broker.model.commands import Cancel, Target
from broker.model.errors import Busy, Refusal, Refused, Unknown, Width
from broker.model.events import Event, NodeBooted, NodeDoomed, NodeGone
from broker.model.ids import NodeName
from broker.model.node import Node
from broker.model.offer import Machine, Market
from broker.model.purpose import Purpose
from broker.model.site import Site
from broker.optimize.bundled import bundled
from broker.optimize.catalog import Catalog
from broker.optimize.cooldown import Cooldown
from broker.optimize.gpus import gres_type
from broker.ports import Place, Provider, Reach
from broker.providers.ec2.clients import BotoApi
from broker.providers.ec2.guard import Ceilings, Guard
from broker.providers.ec2.holdings import UNSEEN_SECONDS, Clocks
from broker.providers.ec2.images import has_nvidia
from broker.providers.ec2.keys import SiteKeys, site_keys
from broker.providers.ec2.naming import Site as Ec2Site
from broker.providers.ec2.provider import Ec2Provider
from broker.providers.ec2.provider import Outside as Aws
from broker.providers.ec2.settings import Ec2Settings
from broker.providers.local import Behaviour, LocalProvider
from broker.providers.refusals import Rule
from broker.provision.purpose import Lifetimes, purpose
from broker.provision.reconcile import difference, nodes_of
from broker.quotes import Quotes
from broker.run.bootstrap import ARCHIVE
from broker.run.local import LocalChannel, end_node
from broker.run.reach import AnyReach, SshReach
from broker.run.ssh import Connections, Login
from broker.run.ssh import Target as Host
from broker.workers import Outside, Workers
from broker.world import World
from gateway.api.app import build_app
from gateway.api.desk import Desk
from gateway.api.holders import Holders
from gateway.api.jobs import router
from gateway.api.programs.beside import Beside
from gateway.api.programs.table import programs
from gateway.api.stream import Interactive
from gateway.api.text import Program
from gateway.config.paths import Paths
from gateway.config.settings import Config
from gateway.config.site import micro_usd
from gateway.config.site import site as site_of
from gateway.observe.chronicle import chronicle
from gateway.observe.post import Post, both, send, usable
from gateway.passthrough.cli import site_commands
from gateway.store.backup import backup_store
from gateway.store.sql import SqlStore, open_store
from gateway.translate.orders import OrderBook

AGENT_PYTHON = "/usr/bin/python3"
AGENT_IDLE_SECONDS = 600
"""An agent that runs nothing and that nobody speaks to leaves; it is started again when needed."""
DAY = 86_400
PRUNE_SECONDS = 3600.0


class WallClock:
    """Whole seconds UTC that never go back, whatever is done to the host's clock."""

    def __init__(self) -> None:
        self._last = 0

    def now(self) -> int:
        self._last = max(self._last, int(time.time()))
        return self._last


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


@dataclass(frozen=True, slots=True)
class Cloud:
    """EC2, joined; `nodes` are the latest that were committed."""

    provider: Ec2Provider
    guard: Guard
    reach: SshReach
    nodes: Callable[[], Mapping[NodeName, Node]]

    def hear(self, facts: Sequence[Event]) -> None:
        """Learns which machines came up and which never did; lets go of those that are gone."""
        for fact in facts:
            node = self.nodes().get(fact.node) if isinstance(fact, NodeDoomed) else None
            if isinstance(fact, NodeBooted) and fact.machine is not None:
                self.guard.booted(fact.machine)
            elif node is not None and node.machine is not None and node.booted is None:
                self.guard.not_booted(node.machine)
            elif isinstance(fact, NodeGone) and fact.machine is not None:
                self.guard.room_again(fact.machine)
                self.reach.connections.forget(fact.machine.address)

    def stop(self) -> None:
        self.reach.connections.close()
        self.provider.stop()


@dataclass(slots=True)
class Service:
    """A joined service, not yet running."""

    heart: Heart
    workers: Workers
    store: SqlStore
    app: Any
    site: Site
    providers: Mapping[str, Provider]


def build(paths: Paths, config: Config) -> Service:
    """Everything joined for these paths. Raises Refused, Busy or OSError where it cannot be."""
    log = structlog.get_logger()
    clock = WallClock()
    catalog = bundled("local")
    site = _site(config, catalog)
    store = open_store(paths.database(config.database.url), clock=clock)
    epoch = store.take_lease()
    cloudy = _uses_ec2(config)
    market = Quotes({"local": catalog} | ({"ec2": bundled("ec2")} if cloudy else {}), Cooldown())
    now = clock.now()
    engine = Engine.recovered(world=World(site), store=store, market=market, epoch=epoch, now=now)
    engine.configure(now)
    local = _local(paths, config, catalog)
    providers: dict[str, Provider] = {local.name: local}
    reach: Reach = LocalReach(paths, _slots(config), local)
    heart = Heart(engine=engine, clock=clock, log=log, tell=_told(config, engine, log))
    if cloudy:
        cloud = _cloud(paths, config, engine, log=log)
        providers[cloud.provider.name] = cloud.provider
        reach, heart.tell = AnyReach(reach, cloud.reach), both(heart.tell, cloud.hear)
    outside = Outside(
        providers=providers,
        reach=reach,
        orders=OrderBook(site, store.blob, config.submit_host or host()),
        kill_wait=config.kill_wait,
    )
    workers = Workers(outside, report=heart.report, followed=heart.followed, log=log)
    heart.workers = workers
    desk = Desk(
        engine=heart,
        snapshot=lambda: engine.snapshot,
        history=store.history,
        clock=clock,
        wake=heart.wake,
        reach=reach,
        host=config.submit_host or host(),
        gpu_types=tuple(gres_type(name) for name in catalog.gpu_names()),
        warn_ignored=config.warn_ignored,
        mails=usable(config.mail_prog),
    )
    heart.sweep = Sweep(heart, providers, local, store, log, desk.holders)
    own = router(
        market=market,
        providers=providers,
        backup=lambda target: backup_store(paths.database(config.database.url), target),
    )
    app = build_app(desk, _programs(config), log=log, routers=[own], key=_key(config))
    return Service(heart, workers, store, app, site, providers)


@dataclass(slots=True)
class Sweep:
    """Compares what providers hold with what we know; strays are let go, losses told."""

    heart: Heart
    providers: Mapping[str, Provider]
    local: LocalProvider
    store: SqlStore
    log: Any
    holders: Holders
    every: float = 30.0
    _next: float = 0.0
    _next_prune: float = 0.0

    def __call__(self) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self.every
        self.local.sweep()
        for provider in self.providers.values():
            try:
                self._compare(provider)
            except OSError as error:
                self.log.warning("sweep.failed", provider=provider.name, error=str(error))
        self._let_go()
        self._prune()

    def _compare(self, provider: Provider) -> None:
        """What the provider holds is asked first: what is bought meanwhile is known by then."""
        machines, now = provider.machines(), self.heart.clock.now()
        nodes = nodes_of(self.heart.engine.snapshot, provider.name)
        found = difference(nodes, machines, lately=now - UNSEEN_SECONDS)
        for machine in found.stray:
            if machine.launched_at < now - self.every:
                self.log.warning("sweep.stray", machine=machine.id, node=machine.node)
                provider.terminate([machine])
        for lost in found.lost:
            self.heart.report(lost)

    def _let_go(self) -> None:
        """Ends allocations whose salloc or srun did not come again after a start of ours."""
        jobs = self.heart.engine.snapshot.jobs.values()
        for job in self.holders.abandoned(jobs, time.monotonic()):
            self.log.warning("allocation.abandoned", job=job.id, by=job.spec.allocator)
            self.heart.ask(Cancel(target=Target(job.id), by=job.owner))

    def _prune(self) -> None:
        """Requests older than a day are not asked again."""
        if time.monotonic() < self._next_prune:
            return
        self._next_prune = time.monotonic() + PRUNE_SECONDS
        with contextlib.suppress(Busy):
            self.store.forget(self.heart.clock.now() - DAY)


def _site(config: Config, catalog: Catalog) -> Site:
    site = site_of(config, service_uid=os.getuid(), uid_of=_uid_of, price_of=catalog.least_price)
    return replace(site, offered_features=catalog.vocabulary())


def _programs(config: Config) -> Mapping[str, Program | Interactive]:
    """Every command, with the site's own behind them where it has a Slurm. Raises Refused."""
    known = programs(config)
    if config.passthrough is None:
        return known
    site = site_commands(config.passthrough.bin)
    return Beside(site, frozenset(config.passthrough.partitions)).around(known)


def host() -> str:
    """This host's short name."""
    return socket.gethostname().split(".")[0] or platform.node()


def _told(config: Config, engine: Engine, log: Any) -> Callable[[Sequence[Event]], None]:
    """Logs what committed facts say, and sends the mails that they ask for."""
    said, program = chronicle(log, verbose=config.log.level == "debug"), config.mail_prog
    if not usable(program):
        return said
    post = Post(lambda mail: send(program, mail), log)
    return both(said, lambda facts: post.tell(facts, engine.snapshot.jobs))


def _uid_of(name: str) -> int | None:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def _slots(config: Config) -> int:
    """Steps that really run at a time on bought local machines, so that this host survives."""
    return config.providers.local.max_processes or max(8, 4 * (os.cpu_count() or 1))


def _key(config: Config) -> bytes | None:
    token = config.http.token
    if config.http.port is None:
        return None
    if token is None or len(token.get_secret_value()) < 16:
        raise Refused(
            "http.port is set without an http.token of at least 16 characters",
            hint="set http.token, or leave http.port out: then there is only the Unix socket",
        )
    return token.get_secret_value().encode()


def _uses_ec2(config: Config) -> bool:
    return any(p.elastic is not None and p.elastic.provider == "ec2" for p in config.partitions)


def _cloud(paths: Paths, config: Config, engine: Engine, *, log: Any) -> Cloud:
    aws = config.aws
    keys = site_keys(paths.home / "ec2")
    boots = [part.elastic.boot_timeout for part in config.partitions if part.elastic]
    lives = Lifetimes(
        spare=max(boots, default=0) + config.kill_wait + aws.grace_seconds,
        unlimited=aws.max_hours * 3600,
    )

    def whose(nodes: Sequence[tuple[NodeName, int]], _token: str) -> Purpose:
        return purpose(nodes, engine.snapshot, lives)

    most = config.ceiling
    limits = (most.usd_per_hour, most.account_usd_per_hour, most.user_usd_per_hour)
    ceilings = Ceilings(*(None if limit is None else micro_usd(limit) for limit in limits))
    guard = Guard(ceilings, whose, time.monotonic)
    provider = Ec2Provider(
        Aws(
            api=BotoApi(endpoint_url=aws.endpoint_url, profile=aws.profile),
            site=Ec2Site(keys.id, config.cluster, aws.stage, tuple(aws.tags.items())),
            keys=keys,
            settings=_ec2_settings(config),
            folder=paths.home / "ec2",
            catalog=lambda: bundled("ec2"),
            purpose=whose,
            guard=guard,
            clocks=Clocks(),
        )
    )
    reach = SshReach(
        connections=Connections(
            most=aws.keep_connections, tell=lambda text: log.warning("ssh.refused", error=text)
        ),
        seen=provider.seen,
        target=_targets(config, provider, keys),
        folder=aws.node_folder,
        python=aws.python,
        options=lambda _node: (),
    )
    return Cloud(provider, guard, reach, lambda: engine.snapshot.nodes)


def _ec2_settings(config: Config) -> Ec2Settings:
    aws = config.aws
    by_prefix = {
        part.elastic.name_prefix: part.elastic.image
        for part in config.partitions
        if part.elastic is not None and part.elastic.image is not None
    }
    return Ec2Settings(
        ssh_port=aws.ssh_port,
        ssh_from=aws.ssh_from,
        public=aws.address == "public",
        vpcs=aws.vpcs,
        subnets=aws.subnets,
        security_groups=aws.security_groups,
        images={**aws.images, **by_prefix},
        instance_profile=aws.instance_profile,
        root_gib=aws.root_gb,
        kms_key=aws.kms_key,
        efa=aws.efa,
    )


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
        user = aws.ssh_user or provider.login(
            node.name, machine, arm="arm64" in node.features, nvidia=nvidia
        )
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


def _local(paths: Paths, config: Config, catalog: Catalog) -> LocalProvider:
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
        end=lambda folder: end_node(folder, archive=ARCHIVE, python=AGENT_PYTHON),
        clock=time.time,
        behaviour=Behaviour(
            boot_seconds=float(settings.boot_seconds),
            max_machines=settings.max_machines,
            capacity=settings.capacity,
            refusals=rules,
        ),
    )
