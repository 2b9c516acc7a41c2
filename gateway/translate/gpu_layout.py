"""How GPUs that are asked for in several ways agree with one another, with tasks and with nodes.

They are the same GPUs: in all, on a node, on a socket, for a task. As gres_job_state_validate of
22.05 has it, in its order; 25.11 words one of its refusals otherwise.
"""

from dataclasses import dataclass, replace

from gateway.translate.gres import Complaint, Gpus
from gateway.translate.refusals import BAD_GRES

BEYOND_ALL = "Failed to ensure --gpus >= --gres=gpu/--gpus-per-node >= --gpus-per-socket"
BEYOND_NODE = "Failed to ensure --gpus >= --gpus-per-task"
FAILED = "Failed to validate job spec"
NO_EVEN_NODES = f"{FAILED}, --gpus is not multiple of --gres=gpu/--gpus-per-node"
OTHER_NODES = (
    f"{FAILED}. Based on --gpu and --gres=gpu/--gpus-per-node required nodes ({{}}) doesn't fall"
    " between min_nodes ({}) and max_nodes ({}) boundaries."
)
NO_EVEN_TASKS = f"{FAILED}, --gpus not multiple of --gpus-per-task"
OTHER_TASKS = (
    f"{FAILED}. Based on --gpus and --gpus-per-task number of requested tasks differ from"
    " -n/--ntasks."
)
NO_EVEN_SOCKETS = f"{FAILED}, --gres=gpu/--gpus-per-node not multiple of --gpus-per-socket."
OTHER_SOCKETS = (
    f"{FAILED}. Based on --gres=gpu/--gpus-per-node and --gpus-per-socket required number of"
    " sockets differ from --sockets-per-node."
)
NO_EVEN_NODE_TASKS = f"{FAILED}, --gres=gpu/--gpus-per-node not multiple of --gpus-per-task."
OTHER_NODE_TASKS = (
    f"{FAILED}. Based on --gres=gpu/--gpus-per-node and --gpus-per-task requested number of tasks"
    " per node differ from --ntasks-per-node."
)
NO_EVEN_SOCKET_TASKS = f"{FAILED}, --gpus-per-socket not multiple of --gpus-per-task."
OTHER_SOCKET_TASKS = (
    f"{FAILED}. Based on --gpus-per-socket and --gpus-per-task requested number of tasks per"
    " sockets differ from --ntasks-per-socket."
)
NO_EVEN_GPUS = f"{FAILED}, -n/--ntasks has to be a multiple of --ntasks-per-gpu."
FEWER_GPUS = f"{FAILED}, --gpus < -N"
UNBOUNDED = 0xFFFFFFFE
"""What is told of a most number of nodes that nobody set."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Nodes, tasks and sockets: as they were asked for, then as the GPUs settle them."""

    least: int | None
    most: int | None
    tasks: int | None = None
    tasks_per_node: int | None = None
    tasks_per_socket: int | None = None
    sockets: int | None = None


def must_nest(gpus: Gpus) -> None:
    """There are no more for a part than for what it is a part of. Raises Complaint."""
    if gpus.whole and max(gpus.node, gpus.socket, gpus.task) > gpus.whole:
        raise Complaint(BEYOND_ALL, BAD_GRES)
    if gpus.node and max(gpus.socket, gpus.task) > gpus.node:
        raise Complaint(BEYOND_NODE, BAD_GRES)


def settled(gpus: Gpus, asked: Layout, *, tasks_per_gpu: int | None) -> Layout:
    """What the GPUs make of it. Raises Complaint where it is not what was asked for."""
    for rule in RULES:
        asked = rule(gpus, asked)
    whole = gpus.whole
    if tasks_per_gpu and not (whole or gpus.node):
        asked, whole = _served_by_others(asked, tasks_per_gpu)
    elif tasks_per_gpu:
        asked = _each_served(gpus, asked, tasks_per_gpu)
    if whole and asked.least and whole < asked.least:
        raise Complaint(FEWER_GPUS, BAD_GRES)
    return asked


