"""sbatch: a script and its options to a job, or to Slurm's refusal."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from accounting.ids import JobId
from broker.model.commands import StartEstimate, Submit, TestSubmit
from broker.model.errors import Denied, SpzError
from broker.model.job import Job, Owner
from broker.model.site import Site
from broker.ports import HistoryQuery
from gateway.api.desk import Desk, group_name
from gateway.api.programs.early import early
from gateway.api.programs.typed import setting
from gateway.api.wire import Answer, Call
from gateway.query.dollars import beside, usd
from gateway.translate.sbatch import Early, NeedFile, Setting, Submission, translate
from sbatch_shim.grammar.errors import FAILURE, GrammarError, error_line
from sbatch_shim.grammar.instants import Zone, show_instant

NO_FOLDER = "getcwd failed: No such file or directory"
SHORTEST_PAUSE = 0.05
LONGEST_PAUSE = 1.0
"""Seconds between two looks at a job that is waited for."""
MOST_LINES = 32
MOST_BYTES = 1 << 18
"""Lines that are remembered, and bytes of the script and environment of each at most."""


class Sbatch:
    """The command; what is submitted again within the second, as loops do, is read once."""

    def __init__(self) -> None:
        self._when: tuple[Site, int] | None = None
        self._read: dict[Hashable, Submission] = {}

    async def __call__(self, desk: Desk, call: Call) -> Answer:
        """Exit status 255 for words that can't be read, 1 for refusals, with --wait the job's."""
        if not call.cwd:
            return Answer(err=error_line("sbatch", NO_FOLDER), code=FAILURE)
        try:
            said = self._said(call, setting(desk, call))
        except NeedFile as need:
            return Answer(ask=need.path)
        except GrammarError as error:
            return Answer(err=error.stderr, code=error.code)
        if isinstance(said, Early):
            return _early(desk, said)
        try:
            return await _submit(desk, call, said)
        except SpzError as error:
            text, code = said.refused(error)
            if isinstance(error, Denied) and error.hint:
                text += error_line("sbatch", error.hint)
            return Answer(err=said.stderr + text, code=code)

    def _said(self, call: Call, setting: Setting) -> Submission | Early:
        """The same object for the same words at the same time: its spec is kept once, too.

        Raises GrammarError, NeedFile.
        """
        when = setting.site, setting.now
        if self._when is None or self._when[0] is not when[0] or self._when[1] != when[1]:
            self._when, self._read = when, {}
        words = call.argv, call.cwd, call.umask, call.limits, call.peer.uid
        key = words, tuple(call.environ.items()), tuple(call.files.items())
        known = self._read.get(key)
        if known is not None:
            return known
        said = translate(call, setting)
        if isinstance(said, Early):
            return said
        if len(self._read) < MOST_LINES and sum(map(len, said.blobs.values())) <= MOST_BYTES:
            self._read[key] = said
        return said


def _early(desk: Desk, said: Early) -> Answer:
    if said.text:
        return Answer(out=said.text)
    return early("sbatch", said.name, version=desk.site.version)


async def _submit(desk: Desk, call: Call, said: Submission) -> Answer:
    """Raises SpzError where the engine or the house refuses."""
    barred = await desk.barred(call.peer.uid)
    if barred is not None:
        raise barred
    owner = await _owner(desk, call, said)
    if said.test_only:
        estimate = await desk.ask(TestSubmit(spec=said.spec, owner=owner))
        return Answer(err=said.stderr + _estimated(estimate, desk.zone(call)))
    job: JobId = await desk.ask(
        Submit(
            spec=said.spec,
            owner=owner,
            request=call.request,
            blobs=said.blobs,
            more=said.more,
        )
    )
    rest = until_over(desk, job) if said.wait else None
    return Answer(out=said.said(job), err=said.stderr, rest=rest)


async def _owner(desk: Desk, call: Call, said: Submission) -> Owner:
    """The caller with the group it has now, or whom root named with --uid and --gid."""
    owner, gid = await desk.owner(call.peer.uid), call.peer.gid
    if said.uid is not None:
        uid = await desk.uid(said.uid)
        if uid is None:
            raise Denied("Invalid user id", hint=f"this host has no user {said.uid}")
        owner, gid = await desk.owner(uid), -1
    if said.gid is not None:
        known = await desk.read(desk.gids, said.gid)
        if known is None:
            raise Denied("Invalid group id", hint=f"this host has no group {said.gid}")
        gid = known
    if gid in (-1, owner.gid):
        return owner
    return replace(owner, gid=gid, group=await desk.read(group_name, gid))


def _estimated(estimate: StartEstimate, zone: Zone) -> str:
    """Slurm's line, and what it costs where that is anything."""
    cost, most = usd(estimate.micro_usd), usd(estimate.most_micro_usd)
    told = f"{cost} until its limit{beside(estimate.old_price)}, {most} at most, as budgets count"
    money = f"sbatch: it costs {told}\n" if estimate.micro_usd else ""
    return (
        f"sbatch: Job {estimate.job} to start at {show_instant(estimate.start, zone)} using "
        f"{estimate.cpus} processors on nodes {estimate.nodes} "
        f"in partition {estimate.partition}\n{money}"
    )


async def until_over(desk: Desk, job: JobId) -> Answer:
    """What `--wait` ends with: the highest exit status of the job's elements, 1 for a signal."""
    pause = SHORTEST_PAUSE
    records = _records(desk, job)
    while records and not all(record.over for record in records):
        await desk.pause(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
        records = _records(desk, job)
    past = await desk.read(_past(desk, job))
    return Answer(code=max(map(_status, [*records, *past]), default=0))


def _records(desk: Desk, job: JobId) -> Sequence[Job]:
    """The job, or all of its array that is in memory."""
    jobs = desk.snapshot().jobs
    one = jobs.get(job)
    if one is not None and one.array is None:
        return [one]
    return [record for record in jobs.values() if record.array and record.array.base == job]


def _past(desk: Desk, job: JobId) -> Callable[[], Sequence[Job]]:
    """What is no longer in memory: elements that ended long before the last one."""
    return lambda: list(desk.history.jobs(HistoryQuery(jobs=(job,))))


def _status(job: Job) -> int:
    return 1 if job.exit.signal else job.exit.code
