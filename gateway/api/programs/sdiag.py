"""sdiag: how the service is doing, in slurmctld's form (25.11.7)."""

from collections import Counter

from broker.model.job import Job, JobState
from broker.world import Snapshot
from gateway.api.desk import Desk
from gateway.api.programs import structured
from gateway.api.programs.reading import (
    NOT_YET,
    cluster_line,
    fail,
    finishing,
    read_options,
    reader,
)
from gateway.api.wire import Answer, Call
from gateway.query.context import Context
from gateway.query.documents import values
from gateway.query.moments import headline
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
    if by is not None:
        return Answer(out=values({"statistics": _record(snap, ctx)}, ctx, asker=by))
    return Answer(out=_text(snap, ctx))


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
    now, since = _moment(ctx.now, ctx), _moment(snap.started_at, ctx)
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
        + f"\n\nMain schedule statistics (microseconds):\n\tQueue length: {_waiting(snap)}\n"
    )


def _waiting(snap: Snapshot) -> int:
    return sum(1 for job in snap.jobs.values() if job.state is JobState.PENDING)


def _moment(at: int, ctx: Context) -> str:
    return headline(Context(now=at, site=ctx.site, zone=ctx.zone))


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
