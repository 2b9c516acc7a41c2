"""The only place that builds adapters and joins them."""

import grp
import hashlib
import os
import platform
import pwd
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from importlib.metadata import entry_points
from secrets import token_bytes, token_hex
from typing import Any

import structlog

from broker.decide.mail import Mail
from broker.engine import Engine
from broker.heart import Heart
from broker.model.commands import Reconfigure
from broker.model.errors import SpzError
from broker.model.events import Event
from broker.model.job import Owner
from broker.model.site import Site
from broker.optimize.catalog import Catalog
from broker.optimize.cooldown import Cooldown
from broker.optimize.gpus import gres_type
from broker.ports import Clock, Provider
from broker.quotes import Quotes
from broker.run.launch import agent_zipapp
from broker.run.pushed import Pushes
from broker.run.reach import PostingReach
from broker.workers import Outside, Workers
from broker.world import World
from gateway.account import explorer, reserved_words, uses_ec2
from gateway.api.app import App, build_app
from gateway.api.back import Ways, ways
from gateway.api.budgets import budgets
from gateway.api.dashboard import dashboard
from gateway.api.desk import Desk
from gateway.api.errors import status_of
from gateway.api.exports import exports
from gateway.api.infra import infra
from gateway.api.inner import Inner
from gateway.api.jobs import router
from gateway.api.keeper import Keeper
from gateway.api.loopback import Loopback
from gateway.api.metrics import metrics
from gateway.api.money import money
from gateway.api.offers import offers
from gateway.api.plugins import plugins
from gateway.api.programs.standing import Commands
from gateway.api.push import PushDoor
from gateway.api.text import Program
from gateway.api.volumes import volumes
from gateway.cloud import arrives, cloud
from gateway.config.catalogs import Shelf
from gateway.config.load import reread
from gateway.config.paths import Paths
from gateway.config.settings import Config
from gateway.config.site import limits_of
from gateway.config.site import site as site_of
from gateway.hearing import Hearing, hearing
from gateway.local import local_outside, local_provider
from gateway.neighbour import Neighbour, neighbour
from gateway.observe.chronicle import chronicle
from gateway.observe.post import Post, addressed, both, send, usable
from gateway.observe.smtp import Server, hand_in
from gateway.staging import staging
from gateway.store.aging import aging
from gateway.store.backup import backup_store
from gateway.store.feed import Feeders, loaded
from gateway.store.sql import SqlStore, open_store
from gateway.sweep import Sweep
from gateway.translate.orders import OrderBook
from gateway.web.app import Pages
from gateway.web.sessions import Sessions

AT_START = (
    "cluster",
    "slurm_version",
    "submit_host",
    "first_job_id",
    "mail_prog",
    "mail_domain",
    "smtp",
    "warn_ignored",
    "aws",
    "providers",
    "database",
    "log",
    "http",
    "push",
    "passthrough",
)
"""Settings that only a start takes."""
REREAD_SECONDS = 30.0
SERVICE = Owner(0, 0, "root", "root")
"""In whose name a signal asks."""


class WallClock:
    """Whole seconds UTC that never go back, whatever is done to the host's clock."""

    def __init__(self) -> None:
        self._last = 0

    def now(self) -> int:
        self._last = max(self._last, int(time.time()))
        return self._last


@dataclass(slots=True)
class Service:
    """A joined service, not yet running."""

    heart: Heart
    workers: Workers
    store: SqlStore
    app: Any
    site: Site
    providers: Mapping[str, Provider]
    reread: "Rereading"
    ways: Ways | None
    """By which commands on machines elsewhere come; None where there are no such machines."""
    loopback: Loopback
    """Where browsers come."""
    keeper: Keeper
    """Sees requests through that take their time."""
    hearing: Hearing | None
    """What nodes may post; None where they cannot."""
    push_door: PushDoor | None
    """What takes it."""
    stop: Callable[[], None]
    """Lets go of what reaches out: connections to machines, what watches a provider."""


@dataclass(slots=True)
class Rereading:
    """Reads the configuration anew while the service runs: `scontrol reconfigure` and SIGHUP."""

    paths: Paths
    config: Config
    shelf: Shelf
    _: KW_ONLY
    inside: "Inside"
    commands: Commands
    beside: Neighbour | None

    def __call__(self, by: Owner) -> list[str]:
        """Settings that differ and wait for the next start.

        Raises ConfigError for a file that cannot be used, Denied, Busy; all stays as it is then.
        """
        config = reread(self.paths, self.config)
        kept = {name: getattr(self.config, name) for name in AT_START}
        later = [name for name, value in kept.items() if getattr(config, name) != value]
        config = config.model_copy(update=kept)
        site = _site(config, self.shelf.get("local"))
        self.inside.heart.ask(Reconfigure(site=site, by=by)).result(REREAD_SECONDS)
        self.config, self.inside.orders.site = config, site
        self.commands.take(config)
        if self.inside.hearing is not None:
            self.inside.hearing.take(config)
        if self.beside is not None:
            self.beside.learnt.expire()
        return later

    def hang_up(self, log: Any) -> None:
        """The same for who asks by a signal: the log tells what came of it."""
        try:
            later = self(SERVICE)
        except SpzError as error:
            log.warning("config.refused", error=error.message)
        else:
            log.info("config.read", at_next_start=later)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """The engine and all that it reaches, before anybody can ask anything of it."""

    heart: Heart
    site: Site
    store: SqlStore
    catalog: Catalog
    market: Quotes
    outside: Outside
    orders: OrderBook
    tidy: Sequence[Callable[[], None]]
    hearing: Hearing | None
    stop: Callable[[], None]


