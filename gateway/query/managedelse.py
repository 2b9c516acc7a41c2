"""The rest of what sacctmgr shows: the cluster, machines, events, and lists that are empty here."""

from operator import itemgetter

from accounting.assoc import ROOT
from accounting.ids import UserName
from broker.model.events import BookChanged
from broker.model.node import Node
from broker.world import Snapshot
from gateway.query.assocs import Row
from gateway.query.context import Context
from gateway.query.managed import limit_text, limits_of
from gateway.query.moments import show_moment
from gateway.query.reports import Field, nothing

PORT = "6817"
"""slurmctld's usual port; nobody listens there."""
PROTOCOL = "11264"
"""Number of 25.11's protocol."""

CLUSTER = (
    "Cluster,ControlHost,ControlPort,RPC,Share,GrpJobs,GrpTRES,GrpSubmit,MaxJobs,MaxTRES,"
    "MaxSubmit,MaxWall,QOS,DefaultQOS"
)


def clusters(cluster: str) -> tuple[Field[Row], ...]:
    """Columns of `show cluster`, with the limits of the root account."""

    def limit(name: str, header: str, width: int, *, key: str) -> Field[Row]:
        return Field(name, header, width, lambda row: limit_text(limits_of(row), key))

    return (
        Field("Cluster", "Cluster", 10, lambda _: cluster),
        Field("ControlHost", "ControlHost", 15, lambda _: "127.0.0.1"),
        Field("ControlPort", "ControlPort", 12, lambda _: PORT, least=8),
        Field("RPC", "RPC", 5, lambda _: PROTOCOL),
        Field("Share", "Share", 9, lambda row: str(row.shares)),
        limit("GrpJobs", "GrpJobs", 7, key="grp_jobs"),
        limit("GrpTRES", "GrpTRES", 13, key="grp_tres"),
        limit("GrpSubmitJobs", "GrpSubmit", 9, key="grp_submit_jobs"),
        limit("MaxJobs", "MaxJobs", 7, key="max_jobs"),
        limit("MaxTRES", "MaxTRES", 13, key="max_tres_per_job"),
        limit("MaxSubmitJobs", "MaxSubmit", 9, key="max_submit_jobs"),
        limit("MaxWall", "MaxWall", 11, key="max_wall"),
        Field("QOS", "QOS", 20, lambda row: ",".join(row.qos)),
        Field("DefaultQOS", "Def QOS", 9, lambda row: row.default_qos),
        Field("ClusterNodes", "Cluster Nodes", 20, nothing, least=8),
        Field("NodeCount", "NodeCount", 10, nothing),
        Field("TRES", "TRES", 20, nothing),
        Field("Flags", "Flags", 20, nothing),
        Field("Federation", "Federation", 10, nothing),
        Field("ID", "ID", 6, nothing),
    )


INSTANCE = "Cluster,NodeName,TimeStart,TimeEnd,InstanceId,InstanceType,Extra"


def instances(ctx: Context) -> tuple[Field[Node], ...]:
    """Columns of `show instance`: machines that we hold now."""
    return (
        Field("Cluster", "Cluster", 10, lambda _: ctx.site.cluster),
        Field("NodeName", "NodeName", -15, lambda node: node.name),
        Field("TimeStart", "TimeStart", 19, lambda node: show_moment(node.since, ctx)),
        Field("TimeEnd", "TimeEnd", 19, lambda _: "Unknown"),
        Field("InstanceId", "InstanceId", 20, lambda n: n.machine.id if n.machine else ""),
        Field("InstanceType", "InstanceType", 20, _type),
        Field("Extra", "Extra", 20, nothing),
    )


def _type(node: Node) -> str:
    return node.machine.instance_type if node.machine else ""


EVENT = "Cluster,NodeName,TimeStart,TimeEnd,State,Reason,User"


def is_event(node: Node) -> bool:
    """Whether something is the matter with the node."""
    return node.drain or node.state.label == "DOWN"


def events(ctx: Context) -> tuple[Field[Node], ...]:
    """Columns of `show event`: nodes that are down or drained now."""
    return (
        Field("Cluster", "Cluster", 10, lambda _: ctx.site.cluster),
        Field("ClusterNodes", "Cluster Nodes", 20, nothing, least=8),
        Field("Duration", "Duration", 13, nothing),
        Field("NodeName", "NodeName", -15, lambda node: node.name, least=5),
        Field("TimeStart", "TimeStart", 19, lambda node: show_moment(_since(node), ctx), least=5),
        Field("TimeEnd", "TimeEnd", 19, lambda _: "Unknown", least=5),
        Field("State", "State", 6, lambda node: "DOWN" if node.state.label == "DOWN" else "DRAIN"),
        Field("Reason", "Reason", 30, lambda node: node.reason),
        Field("User", "User", 15, lambda node: ctx.user_name(node.reason_uid or 0)),
    )


