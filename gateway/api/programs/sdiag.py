"""sdiag: how the service is doing, in slurmctld's form (25.11.7)."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from broker.model.job import Job, JobState
from broker.world import Snapshot
from gateway.api.desk import Desk
from gateway.api.programs import structured
from gateway.api.programs.reading import (
    NOT_YET,
    Options,
    cluster_line,
    fail,
    finishing,
    read_options,
    reader,
)
from gateway.api.programs.scontrol_show import replace_names, user_names
from gateway.api.wire import Answer, Call
from gateway.observe.times import Histogram
from gateway.query.context import Context
from gateway.query.documents import values
from gateway.query.moments import show_date
from gateway.query.shape import number

NO_RESET = "slurm_reset_statistics: Access/permission denied\n"
RULE = "*" * 55 + "\n"


@finishing
async def sdiag(desk: Desk, call: Call) -> Answer:
    """The command."""
    options = read_options(desk, call)
    snap = desk.snapshot()
    if options.has("reset"):
        admin = call.peer.uid in snap.site.admins
        raise fail(NOT_YET.format("sdiag", "reset")) if admin else fail(NO_RESET, code=255)
    cluster_line(options, call, snap)
    ctx = reader(desk, call, snap, options=options)
    by = await structured.asker(desk, call, options)
    ctx = replace_names(ctx, await user_names(desk, {*desk.times.users}))
    if by is not None:
        record = _record(snap, ctx) | _spent(desk, ctx)
        return Answer(out=values({"statistics": record}, ctx, asker=by))
    return Answer(out=_text(snap, ctx) + _planned(desk, snap) + _asked(desk, ctx, _order(options)))


def counts(jobs: list[Job]) -> dict[str, int]:
    """Jobs by what became of them, arrays by their elements; ended ones while in memory."""
    found: Counter[str] = Counter()
    for job in jobs:
        many = len(job.array.waiting) or 1 if job.array and job.array.task is None else 1
        found["submitted"] += many
        found["started"] += many if job.started is not None else 0
        found[OUTCOMES.get(job.state, "failed" if job.state.final else "other")] += many
    names = ("submitted", "started", "completed", "canceled", "failed", "pending", "running")
    return {name: found[name] for name in names}


OUTCOMES = {
    JobState.PENDING: "pending",
    JobState.RUNNING: "running",
    JobState.COMPLETED: "completed",
    JobState.CANCELLED: "canceled",
}


def _text(snap: Snapshot, ctx: Context) -> str:
    now, since = show_date(ctx.now, ctx), show_date(snap.started_at, ctx)
    lines = [
        f"Jobs {name + ':':<11}{count}" for name, count in counts(list(snap.jobs.values())).items()
    ]
    return (
        f"{RULE}sdiag output at {now} ({ctx.now})\n"
        f"Data since      {since} ({snap.started_at})\n{RULE}"
        f"Server thread count:  1\nRPC queue enabled:    0\nAgent queue size:     0\n"
        f"Agent count:          0\nAgent thread count:   0\nDBD Agent queue size: 0\n\n"
        + "\n".join(lines[:5])
        + f"\n\nJob states ts:  {now} ({ctx.now})\n"
        + "\n".join(lines[5:])
        + "\n"
    )


def _planned(desk: Desk, snap: Snapshot) -> str:
    """What full passes of planning cost; there is no second kind behind them (backfill)."""
    cycles, minutes = desk.cycles, max(1, desk.now() - snap.started_at) / 60
    return (
        "\nMain schedule statistics (microseconds):\n"
        f"\tLast cycle:   {cycles.last}\n\tMax cycle:    {cycles.most}\n"
        f"\tTotal cycles: {cycles.count}\n\tMean cycle:   {cycles.total // (cycles.count or 1)}\n"
        f"\tCycles per minute: {int(cycles.count / minutes)}\n"
        f"\tLast queue length: {_waiting(snap)}\n"
    )


@dataclass(frozen=True, slots=True)
class _Line:
    """What came of one kind, or from one user: how often, and microseconds of all together."""

    name: str
    number: int
    count: int
    total: int

    @property
    def mean(self) -> int:
        return self.total // (self.count or 1)

    def record(self) -> dict[str, object]:
        times = {"total_time": self.total, "average_time": number(self.mean)}
        return {"count": self.count, **times}

    def text(self, width: int, digits: int) -> str:
        return (
            f"\t{self.name:<{width}}({self.number:>{digits}}) count:{self.count:<6} "
            f"ave_time:{self.mean:<6} total_time:{self.total}\n"
        )


Order = Callable[[_Line], int]
ORDERS: Mapping[str, Order] = {
    "sort-by-id": lambda line: line.number,
    "sort-by-time": lambda line: -line.total,
    "sort-by-time2": lambda line: -line.mean,
}


def _order(options: Options) -> Order:
    """The last that was asked for, or the most frequent first."""
    said = [one.opt.long for one in options.query.said if one.opt.long in ORDERS]
    return ORDERS[said[-1]] if said else lambda line: -line.count


def _asked(desk: Desk, ctx: Context, order: Order) -> str:
    return (
        "\nRemote Procedure Call statistics by message type\n"
        + "".join(line.text(40, 5) for line in sorted(_kinds(desk), key=order))
        + "\nRemote Procedure Call statistics by user\n"
        + "".join(line.text(16, 8) for line in sorted(_users(desk, ctx), key=order))
        + "\nPending RPC statistics\n\tNo pending RPCs\n"
    )


def _kinds(desk: Desk) -> list[_Line]:
    """Commands by the message to slurmctld that theirs would be."""
    known = desk.times.known.items()
    commands = ((name, seen) for name, seen in known if not name.startswith("/"))
    return [_line(*MESSAGES.get(name, (name.upper(), 0)), seen) for name, seen in commands]


def _users(desk: Desk, ctx: Context) -> list[_Line]:
    return [_line(ctx.user_name(uid), uid, seen) for uid, seen in desk.times.users.items()]


def _line(name: str, number: int, seen: Histogram) -> _Line:
    return _Line(name, number, seen.count, round(seen.seconds * 1_000_000))


MESSAGES: Mapping[str, tuple[str, int]] = {
    "sbatch": ("REQUEST_SUBMIT_BATCH_JOB", 4003),
    "scancel": ("REQUEST_KILL_JOB", 5032),
    "sdiag": ("REQUEST_STATS_INFO", 2035),
    "sinfo": ("REQUEST_NODE_INFO", 2007),
    "sprio": ("REQUEST_PRIORITY_FACTORS", 2026),
    "squeue": ("REQUEST_JOB_INFO", 2003),
    "sshare": ("REQUEST_SHARE_INFO", 2022),
}
"""Commands that are one message to slurmctld, with its number; others go by their own name."""


def _waiting(snap: Snapshot) -> int:
    return sum(1 for job in snap.jobs.values() if job.state is JobState.PENDING)


def _spent(desk: Desk, ctx: Context) -> dict[str, object]:
    """What planning and commands cost, in microseconds."""
    cycles = desk.cycles
    return {
        "schedule_cycle_last": cycles.last,
        "schedule_cycle_max": cycles.most,
        "schedule_cycle_total": cycles.count,
        "schedule_cycle_mean": cycles.total // (cycles.count or 1),
        "rpcs_by_message_type": [
            {"message_type": line.name, "type_id": line.number, **line.record()}
            for line in _kinds(desk)
        ],
        "rpcs_by_user": [
            {"user": line.name, "user_id": line.number, **line.record()}
            for line in _users(desk, ctx)
        ],
    }


def _record(snap: Snapshot, ctx: Context) -> dict[str, object]:
    found = {f"jobs_{name}": count for name, count in counts(list(snap.jobs.values())).items()}
    return {
        "server_thread_count": 1,
        "agent_queue_size": 0,
        "agent_count": 0,
        "agent_thread_count": 0,
        "dbd_agent_queue_size": 0,
        "req_time": number(ctx.now),
        "req_time_start": number(snap.started_at),
        "job_states_ts": number(ctx.now),
        **found,
        "schedule_queue_length": _waiting(snap),
    }
