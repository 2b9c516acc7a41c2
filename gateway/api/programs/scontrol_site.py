"""scontrol's words about itself and the controller: mostly Slurm's answers to what cannot be.

What SkyPurza has no part of is refused by its name and with the way out.
"""

from os import strerror

from accounting.ids import JobId
from broker.model.spec import UNLIMITED
from gateway.api.errors import NUMBERS
from gateway.api.programs.early import TOO_MANY, early
from gateway.api.programs.hostprocs import processes
from gateway.api.programs.reading import NO_CLUSTER, fail
from gateway.api.programs.scontrol_show import TOO_FEW, Asked, Keywords, View
from gateway.api.wire import Answer
from gateway.query.moments import show_moment
from gateway.query.nodes import node_views
from gateway.query.shownode import node_address
from sbatch_shim.grammar.hostlist import HostlistError, expand
from sbatch_shim.grammar.values import read_digits

ONE_NEEDED = "missing argument for keyword:{}\n"
NOT_OURS = "scontrol: error: {} is not supported by SkyPurza: {}\n"
DENIED = "Permission denied"
DEBUG_LEVELS = (
    *("quiet", "fatal", "error", "info", "verbose"),
    *("debug", "debug2", "debug3", "debug4", "debug5"),
)
BY_TEXT = {number: text for text, number in NUMBERS.items()}
FIRST_OF_SLURM = 1000
"""Error numbers below are the system's."""


def _session(name: str) -> View:
    """A word that changes how a prompt goes on; alone on a command line it changes nothing."""

    async def view(asked: Asked) -> Answer:
        if asked.words and name not in ANY_NUMBER:
            raise fail(TOO_MANY.format(name))
        return Answer()

    return view


ANY_NUMBER = ("all", "hide")
SESSION = ("all", "hide", "details", "exit", "oneliner", "quiet", "quit", "verbose")


async def _help(asked: Asked) -> Answer:
    return early("scontrol", "help", version=asked.snap.site.version)


async def _cluster(asked: Asked) -> Answer:
    """There is one, and it is ours."""
    for name in asked.words[:1]:
        if name != asked.snap.site.cluster:
            raise fail(NO_CLUSTER.format("scontrol", name))
    return Answer()


async def _error_text(asked: Asked) -> Answer:
    """`errnumstr NUMBER`."""
    if len(asked.words) != 1:
        raise fail("one arguments required for keyword:errnumstr\n")
    number = read_digits(asked.words[0])
    if number is None:
        raise fail("numeric arguments required for keyword:errnumstr\n")
    known = BY_TEXT.get(number)
    if known is None and number < FIRST_OF_SLURM:
        known = strerror(number)
    return Answer(out=f"{known or f'Unknown error {number}'}\n")


async def _pid_info(asked: Asked) -> Answer:
    """`pidinfo PID`: which job of this host a process belongs to, and how long it may run."""
    if not asked.words:
        raise fail(ONE_NEEDED.format("pidinfo"))
    jobs = {job.id: job for job in asked.snap.jobs.values() if job.shares}
    found = await asked.desk.read(processes, frozenset(jobs))
    mine = (one for one in found if str(one.pid) == asked.words[0])
    one = next(mine, None)
    if one is None:
        raise fail("Failed to locate job for requested pid\n")
    job = jobs[JobId(one.job)]
    if job.time_limit == UNLIMITED or job.started is None:
        return Answer(out=f"Slurm JobId={job.id} ends at Unknown\n")
    end = job.started + int(job.time_limit) + job.suspended_for
    told = f"Slurm JobId={job.id} ends at {show_moment(end, asked.ctx)}\n"
    return Answer(out=told + f"slurm_get_rem_time is {max(0, end - asked.ctx.now)}\n")


async def _addresses(asked: Asked) -> Answer:
    """`getaddrs NODES`: by which host each is reached; nothing listens there on a port of ours."""
    if not asked.words:
        raise fail(TOO_FEW.format("getaddrs"))
    views = {str(view.name): view for view in node_views(asked.snap)}
    try:
        names = expand(asked.words[0])
    except HostlistError:
        names = [asked.words[0]]
    unknown = [name for name in names if name not in views]
    if unknown:
        raise fail(f"scontrol: error: Unable to get addresses: Invalid node name: {unknown[0]}\n")
    return Answer(out="".join(f"{name}: {node_address(views[name])}:0\n" for name in names))


# ---------------------------------------------------------------- what the controller would do


