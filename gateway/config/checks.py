"""What has to agree between settings: names that are used exist, limits do not contradict."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from accounting.ids import OVERHEAD
from broker.model.spec import UNLIMITED
from gateway.config.accounts import Account, AssociationLimits, User
from gateway.config.book import book
from gateway.config.problems import Problem, near
from gateway.config.settings import Config, Node, Partition

Found = Iterator[Problem]
ALL_NODES = ("ALL",)
SHORTEST_TOKEN = 16
SHARING = ("YES", "FORCE")


def disagreements(config: Config) -> list[Problem]:
    """Everything that does not agree, in the order of the file's parts."""
    return [problem for check in CHECKS for problem in check(config)] or list(_book(config))


def _twice(path: str, names: Iterable[str]) -> Found:
    for name, times in Counter(names).items():
        if times > 1:
            yield Problem(path, name, f"declared {times} times", "names are unique")


def _unknown(path: str, names: Iterable[str], known: Sequence[str], *, kind: str) -> Found:
    for name in names:
        if name not in known:
            yield Problem(path, name, f"no such {kind}", near(name, known))


def account_names(config: Config) -> list[str]:
    """The accounts of the tree, root first."""
    return ["root", *(a.name for a in config.accounts if a.name != "root")]


def _unique(config: Config) -> Found:
    yield from _twice("nodes", (name for node in config.nodes for name in node.names))
    yield from _twice("partitions", (partition.name for partition in config.partitions))
    yield from _twice("accounts", (account.name for account in config.accounts))
    yield from _twice("users", (user.name for user in config.users))
    yield from _twice("qos", (qos.name for qos in config.qos))


def _passed_through(config: Config) -> Found:
    ours = {partition.name for partition in config.partitions}
    for name in config.passthrough.partitions if config.passthrough else ():
        if name in ours:
            yield Problem(
                "passthrough.partitions", name, "a partition of ours, too", "leave one of them out"
            )


def _node_shapes(config: Config) -> Found:
    for node in config.nodes:
        yield from _node_shape(node)
        yield from _boards(node)


def _node_shape(node: Node) -> Found:
    sockets, cpus = node.shape()
    cores = sockets * node.cores_per_socket
    if cpus not in {cores, cores * node.threads_per_core}:
        yield Problem(
            f"nodes[{node.names[0]}].cpus",
            str(cpus),
            f"not {sockets} x {node.cores_per_socket} x {node.threads_per_core}",
            "sockets x cores_per_socket (x threads_per_core), or leave cpus out",
        )
    if node.instance_type and node.usd_per_hour is not None:
        path = f"nodes[{node.names[0]}].usd_per_hour"
        yield Problem(path, str(node.usd_per_hour), "beside instance_type", "give one of them")


def _boards(node: Node) -> Found:
    sockets, _ = node.shape()
    if sockets % node.boards:
        path, hint = f"nodes[{node.names[0]}].boards", "a divisor of the sockets"
        yield Problem(path, str(node.boards), f"{sockets} sockets are not even on them", hint)


def _job_ids(config: Config) -> Found:
    if config.max_job_id <= config.first_job_id:
        hint = f"above first_job_id {config.first_job_id}"
        yield Problem("max_job_id", str(config.max_job_id), "leaves no job ids", hint)


def _default_partition(config: Config) -> Found:
    if not config.partitions:
        yield Problem("partitions", "", "none is declared", "at least one, or leave them out")
    default = [partition.name for partition in config.partitions if partition.default]
    if len(default) > 1:
        yield Problem("partitions", ", ".join(default), "all are the default", "default: true once")


def _partitions(config: Config) -> Found:
    for partition in config.partitions:
        path = f"partitions[{partition.name}]"
        yield from _partition_nodes(config, partition, path)
        yield from _partition_limits(partition, path)
        yield from _partition_sharing(partition, path)
        yield from _partition_access(config, partition, path)


def _partition_nodes(config: Config, partition: Partition, path: str) -> Found:
    declared = [name for node in config.nodes for name in node.names]
    if partition.nodes not in {None, ALL_NODES}:
        yield from _unknown(f"{path}.nodes", partition.nodes or (), declared, kind="node")
    if partition.elastic:
        prefix, most = partition.elastic.name_prefix, partition.elastic.max_nodes
        bought = {f"{prefix}{number}" for number in range(1, most + 1)}
        for name in sorted(bought.intersection(declared)):
            hint = "another name_prefix"
            yield Problem(f"{path}.elastic", name, "is the name of a declared node", hint)


def _partition_limits(partition: Partition, path: str) -> Found:
    longest, usual = partition.max_time, partition.default_time
    if usual is not None and longest != UNLIMITED and (usual == UNLIMITED or usual > longest):
        yield Problem(f"{path}.default_time", "", "longer than max_time", "at most max_time")
    if partition.max_nodes is not None and partition.min_nodes > partition.max_nodes:
        yield Problem(f"{path}.min_nodes", str(partition.min_nodes), "more than max_nodes")


def _partition_sharing(partition: Partition, path: str) -> Found:
    most, usual = partition.max_mem_per_cpu, partition.def_mem_per_cpu
    if most is not None and usual is not None and usual > most:
        yield Problem(f"{path}.def_mem_per_cpu", str(usual), "more than max_mem_per_cpu")
    if partition.oversubscribe in SHARING:
        hint = "NO or EXCLUSIVE; jobs that may crowd ask for fewer cpus, or --overcommit"
        why = "a cpu is rented for one job at a time"
        yield Problem(f"{path}.oversubscribe", partition.oversubscribe, why, hint)


