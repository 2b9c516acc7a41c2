"""scontrol listpids, listjobs, liststeps, getent: what runs on this host."""

from broker.model.job import Job
from gateway.api.programs.hostprocs import Process, processes
from gateway.api.programs.reading import fail
from gateway.api.programs.scontrol_show import TOO_FEW, Asked, Keywords, jobs_of
from gateway.api.wire import Answer
from gateway.query.documents import values
from gateway.query.nodes import node_views
from gateway.query.refs import read_ref
from gateway.query.shape import number
from gateway.query.steps import live_steps


async def list_pids(asked: Asked) -> Answer:
    """`listpids [JOB[.STEP]]`: processes of steps on this host, told by their environment."""
    word = asked.words[0] if asked.words else None
    refs = read_ref(word) if word else None
    if word and refs is None:
        raise fail(f"Invalid job id {word}\n")
    jobs = [job for ref in refs for job in jobs_of(ref, asked.seen)] if refs else _running(asked)
    steps = {(job.id, step.id) for job, step in live_steps(jobs) if step.numbered}
    if refs and not steps:
        return Answer(err=f"There are no steps for job {refs[0].job} on node (null).\n")
    ids = frozenset(job.id for job in jobs)
    found = await asked.desk.read(processes, ids)
    step = refs[0].step if refs else None
    found = [one for one in found if step in {None, one.step}]
    if asked.by is not None:
        content = {"pids": [_pid_record(one) for one in found]}
        return Answer(out=values(content, asked.ctx, asker=asked.by))
    return Answer(out=PID_TOP + "".join(map(pid_line, found)))


NO_FOLDER = (
    "scontrol: error: Domain socket directory /var/spool/slurmd/{}: No such file or directory\n"
)
NO_DAEMONS = NO_FOLDER + "No slurmstepd's found on this node\n"
PID_TOP = f"{'PID':<8} {'JOBID':<8} {'STEPID':<8} {'LOCALID':<7} GLOBALID\n"


def pid_line(one: Process) -> str:
    """A row of listpids."""
    local = "-" if one.local is None else one.local
    rank = "-" if one.rank is None else one.rank
    return f"{one.pid:<8} {one.job:<8} {one.step:<8} {local:<7} {rank}\n"


def _pid_record(one: Process) -> dict[str, object]:
    return {
        "global_task_id": number(one.rank),
        "local_task_id": number(one.local),
        "job_id": one.job,
        "pid": one.pid,
        "step_id": one.step,
    }


def _running(asked: Asked) -> list[Job]:
    mine = asked.call.peer.uid
    admin = mine in asked.snap.site.admins
    jobs = asked.snap.jobs.values()
    return [job for job in jobs if job.shares and (admin or job.owner.uid == mine)]


def _check_node(asked: Asked) -> None:
    """The word behind listjobs and liststeps is a node's name. Raises Finished for none of ours."""
    for word in asked.words[:1]:
        if word not in {str(view.name) for view in node_views(asked.snap)}:
            raise fail(NO_DAEMONS.format(word))


async def list_jobs(asked: Asked) -> Answer:
    """`listjobs`: jobs that hold nodes."""
    _check_node(asked)
    ids = sorted(job.id for job in _running(asked))
    if asked.by is not None:
        content = {"jobs": [{"job_id": number_} for number_ in ids]}
        return Answer(out=values(content, asked.ctx, asker=asked.by))
    return Answer(out="JOBID\n" + "".join(f"{number_:<8}\n" for number_ in ids))


async def list_steps(asked: Asked) -> Answer:
    """`liststeps`: steps that run."""
    _check_node(asked)
    pairs = [(job.id, step.id) for job, step in live_steps(_running(asked))]
    if asked.by is not None:
        content = {"steps": [{"job_id": job, "step_id": step} for job, step in pairs]}
        return Answer(out=values(content, asked.ctx, asker=asked.by))
    lines = [("JOBID", "STEPID"), *pairs]
    return Answer(out="".join(f"{job:<8} {step:<8}\n" for job, step in lines))


async def names_of_steps(asked: Asked) -> Answer:
    """`getent NODE`: users whom Slurm's own daemons answer for; none run here (25.11)."""
    if not asked.words:
        raise fail(TOO_FEW.format("getent"))
    return Answer(err=NO_FOLDER.format(asked.words[0]))


LISTS: Keywords = {
    "getent": (6, names_of_steps),
    "listjobs": (5, list_jobs),
    "listpids": (5, list_pids),
    "liststeps": (5, list_steps),
}
