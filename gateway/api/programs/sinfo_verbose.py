"""What sinfo says with -v: how it read its options, in the lines of 25.11, which go to stdout."""

from collections.abc import Mapping

from gateway.api.programs.reading import Options
from gateway.query.layout import Layout
from gateway.query.sinfo import BY_TEXT, Group

RULE = "-" * 29 + "\n"
NAMES = {
    "default": "partition:9 ,available:.5 ,time:.10 ,nodes:.6 ,statecompact:.6 ,nodelist:0",
    "long": "partition:9 ,available:.5 ,time:.10 ,size:.10 ,root:.4 ,oversubscribe:.8 ,groups:.10 "
    ",nodes:.6 ,statelong:.11 ,reservation:.11 ,nodelist:0",
    "summarize": "partition:9 ,available:.5 ,time:.10 ,nodeaiot:.16 ,nodelist:0",
    "Node": "nodelist:0 ,nodes:.6 ,partition:.9 ,statecompact:6",
    "Node long": "nodelist:0 ,nodes:.6 ,partition:.9 ,statelong:.11 ,cpus:4 ,socketcorethread:.8 "
    ",memory:.6 ,disk:.8 ,weight:.6 ,features:.8 ,reason:20",
    "list-reasons": "reason:20 ,user:9 ,timestamp:19 ,nodelist:0",
    "list-reasons long": "reason:20 ,userlong:12 ,timestamp:19 ,statecompact:6 ,nodelist:0",
}
"""The formats of its options as it names their columns."""
FIELDS: Mapping[str, tuple[str, ...]] = {
    "alloc_mem_flag  = ": ("AllocMem",),
    "avail_flag      = ": ("Available",),
    "comment_flag    = ": ("Comment",),
    "cpus_flag       = ": ("CPUs", "CPUsState"),
    "default_time_flag =": ("DefaultTime",),
    "disk_flag       = ": ("Disk",),
    "extra_flag      = ": ("Extra",),
    "features_flag   = ": ("Features",),
    "features_flag_act = ": ("features_act",),
    "groups_flag     = ": ("Groups",),
    "gres_flag       = ": ("Gres",),
    "gres_used_flag  = ": ("GresUsed",),
    "job_size_flag   = ": ("Size",),
    "max_time_flag   = ": ("Time",),
    "memory_flag     = ": ("Memory",),
    "partition_flag  = ": ("Partition", "PartitionName"),
    "port_flag       = ": ("Port",),
    "priority_job_factor_flag   = ": ("PriorityJobFactor",),
    "priority_tier_flag   = ": ("PriorityTier",),
    "reason_flag     = ": ("Reason",),
    "reason_timestamp_flag = ": ("TimeStamp",),
    "reason_user_flag = ": ("User", "UserLong"),
    "reservation_flag = ": (),
    "resv_name_flag   = ": ("Reservation",),
    "root_flag       = ": ("Root",),
    "oversubscribe_flag      = ": ("Share",),
    "state_flag      = ": ("StateCompact", "StateLong"),
    "statecomplete_flag = ": ("StateComplete",),
    "weight_flag     = ": ("Weight",),
}
"""Each line as it begins, and the columns of which one is shown where it says so."""
FILTERS = ("dead", "nodes", "partition", "responding", "states", "list-reasons")
BROKEN = "down,fail,drain"
"""The states of -R."""


def told(options: Options, layout: Layout[Group], usual: str | None) -> str:
    """The lines; empty without -v. `usual` names the format where it is one of sinfo's own."""
    loud = sum(one.opt.long == "verbose" for one in options.query.said)
    if not loud:
        return ""
    typed = options.text("Format") or options.text("format")
    of_partitions = usual is not None and not usual.startswith("list-reasons")
    values = {
        "dead        = ": _word(options.has("dead")),
        "exact       = ": str(int(options.has("exact"))),
        "filtering   = ": _word(any(map(options.has, FILTERS))),
        "format      = ": typed if usual is None else NAMES[usual],
        "iterate     = ": options.text("iterate") or "0",
        "long        = ": _word(options.has("long")),
        "no_header   = ": _word(options.has("noheader")),
        "node_field  = ": _word(usual is not None and usual.startswith("Node")),
        "node_format = ": _word(options.has("Node")),
        "nodes       = ": options.text("nodes") or "n/a",
        "part_field  = ": _word(of_partitions),
        "partition   = ": options.text("partition") or "n/a",
        "responding  = ": _word(options.has("responding")),
        "states      = ": _states(options),
        "sort        = ": options.text("sort") or "(null)",
        "summarize   = ": _word(options.has("summarize")),
        "verbose     = ": str(loud),
    }
    lines = [f"{head}{value}\n" for head, value in values.items()]
    return "".join([RULE, *lines, RULE, *_flags(options, layout), RULE, "\n"])


def _states(options: Options) -> str:
    return options.text("states") or (BROKEN if options.has("list-reasons") else "(null)")


def _flags(options: Options, layout: Layout[Group]) -> list[str]:
    shown = {BY_TEXT[get].long for get in layout.values if get in BY_TEXT}
    every = options.has("all") or options.has("partition")
    found = {head: not shown.isdisjoint(names) for head, names in FIELDS.items()}
    found["reservation_flag = "] = options.has("reservation")
    return [
        f"{head}{_word(flag)}\n" for head, flag in {"all_flag        = ": every, **found}.items()
    ]


def _word(flag: bool) -> str:
    return "true" if flag else "false"
