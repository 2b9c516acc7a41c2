"""What sacctmgr shows: entities, their conditions, their tables."""

import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from broker.model.events import BookChanged
from gateway.api.programs.reading import fail, style_of
from gateway.api.programs.sacctmgr_rows import (
    Asked,
    accounts_of,
    here,
    qos_of,
    rows_of,
    tres_of,
    users_of,
)
from gateway.api.wire import Answer
from gateway.query import managed, managedelse
from gateway.query.privacy import Viewer
from gateway.query.reports import Field, UnknownFieldError, fields_of, table
from gateway.translate.bookorder import UNKNOWN_CONDITION
from sbatch_shim.grammar.instants import InstantError, read_instant

BAD_FIELD = "Unknown field '{}'\n"
BAD_CONDITION = " Unknown condition: {}\n"
BAD_ACTION = "sacctmgr: error: You gave a bad action '{}'.\n"
ACTIONS = frozenset(
    f"{verb} {what}"
    for verb, things in {
        "add": (
            "account coord", "accounts", "associations", "clusters", "federations", "qos",
            "resources", "tres", "users", "wckeys",
        ),
        "modify": (
            "accounts", "associations", "clusters", "federations", "job", "qos", "resources",
            "users", "wckeys",
        ),
        "remove": (
            "account coords", "accounts", "associations", "clusters", "federations", "qos",
            "resources", "users", "wckeys", "budget",
        ),
        "load": ("file",),
        "set": ("budget",),
    }.items()
    for what in things
)  # fmt: skip
"""What transactions are called, in lower case: Slurm's names, then our own."""
BAD_ID = "sacctmgr: error: Invalid value for AssocId ({})\n"
DENIED = "sacctmgr: error: Your user doesn't have privilege to perform this action\n"
REQUEST_DENIED = DENIED + " Error with request: Access/permission denied\n"
NO_QUERY = "sacctmgr: error: Access/permission denied\n Problem with query.\n"
PROBLEM_DENIED = (
    "sacctmgr: error: Access/permission denied\n Error with request: Access/permission denied\n"
)
RUNAWAY_DENIED = "sacctmgr: error: You must have an AdminLevel>=Operator to fix runaway jobs\n"
STATS_DENIED = (
    "sacctmgr: accounting_storage/slurmdbd: acct_storage_p_get_stats: RC:2002 "
    "Your user doesn't have privilege to perform this action\n"
)
NO_ENTITY = (
    "No valid entity in list command\n"
    'Input line must include "Account", "Association", "Cluster", "Configuration",\n'
    '"Event", "Federation", "Instance", "Problem", "QOS", "Resource", "Reservation",\n'
    '"RunAwayJobs", "Stats", "Transaction", "TRES", "User", or "WCKey"\n'
)


View = Callable[[Asked], Answer]


# ---------------------------------------------------------------- words


@dataclass(frozen=True, slots=True)
class Entity:
    """What can be shown: its least number of letters, what bare words name, its conditions."""

    name: str
    least: int
    view: View
    named: str = "name"
    conditions: tuple[str, ...] = ()
    past: bool = False
    """Whether it needs what was changed ever."""


FLAGS = (
    "tree", "withassoc", "withassociations", "withcoordinators", "withdeleted", "withrawqoslevel",
    "withsubaccounts", "withclusters", "onlydefaults", "wopinfo", "woparentinfo", "woplimits",
    "wolimits",
    "all_clusters",
)  # fmt: skip


def entity_of(words: Sequence[str]) -> Entity:
    word = words[0].lower() if words else ""
    for entity in ENTITIES:
        short = len(word) >= entity.least and entity.name.startswith(word.removesuffix("s"))
        if word and (short or word in {entity.name, f"{entity.name}s"}):
            return entity
    raise fail(NO_ENTITY)


