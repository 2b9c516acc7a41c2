"""`--help` in Slurm's layout: names of values and texts where the tables of options have none.

What is said here in Slurm's own words is what scripts and people compare; the rest of a page is
made from the tables.
"""

# ruff: noqa: E501 - a row stays on one line

from collections.abc import Iterable
from dataclasses import dataclass, field
from textwrap import wrap

from gateway.api.programs.accounting_help import sacctmgr_text, sreport_text
from gateway.api.programs.scontrol_help import commands_text
from sbatch_shim.grammar.options import lookup
from sbatch_shim.grammar.table import NO, OLD, REQ, Opt

LAST = ("help", "usage")
WIDTH = 80


@dataclass(frozen=True, slots=True)
class Page:
    """A command's help: its first line, the title of its options, their rows that are told here.

    A row is an option's long name, what stands for its value, its text (a line each).
    """

    usage: str
    title: str = ""
    pad: int = 30
    rows: tuple[tuple[str, str, str], ...] = ()
    complete: bool = False
    """Whether the rows are all that is told."""
    hidden: tuple[str, ...] = field(default=("autocomplete",))
    tail: str = ""


# fmt: off
SBATCH = (
    ("array", "=indexes", "job array index values"),
    ("account", "=name", "charge job to specified account"),
    ("bb", "=<spec>", "burst buffer specifications"),
    ("bbf", "=<file_name>", "burst buffer specification file"),
    ("begin", "=time", "defer job until HH:MM MM/DD/YY"),
    ("comment", "=name", "arbitrary comment"),
    ("cpu-freq", "=min[-max[:gov]]", "requested cpu frequency (and governor)"),
    ("cpus-per-task", "=ncpus", "number of cpus required per task"),
    ("dependency", "=type:jobid[:time]", "defer job until condition on jobid is satisfied"),
    ("deadline", "=time", "remove the job if no ending possible before\nthis deadline (start > (deadline - time[-min]))"),
    ("delay-boot", "=mins", "delay boot for desired node features"),
    ("chdir", "=directory", "set working directory for batch script"),
    ("error", "=err", "file for batch script's standard error"),
    ("export", "[=names]", "specify environment variables to export"),
    ("export-file", "=file|fd", "specify environment variables file or file\ndescriptor to export"),
)
SCANCEL = (
    ("account", "=account", "act only on jobs charging this account"),
    ("admin-comment", "=comment", "set AdminComment on canceled jobs"),
    ("batch", "", "signal batch shell for specified job"),
    ("ctld", "", "send request directly to slurmctld"),
    ("cron", "", "cancel an scrontab job"),
    ("full", "", "signal batch shell and all steps for specified job"),
    ("hurry", "", "avoid burst buffer stage out"),
    ("interactive", "", "require response from user for each job"),
    ("clusters", "", "clusters to issue commands to.\nNOTE: SlurmDBD must be up."),
    ("name", "=job_name", "act only on jobs with this name"),
    ("partition", "=partition", "act only on jobs in this partition"),
    ("quiet", "", "disable warnings"),
    ("qos", "=qos", "act only on jobs with this quality of service"),
    ("reservation", "=reservation", "act only on jobs with this reservation"),
    ("sibling", "=cluster_name", "remove an active sibling job from a federated job"),
    ("signal", "=name | integer", "signal to send to job, default is SIGKILL"),
    ("state", "=states", "act only on jobs in this state.  Valid job\nstates are PENDING, RUNNING and SUSPENDED"),
    ("user", "=user_name", "act only on jobs of this user"),
    ("version", "", "output version information and exit"),
    ("verbose", "", "verbosity level"),
    ("nodelist", "", "act only on jobs on these nodes"),
    ("wckey", "=wckey", "act only on jobs with this workload\ncharactization key"),
)
SACCT = (
    ("allusers", "", "Display jobs for all users. By default, only the\ncurrent user's jobs are displayed.  If ran by user root\nthis is the default."),
    ("accounts", "", "Use this comma separated list of accounts to select jobs\nto display.  By default, all accounts are selected."),
    ("array", "", "Expand job arrays. Display array tasks on separate lines\ninstead of consolidating them to a single line."),
    ("brief", "", "Equivalent to '--format=jobstep,state,error'."),
    ("batch-script", "", "Print the script that was submitted with the job."),
)
# fmt: on

PARALLEL = "Parallel run options:"
PAGES = {
    "sbatch": Page(
        "sbatch [OPTIONS(0)...] [ : [OPTIONS(N)...]] script(0) [args(0)...]", PARALLEL, rows=SBATCH
    ),
    "salloc": Page(
        "salloc [OPTIONS(0)...] [ : [OPTIONS(N)...]] [command(0) [args(0)...]]", PARALLEL
    ),
    "srun": Page(
        "srun [OPTIONS(0)... [executable(0) [args(0)...]]] [ : [OPTIONS(N)...]] "
        "executable(N) [args(N)...]",
        PARALLEL,
    ),
    "scancel": Page(
        "scancel [OPTIONS] [job_id[_array_id][.step_id]]", "", 34, SCANCEL, complete=True
    ),
    "sattach": Page("sattach [options] <jobid.stepid>"),
    "sbcast": Page("sbcast [OPTIONS] SOURCE DEST"),
    "scontrol": Page("scontrol [<OPTION>] [<COMMAND>]", tail=commands_text()),
    "sacctmgr": Page("sacctmgr [<OPTION>] [<COMMAND>]", tail=sacctmgr_text()),
    "sreport": Page("sreport [<OPTION>] [<COMMAND>]", tail=sreport_text()),
    "seff": Page("seff [Options] <Jobid>"),
}