def build(paths: Paths, config: Config) -> Service:
    """Everything joined for these paths. Raises Refused, Busy or OSError where it cannot be."""
    log, shelf = structlog.get_logger(), Shelf(paths.home)
    beside = neighbour(config.passthrough, log)
    inside = _inside(paths, config, shelf, log=log)
    heart, store, providers = inside.heart, inside.store, inside.outside.providers
    workers = Workers(
        inside.outside, report=heart.report, followed=heart.followed, log=log, expect=heart.expect
    )
    desk = _desk(config, inside)
    desk.archive = old = aging(store, heart.clock, config)
    feeders = Feeders(store, loaded(entry_points(group="skypurza.accounting"), log), log)
    sweep = Sweep(
        heart=heart,
        providers=providers,
        tidy=[*inside.tidy, *_attended(beside, heart.engine)],
        store=store,
        log=log,
        holders=desk.holders,
        feeders=feeders,
        aging=old,
    )
    heart.workers, heart.sweep, workers.missed = workers, sweep, sweep.doubt
    commands = Commands(config) if beside is None else Commands(config, beside.around)
    desk.reread = reread = Rereading(
        paths, config, shelf, inside=inside, commands=commands, beside=beside
    )
    keeper = Keeper(desk, log)
    loopback, sessions = Loopback(config.http.dashboard_port), _sessions(heart.clock)
    routers = _routers(paths, config, shelf, inside=inside, keeper=keeper)
    routers += [plugins(feeders), dashboard(loopback, sessions.ticket)]
    key, standing = config.http.key(), commands.standing()
    app = build_app(desk, standing, log=log, routers=routers, key=key)
    loopback.app = _pages(desk, app, commands.ours(), sessions=sessions)
    return Service(
        heart=heart,
        workers=workers,
        store=store,
        app=app,
        loopback=loopback,
        keeper=keeper,
        site=inside.site,
        providers=providers,
        reread=reread,
        ways=ways(desk, inside.orders.seal, log),
        hearing=inside.hearing,
        push_door=_push_door(desk, inside),
        stop=inside.stop,
    )


def _inside(paths: Paths, config: Config, shelf: Shelf, *, log: Any) -> Inside:
    """As the store has it. Raises Busy where another service holds the store."""
    clock, catalog = WallClock(), shelf.get("local")
    site = _site(config, catalog)
    store = open_store(paths.database(config.database.url), clock=clock)
    market, epoch, now = _market(shelf, config), store.take_lease(), clock.now()
    engine = Engine.recovered(world=World(site), store=store, market=market, epoch=epoch, now=now)
    engine.configure(now)
    local = local_provider(paths, config, catalog)
    orders = OrderBook(site, store.blob, config.submit_host or host(), lambda: engine.snapshot)
    ends = ExitStack()
    heart = Heart(engine=engine, clock=clock, log=log, tell=_told(config, engine, log, ends=ends))
    staged = staging(paths, config, engine, outputs=orders.outputs, report=heart.report)
    outside = local_outside(paths, config, local=local, orders=orders, files=staged.files)
    pushes = Pushes(tell=lambda event, node: log.warning(event, node=node))
    heard = hearing(paths, config)
    heart.tell = both(both(heart.tell, staged.hear), pushes.committed)
    tidy = [local.sweep, staged.tidy]
    if uses_ec2(config):
        ec2 = cloud(paths, config, engine, orders=orders, shelf=shelf)
        ec2.provider.arrives = arrives(paths, config, heard)
        market.reserve("ec2", ec2.provider.reserved.offers)
        market.allow("ec2", ec2.quotas)
        outside = ec2.joined(outside)
        heart.tell = both(heart.tell, ec2.hear)
        tidy.append(ec2.attended(heart.report, heart.wake, posts=pushes.lately))
        ends.callback(ec2.stop)
    if heard is not None:
        outside = replace(outside, reach=PostingReach(outside.reach, heard.push), pushes=pushes)
    return Inside(
        heart=heart,
        site=site,
        store=store,
        catalog=catalog,
        market=market,
        outside=outside,
        orders=orders,
        tidy=tidy,
        hearing=heard,
        stop=ends.close,
    )


