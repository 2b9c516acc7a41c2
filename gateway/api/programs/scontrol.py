"""scontrol: what changes jobs and nodes; what it shows is made elsewhere."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from broker.model.commands import Command, Requeue, SetHold, Suspend, Target
from broker.model.errors import ACCESS_DENIED, Denied, SpzError
from broker.model.job import Hold, Job, JobState, Owner
from gateway.api.desk import Desk
from gateway.api.programs.early import early
from gateway.api.programs.scontrol_words import is_short_for
from gateway.api.programs.targets import Named, read_jobs
from gateway.api.wire import Answer, Call
from sbatch_shim.grammar.arrays import show_indexes
from sbatch_shim.grammar.errors import GrammarError, warning_line
from sbatch_shim.grammar.parse import EARLY, Query, parse_query

Program = Callable[[Desk, Call], Awaitable[Answer]]
FOREIGN = "Invalid user id"
"""What hold, release and update say about somebody else's job (25.11); requeue says denied."""
SUSPEND = "slurm_suspend error:"
TOO_FEW = "too few arguments for keyword:{}\n"
NO_JOB = "Invalid job id specified"
RECONFIGURE = "slurm_reconfigure error:{}\n"
AT_START = "{} is read at the start only: start the service again for it"
NOT_YET = "scontrol: error: {} is not supported by SkyPurza{}\n"


@dataclass(frozen=True, slots=True)
class Asked:
    """One scontrol command: who, the keyword, the words behind it."""

    desk: Desk
    call: Call
    by: Owner
    keyword: str
    words: tuple[str, ...]

    @property
    def admin(self) -> bool:
        return self.by.uid in self.desk.site.admins

    @property
    def operator(self) -> bool:
        """Whether they may change every job, and more of it than its owner."""
        return self.desk.site.operates(self.by.uid)

    def job(self, target: Target) -> Job | None:
        """The record that a target names first, as the snapshot has it."""
        jobs = self.desk.snapshot().jobs
        found = jobs.get(target.job)
        if target.tasks is None:
            return found
        elements = (job for job in jobs.values() if job.array and job.array.base == target.job)
        wanted = (job for job in elements if job.array and job.array.task in target.tasks)
        return next(wanted, found)


Verb = Callable[[Asked], Awaitable[Answer]]


def program(show: Program, verbs: Mapping[str, Verb]) -> Program:
    """The command; `show` answers everything that changes nothing, `verbs` the rest."""
    known = tuple(verbs)

    async def run(desk: Desk, call: Call) -> Answer:
        try:
            asked = parse_query("scontrol", call.argv, call.environ)
        except GrammarError as error:
            return Answer(err=error.stderr, code=error.code)
        first = next((one.opt.long for one in asked.said if one.opt.long in EARLY), None)
        if first:
            return early("scontrol", first, version=desk.site.version)
        keyword = full_keyword(asked.operands[0], known) if asked.operands else None
        if keyword is None:
            answer = await show(desk, call)
        else:
            answer = await _change(desk, call, verbs[keyword], query=asked, keyword=keyword)
        return replace(answer, err="") if "quiet" in asked.given else answer

    return run


def full_keyword(word: str, known: tuple[str, ...]) -> str | None:
    """The keyword that a word of three letters or more begins or is, in any case."""
    word = word.lower()
    if word in known:
        return word
    return next((one for one in known if is_short_for(word, one, 3)), None)


async def _change(desk: Desk, call: Call, verb: Verb, *, query: Query, keyword: str) -> Answer:
    barred = await desk.barred(call.peer.uid)
    if barred is not None:
        return Answer(err=f"{barred.message} ({barred.hint})\n", code=1)
    asked = Asked(
        desk=desk,
        call=call,
        by=await desk.owner(call.peer.uid),
        keyword=keyword,
        words=tuple(query.operands[1:]),
    )
    return await verb(asked)


