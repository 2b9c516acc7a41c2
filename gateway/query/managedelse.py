"""The rest of what sacctmgr shows: the cluster, machines, events, and lists that are empty here."""

from collections.abc import Iterable
from dataclasses import replace
from operator import itemgetter

from accounting.assoc import ROOT
from accounting.ids import UserName
from accounting.tres import billing, by_id, sum_of
from broker.model.events import BookChanged
from broker.model.node import Node
from broker.model.site import Site
from broker.world import Snapshot
from gateway.query.assocs import Row
from gateway.query.context import Context
from gateway.query.managed import limit
from gateway.query.managedheads import columns
from gateway.query.moments import show_date, show_moment
from gateway.query.nodes import part_nodes
from gateway.query.reports import Field
from sbatch_shim.grammar.hostlist import fold
from sbatch_shim.grammar.values import show_long

PORT = "6817"
"""slurmctld's usual port; nobody listens there."""
PROTOCOL = "11264"
"""Number of 25.11's protocol."""
UNKNOWN = "Unknown"
"""When something ends that has not yet."""

CLUSTER = (
    "Cluster,ControlHost,ControlPort,RPC,Share,GrpJobs,GrpTRES,GrpSubmit,MaxJobs,MaxTRES,"
    "MaxSubmit,MaxWall,QOS,DefaultQOS"
)


def clusters(site: Site) -> tuple[Field[Row], ...]:
    """Columns of `show cluster`, with the limits of the root account.

    Nodes that may be bought count as nodes; what they would have is not known before.
    """
    declared = [node.name for node in site.nodes]
    bought = (name for part in site.partitions for name in part_nodes(part))
    names = list(dict.fromkeys([*declared, *bought]))
    has = replace(sum_of(node.whole for node in site.nodes), node=len(names))

    return columns(
        {
            "Cluster": lambda _: site.cluster,
            "Cluster Nodes": lambda _: fold(names),
            "NodeCount": lambda _: str(len(names)),
            "TRES": lambda _: by_id(has, billing(has, None)),
            "ControlHost": lambda _: "127.0.0.1",
            "ControlPort": lambda _: PORT,
            "RPC": lambda _: PROTOCOL,
            "Share": lambda row: str(row.shares),
            "GrpJobs": limit("grp_jobs"),
            "GrpTRES": limit("grp_tres"),
            "GrpSubmit": limit("grp_submit_jobs"),
            "MaxJobs": limit("max_jobs"),
            "MaxTRES": limit("max_tres_per_job"),
            "MaxSubmit": limit("max_submit_jobs"),
            "MaxWall": limit("max_wall"),
            "QOS": lambda row: ",".join(row.qos),
            "Def QOS": lambda row: row.default_qos,
        }
    )


INSTANCE = "Cluster,NodeName,TimeStart,TimeEnd,InstanceId,InstanceType,Extra"


def instances(ctx: Context) -> tuple[Field[Node], ...]:
    """Columns of `show instance`: machines that we hold now."""
    return columns(
        {
            "Cluster": lambda _: ctx.site.cluster,
            "NodeName": lambda node: node.name,
            "TimeStart": lambda node: show_moment(node.since, ctx),
            "TimeEnd": lambda _: UNKNOWN,
            "InstanceId": lambda n: n.machine.id if n.machine else "",
            "InstanceType": _type,
        }
    )


def _type(node: Node) -> str:
    return node.machine.instance_type if node.machine else ""


EVENT = "Cluster,NodeName,TimeStart,TimeEnd,State,Reason,User"


def is_event(node: Node) -> bool:
    """Whether something is the matter with the node."""
    return node.drain or node.state.label == "DOWN"


def events(ctx: Context) -> tuple[Field[Node], ...]:
    """Columns of `show event`: nodes that are down or drained now."""
    return columns(
        {
            "Cluster": lambda _: ctx.site.cluster,
            "Event": lambda _: "Node",
            "NodeName": lambda node: node.name,
            "Duration": lambda node: show_long(max(ctx.now - _since(node), 0)),
            "TimeStart": lambda node: show_moment(_since(node), ctx),
            "TimeEnd": lambda _: UNKNOWN,
            "State": lambda node: "DOWN" if node.state.label == "DOWN" else "DRAIN",
            "Reason": lambda node: node.reason,
            "User": lambda node: ctx.user_name(node.reason_uid or 0),
        }
    )