def _desk(config: Config, inside: Inside) -> Desk:
    """Where requests are taken."""
    heart, market = inside.heart, inside.market
    engine, clock = heart.engine, heart.clock
    return Desk(
        engine=heart,
        snapshot=lambda: engine.snapshot,
        present=lambda: engine.site,
        history=inside.store.history,
        clock=clock,
        wake=heart.wake,
        cycles=heart.cycles,
        reach=inside.outside.reach,
        pushes=inside.outside.pushes,
        host=config.submit_host or host(),
        gpu_types=tuple(gres_type(name) for name in inside.catalog.gpu_names()),
        warn_ignored=config.warn_ignored,
        mails=_sender(config) is not None,
        cooling=lambda: market.cooling(clock.now()),
    )


def _push_door(desk: Desk, inside: Inside) -> PushDoor | None:
    """Where nodes post to, and get the agent."""
    if inside.hearing is None:
        return None
    archive = agent_zipapp()
    return PushDoor(
        desk=desk,
        seal=inside.hearing.seal,
        digest=hashlib.sha256(archive).hexdigest(),
        archive=archive,
    )


def _market(shelf: Shelf, config: Config) -> Quotes:
    """What can be bought: the local provider's offers, and EC2's where a partition buys there."""
    names = ("local", "ec2") if uses_ec2(config) else ("local",)
    return Quotes({name: shelf.get(name) for name in names}, Cooldown())


def _routers(
    paths: Paths, config: Config, shelf: Shelf, *, inside: Inside, keeper: Keeper
) -> list[Any]:
    """Our own routes, each of them a router of the web library."""
    market = inside.market
    own = router(
        market=market,
        providers=inside.outside.providers,
        backup=partial(backup_store, paths.database(config.database.url)),
        keeper=keeper,
    )
    buyable = offers(market, shelf.get, lambda: _taken_up(shelf, market))
    limits, spent = infra(limits_of(config.ceiling)), money(explorer(config))
    return [own, metrics(), spent, exports(), budgets(), buyable, volumes(market), limits]


def _taken_up(shelf: Shelf, market: Quotes) -> set[str]:
    """Figures that were refreshed are used from now; the days that they are of."""
    fresh = shelf.reload()
    for provider, catalog in fresh.items():
        market.replace(provider, catalog)
    return {source.as_of for catalog in fresh.values() for source in catalog.sources}


def _site(config: Config, catalog: Catalog) -> Site:
    prices = catalog.least_price
    site = site_of(config, service_uid=os.getuid(), uid_of=_uid_of, gid_of=_gid_of, price_of=prices)
    words = catalog.vocabulary() | reserved_words(config)
    return replace(site, offered_features=words, rates=catalog.rates)


def _sessions(clock: Clock) -> Sessions:
    return Sessions(key=token_bytes(32), now=clock.now, nonce=lambda: token_hex(16))


def _pages(desk: Desk, app: App, ours: Mapping[str, Program], *, sessions: Sessions) -> App:
    """The pages, each made from what their user may ask of the service."""
    return Pages(
        sessions=sessions,
        doors=lambda uid, zone: Inner(desk, app, ours, uid, zone),
        status_of=status_of,
        mark=f"#{token_hex(8)}#",
        now=desk.now,
    ).application()


def _attended(beside: Neighbour | None, engine: Engine) -> list[Callable[[], None]]:
    return [] if beside is None else [beside.attended(lambda: engine.site)]


def host() -> str:
    """This host's short name."""
    return socket.gethostname().split(".")[0] or platform.node()


def _told(
    config: Config, engine: Engine, log: Any, *, ends: ExitStack
) -> Callable[[Sequence[Event]], None]:
    """Logs what committed facts say, and sends the mails that they ask for."""
    said, sender = chronicle(log, verbose=config.log.level == "debug"), _sender(config)
    past = engine.store.jobs_named
    if sender is None:
        return said
    post = Post(sender, log, past=lambda base: past([base]))
    ends.callback(post.close)
    return both(said, lambda facts: post.tell(facts, engine.world.jobs))


def _sender(config: Config) -> Callable[[Mail], None] | None:
    """What a mail is handed to: the mail server, or the mail program if there is one."""
    smtp, domain = config.smtp, config.mail_domain
    if smtp is not None:
        server = Server(
            host=smtp.host,
            port=smtp.port,
            security=smtp.security,
            sender=smtp.sender or f"slurm@{domain or socket.getfqdn()}",
            user=smtp.user,
            password=smtp.password.get_secret_value() if smtp.password else "",
        )
        return lambda mail: hand_in(server, addressed(mail, domain))
    if not usable(config.mail_prog):
        return None
    return lambda mail: send(config.mail_prog, addressed(mail, domain))


def _uid_of(name: str) -> int | None:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def _gid_of(name: str) -> int | None:
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        return None