def told(asked: Asked, error: SpzError, target: Target) -> str:
    """Slurm's words for what was refused: another user's job is an invalid user id."""
    job = asked.job(target)
    foreign = job is not None and job.owner.uid != asked.by.uid and not asked.operator
    if isinstance(error, Denied) and foreign and asked.keyword not in REQUEUES:
        return FOREIGN
    return error.message + (f" ({error.hint})" if error.hint else "")


def for_job(asked: Asked, one: Named, text: str) -> str:
    """A refusal as scontrol prints it: tasks of an array come first (22.05)."""
    job, tasks = asked.job(one.target), one.target.tasks
    place = job.array if job is not None else None
    if tasks is None and place is None:
        return f"{text} for job {one.text}\n"
    if tasks is None and place is not None:
        tasks = place.waiting if place.task is None else (place.task,)
    return f"{one.target.job}_{show_indexes(tasks or ())}: {text}\n"


def of_tasks(one: Named, fates: str | None) -> str:
    """What became of an array's tasks where it differs: success is told then too (22.05)."""
    return "".join(f"{one.target.job}_{line}\n" for line in (fates or "").splitlines())


def find_jobs(asked: Asked, words: tuple[str, ...]) -> tuple[list[Named], str]:
    """The jobs that words name, also as `jobname=NAME`; and what is wrong with them.

    A name that nothing bears is no error (22.05).
    """
    site = asked.desk.site
    named: list[Named] = []
    for word in words:
        key, equals, value = word.partition("=")
        if equals and key.lower() in NAME_KEYS:
            named += by_name(asked, value)
            continue
        more, wrong = read_jobs((value if equals else word,), site.max_array_size)
        named += [one._replace(target=one.own) for one in more]
        if wrong is not None:
            return named, f"{NO_JOB} for job {wrong}\n"
    return named, ""


NAME_KEYS = ("jobname", "name")


def by_name(asked: Asked, name: str) -> list[Named]:
    """Live jobs of that name which the caller may change."""
    jobs = asked.desk.snapshot().jobs.values()
    mine = (job for job in jobs if asked.operator or job.owner.uid == asked.by.uid)
    return [Named(str(j.id), Target(j.id)) for j in mine if j.spec.name == name and not j.over]


async def each_job(asked: Asked, make: Callable[[Named], Command | None]) -> Answer:
    """Asks the engine for every job named that is not left out; tells what was refused."""
    if not asked.words:
        return Answer(err=TOO_FEW.format(asked.keyword), code=1)
    named, wrong = find_jobs(asked, asked.words)
    lines, failed = [], bool(wrong)
    for one in named:
        command = make(one)
        if command is None:
            continue
        try:
            fates = await asked.desk.ask_once(asked.call, command)
        except SpzError as error:
            text = told(asked, error, one.target)
            lines.append(_refused(asked, one, text))
            failed = True
        else:
            lines.append(of_tasks(one, fates))
            failed = failed or bool(fates)
    if wrong:
        lines.append(wrong + _again(asked, NO_JOB))
    return Answer(err="".join(lines), code=int(failed))


def _refused(asked: Asked, one: Named, text: str) -> str:
    plain = f"{text} for job {one.text}\n"
    if asked.keyword not in (*HOLDS, *REQUEUES):
        return plain
    said = for_job(asked, one, text)
    return said + _again(asked, text) if said == plain else said


def _again(asked: Asked, text: str) -> str:
    """hold and release say it twice (25.11)."""
    return f"{SUSPEND}{text}\n" if asked.keyword in HOLDS else ""


async def hold(asked: Asked) -> Answer:
    """An administrator's hold of somebody else's job is one that only administrators release."""

    def make(one: Named) -> Command:
        job = asked.job(one.target)
        mine = job is not None and job.owner.uid == asked.by.uid
        admin = asked.operator and not mine and asked.keyword == "hold"
        return SetHold(target=one.alone, by=asked.by, hold=Hold.ADMIN if admin else Hold.USER)

    return await each_job(asked, make)