def _since(node: Node) -> int:
    return node.since if node.reason_at is None else node.reason_at


def _texts(*columns: tuple[str, int]) -> tuple[Field[object], ...]:
    return tuple(Field(name.replace(" ", ""), name, width, nothing) for name, width in columns)


def _usual(fields: tuple[Field[object], ...]) -> str:
    return ",".join(field.name for field in fields)


FEDERATIONS = _texts(
    ("Federation", 10), ("Cluster", 10), ("ID", 2), ("Weight", 8), ("Features", 20),
    ("FedState", 12),
)  # fmt: skip
PROBLEMS: tuple[Field[tuple[str, str, str, str]], ...] = (
    Field("Cluster", "Cluster", 10, itemgetter(0)),
    Field("Account", "Account", 10, itemgetter(1)),
    Field("User", "User", 10, itemgetter(2)),
    Field("Problem", "Problem", 40, itemgetter(3)),
)
RESOURCES = _texts(
    ("Name", 10), ("Server", 10), ("Type", 8), ("Count", 6), ("LastConsumed", 12),
    ("Allocated", 9), ("ServerType", 10), ("Flags", 20),
)  # fmt: skip
RESERVATIONS = _texts(
    ("Cluster", 10), ("Name", 15), ("TRES", 30), ("TimeStart", 19), ("TimeEnd", 19),
    ("UnusedWall", 10),
)  # fmt: skip
FEDERATION, RESOURCE = _usual(FEDERATIONS), _usual(RESOURCES)
PROBLEM = "Cluster,Account,User,Problem"
RESERVATION = _usual(RESERVATIONS)
TRANSACTION = "Time,Action,Actor,Where,Info"
WCKEY = "WCKey,Cluster,User"


def transactions(ctx: Context) -> tuple[Field[BookChanged], ...]:
    """Columns of `show transaction`."""
    return (
        Field("TimeStamp", "Time", 19, lambda one: show_moment(one.at, ctx)),
        Field("Time", "Time", 19, lambda one: show_moment(one.at, ctx)),
        Field("Action", "Action", 20, lambda one: one.action),
        Field("Actor", "Actor", 10, lambda one: one.by),
        Field("Where", "Where", 20, lambda one: one.where),
        Field("Info", "Info", 20, lambda one: one.info),
        Field("Cluster", "Cluster", 10, lambda _: ctx.site.cluster),
    )


def wckeys(cluster: str) -> tuple[Field[tuple[str, UserName]], ...]:
    """Columns of `show wckey`."""
    return (
        Field("WCKey", "WCKey", 10, lambda pair: pair[0]),
        Field("Cluster", "Cluster", 10, lambda _: cluster),
        Field("User", "User", 10, lambda pair: pair[1]),
    )


Problem = tuple[str, str, str, str]
"""Cluster, account, user, what is wrong."""


def problems(ctx: Context) -> list[Problem]:
    """Accounts without users at or below them, and administrators whom the host does not know."""
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
    strangers = (one for one in book.people.values() if one.admin != "None" and one.uid is None)
    return found + [("", "", str(one.name), "User does not have a uid") for one in strangers]


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
    ("PrivateData", "none"),
    ("SlurmUserId", "{user}({uid})"),
    ("SLURM_CONF", "(null)"),
    ("SLURM_VERSION", "{version}"),
    ("TCPTimeout", "2 sec"),
    ("TrackWCKey", "No"),
)


def config_text(ctx: Context, host: str) -> str:
    """`sacctmgr show configuration`."""
    uid = ctx.site.service_uid or 0
    facts = {"host": host, "user": ctx.user_name(uid), "uid": uid, "version": ctx.site.version}
    lines = [f"{key:<22} = {value.format(**facts)}" for key, value in CONFIG]
    head = f"Configuration data as of {show_moment(ctx.now, ctx)}"
    return "\n".join([head, *lines, ""])


def stats_text(snap: Snapshot, ctx: Context) -> str:
    """`sacctmgr show stats`: nothing is rolled up, so no statistics are kept of that."""
    return (
        "*******************************************************************\n"
        f"sacctmgr show stats output at {show_moment(ctx.now, ctx)}\n"
        f"Data since                    {show_moment(snap.started_at, ctx)}\n"
        "All statistics are in microseconds\n"
        "*******************************************************************\n"
    )