PRIVATE = {
    "account": ("accounts", NO_QUERY),
    "event": ("events", PROBLEM_DENIED),
    "instance": ("events", PROBLEM_DENIED),
    "reservation": ("reservations", NO_QUERY),
}
"""What is told to operators, or not at all, and what others hear (22.05)."""


def must_be_shown(entity: str, viewer: Viewer) -> None:
    """Raises Finished where they see nothing of it: accounts they do if they coordinate any."""
    kind, told = PRIVATE.get(entity, ("", ""))
    if not viewer.may(kind) and not (kind == "accounts" and viewer.accounts):
        raise fail(told)


def conditions_of(asked: Asked, words: Iterable[str], entity: Entity) -> Asked:
    """The words behind the entity. Raises Finished for a condition that it does not have."""
    conditions: dict[str, frozenset[str]] = {}
    flags, names, shape = set(), set(), ""
    for word in words:
        key, equals, value = word.partition("=")
        low = key.lower().rstrip("!<>")
        if not equals and (low in {"where", "set"} or _flag(low)):
            flags |= {_flag(low)} if _flag(low) else set()
        elif not equals:
            names |= {part.lower() for part in word.split(",")}
        elif low.startswith("form"):
            shape += f",{value}"
        else:
            name = _condition(low, entity, word)
            conditions[name] = frozenset(part.lower() for part in value.split(",") if part)
    other = next((name for name in sorted(names) if not name.isdecimal()), None)
    if entity.named == "id" and other is not None:
        raise fail(BAD_ID.format(other))
    if names:
        conditions[entity.named] = frozenset(names)
    return replace(
        asked, conditions=conditions, names=frozenset(names), flags=frozenset(flags), format=shape
    )


def _flag(word: str) -> str:
    found = next((flag for flag in FLAGS if len(word) >= 4 and flag.startswith(word)), "")
    return "withassoc" if found.startswith("withassoc") else found


def _condition(word: str, entity: Entity, typed: str) -> str:
    word = {"names": "name", "ids": "id"}.get(word, word)
    known = (*entity.conditions, entity.named, "name", "cluster", "id")
    found = next((one for one in known if one.startswith(word.removesuffix("s")) and word), None)
    if found is None:
        told = UNKNOWN_CONDITION if entity.name in {"account", "user"} else BAD_CONDITION
        raise fail(told.format(typed))
    return entity.named if found == "name" and "name" not in entity.conditions else found


# ---------------------------------------------------------------- tables


def _table(asked: Asked, known: Sequence[Field[Any]], *, usual: str, rows: Iterable[Any]) -> Answer:
    try:
        fields = fields_of(asked.format or usual, known)
    except UnknownFieldError as error:
        raise fail(BAD_FIELD.format(error)) from None
    if not fields:
        raise fail(BAD_FIELD.format(""))
    return Answer(out=table(fields, rows, style_of(asked.options)))


PLACE = "Cluster,Account,User,Partition"
ASSOC = (
    f"{PLACE},Share,Priority,GrpJobs,GrpTRES,GrpSubmit,GrpWall,GrpTRESMins,"
    "MaxJobs,MaxTRES,MaxTRESPerNode,MaxSubmit,MaxWall,MaxTRESMins,QOS,DefaultQOS,GrpTRESRunMins"
)
USER, USER_ASSOC = (
    "User,DefaultAccount,AdminLevel",
    ",Cluster,Account,Partition,Share,Priority,MaxJobs,MaxNodes,MaxCPUs,MaxSubmit,MaxWall,"
    "MaxCPUMins,QOS,DefaultQOS",
)
ACCOUNT, ACCOUNT_ASSOC = (
    "Account,Description,Organization",
    ",Cluster,ParentName,User,Share,Priority,GrpJobs,GrpNodes,GrpCPUs,GrpMem,GrpSubmit,GrpWall,"
    "GrpCPUMins,MaxJobs,MaxNodes,MaxCPUs,MaxSubmit,MaxWall,MaxCPUMins,QOS,DefaultQOS",
)
QOS = (
    "Name,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,Flags,UsageThres,UsageFactor,"
    "GrpTRES,GrpTRESMins,GrpTRESRunMins,GrpJobs,GrpSubmit,GrpWall,MaxTRES,MaxTRESPerNode,"
    "MaxTRESMins,MaxWall,MaxTRESPU,MaxJobsPU,MaxSubmitPU,MaxTRESPA,MaxTRESRunMinsPA,"
    "MaxTRESRunMinsPU,MaxJobsPA,MaxSubmitPA,MinTRES"
)


