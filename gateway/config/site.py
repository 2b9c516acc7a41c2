"""The configuration as the broker sees it."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal

from accounting.order import Ranking
from accounting.reset import Period
from accounting.tres import GresCounts, Tres
from broker.model import site as broker
from broker.model.ids import NodeName
from broker.model.offer import BuyPolicy
from gateway.config import settings
from gateway.config.accounts import PrioritySettings
from gateway.config.aws import AwsSettings
from gateway.config.book import IdOf, book
from gateway.config.checks import ALL_NODES
from gateway.config.service import Ceiling

MINUTE = 60
ALSO = {"NO_NORMAL_ALL": tuple(f"NO_NORMAL_{one}" for one in ("ASSOC", "PART", "QOS", "TRES"))}
"""Flags of priority that stand for several."""
PriceOf = Callable[[str], int | None]
"""Micro-dollars an hour of an instance type; None where it is unpriced."""


def limits_of(ceiling: Ceiling) -> dict[str, int | None]:
    """What the whole site never goes beyond: machines, and micro-dollars an hour."""
    dollars = {
        "micro_usd_per_hour": ceiling.usd_per_hour,
        "account_micro_usd_per_hour": ceiling.account_usd_per_hour,
        "user_micro_usd_per_hour": ceiling.user_usd_per_hour,
    }
    known = {name: None if most is None else micro_usd(most) for name, most in dollars.items()}
    return {"nodes": ceiling.max_nodes, **known}


def micro_usd(dollars: Decimal) -> int:
    """Whole micro-dollars."""
    return int(dollars * 1_000_000)


def gres_text(counts: GresCounts) -> str:
    """Slurm's `Gres=`: each type with its count; a name alone where it has no types."""
    typed = {name.partition(":")[0] for name, _ in counts if ":" in name}
    return ",".join(f"{name}:{count}" for name, count in counts if name not in typed)


def site(
    config: settings.Config,
    *,
    service_uid: int,
    uid_of: IdOf,
    price_of: PriceOf,
    gid_of: IdOf = lambda _: None,
) -> broker.Site:
    """What deciding needs to know; `service_uid` is who runs the service."""
    known = book(config, uid_of=uid_of)
    made = broker.Site(
        cluster=config.cluster,
        version=config.slurm_version,
        first_job_id=config.first_job_id,
        max_job_id=config.max_job_id,
        max_job_count=config.max_job_count,
        max_array_size=config.max_array_size,
        over_time=config.over_time_limit * MINUTE,
        inactive_limit=config.inactive_limit,
        complete_wait=config.complete_wait,
        unkillable_timeout=config.unkillable_step_timeout,
        min_job_age=config.min_job_age,
        kill_wait=config.kill_wait,
        constrain_cores=config.constrain_cores,
        constrain_memory=config.constrain_memory,
        containers=config.containers or any(part.containers for part in config.partitions),
        kill_on_bad_exit=config.kill_on_bad_exit,
        wait_time=config.wait_time,
        prolog=config.prolog,
        epilog=config.epilog,
        tmpdir=config.tmpdir,
        gather_seconds=config.accounting.gather_seconds,
        job_requeue=config.job_requeue,
        enforce=config.enforce_part_limits,
        max_step_count=config.max_step_count,
        max_tasks_per_node=config.max_tasks_per_node,
        propagates_limits=config.propagate_resource_limits == "ALL",
        partitions=tuple(_partition(one, config, gid_of) for one in config.partitions),
        nodes=tuple(node for group in config.nodes for node in _nodes(group, price_of)),
        service_uid=service_uid or None,
        private=frozenset(config.private_data),
        keep_refused_jobs=config.keep_refused_jobs,
        max_bought=config.ceiling.max_nodes,
        pass_interval=config.scheduling.interval,
        max_job_test=config.scheduling.max_job_test,
        requeue_delay=config.scheduling.requeue_delay,
        preempts="" if config.preempt_type == "none" else config.preempt_type,
        priority_flags=config.priority.flags,
        ranking=ranking(config.priority),
    )
    return broker.with_book(made, known)


def ranking(priority: PrioritySettings) -> Ranking:
    """How waiting jobs are put in order."""
    weights = priority.weights
    pairs = (item.partition("=") for item in weights.tres.split(",") if item)
    return Ranking(
        multifactor=priority.type == "multifactor",
        age=weights.age,
        assoc=weights.assoc,
        fairshare=weights.fairshare,
        job_size=weights.job_size,
        partition=weights.partition,
        qos=weights.qos,
        tres={name.strip().lower(): float(value) for name, _, value in pairs},
        max_age=priority.max_age,
        half_life=priority.decay_half_life,
        period=priority.calc_period,
        favor_small=priority.favor_small,
        flags=frozenset(flag for word in priority.flags for flag in ALSO.get(word, (word,))),
        reset=Period(priority.usage_reset_period),
    )


