"""sbcast: a file of the job's user to every node of a job, by a step of srun's.

The command is told to become a shell that opens the file and runs srun, so that a file of any size
passes as input does; Slurm's own sends it past its steps and lists none.
"""

import posixpath

from accounting.ids import JobId
from broker.model.job import Job
from gateway.api.desk import Desk
from gateway.api.programs.early import early
from gateway.api.wire import Answer, Call
from sbatch_shim.grammar.errors import FAILURE, GrammarError, error_line, failed
from sbatch_shim.grammar.parse import EARLY, Query, parse_query
from sbatch_shim.grammar.values import read_digits

PROGRAM = "sbcast"
NO_JOB = (
    "Need a job id to run this command.  Run from within a Slurm job or use the --jobid option."
)
UNKNOWN_JOB = "Slurm job ID {} lookup error: Invalid job id specified"
NO_FILES = 'Need two file names, have {} names\nTry "sbcast --help" for more information\n'
NO_FOLDER = "Target filename cannot be a directory."
NO_COMPRESSION = "Compression type '{}' unknown, disabling compression support."
COMPRESSIONS = ("", "lz4", "none", "zlib")
SHELL = "/bin/sh"
SENDS = r"""
if ! [ -r "$1" ] || [ -d "$1" ]; then
    why=$(cat -- "$1" 2>&1 >/dev/null); why=${why##*: }
    printf "sbcast: error: Can't open \`%s\`: %s\n" "$1" "${why:-Is a directory}" >&2
    exit 255
fi
file=$1 mode=$(stat -Lc %a -- "$1") time=$(stat -Lc %Y -- "$1")
path=$(readlink -f -- "$1") same=$(stat -Lc '%i %s %y %z' -- "$1")
shift
exec < "$file" 3>&1
code=$({ { srun "$@" "$mode" "$time" "$path" "$same" 2>&1 >&3 3>&-; echo $? >&4; } |
    sed '/^srun: error: .*: Exited with exit code [0-9]*$/d' >&2; } 4>&1)
exit "$code"
"""
"""Where the command was typed: the file's name, then srun's arguments. How its tasks ended is told
by the nodes' own lines.
"""
TAKES = r"""
dest=$1 force=$2 keep=$3 mode=$4 time=$5 path=$6 same=$7
draft=$dest.sbcast.$$
refuse() {
    echo "sbcast: error: REQUEST_FILE_BCAST($SLURMD_NODENAME): $1" >&2
    case $1 in
        "No such file or directory") exit 2 ;;
        "Permission denied") exit 13 ;;
        "File exists") exit 17 ;;
        "Not a directory") exit 20 ;;
        "Is a directory") exit 21 ;;
    esac
    exit 1
}
if [ -e "$dest" ] && [ -z "$force" ]; then refuse "File exists"; fi
if [ -d "$dest" ]; then refuse "Is a directory"; fi
trap 'rm -f -- "$draft"' EXIT
umask 077
why=$(LC_ALL=C touch -- "$draft" 2>&1) || refuse "${why##*: }"
if [ -f "$path" ] && [ "$(stat -Lc '%i %s %y %z' -- "$path")" = "$same" ]; then
    exec < "$path"
fi
cat > "$draft" && chmod "$mode" "$draft" || exit 1
[ -z "$keep" ] || touch -d "@$time" -- "$draft"
mv -f -- "$draft" "$dest"
"""
"""On each node: the name there, whether to replace it, whether to keep its time, mode, time; the
file's full path and what it is told by. Where it is seen there too, it is read there. What cannot
be written is told in Slurm's line, and ends with the number of that error (Slurm 25.11).
"""


async def sbcast(desk: Desk, call: Call) -> Answer:
    """The command; it ends as srun does, with the highest of the nodes' codes."""
    try:
        asked = parse_query(PROGRAM, call.argv, call.environ)
        first = next((one.opt.long for one in asked.said if one.opt.long in EARLY), None)
        if first:
            return early(PROGRAM, first, version=desk.site.version)
        if len(asked.operands) != 2:
            return Answer(err=NO_FILES.format(len(asked.operands)), code=FAILURE)
        job = _job(desk, asked, call.peer.uid)
        return Answer(err=_doubts(asked), exec=_line(asked, job, call.cwd))
    except GrammarError as error:
        return Answer(err=error.stderr, code=error.code)


def _job(desk: Desk, asked: Query, uid: int) -> Job:
    """One that runs and is the caller's. Raises GrammarError."""
    text = (asked.given["jobid"].text or "") if "jobid" in asked.given else ""
    number = text.partition(".")[0].partition("+")[0]
    found = read_digits(number)
    if found is None:
        raise failed(PROGRAM, NO_JOB)
    job = desk.snapshot().jobs.get(JobId(found))
    may = job is not None and uid in (0, job.owner.uid, *desk.site.admins)
    if job is None or not may or not job.shares or job.state.final:
        raise failed(PROGRAM, UNKNOWN_JOB.format(number))
    return job


def _doubts(asked: Query) -> str:
    kind = (asked.given["compress"].text or "") if "compress" in asked.given else ""
    return "" if kind in COMPRESSIONS else error_line(PROGRAM, NO_COMPRESSION.format(kind))


def _line(asked: Query, job: Job, cwd: str) -> tuple[str, ...]:
    """What the command is to become. Raises GrammarError."""
    source, dest = asked.operands
    if dest.endswith("/"):
        raise failed(PROGRAM, NO_FOLDER)
    dest = posixpath.join(cwd, dest)
    nodes = str(len(job.shares))
    flags = [("x" if long in asked.given else "") for long in ("force", "preserve")]
    options = ("-Q", "--overlap", f"--jobid={job.id}", f"-N{nodes}", f"-n{nodes}", "-mcyclic")
    step = (f"-J{PROGRAM}", "--gres=none", "--mem=0", "--export=ALL", "-D/")
    takes = (SHELL, "-c", TAKES, PROGRAM, dest, *flags)
    return (SHELL, "-c", SENDS, PROGRAM, source, *options, *step, *takes)
