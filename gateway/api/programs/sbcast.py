"""sbcast: a file of the job's user to every node of a job, by a step of srun's.

The command is told to become a shell that opens the file and runs srun, so that a file of any size
passes as input does; Slurm's own sends it past its steps and lists none.
"""

from accounting.ids import JobId
from broker.model.job import Job
from gateway.api.desk import Desk
from gateway.api.programs.early import early
from gateway.api.wire import Answer, Call
from sbatch_shim.grammar.errors import FAILURE, GrammarError, error_line
from sbatch_shim.grammar.parse import EARLY, Query, parse_query
from sbatch_shim.grammar.values import read_digits

PROGRAM = "sbcast"
NO_JOB = (
    "Need a job id to run this command.  Run from within a Slurm job or use the --jobid option."
)
UNKNOWN_JOB = "Slurm job ID {} lookup error: Invalid job id specified"
NO_FILES = 'Need two file names, have {} names\nTry "sbcast --help" for more information\n'
FULL_PATH = "Need full path for destination file: {}"
SHELL = "/bin/sh"
SENDS = r"""
if ! [ -r "$1" ] || [ -d "$1" ]; then
    why=$(cat -- "$1" 2>&1 >/dev/null); why=${why##*: }
    printf "sbcast: error: Can't open \`%s\`: %s\n" "$1" "${why:-Is a directory}" >&2
    exit 255
fi
file=$1 mode=$(stat -Lc %a -- "$1") time=$(stat -Lc %Y -- "$1")
shift
exec srun "$@" "$mode" "$time" < "$file"
"""
"""Where the command was typed: the file's name, then srun's arguments."""
TAKES = r"""
dest=$1 force=$2 keep=$3 mode=$4 time=$5
draft=$dest.sbcast.$$
if [ -e "$dest" ] && [ -z "$force" ]; then
    echo "sbcast: error: REQUEST_FILE_BCAST($SLURMD_NODENAME): File exists" >&2
    exit 17
fi
trap 'rm -f -- "$draft"' EXIT
umask 077
cat > "$draft" && chmod "$mode" "$draft" || exit 1
[ -z "$keep" ] || touch -d "@$time" -- "$draft"
mv -f -- "$draft" "$dest"
"""
"""On each node: the name there, whether to replace it, whether to keep its time, mode, time."""


async def sbcast(desk: Desk, call: Call) -> Answer:
    """The command; it ends as srun does, with the highest of the nodes' codes."""
    try:
        asked = parse_query(PROGRAM, call.argv, call.environ)
        first = next((one.opt.long for one in asked.said if one.opt.long in EARLY), None)
        if first:
            return early(PROGRAM, first, version=desk.site.version)
        if len(asked.operands) != 2:
            return Answer(err=NO_FILES.format(len(asked.operands)), code=FAILURE)
        return Answer(exec=_line(asked, _job(desk, asked, call.peer.uid)))
    except GrammarError as error:
        return Answer(err=error.stderr, code=error.code)


def _job(desk: Desk, asked: Query, uid: int) -> Job:
    """One that runs and is the caller's. Raises GrammarError."""
    text = (asked.given["jobid"].text or "") if "jobid" in asked.given else ""
    number = text.partition(".")[0].partition("+")[0]
    found = read_digits(number)
    if found is None:
        raise GrammarError(error_line(PROGRAM, NO_JOB), FAILURE)
    job = desk.snapshot().jobs.get(JobId(found))
    may = job is not None and uid in (0, job.owner.uid, *desk.site.admins)
    if job is None or not may or not job.shares or job.state.final:
        raise GrammarError(error_line(PROGRAM, UNKNOWN_JOB.format(number)), FAILURE)
    return job


def _line(asked: Query, job: Job) -> tuple[str, ...]:
    """What the command is to become. Raises GrammarError."""
    source, dest = asked.operands
    if not dest.startswith("/"):
        raise GrammarError(error_line(PROGRAM, FULL_PATH.format(dest)), FAILURE)
    nodes = str(len(job.shares))
    flags = [("x" if long in asked.given else "") for long in ("force", "preserve")]
    options = ("-Q", "--overlap", f"--jobid={job.id}", f"-N{nodes}", f"-n{nodes}", "-mcyclic")
    step = (f"-J{PROGRAM}", "--gres=none", "--mem=0", "--export=ALL", "-D/")
    takes = (SHELL, "-c", TAKES, PROGRAM, dest, *flags)
    return (SHELL, "-c", SENDS, PROGRAM, source, *options, *step, *takes)