def page(program: str) -> str:
    """The text of `--help`."""
    if program == "sacct":
        return _sacct()
    told = PAGES.get(program, Page(f"{program} [OPTIONS]"))
    known = {row[0] for row in told.rows}
    options = [opt for opt in lookup(program).by_long.values() if not opt.same]
    by_long = {opt.long: opt for opt in options}
    rows = [_row(by_long[long], value, text, pad=told.pad) for long, value, text in told.rows]
    if not told.complete:
        rest = [opt for opt in options if opt.long not in {*known, *LAST, *told.hidden}]
        rows += [_row(opt, _value(opt), opt.help, pad=told.pad) for opt in rest]
    head = f"Usage: {told.usage}\n" + (f"\n{told.title}\n" if told.title else "")
    return head + "".join(rows) + "\nHelp options:\n" + _help(options, told.pad) + told.tail


def _help(options: Iterable[Opt], pad: int) -> str:
    """The options that ask for help, at the end."""
    texts = {"help": "show this help message", "usage": "display brief usage message"}
    found = {opt.long: opt for opt in options if opt.long in LAST}
    return "".join(_row(found[long], "", texts[long], pad=pad) for long in LAST if long in found)


def _value(opt: Opt) -> str:
    if opt.arg in (NO, OLD):
        return ""
    return "=value" if opt.arg == REQ else "[=value]"


def _row(opt: Opt, value: str, text: str, *, pad: int) -> str:
    """An option and its text, whose further lines stand below the first."""
    letter = f"-{opt.short}, " if opt.short and opt.long not in LAST else "    "
    words = f"  {letter}--{opt.long}{value}"
    if opt.long in LAST:
        words = f"  --{opt.long}"
    first = f"{words:<{pad}}" if len(words) < pad else f"{words} "
    return first + text.replace("\n", "\n" + " " * pad) + "\n"


def _sacct() -> str:
    """sacct puts each text below its option."""
    told = {long: text for long, _, text in SACCT}
    options = {opt.long: opt for opt in lookup("sacct").by_long.values() if not opt.same}
    order = [*told, *(long for long in options if long not in told and long != "autocomplete")]
    rows = (_below(options[long], told.get(long) or _said(options[long])) for long in order)
    return "sacct [<OPTION>]\n     Valid <OPTION> values are:\n" + "".join(rows)


def _said(opt: Opt) -> str:
    return "\n".join(wrap(f"{opt.help[:1].upper()}{opt.help[1:]}.", WIDTH - 19))


def _below(opt: Opt, text: str) -> str:
    letter = f"-{opt.short}, " if opt.short else ""
    gap = "\n" + " " * 19
    return f"     {letter}--{opt.long}:{gap}{text.replace(chr(10), gap)}\n"


SBATCH_USAGE = """\
Usage: sbatch [-N nnodes] [-n ntasks]
              [-c ncpus] [-r n] [-p partition] [--hold] [--parsable] [-t minutes]
              [-D path] [--no-kill] [--overcommit]
              [--input file] [--output file] [--error file]
              [--time-min=minutes] [--licenses=names] [--clusters=cluster_names]
              [--chdir=directory] [--oversubscribe] [-m dist] [-J jobname]
              [--verbose] [--gid=group] [--uid=user]
              [--contiguous] [--mincpus=n] [--mem=MB] [--tmp=MB] [-C list]
              [--account=name] [--dependency=type:jobid[+time]] [--comment=name]
              [--mail-type=type] [--mail-user=user] [--nice[=value]] [--wait]
              [--requeue[=expedite]] [--no-requeue] [--ntasks-per-node=n]
              [--propagate] [--nodefile=file] [--nodelist=hosts] [--exclude=hosts]
              [--network=type] [--mem-per-cpu=MB] [--qos=qos] [--gres=list]
              [--mem-bind=...] [--reservation=name] [--mcs-label=mcs]
              [--cpu-freq=min[-max[:gov]]] [--power=flags] [--gres-flags=opts]
              [--switches=max-switches{@max-time-to-wait}] [--reboot]
              [--core-spec=cores] [--thread-spec=threads]
              [--bb=burst_buffer_spec] [--bbf=burst_buffer_file]
              [--array=index_values] [--profile=...] [--ignore-pbs] [--spread-job]
              [--spread-segments]
              [--export[=names]] [--export-file=file|fd] [--delay-boot=mins]
              [--use-min-nodes]
              [--cpus-per-gpu=n] [--gpus=n] [--gpu-bind=...] [--gpu-freq=...]
              [--gpus-per-node=n] [--gpus-per-socket=n] [--gpus-per-task=n]
              [--mem-per-gpu=MB] [--tres-bind=...] [--tres-per-task=list]
              [--oom-kill-step[=0|1]]
              executable [args...]
"""


def usage(program: str) -> str:
    """The text of `--usage`."""
    if program == "sbatch":
        return SBATCH_USAGE
    told = PAGES.get(program, Page(f"{program} [OPTIONS]"))
    found = (opt for opt in lookup(program).by_long.values() if not opt.same)
    words = " ".join(f"[{_brief(opt)}]" for opt in found if opt.long != "autocomplete")
    head = f"Usage: {program} "
    lines = wrap(words, WIDTH - len(head), break_on_hyphens=False, break_long_words=False)
    tail = told.usage.rpartition("] ")[2] if "]" in told.usage else ""
    operand = [tail] if tail and "OPTION" not in tail else []
    return head + ("\n" + " " * len(head)).join([*lines, *operand]) + "\n"


def _brief(opt: Opt) -> str:
    return f"--{opt.long}{_value(opt)}"