def _coordinated(asked: Asked, usual: str) -> str:
    return f"{usual},Coordinators" if "withcoordinators" in asked.flags else usual


def _show_associations(asked: Asked) -> Answer:
    known = managed.associations(asked.ctx.site.cluster, "tree" in asked.flags)
    usual = ASSOC if asked.flags.isdisjoint(("woplimits", "wolimits")) else PLACE
    return _table(asked, known, usual=usual, rows=rows_of(asked))


def _show_users(asked: Asked) -> Answer:
    usual = _coordinated(asked, USER) + (USER_ASSOC if asked.associated else "")
    told = "withcoordinators" in asked.flags
    known = managed.users(asked.ctx.site.cluster, asked.book, coordinators=told)
    return _table(asked, known, usual=usual, rows=users_of(asked))


def _show_accounts(asked: Asked) -> Answer:
    usual = _coordinated(asked, ACCOUNT) + (ACCOUNT_ASSOC if asked.associated else "")
    told = "withcoordinators" in asked.flags
    known = managed.accounts(asked.ctx.site.cluster, coordinators=told)
    return _table(asked, known, usual=usual, rows=accounts_of(asked))


def _show_qos(asked: Asked) -> Answer:
    return _table(asked, managed.qos_columns(asked.book), usual=QOS, rows=qos_of(asked))


def _show_tres(asked: Asked) -> Answer:
    return _table(asked, managed.TRES, usual="Type,Name%15,ID", rows=tres_of(asked))


def _show_clusters(asked: Asked) -> Answer:
    rows = [row for row in managed.rows_of(asked.ctx)[:1] if here(asked)]
    known = managedelse.clusters(asked.ctx.site)
    return _table(asked, known, usual=managedelse.CLUSTER, rows=rows)


def _show_instances(asked: Asked) -> Answer:
    rows = [node for node in asked.snap.nodes.values() if node.machine is not None]
    known = managedelse.instances(asked.ctx)
    return _table(asked, known, usual=managedelse.INSTANCE, rows=rows)


def _show_events(asked: Asked) -> Answer:
    rows = [node for node in asked.snap.nodes.values() if managedelse.is_event(node)]
    return _table(asked, managedelse.events(asked.ctx), usual=managedelse.EVENT, rows=rows)


def _show_transactions(asked: Asked) -> Answer:
    bad = sorted(asked.conditions.get("action", frozenset()) - ACTIONS)
    if bad:
        raise fail(BAD_ACTION.format(bad[0]))
    since, until = (_moment(asked, key) for key in ("start", "end"))
    rows = [
        one
        for one in asked.changes
        if one.action  # else purged
        and asked.wants("action", one.action)
        and asked.wants("actor", one.by)
        and (since is None or one.at >= since)
        and (until is None or one.at < until)
        and _touches(asked, one)
        and asked.viewer.change(one.by)
    ]
    known = managedelse.transactions(asked.ctx)
    return _table(asked, known, usual=managedelse.TRANSACTION, rows=rows)


def _moment(asked: Asked, key: str) -> int | None:
    """The instant of a condition. Raises Finished for what is none."""
    text = next(iter(asked.conditions.get(key, ())), None)
    if text is None:
        return None
    try:
        return read_instant(text.upper(), asked.ctx.now, offset=asked.ctx.zone, past=True)
    except InstantError:
        raise fail(InstantError(text).complaint()) from None


