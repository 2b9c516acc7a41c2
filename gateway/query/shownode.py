"""`scontrol show node` and `show partition`: the lines of a record (25.11.7)."""

from accounting.tres import NO_TRES, Tres, billing, by_id, memory_text, parse_weights
from broker.model.ids import NodeName
from broker.model.site import Partition, Site
from gateway.query.context import Context
from gateway.query.moments import show_moment
from gateway.query.nodes import NodeView, free_of, host_of, load_of, part_nodes, used_gres
from gateway.query.partwords import (
    groups,
    most_cpus,
    most_memory,
    over_time,
    preempt_mode,
    qos_let_in,
    sharing,
)
from sbatch_shim.grammar.hostlist import fold
from sbatch_shim.grammar.values import show_long

INDENT = "\n   "


def _record(lines: list[str | None], *, oneliner: bool) -> str:
    shown = [line for line in lines if line is not None]
    return " ".join(shown) + "\n" if oneliner else INDENT.join(shown) + "\n\n"


SWEPT = "posts nothing: its journal is read over SSH"
"""Of a node that should post."""


def _yes(value: bool) -> str:
    return "YES" if value else "NO"


def _or_null(text: str) -> str:
    return text or "(null)"


# ---------------------------------------------------------------- nodes


def show_node(
    view: NodeView, ctx: Context, *, details: bool = False, oneliner: bool = False
) -> str:
    """The record of a node; what the machine has is 0 while there is none."""
    node, whole, used = view.record, view.whole, view.used
    features = _or_null(",".join(node.features) if node else "")
    machine = node.machine if node else None
    sockets = node.sockets if node else 1
    real = node.real_memory_mib or whole.mem_mib if node else 0
    lines = [
        f"NodeName={view.name} Arch=x86_64 CoresPerSocket={node.cores_per_socket if node else 1} ",
        f"CPUAlloc={used.cpu} CPUEfctv={whole.cpu} CPUTot={whole.cpu} CPULoad={_load(view, ctx)}",
        f"AvailableFeatures={features}",
        f"ActiveFeatures={features}",
        f"Gres={_or_null(node.gres_text if node else '')}",
        "GresDrain=N/A" if details else None,
        f"GresUsed={used_gres(view)}" if details else None,
        f"NodeAddr={node_address(view)} NodeHostName={host_of(view, ctx)} Port=0 "
        f"Version={ctx.site.version}",
        "OS=Linux",
        f"RealMemory={real} AllocMem={used.mem_mib} FreeMem={_free(view, ctx)} Sockets={sockets} "
        f"Boards={node.boards if node else 1}",
        f"State={view.joined} ThreadsPerCore={node.threads_per_core if node else 1} TmpDisk=0 "
        f"Weight={node.weight if node else 1} Owner=N/A MCS_label=N/A",
        f"Partitions={','.join(view.partitions)} ",
        f"BootTime={_moment(node.booted if node else None, ctx)} SlurmdStartTime=None",
        f"LastBusyTime={_moment(node.idle_since if node else None, ctx)} ResumeAfterTime=None",
        f"CfgTRES={_or_null(node_tres(view, ctx.site))}",
        f"AllocTRES={used_tres(view)}",
        "CurrentWatts=0 AveWatts=0",
        f"InstanceId={machine.id} InstanceType={machine.instance_type}" if machine else None,
        f"ReservationName={view.reservation}" if view.reservation else None,
        _reason(view, ctx),
        f"Comment={SWEPT}" if node is not None and node.name in ctx.swept else None,
    ]
    return _record(lines, oneliner=oneliner)


def _load(view: NodeView, ctx: Context) -> str:
    load = load_of(view, ctx)
    return "N/A" if load is None else f"{load:.2f}"


def _free(view: NodeView, ctx: Context) -> str:
    free = free_of(view, ctx)
    return "N/A" if free is None else str(free)


def node_address(view: NodeView) -> str:
    """The host by which the node is reached; a local machine's is this host."""
    machine = view.record.machine if view.record else None
    address = machine.address if machine else ""
    if not address or "/" in address:
        return "127.0.0.1" if view.record else str(view.name)
    return address


def _moment(at: int | None, ctx: Context) -> str:
    return "None" if at is None else show_moment(at, ctx)


def _without_node(tres: Tres) -> Tres:
    return Tres(tres.cpu, tres.mem_mib, 0, tres.gres)