def _since(node: Node) -> int:
    return node.since if node.reason_at is None else node.reason_at


NONE: tuple[Field[object], ...] = columns({})
"""Of lists that have no lines here."""
PROBLEMS: tuple[Field[tuple[str, str, str, str]], ...] = columns(
    {
        "Cluster": itemgetter(0),
        "Account": itemgetter(1),
        "User": itemgetter(2),
        "Problem": itemgetter(3),
    }
)
FEDERATION = "Federation,Cluster,ID%2,Features,FedState"
RESOURCE = "Name,Server,Type,Count,LastConsumed,Allocated,ServerType,Flags"
PROBLEM = "Cluster,Account,User,Problem"
RESERVATION = "Cluster,Name%15,TRES%30,TimeStart,TimeEnd,UnusedWall"
TRANSACTION = "Time,Action,Actor,Where,Info"
WCKEY = "WCKey,Cluster,User"


def transactions(ctx: Context) -> tuple[Field[BookChanged], ...]:
    """Columns of `show transaction`."""
    return columns(
        {
            "Time": lambda one: show_moment(one.at, ctx),
            "Action": lambda one: one.action,
            "Actor": lambda one: one.by,
            "Where": lambda one: one.where,
            "Info": lambda one: one.info,
        }
    )


def wckeys(cluster: str) -> tuple[Field[tuple[str, UserName]], ...]:
    """Columns of `show wckey`, which calls the first otherwise than other lists do."""
    key: Field[tuple[str, UserName]] = Field("WCKeys", "WCKey", 10, itemgetter(0), least=2)
    return (key, *columns({"Cluster": lambda _: cluster, "User": lambda pair: str(pair[1])}))


Problem = tuple[str, str, str, str]
"""Cluster, account, user, what is wrong."""


def problems(ctx: Context, strangers: Iterable[str]) -> list[Problem]:
    """Accounts without users at or below them, and users whom the host does not know."""
    book, cluster = ctx.site.book, ctx.site.cluster
    used = {
        step.name
        for owned in book.associations.values()
        for own in owned
        for step in book.lineage(own.account)
    }
    found = [
        (cluster, str(name), "", "Account has no users")
        for name in book.accounts
        if name not in {ROOT, *used}
    ]
    return found + [("", "", name, "User does not have a uid") for name in strangers]


CONFIG = (
    ("AccountingStorageBackupHost", "(null)"),
    ("AccountingStorageHost", "{host}"),
    ("AccountingStorageParameters", "(null)"),
    ("AccountingStoragePort", "0"),
    ("AccountingStorageType", "accounting_storage/slurmdbd"),
    ("AccountingStorageUser", "N/A"),
    ("AuthType", "auth/skypurza"),
    ("MessageTimeout", "10 sec"),
    ("PluginDir", "(null)"),
    ("PrivateData", "{private}"),
    ("SlurmUserId", "{user}({uid})"),
    ("SLURM_CONF", "(null)"),
    ("SLURM_VERSION", "{version}"),
    ("TCPTimeout", "2 sec"),
    ("TrackWCKey", "No"),
)


def config_text(ctx: Context, host: str) -> str:
    """`sacctmgr show configuration`."""
    uid = ctx.site.service_uid or 0
    facts = {
        "host": host,
        "user": ctx.user_name(uid),
        "uid": uid,
        "version": ctx.site.version,
        "private": ",".join(sorted(ctx.site.private)) or "none",
    }
    lines = [f"{key:<22} = {value.format(**facts)}" for key, value in CONFIG]
    head = f"Configuration data as of {show_moment(ctx.now, ctx)}"
    return "\n".join([head, *lines, ""])


def stats_text(snap: Snapshot, ctx: Context) -> str:
    """`sacctmgr show stats`: nothing is rolled up, so no statistics are kept of that."""
    return (
        "*******************************************************************\n"
        f"sacctmgr show stats output at {show_date(ctx.now, ctx)} ({ctx.now})\n"
        f"Data since                    {show_date(snap.started_at, ctx)} ({snap.started_at})\n"
        "All statistics are in microseconds\n"
        "*******************************************************************\n"
    )