def _is_admin(asked: Asked) -> bool:
    site, uid = asked.snap.site, asked.call.peer.uid
    return site.is_run_by(uid)


async def _debug_level(asked: Asked) -> Answer:
    if not asked.words:
        raise fail(TOO_FEW.format("setdebug"))
    level = asked.words[0].lower()
    number = read_digits(level)
    if level not in DEBUG_LEVELS and (number is None or number >= len(DEBUG_LEVELS)):
        raise fail(f"invalid debug level: {asked.words[0]}\n")
    if not _is_admin(asked):
        raise fail(f"slurm_set_debug_level error: {DENIED}\n")
    raise fail(NOT_OURS.format("setdebug", "log.level in the configuration says it"))


async def _debug_flags(asked: Asked) -> Answer:
    if not asked.words:
        raise fail(TOO_FEW.format("setdebugflags"))
    for word in asked.words:
        if word[:1] not in ("+", "-"):
            raise fail(f"invalid debug flag: {word}\nUsage: setdebugflags [+|-]NAME\n")
    if not _is_admin(asked):
        raise fail(f"slurm_set_debug_flags error: {DENIED}\n")
    raise fail(NOT_OURS.format("setdebugflags", "the log has levels, log.level, and no flags"))


async def _scheduler_log(asked: Asked) -> Answer:
    """As where Slurm has no SlurmSchedLogFile (22.05)."""
    if not asked.words:
        raise fail(TOO_FEW.format("schedloglevel"))
    if asked.words[0].lower() not in ("0", "1", "disable", "enable"):
        raise fail(f"invalid schedlog level: {asked.words[0]}\n")
    if not _is_admin(asked):
        raise fail(f"slurm_set_schedlog_level error: {DENIED}\n")
    raise fail("slurm_set_schedlog_level error: Requested operation is presently disabled\n")


async def _dampening(asked: Asked) -> Answer:
    if not asked.words:
        raise fail(TOO_FEW.format("fsdampeningfactor"))
    if not read_digits(asked.words[0]):
        return Answer(err=f"invalid dampening factor: {asked.words[0]}\n")
    if not _is_admin(asked):
        raise fail(f"slurm_set_fs_dampeningfactor error: {DENIED}\n")
    raise fail(NOT_OURS.format("fsdampeningfactor", "shares are those of the fair tree"))


async def _reboot(asked: Asked) -> Answer:
    """As where Slurm has no RebootProgram (22.05)."""
    words = [word for word in asked.words if word.lower() != "asap" and "=" not in word]
    if not words:
        raise fail("Missing node list. Specify ALL|<NodeList>\n")
    raise fail(
        "scontrol: error: RebootProgram isn't defined\n"
        "scontrol_reboot_nodes error: Unspecified error\n"
    )


async def _cancel_reboot(asked: Asked) -> Answer:
    """No node waits for one."""
    if not asked.words:
        raise fail(ONE_NEEDED.format("cancel_reboot"))
    wrong = "Invalid node state specified" if _is_admin(asked) else "Invalid user id"
    raise fail(f"slurm_update error: {wrong}\n")


async def _token(asked: Asked) -> Answer:
    """As where Slurm has no auth/jwt (22.05): there is no slurmrestd to show it to."""
    for word in asked.words:
        if word.partition("=")[0].lower() not in {"lifespan", "username"}:
            raise fail(f"Invalid option: `{word}`\n")
    raise fail("Error fetching token\n")


async def _nothing(_: Asked) -> Answer:
    """What Slurm shows where no such plugin is."""
    return Answer()


WORDS: Keywords = {
    **{name: (3, _session(name)) for name in SESSION},
    "cancel_reboot": (8, _cancel_reboot),
    "clusters": (2, _cluster),
    "errnumstr": (2, _error_text),
    "fsdampeningfactor": (3, _dampening),
    "getaddrs": (6, _addresses),
    "help": (2, _help),
    "pidinfo": (3, _pid_info),
    "reboot_nodes": (3, _reboot),
    "schedloglevel": (3, _scheduler_log),
    "setdebug": (2, _debug_level),
    "setdebugflags": (9, _debug_flags),
    "token": (3, _token),
}
"""Least number of letters, and what it does."""
SHOWN: Keywords = {
    "bbstat": (2, _nothing),
    "burstbuffer": (2, _nothing),
    "dwstat": (2, _nothing),
}
"""Further things behind `show`."""