def node_tres(view: NodeView, site: Site) -> str:
    """What it has, memory in plain MiB, with the billing units of all of it."""
    whole = view.whole
    if whole == NO_TRES:
        return ""
    parts = (site.partition(name) for name in view.partitions)
    texts = [part.billing_weights for part in parts if part and part.billing_weights]
    units = billing(whole, parse_weights(texts[0]) if texts else None)
    text = by_id(_without_node(whole), units)
    return text.replace(f"mem={memory_text(whole.mem_mib)}", f"mem={whole.mem_mib}M", 1)


def used_tres(view: NodeView) -> str:
    """What jobs hold of it."""
    return by_id(_without_node(view.used))


def _reason(view: NodeView, ctx: Context) -> str | None:
    node = view.record
    if node is None or not node.reason:
        return None
    if node.reason_at is None:
        return f"Reason={node.reason}"
    who = ctx.user_name(node.reason_uid or 0)
    return f"Reason={node.reason} [{who}@{show_moment(node.reason_at, ctx)}]"


# ---------------------------------------------------------------- partitions


def show_partition(part: Partition, views: dict[str, NodeView], *, oneliner: bool = False) -> str:
    """The record of a partition; elastic names that are not in use add no resources."""
    names = list(part_nodes(part))
    whole = _whole(names, views)
    weights = parse_weights(part.billing_weights)
    has = Tres(whole.cpu, whole.mem_mib, len(names), whole.gres)
    default = part.default_time
    lines = [
        f"PartitionName={part.name}",
        f"AllowGroups={groups(part)} {_accounts(part)} {qos_let_in(part)}",
        f"AllocNodes=ALL Default={_yes(part.default)} QoS={part.qos or 'N/A'}",
        f"DefaultTime={'NONE' if default is None else show_long(default)} "
        f"DisableRootJobs={_yes(part.disable_root_jobs)} "
        f"ExclusiveUser={_yes(part.exclusive_user)} ExclusiveTopo=NO GraceTime={part.grace_time} "
        f"Hidden={_yes(part.hidden)}",
        f"MaxNodes={part.max_nodes or 'UNLIMITED'} MaxTime={show_long(part.max_time)} "
        f"MinNodes={part.min_nodes} LLN=NO MaxCPUsPerNode={most_cpus(part)} "
        "MaxCPUsPerSocket=UNLIMITED",
        f"Nodes={fold(names)}",
        f"PriorityJobFactor={part.priority_job_factor} PriorityTier={part.priority_tier} "
        f"RootOnly={_yes(part.root_only)} ReqResv={_yes(part.req_resv)} "
        f"OverSubscribe={sharing(part)}",
        f"OverTimeLimit={over_time(part)} PreemptMode={preempt_mode(part)}",
        f"State={part.state} TotalCPUs={whole.cpu} TotalNodes={len(names)} "
        f"SelectTypeParameters=NONE",
        "JobDefaults=(null)",
        f"{_default_memory(part)} {most_memory(part)}",
        f"TRES={by_id(has, billing(has, weights))}",
        f"TRESBillingWeights={part.billing_weights}" if part.billing_weights else None,
    ]
    return _record(lines, oneliner=oneliner)


def _whole(names: list[NodeName], views: dict[str, NodeView]) -> Tres:
    whole = Tres()
    for name in names:
        whole = whole + (views[name].whole if name in views else Tres())
    return whole


def partition_tres(part: Partition, ctx: Context) -> str:
    """What its declared nodes have; elastic ones count as nodes only."""
    declared = {node.name: node.whole for node in ctx.site.nodes}
    names = list(part_nodes(part))
    whole = Tres()
    for name in names:
        whole = whole + declared.get(name, Tres())
    has = Tres(whole.cpu, whole.mem_mib, len(names), whole.gres)
    return by_id(has, billing(has, parse_weights(part.billing_weights)))


def _accounts(part: Partition) -> str:
    if part.deny_accounts:
        return f"DenyAccounts={','.join(part.deny_accounts)}"
    allowed = part.allow_accounts
    return f"AllowAccounts={'ALL' if allowed is None else ','.join(allowed)}"


def _default_memory(part: Partition) -> str:
    if part.def_mem_per_cpu_mib is None:
        return "DefMemPerNode=UNLIMITED"
    return f"DefMemPerCPU={part.def_mem_per_cpu_mib}"
