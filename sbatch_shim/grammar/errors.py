"""What a command says when its words cannot be taken."""

OPTION_ERROR = 255
"""Exit status of sbatch, salloc and srun for an option or a value they cannot read."""
FAILURE = 1
"""Exit status of every other refusal."""


class GrammarError(Exception):
    """Ends a command: the complete text for standard error and the exit status."""

    def __init__(self, stderr: str, code: int) -> None:
        super().__init__(stderr)
        self.stderr = stderr
        self.code = code


def error_line(program: str, text: str) -> str:
    """A line as Slurm logs an error."""
    return f"{program}: error: {text}\n"


def warning_line(program: str, text: str) -> str:
    """A line as Slurm 25.11 logs a warning."""
    return f"{program}: warning: {text}\n"


def invalid(program: str, text: str) -> GrammarError:
    """An option whose value cannot be read."""
    return GrammarError(error_line(program, text), OPTION_ERROR)


def failed(program: str, text: str) -> GrammarError:
    """A refusal that Slurm ends with 1, as for counts that are no numbers."""
    return GrammarError(error_line(program, text), FAILURE)


def fatal(program: str, text: str) -> GrammarError:
    """A refusal that Slurm calls fatal."""
    return GrammarError(f"{program}: fatal: {text}\n", FAILURE)


def try_help(program: str, text: str, code: int) -> GrammarError:
    """getopt's complaint and where to look."""
    help_line = f'Try "{program} --help" for more information\n'
    return GrammarError(f"{program}: {text}\n{help_line}", code)
