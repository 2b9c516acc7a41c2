"""How sbatch says what the controller refused: Slurm's lines and exit status (25.11)."""

from broker.model.errors import BadOption, OverLimit, SpzError
from sbatch_shim.grammar.errors import FAILURE, GrammarError, error_line
from sbatch_shim.grammar.values import read_digits

NOT_AVAILABLE = "Requested node configuration is not available"
BAD_ACCOUNT = "Invalid account or account/partition combination specified"
BAD_ARRAY = "Invalid job array specification"
BAD_DEPENDENCY = "Job dependency problem"
BAD_FEATURE = "Invalid feature specification"
BAD_GRES = "Invalid generic resource (gres) specification"
BAD_LICENSE = "Invalid license specification"
BAD_NICE = "Invalid --nice value"
BAD_NODE = "Invalid node name specified"
BAD_PARTITION = "Invalid partition name specified"
BAD_QOS = "Invalid qos specification"
BAD_TRES = "Invalid Trackable RESource (TRES) specification"
BAD_WCKEY = "Invalid wckey specification"
NO_NODES = "Node count specification invalid"
NO_REBOOT = "rebooting of nodes is only allowed for admins"
NOT_ALLOWED = "Access/permission denied"
NOT_SUPPORTED = "Requested operation not supported on this system"
NO_PREEMPTION = "Preemption is required but is disabled on this system"
TOO_LONG = "Pathname of a file, directory or other parameter too long"

FIRST_LINES = {
    "partition": "invalid partition specified: {}",
    "mem": "Memory specification can not be satisfied",
    "mincpus": "CPU count per node can not be satisfied",
    "sockets-per-node": "Socket, core and/or thread specification can not be satisfied",
    "tmp": "Temporary disk specification can not be satisfied",
    "reservation": "Problem using reservation",
}
"""Lines that come before the refusal of an option's value."""

REFUSED = {
    "sbatch": "Batch job submission failed",
    "salloc": "Job submit/allocate failed",
    "srun": "Unable to allocate resources",
}
"""What each program says before the controller's reason."""
REASONS = ("QOS", "Assoc", "Max")
"""How limits begin that Slurm names in a line of its own, by the reason of a job that waits."""


def exit_status(environ_text: str | None) -> int:
    """Of what the controller refuses: SLURM_EXIT_ERROR, else 1."""
    said = read_digits(environ_text or "")
    return FAILURE if said is None else said


def refused_lines(text: str, *, test_only: bool, program: str = "sbatch") -> str:
    """The line for a refusal by the controller: `--test-only` words it otherwise."""
    if test_only:
        return f"allocation failure: {text}\n"
    return error_line(program, f"{REFUSED[program]}: {text}")


def controller(text: str, *, test_only: bool, code: int, program: str = "sbatch") -> GrammarError:
    """A refusal that a real site's controller would make, made here."""
    return GrammarError(refused_lines(text, test_only=test_only, program=program), code)


def engine_lines(
    error: SpzError, *, test_only: bool, typed: str | None, program: str = "sbatch"
) -> str:
    """A refusal of the engine's; `typed` is the whole text of the option it is about."""
    option = error.option if isinstance(error, BadOption) else ""
    lines = ""
    if isinstance(error, OverLimit) and error.limit.startswith(REASONS):
        lines = error_line(program, error.limit)
    if option in FIRST_LINES and not test_only:
        lines = error_line(program, FIRST_LINES[option].format(typed or ""))
    lines += refused_lines(error.message, test_only=test_only, program=program)
    if error.hint and error.message == NOT_AVAILABLE:
        lines += error_line(program, error.hint)
    return lines