def _touches(asked: Asked, one: BookChanged) -> bool:
    words = {word.lower() for text in (one.where, one.info) for word in text.split(",")}
    wanted = asked.conditions.get("user"), asked.conditions.get("account")
    return all(names is None or not names.isdisjoint(words) for names in wanted)


def _show_problems(asked: Asked) -> Answer:
    if not asked.admin:
        return Answer(err=PROBLEM_DENIED, code=1)
    rows = managedelse.problems(asked.ctx, asked.strangers)
    return _table(asked, managedelse.PROBLEMS, usual=managedelse.PROBLEM, rows=rows)


def _show_wckeys(asked: Asked) -> Answer:
    """Slurm refuses those whom it does not show all: no list of one's own (25.11.7)."""
    if not asked.admin:
        return Answer(err=REQUEST_DENIED, code=1)
    rows = [
        (key, one.name)
        for one in asked.book.people.values()
        for key in one.wckeys
        if asked.wants("user", one.name) and asked.wants("name", key)
    ]
    known = managedelse.wckeys(asked.ctx.site.cluster)
    return _table(asked, known, usual=managedelse.WCKEY, rows=rows)


def _empty(usual: str) -> View:
    def view(asked: Asked) -> Answer:
        return _table(asked, managedelse.NONE, usual=usual, rows=())

    return view


def _show_config(asked: Asked) -> Answer:
    host = asked.host or platform.node()
    return Answer(out=managedelse.config_text(asked.ctx, host))


def _show_stats(asked: Asked) -> Answer:
    if not asked.admin:
        return Answer(err=STATS_DENIED, code=1)
    return Answer(out=managedelse.stats_text(asked.snap, asked.ctx))


def _show_runaway(asked: Asked) -> Answer:
    """Jobs that accounting takes for running and the controller does not know: none, by design."""
    if not asked.admin:
        return Answer(err=RUNAWAY_DENIED, code=1)
    return Answer(out=f"Runaway Jobs: No runaway jobs found on cluster {asked.ctx.site.cluster}\n")


ENTITIES = (
    Entity(
        "association",
        2,
        _show_associations,
        "id",
        ("account", "user", "partition", "qos", "parent", "defaultqos"),
    ),
    Entity(
        "account", 2, _show_accounts, "account", ("account", "user", "description", "organization")
    ),
    Entity("cluster", 2, _show_clusters, "cluster"),
    Entity("configuration", 2, _show_config),
    Entity(
        "event",
        1,
        _show_events,
        "node",
        ("node", "start", "end", "states", "user", "reason", "event"),
    ),
    Entity("federation", 1, _empty(managedelse.FEDERATION)),
    Entity(
        "instance",
        1,
        _show_instances,
        "node",
        ("node", "start", "end", "instanceid", "instancetype", "extra"),
    ),
    Entity("problem", 1, _show_problems),
    Entity("qos", 1, _show_qos, "qos", ("description", "preemptmode")),
    Entity(
        "resource",
        4,
        _empty(managedelse.RESOURCE),
        "name",
        ("server", "type"),
    ),
    Entity(
        "reservation",
        4,
        _empty(managedelse.RESERVATION),
        "name",
        ("node", "start", "end"),
    ),
    Entity("runawayjob", 2, _show_runaway),
    Entity("stat", 1, _show_stats),
    Entity(
        "transaction",
        1,
        _show_transactions,
        "name",
        ("account", "action", "actor", "start", "end", "user"),
        past=True,
    ),
    Entity("tres", 2, _show_tres, "type", ("name", "id")),
    Entity(
        "user",
        1,
        _show_users,
        "user",
        ("user", "account", "adminlevel", "defaultaccount", "partition", "qos"),
    ),
    Entity("wckey", 1, _show_wckeys, "name", ("user",)),
)