async def release(asked: Asked) -> Answer:
    return await each_job(asked, lambda one: SetHold(target=one.alone, by=asked.by, hold=None))


async def requeue(asked: Asked) -> Answer:
    """`requeue [incomplete] JOBS`: with the word none that has COMPLETED."""
    held, words = asked.keyword == "requeuehold", list(asked.words)
    unfinished = bool(words) and len(words) > 1 and is_short_for(words[0], INCOMPLETE, 2)
    if unfinished:
        del words[0]
    if held and len(words) > 1 and words[0].lower() == SPECIAL:
        return Answer(err=NOT_YET.format(f"requeuehold {words[0]}", ""), code=1)
    asked = replace(asked, words=tuple(words))

    def make(one: Named) -> Command | None:
        job = asked.job(one.target)
        if unfinished and job is not None and job.state is JobState.COMPLETED:
            return None
        return Requeue(target=one.target, by=asked.by, hold=held)

    return await each_job(asked, make)


INCOMPLETE, SPECIAL = "incomplete", "state=specialexit"


async def suspend(asked: Asked) -> Answer:
    """Operators only, as in Slurm."""
    if not asked.words:
        return Answer(err=TOO_FEW.format(asked.keyword), code=1)
    named, wrong = find_jobs(asked, asked.words)
    if not asked.operator and not wrong:
        denied = (f"{ACCESS_DENIED} for job {one.text}\n" for one in named)
        return Answer(err="".join(denied), code=1)
    resume = asked.keyword == "resume"
    return await each_job(asked, lambda one: Suspend(target=one.target, by=asked.by, resume=resume))


async def reconfigure(asked: Asked) -> Answer:
    """The configuration is read anew; one that cannot be used changes nothing."""
    if not asked.admin and asked.by.uid != asked.desk.site.service_uid:
        return Answer(err=RECONFIGURE.format("Invalid user id"), code=1)
    if asked.desk.reread is None:
        return Answer(err=NOT_YET.format("reconfigure", ""), code=1)
    try:
        later = await asked.desk.read(asked.desk.reread, asked.by)
    except SpzError as error:
        return Answer(err=RECONFIGURE.format(error.message), code=1)
    return Answer(err="".join(warning_line("scontrol", AT_START.format(name)) for name in later))


async def end_service(asked: Asked) -> Answer:
    """`shutdown`, `abort`: refused to all, as whoever keeps the service would start it again."""
    target = asked.words[0].lower() if asked.words else "slurmctld"
    if asked.keyword == "shutdown" and target not in DAEMONS:
        return Answer(err=f"invalid shutdown argument:{asked.words[0]}\n", code=1)
    if not asked.admin:
        return Answer(err=SHUTDOWN.format("Invalid user id"), code=1)
    return Answer(err=NOT_YET.format(asked.keyword, STOPPED_BY), code=1)


async def takeover(asked: Asked) -> Answer:
    """There is one controller, as where Slurm has no SlurmctldHost behind the first (22.05)."""
    for word in asked.words[:1]:
        return Answer(err=f"takeover: invalid backup controller index ({word})\n", code=1)
    return Answer(err=NOT_YET.format("takeover", ": there is no other controller"), code=1)


DAEMONS = ("slurmctld", "controller")
SHUTDOWN = "slurm_shutdown error:{}\n"
STOPPED_BY = ": `spz api stop`, or who started `spz serve`, ends the service"


HOLDS = ("hold", "uhold", "release")
REQUEUES = ("requeue", "requeuehold")
VERBS: Mapping[str, Verb] = {
    "hold": hold,
    "uhold": hold,
    "holdu": hold,
    "release": release,
    "requeue": requeue,
    "requeuehold": requeue,
    "suspend": suspend,
    "resume": suspend,
    "reconfigure": reconfigure,
    "abort": end_service,
    "shutdown": end_service,
    "takeover": takeover,
}
"""Keywords that change something, `update` aside."""