def _nodes(group: settings.Node, price_of: PriceOf) -> list[broker.DeclaredNode]:
    sockets, cpus = group.shape()
    price = micro_usd(group.usd_per_hour or Decimal(0))
    if group.instance_type:
        price = price_of(group.instance_type) or 0
    return [
        broker.DeclaredNode(
            name=NodeName(name),
            whole=Tres(cpu=cpus, mem_mib=group.real_memory, node=1, gres=group.gres),
            features=group.features,
            weight=group.weight,
            sockets=sockets,
            cores_per_socket=group.cores_per_socket,
            threads_per_core=group.threads_per_core,
            gres_text=gres_text(group.gres),
            micro_usd_per_hour=price,
            instance_type=group.instance_type or "",
            tmp_disk_mib=group.tmp_disk,
            boards=group.boards,
        )
        for name in group.names
    ]


def _partition(
    partition: settings.Partition, config: settings.Config, gid_of: IdOf
) -> broker.Partition:
    declared = tuple(name for group in config.nodes for name in group.names)
    names = declared if partition.nodes == ALL_NODES else partition.nodes or ()
    late = partition.over_time_limit
    return broker.Partition(
        name=partition.name,
        default=partition.default,
        state=partition.state,
        nodes=tuple(map(NodeName, names)),
        elastic=_elastic(partition.elastic, config.aws) if partition.elastic else None,
        containers=config.containers if partition.containers is None else partition.containers,
        max_time=partition.max_time,
        default_time=partition.default_time,
        min_nodes=partition.min_nodes,
        max_nodes=partition.max_nodes,
        def_mem_per_cpu_mib=partition.def_mem_per_cpu,
        max_mem_per_cpu_mib=partition.max_mem_per_cpu,
        max_cpus_per_node=partition.max_cpus_per_node,
        over_time=None if late is None else late * MINUTE,
        allow_accounts=partition.allow_accounts,
        deny_accounts=partition.deny_accounts,
        allow_qos=_lower(partition.allow_qos),
        deny_qos=_lower(partition.deny_qos) or (),
        allow_groups=partition.allow_groups,
        allowed_gids=frozenset(_gids(partition.allow_groups or (), gid_of)),
        disable_root_jobs=partition.disable_root_jobs,
        req_resv=partition.req_resv,
        whole_nodes=partition.oversubscribe == "EXCLUSIVE",
        qos=partition.qos,
        root_only=partition.root_only,
        hidden=partition.hidden,
        billing_weights=partition.tres_billing_weights,
        priority_job_factor=partition.priority_job_factor,
        priority_tier=partition.priority_tier,
        preempt_mode=partition.preempt_mode.lower(),
        grace_time=partition.grace_time,
        exclusive_user=partition.exclusive_user,
        setup=partition.setup,
    )


def _lower(names: Sequence[str] | None) -> tuple[str, ...] | None:
    """Names of QOS ignore case."""
    return None if names is None else tuple(name.lower() for name in names)


def _gids(names: Sequence[str], gid_of: IdOf) -> Iterator[int]:
    """Groups that this host does not have let nobody in, as in Slurm."""
    return (gid for gid in map(gid_of, names) if gid is not None)


def _mounts(lines: Sequence[str]) -> str:
    """For /bin/sh; what is mounted already stays."""
    return "".join(_mount(*line.split()) for line in lines)


def _mount(source: str, target: str, *rest: str) -> str:
    there = shlex.join(["mountpoint", "-q", target])
    kind, *options = rest
    given = ["-o", options[0]] if options else []
    mount = shlex.join(["mount", "-t", kind, *given, source, target])
    return f"{shlex.join(['mkdir', '-p', target])}\n{there} || {mount}\n"


def _elastic(elastic: settings.Elastic, aws: AwsSettings) -> broker.Elastic:
    usual = aws.regions if elastic.provider == "ec2" else ()
    real = elastic.provider == "ec2"
    dearest = elastic.max_usd_per_hour
    return broker.Elastic(
        prefix=elastic.name_prefix,
        max_nodes=elastic.max_nodes,
        buy=BuyPolicy(
            provider=elastic.provider,
            arch=elastic.arch,
            burstable=elastic.burstable,
            opt_in_regions=elastic.opt_in_regions,
            gpu_fractions=elastic.gpu_fractions,
            spot=elastic.spot,
            regions=elastic.regions or usual,
            instance_types=elastic.instance_types,
            families=elastic.families,
            efa_percent=elastic.efa_percent if real and aws.efa else 0,
            reservations=elastic.reservations,
            memory_share_percent=elastic.memory_share,
            prefer=elastic.prefer,
            boot_seconds=elastic.boot_seconds,
            max_micro_usd_per_hour=None if dearest is None else micro_usd(dearest),
            root_gib=aws.root_gb if real else 0,
            public_address=real and aws.address == "public",
            old_days=elastic.old_days,
            spot_price_seconds=elastic.spot_price_seconds,
            features=tuple(word.lower() for word in elastic.features),
        ),
        idle_seconds=elastic.idle_seconds,
        boot_timeout=elastic.boot_timeout,
        share_users=elastic.share_users,
        setup=_mounts(elastic.mounts) if real else "",
    )