def _partition_access(config: Config, partition: Partition, path: str) -> Found:
    accounts, qos = account_names(config), [qos.name for qos in config.qos]
    accounts.append(config.accounting.default_account)
    yield from _unknown(
        f"{path}.allow_accounts", partition.allow_accounts or (), accounts, kind="account"
    )
    yield from _unknown(f"{path}.deny_accounts", partition.deny_accounts, accounts, kind="account")
    yield from _unknown(f"{path}.allow_qos", partition.allow_qos or (), qos, kind="QOS")
    yield from _unknown(f"{path}.deny_qos", partition.deny_qos, qos, kind="QOS")
    yield from _unknown(f"{path}.qos", filter(None, [partition.qos]), qos, kind="QOS")


def _accounts(config: Config) -> Found:
    for account in config.accounts:
        path = f"accounts[{account.name}]"
        if account.name == OVERHEAD:
            yield Problem(path, "", "the name is kept for idle time", "another name")
        if account.name != "root":
            yield from _unknown(
                f"{path}.parent", [account.parent], account_names(config), kind="account"
            )
        yield from _association_qos(config, account, path)
    yield from _circles(config.accounts)


def _circles(accounts: Sequence[Account]) -> Found:
    parents = {account.name: account.parent for account in accounts if account.name != "root"}
    for start, parent in parents.items():
        above, steps = parent, 0
        while above in parents and above != start and steps < len(parents):
            above, steps = parents[above], steps + 1
        if above == start:
            yield Problem(f"accounts[{start}].parent", parent, "is below it", "cut the ring")


def _association_qos(config: Config, limits: AssociationLimits, path: str) -> Found:
    known = [qos.name for qos in config.qos]
    yield from _unknown(f"{path}.qos", limits.qos or (), known, kind="QOS")
    if limits.default_qos is None:
        return
    if limits.qos is None:
        yield from _unknown(f"{path}.default_qos", [limits.default_qos], known, kind="QOS")
    elif limits.default_qos not in limits.qos:
        hint = f"one of its qos: {', '.join(limits.qos)}"
        yield Problem(f"{path}.default_qos", limits.default_qos, "may not be used", hint)


def _users(config: Config) -> Found:
    for user in config.users:
        yield from _user(config, user, f"users[{user.name}]")


def _user(config: Config, user: User, path: str) -> Found:
    partitions = [partition.name for partition in config.partitions]
    own = [association.account for association in user.associations]
    yield from _unknown(
        f"{path}.default_account",
        filter(None, [user.default_account]),
        own,
        kind="account of this user",
    )
    places = [f"{a.account}/{a.partition or '*'}" for a in user.associations]
    yield from _twice(f"{path}.associations", places)
    for association in user.associations:
        place = f"{path}.associations[{association.account}]"
        yield from _unknown(place, [association.account], account_names(config), kind="account")
        yield from _unknown(
            place, filter(None, [association.partition]), partitions, kind="partition"
        )
        yield from _association_qos(config, association, place)


def _preemption(config: Config) -> Found:
    known = [qos.name for qos in config.qos]
    for qos in config.qos:
        yield from _unknown(f"qos[{qos.name}].preempt", qos.preempt, known, kind="QOS")
    owners = [(f"qos[{qos.name}]", qos.preempt_mode) for qos in config.qos]
    owners += [(f"partitions[{one.name}]", one.preempt_mode) for one in config.partitions]
    for place, mode in owners:
        if mode == "SUSPEND":
            why = "jobs are not suspended to make room"
            yield Problem(f"{place}.preempt_mode", mode, why, "REQUEUE or CANCEL")


def _book(config: Config) -> Found:
    """What only accounting knows, such as that names of accounts ignore case."""
    try:
        book(config)
    except ValueError as error:
        yield Problem("accounts", "", str(error))


def _tcp(config: Config) -> Found:
    token = config.http.token
    if config.http.port is not None and token is None:
        yield Problem("http.token", "", "missing", "a port needs one")
    if token is not None and len(token.get_secret_value()) < SHORTEST_TOKEN:
        yield Problem("http.token", "", "too short", f"at least {SHORTEST_TOKEN} characters")


def _push(config: Config) -> Found:
    """Who is to post needs to be told where, and each node only one way."""
    push, named = config.push, [part for part in config.partitions if part.reports == "push"]
    if named and push.url is None:
        path, hint = f"partitions[{named[0].name}].reports", "set push.url, or reports: ssh"
        yield Problem(path, "push", "push.url does not say where", hint)
    if (push.certificate is None) != (push.key is None):
        missing = "certificate" if push.certificate is None else "key"
        yield Problem(f"push.{missing}", "", "missing", "certificate and key go together")
    ways: dict[str, str] = {}
    for part in config.partitions:
        for nodes in _groups_of_nodes(config, part):
            if ways.setdefault(nodes, part.reports) != part.reports:
                path, hint = f"partitions[{part.name}].reports", "the same in each partition"
                yield Problem(path, part.reports, f"{nodes} report otherwise", hint)


def _groups_of_nodes(config: Config, partition: Partition) -> Iterator[str]:
    """Names of its declared nodes, and how those begin that are bought for it."""
    declared = [name for node in config.nodes for name in node.names]
    yield from declared if partition.nodes == ALL_NODES else partition.nodes or ()
    if partition.elastic:
        yield f"nodes {partition.elastic.name_prefix}N"


CHECKS: tuple[Callable[[Config], Found], ...] = (
    _unique,
    _job_ids,
    _node_shapes,
    _default_partition,
    _partitions,
    _accounts,
    _users,
    _preemption,
    _passed_through,
    _tcp,
    _push,
)
