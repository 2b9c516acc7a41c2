"""What the components of a heterogeneous job have of each other's options."""

from collections.abc import Mapping, Sequence

from sbatch_shim.grammar.parse import COMMAND_LINE, Given

MAIL = ("mail-type", "mail-user")
"""Of the first component alone."""
OWN_OF_COMPONENT = frozenset(
    (
        "bb",
        "constraint",
        "contiguous",
        "core-spec",
        "cores-per-socket",
        "cpus-per-gpu",
        "cpu-freq",
        "cpus-per-task",
        "distribution",
        "exclusive",
        "extra-node-info",
        "gpu-bind",
        "gpu-freq",
        "gpus",
        "gpus-per-node",
        "gpus-per-socket",
        "gpus-per-task",
        "gres",
        "gres-flags",
        "hint",
        "licenses",
        *MAIL,
        "mem-bind",
        "mem-per-cpu",
        "mem-per-gpu",
        "mincpus",
        "network",
        "nodefile",
        "nodelist",
        "nodes",
        "ntasks",
        "ntasks-per-core",
        "ntasks-per-gpu",
        "ntasks-per-node",
        "ntasks-per-socket",
        "ntasks-per-tres",
        "overcommit",
        "oversubscribe",
        "partition",
        "resv-ports",
        "segment",
        "sockets-per-node",
        "spread-job",
        "switches",
        "thread-spec",
        "threads-per-core",
        "tmp",
        "tres-bind",
        "tres-per-task",
    )
)
"""Options that each component of a heterogeneous job gives for itself.

Of others it has what it says, else what the one before it said; the first, which has none before
it, what the command line said last of any (22.05, whose table of options is also 25.11's).
"""


def with_shared(parts: Sequence[Mapping[str, Given]]) -> list[Mapping[str, Given]]:
    """Each component's options with what it has of the others'."""
    found: list[Mapping[str, Given]] = []
    shared: dict[str, Given] = {}
    for part in parts:
        shared |= {long: said for long, said in part.items() if said.source == COMMAND_LINE}
    shared = {long: said for long, said in shared.items() if long not in OWN_OF_COMPONENT}
    for part in parts:
        shared |= {long: said for long, said in part.items() if long not in OWN_OF_COMPONENT}
        found.append(shared | {k: v for k, v in part.items() if part is parts[0] or k not in MAIL})
    return found