def _nodes_of_all(gpus: Gpus, asked: Layout) -> Layout:
    if not (gpus.whole and gpus.node):
        return asked
    nodes = _share(gpus.whole, gpus.node, NO_EVEN_NODES)
    least, most = asked.least or 1, UNBOUNDED if asked.most is None else asked.most
    if not least <= nodes <= most:
        raise Complaint(OTHER_NODES.format(nodes, least, most), BAD_GRES)
    return replace(asked, least=nodes, most=nodes)


def _nodes_of_sockets(gpus: Gpus, asked: Layout) -> Layout:
    """So many that each has the GPUs of its sockets; without an even number none is found."""
    node = gpus.socket * (asked.sockets or 1)
    if gpus.node or not (gpus.whole and node) or gpus.whole % node:
        return asked
    return replace(asked, least=gpus.whole // node, most=gpus.whole // node)


def _tasks_of_all(gpus: Gpus, asked: Layout) -> Layout:
    if not (gpus.whole and gpus.task):
        return asked
    tasks = _share(gpus.whole, gpus.task, NO_EVEN_TASKS)
    by_node = asked.tasks_per_node and asked.tasks_per_node * (asked.least or 1)
    _must_be(asked.tasks or by_node, tasks, OTHER_TASKS)
    return replace(asked, tasks=tasks)


def _sockets_of_node(gpus: Gpus, asked: Layout) -> Layout:
    if gpus.node and gpus.socket:
        _must_be(asked.sockets, _share(gpus.node, gpus.socket, NO_EVEN_SOCKETS), OTHER_SOCKETS)
    return asked


def _tasks_of_node(gpus: Gpus, asked: Layout) -> Layout:
    if not (gpus.node and gpus.task):
        return asked
    tasks = _share(gpus.node, gpus.task, NO_EVEN_NODE_TASKS)
    _must_be(asked.tasks_per_node, tasks, OTHER_NODE_TASKS)
    return _at_least(replace(asked, tasks_per_node=tasks), tasks)


def _tasks_of_socket(gpus: Gpus, asked: Layout) -> Layout:
    if not (gpus.socket and gpus.task):
        return asked
    tasks = _share(gpus.socket, gpus.task, NO_EVEN_SOCKET_TASKS)
    _must_be(asked.tasks_per_socket, tasks, OTHER_SOCKET_TASKS)
    return replace(asked, tasks_per_socket=tasks)


RULES = (
    _nodes_of_all,
    _nodes_of_sockets,
    _tasks_of_all,
    _sockets_of_node,
    _tasks_of_node,
    _tasks_of_socket,
)


def _each_served(gpus: Gpus, asked: Layout, tasks_per_gpu: int) -> Layout:
    """So many tasks for each GPU, or more where they are asked for."""
    if gpus.node:
        return _at_least(asked, gpus.node * tasks_per_gpu)
    return replace(asked, tasks=max(asked.tasks or 0, gpus.whole * tasks_per_gpu))


def _served_by_others(asked: Layout, tasks_per_gpu: int) -> tuple[Layout, int]:
    """GPUs follow from the tasks, or tasks from one GPU on each node."""
    if asked.tasks:
        return asked, _share(asked.tasks, tasks_per_gpu, NO_EVEN_GPUS)
    return (_at_least(asked, tasks_per_gpu), asked.least) if asked.least else (asked, 0)


def _at_least(asked: Layout, tasks_of_node: int) -> Layout:
    """With so many tasks on each of the nodes that are asked for."""
    return replace(asked, tasks=max(asked.tasks or 0, tasks_of_node * (asked.least or 1)))


def _share(count: int, part: int, uneven: str) -> int:
    if count % part:
        raise Complaint(uneven, BAD_GRES)
    return count // part


def _must_be(asked: int | None, needed: int, other: str) -> None:
    if asked and asked != needed:
        raise Complaint(other, BAD_GRES)
