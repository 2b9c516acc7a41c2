"""Partitions, nodes and lines of sinfo as slurmrestd has them (25.11.7)."""

from collections.abc import Callable
from typing import Any

from broker.model.site import Partition
from gateway.query import sinfo
from gateway.query.context import Context
from gateway.query.documents import Kind
from gateway.query.nodes import (
    SHOWN_FLAGS,
    NodeView,
    free_of,
    host_of,
    load_of,
    part_nodes,
    used_gres,
)
from gateway.query.shape import ANY, COUNT, TEXT, ZERO, Leaf, number, unset
from gateway.query.shownode import node_address, node_tres, partition_tres, used_tres
from gateway.query.sinfo import Group
from sbatch_shim.grammar.hostlist import fold
from sbatch_shim.grammar.values import UNLIMITED

HUNDREDTHS = 100
"""Loads are counted in hundredths."""


def states(view: NodeView) -> list[str]:
    """The base state, then the flags beside it."""
    return [view.base, *(flag.name or "" for flag in SHOWN_FLAGS if flag in view.flags)]


def minutes(seconds: int | str | None) -> dict[str, Any]:
    return number(seconds // 60 if isinstance(seconds, int) else seconds)


def words(names: tuple[str, ...] | None) -> str:
    return ",".join(names or ())


# ---------------------------------------------------------------- partitions


def _part(get: Callable[[Partition], Any]) -> Callable[[Partition, Context], Any]:
    return lambda part, _: get(part)


def _configured(part: Partition, _: Context) -> str:
    return fold(part_nodes(part))


def _total(part: Partition, _: Context) -> int:
    return len(list(part_nodes(part)))


def _cpus(part: Partition, ctx: Context) -> int:
    own = set(part.nodes)
    return sum(node.whole.cpu for node in ctx.site.nodes if node.name in own)


def _default_memory(part: Partition) -> int:
    """Per cpu with the highest bit set, as slurmctld keeps it."""
    return 0 if part.def_mem_per_cpu_mib is None else part.def_mem_per_cpu_mib | 1 << 63


def _per_cpu(part: Partition) -> dict[str, Any]:
    return number(part.def_mem_per_cpu_mib) if part.def_mem_per_cpu_mib is not None else unset()


def _shares(part: Partition) -> int:
    """Jobs that may be on a resource: 0 where each has its nodes alone."""
    return 0 if part.whole_nodes else 1


def _flags(part: Partition) -> list[str]:
    told = {
        "DEFAULT": part.default,
        "HIDDEN": part.hidden,
        "NO_ROOT": part.disable_root_jobs,
        "ROOT_ONLY": part.root_only,
        "REQ_RESV": part.req_resv,
        "EXCLUSIVE_USER": part.exclusive_user,
    }
    return [word for word, there in told.items() if there]


PARTITION = {
    "nodes": {
        "allowed_allocation": "",
        "configured": Leaf(_configured, TEXT),
        "total": Leaf(_total, COUNT),
    },
    "accounts": {
        "allowed": Leaf(_part(lambda part: words(part.allow_accounts)), TEXT),
        "deny": Leaf(_part(lambda part: words(part.deny_accounts)), TEXT),
    },
    "groups": {"allowed": Leaf(_part(lambda part: words(part.allow_groups)), TEXT)},
    "qos": {
        "allowed": Leaf(_part(lambda part: words(part.allow_qos)), TEXT),
        "deny": Leaf(_part(lambda part: words(part.deny_qos)), TEXT),
        "assigned": Leaf(_part(lambda part: part.qos or ""), TEXT),
    },
    "alternate": "",
    "tres": {
        "billing_weights": Leaf(_part(lambda part: part.billing_weights), TEXT),
        "configured": Leaf(partition_tres, TEXT),
    },
    "cluster": "",
    "select_type": [],
    "cpus": {"task_binding": 0, "total": Leaf(_cpus, COUNT)},
    "topology": "",
    "defaults": {
        "memory_per_cpu": Leaf(_part(_default_memory), COUNT),
        "partition_memory_per_cpu": Leaf(_part(_per_cpu), ANY),
        "partition_memory_per_node": unset(),
        "time": Leaf(_part(lambda part: minutes(part.default_time)), ANY),
        "job": "",
    },
    "grace_time": Leaf(_part(lambda part: part.grace_time), COUNT),
    "maximums": {
        "cpus_per_node": Leaf(_part(lambda part: number(part.max_cpus_per_node or UNLIMITED)), ANY),
        "cpus_per_socket": number(UNLIMITED),
        "memory_per_cpu": 0,
        "partition_memory_per_cpu": unset(),
        "partition_memory_per_node": unset(),
        "nodes": Leaf(_part(lambda part: number(part.max_nodes or UNLIMITED)), ANY),
        "shares": Leaf(_part(_shares), COUNT),
        "oversubscribe": {"jobs": Leaf(_part(_shares), COUNT), "flags": []},
        "time": Leaf(_part(lambda part: minutes(part.max_time)), ANY),
        "over_time_limit": Leaf(_part(lambda part: minutes(part.over_time)), ANY),
    },
    "minimums": {"nodes": Leaf(_part(lambda part: part.min_nodes), COUNT)},
    "name": Leaf(_part(lambda part: part.name), TEXT),
    "node_sets": "",
    "priority": {
        "job_factor": Leaf(_part(lambda part: part.priority_job_factor), COUNT),
        "tier": Leaf(_part(lambda part: part.priority_tier), COUNT),
    },
    "timeouts": {"resume": unset(), "suspend": unset()},
    "partition": {"state": Leaf(_part(lambda part: [part.state]), ANY)},
    "suspend_time": unset(),
    "flags": Leaf(_part(_flags), ANY),
}
"""Keys of versions that lack some are left out by PARTITION_KIND."""
PARTITION_SINCE = {"topology": 43, "select_type": 41, "flags": 45}

PARTITION_KIND = Kind("partitions", PARTITION, PARTITION_SINCE, {})

# ---------------------------------------------------------------- nodes


def _record(name: str, missing: Any) -> Callable[[NodeView, Context], Any]:
    return lambda view, _: getattr(view.record, name) if view.record else missing


def _machine(name: str) -> Callable[[NodeView, Context], str]:
    def value(view: NodeView, _: Context) -> str:
        machine = view.record.machine if view.record else None
        return str(getattr(machine, name)) if machine else ""

    return value


def _features(view: NodeView, _: Context) -> list[str]:
    return list(view.record.features) if view.record else []


def _gres_used(view: NodeView, ctx: Context) -> str:
    return _or_empty(used_gres(view))


def _reason(view: NodeView, _: Context) -> str:
    return view.record.reason if view.record else ""


def _reason_user(view: NodeView, ctx: Context) -> str:
    record = view.record
    known = record and record.reason and record.reason_uid is not None
    return ctx.user_name(record.reason_uid) if record and known else ""  # type: ignore[arg-type]


def _load(view: NodeView, ctx: Context) -> int:
    return round((load_of(view, ctx) or 0) * HUNDREDTHS)


def _free(view: NodeView, ctx: Context) -> dict[str, Any]:
    return number(free_of(view, ctx))


NODE = {
    "architecture": "x86_64",
    "burstbuffer_network_address": "",
    "boards": Leaf(_record("boards", 1), COUNT),
    "boot_time": Leaf(_record("booted", None), ZERO),
    "cert_flags": [],
    "cluster_name": "",
    "cores": Leaf(_record("cores_per_socket", 1), COUNT),
    "specialized_cores": 0,
    "cpu_binding": 0,
    "cpu_load": Leaf(_load, COUNT),
    "free_mem": Leaf(_free, ANY),
    "cpus": Leaf(lambda view, _: view.whole.cpu, COUNT),
    "effective_cpus": Leaf(lambda view, _: view.whole.cpu, COUNT),
    "specialized_cpus": "",
    "energy": {
        "average_watts": 0,
        "base_consumed_energy": 0,
        "consumed_energy": 0,
        "current_watts": number(0),
        "previous_consumed_energy": 0,
        "last_collected": 0,
    },
    "extra": "",
    "features": Leaf(_features, ANY),
    "active_features": Leaf(_features, ANY),
    "gpu_spec": "",
    "gres": Leaf(_record("gres_text", ""), TEXT),
    "gres_drained": "N/A",
    "gres_used": Leaf(_gres_used, TEXT),
    "instance_id": Leaf(_machine("id"), TEXT),
    "instance_type": Leaf(_machine("instance_type"), TEXT),
    "last_busy": Leaf(_record("idle_since", None), ZERO),
    "mcs_label": "",
    "specialized_memory": 0,
    "name": Leaf(lambda view, _: view.name, TEXT),
    "next_state_after_reboot": ["INVALID"],
    "address": Leaf(lambda view, _: node_address(view), TEXT),
    "hostname": Leaf(host_of, TEXT),
    "state": Leaf(lambda view, _: states(view), ANY),
    "operating_system": "Linux",
    "owner": "",
    "partitions": Leaf(lambda view, _: list(view.partitions), ANY),
    "port": 0,
    "real_memory": Leaf(lambda view, _: sinfo.real_memory(view), COUNT),
    "res_cores_per_gpu": 0,
    "comment": "",
    "reason": Leaf(_reason, TEXT),
    "reason_changed_at": Leaf(_record("reason_at", None), ZERO),
    "reason_set_by_user": Leaf(_reason_user, TEXT),
    "resume_after": number(0),
    "reservation": Leaf(lambda view, _: view.reservation, TEXT),
    "alloc_memory": Leaf(lambda view, _: view.used.mem_mib, COUNT),
    "alloc_cpus": Leaf(lambda view, _: view.used.cpu, COUNT),
    "alloc_idle_cpus": Leaf(lambda view, _: view.whole.cpu - view.used.cpu, COUNT),
    "tres_used": Leaf(lambda view, _: used_tres(view), TEXT),
    "tres_weighted": 0.0,
    "slurmd_start_time": Leaf(_record("booted", None), ZERO),
    "sockets": Leaf(_record("sockets", 1), COUNT),
    "temporary_disk": 0,
    "threads": Leaf(_record("threads_per_core", 1), COUNT),
    "tls_cert_last_renewal": number(0),
    "topology": "",
    "tres": Leaf(lambda view, ctx: node_tres(view, ctx.site), TEXT),
    "version": Leaf(lambda _, ctx: ctx.site.version, TEXT),
    "weight": Leaf(_record("weight", 1), COUNT),
}
NODE_SINCE = {
    "cert_flags": 43,
    "gpu_spec": 41,
    "res_cores_per_gpu": 41,
    "tls_cert_last_renewal": 43,
    "topology": 43,
}

NODE_KIND = Kind("nodes", NODE, NODE_SINCE, {})

# ---------------------------------------------------------------- sinfo


def _span(get: Callable[[NodeView], int]) -> Leaf[Group]:
    def span(group: Group, _: Context) -> dict[str, int]:
        values = [get(view) for view in group.nodes] or [0]
        return {"minimum": min(values), "maximum": max(values)}

    return Leaf(span, ANY)


def _of_record(name: str) -> Callable[[NodeView], int]:
    return lambda view: getattr(view.record, name) if view.record else 1


def _state(group: Group, _: Context) -> list[str]:
    return states(group.nodes[0]) if group.nodes else []


def _counts(group: Group, _: Context) -> dict[str, Any]:
    allocated, idle, other, total = sinfo.counted(group)
    return {
        "allocated": allocated,
        "idle": idle,
        "other": other,
        "total": total,
        "hostnames": [],
        "addresses": [],
        "nodes": [view.name for view in group.nodes],
    }


def _cpu_counts(group: Group, ctx: Context) -> dict[str, Any]:
    columns = list(zip(*[view.cpus() for view in group.nodes], strict=True))
    allocated, idle, other, total = map(sum, columns) if columns else (0, 0, 0, 0)
    counts = [view.whole.cpu for view in group.nodes] or [0]
    loads = [_load(view, ctx) for view in group.nodes] or [0]
    return {
        "allocated": allocated,
        "idle": idle,
        "other": other,
        "total": total,
        "minimum": min(counts),
        "maximum": max(counts),
        "load": {"minimum": min(loads), "maximum": max(loads)},
        "per_node": {"max": number(UNLIMITED)},
    }


def _memory(group: Group, ctx: Context) -> dict[str, Any]:
    sizes = [sinfo.real_memory(view) for view in group.nodes] or [0]
    free = [mib for view in group.nodes if (mib := free_of(view, ctx)) is not None]
    return {
        "minimum": min(sizes),
        "maximum": max(sizes),
        "free": {
            "minimum": number(min(free, default=None)),
            "maximum": number(max(free, default=None)),
        },
        "allocated": sum(view.used.mem_mib for view in group.nodes),
    }


def _or_empty(text: str) -> str:
    return "" if text in {"(null)", "none"} else text


def _shown(get: Callable[[Group, Context], str]) -> Leaf[Group]:
    return Leaf(lambda group, ctx: _or_empty(get(group, ctx)), TEXT)


def _why(group: Group, ctx: Context) -> dict[str, Any]:
    view = group.nodes[0] if group.nodes else None
    record = view.record if view else None
    if view is None or record is None or not record.reason:
        return {"description": "", "time": 0, "user": ""}
    return {
        "description": record.reason,
        "time": record.reason_at or 0,
        "user": _reason_user(view, ctx),
    }


def _of_partition(tree: Any) -> Any:
    """The partition's own tree, seen from a line of sinfo."""
    if isinstance(tree, Leaf):
        get = tree.get
        return Leaf(lambda group, ctx: get(group.part, ctx), tree.shape)
    if isinstance(tree, dict):
        return {key: _of_partition(below) for key, below in tree.items() if key != "flags"}
    return tree


SINFO = {
    "port": 0,
    "node": {"state": Leaf(_state, ANY)},
    "nodes": Leaf(_counts, ANY),
    "cpus": Leaf(_cpu_counts, ANY),
    "sockets": _span(_of_record("sockets")),
    "cores": _span(_of_record("cores_per_socket")),
    "threads": _span(_of_record("threads_per_core")),
    "disk": _span(lambda _: 0),
    "memory": Leaf(_memory, ANY),
    "weight": _span(_of_record("weight")),
    "features": {"total": _shown(sinfo.features), "active": _shown(sinfo.features)},
    "gres": {"total": _shown(sinfo.gres), "used": _shown(sinfo.gres_used)},
    "resource_spec": {"cpus": "", "memory": 0},
    "partition": _of_partition(PARTITION),
    "cluster": "",
    "comment": "",
    "extra": "",
    "reason": Leaf(_why, ANY),
    "reservation": "",
}

SINFO_KIND = Kind("sinfo", SINFO, {}, {})
