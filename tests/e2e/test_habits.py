"""Shell scripts of the kind that users of clusters have in their folders, on a real service."""

import shlex
import textwrap
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.agents import until
from tests.e2e.service import Ran, Service, script

pytestmark = pytest.mark.e2e


class Shell:
    """A user's shell in a folder of its own, the commands first on its PATH."""

    def __init__(self, served: Service, folder: Path) -> None:
        self.served = served
        self.folder = folder

    def run(self, lines: str, **variables: str) -> Ran:
        """What bash makes of the lines; they have to succeed."""
        path = {"PATH": f"{self.served.bin}:/usr/bin:/bin", "USER": self.served.user.name}
        words = ("-euo", "pipefail", "-c", textwrap.dedent(lines))
        ran = self.served.run("/bin/bash", *words, cwd=self.folder, env={**path, **variables})
        assert ran.code == 0, ran
        return ran

    def file(self, name: str, content: str = "") -> str:
        """Its text, as soon as it is there and has these words in it."""
        path = self.folder / name

        def there() -> str | None:
            text = path.read_text() if path.exists() else ""
            return text if text and content in text else None

        return until(there, f"{content!r} in {name}")


@pytest.fixture
def shell(served: Service, request: pytest.FixtureRequest) -> Iterator[Shell]:
    folder = served.work / request.node.originalname
    folder.mkdir(exist_ok=True)
    yield Shell(served, folder)
    served.run("scancel", "--me", "-Q")


def test_a_loop_chains_jobs_by_their_printed_ids(shell: Shell) -> None:
    told = shell.run(
        """
        last=
        for n in 1 2 3 4; do
          last=$(sbatch --parsable ${last:+--dependency=afterok:$last} --wrap "echo $n >> chain")
        done
        never=$(sbatch --parsable -d afternotok:$last --kill-on-invalid-dep=yes --wrap true)
        while [ -n "$(squeue -h -j $last,$never)" ]; do sleep 0.05; done
        sacct -X -n -P -o state -j $last -j $never
        """
    )
    assert [line.split()[0] for line in told.out.splitlines()] == ["COMPLETED", "CANCELLED"]
    assert shell.file("chain") == "1\n2\n3\n4\n"


def test_a_job_that_was_asked_too_much_for_runs_once_it_is_asked_less_for(shell: Shell) -> None:
    told = shell.run(
        """
        job=$(sbatch --parsable -H --wrap true)
        scontrol update job=$job MinMemoryNode=999999999
        scontrol release $job
        squeue -h -o '%r %Q' -j $job
        scontrol update job=$job MinMemoryNode=10
        while [ -n "$(squeue -h -j $job)" ]; do sleep 0.05; done
        sacct -X -n -P -o state -j $job
        sdiag --sort-by-time | grep -c REQUEST_SUBMIT_BATCH_JOB
        """
    )
    assert told.out.splitlines() == ["BadConstraints 0", "COMPLETED", "1"]


def test_a_here_document_is_filled_in_by_the_submitters_shell(shell: Shell) -> None:
    shell.run(
        r"""
        for rate in 0.1 0.2; do
        sbatch <<EOF
        #!/bin/bash
        #SBATCH -J rate_$rate
        #SBATCH -o logs/%x/%j.log
        echo "rate=$rate job=\$SLURM_JOB_NAME in \${PWD##*/}"
        EOF
        done
        """.replace("\n        ", "\n")
    )
    for rate in ("0.1", "0.2"):
        logs = shell.folder / "logs" / f"rate_{rate}"
        log = until(partial(_only_file_in, logs), logs)
        text = shell.file(str(log.relative_to(shell.folder)), "rate=")
        assert text == f"rate={rate} job=rate_{rate} in {shell.folder.name}\n"


def _only_file_in(folder: Path) -> Path | None:
    return next(folder.glob("*.log"), None)


def test_each_element_of_an_array_takes_its_line_of_a_list(shell: Shell) -> None:
    (shell.folder / "list").write_text("one\ntwo words\nthree\n")
    shell.run(
        """
        sbatch -W -Q -a 1-$(wc -l < list)%2 -o %a.out --wrap \
          'sed -n "${SLURM_ARRAY_TASK_ID}p" list'
        """
    )
    found = [shell.file(f"{number}.out") for number in (1, 2, 3)]
    assert found == ["one\n", "two words\n", "three\n"]


CHECKPOINTING = """\
#!/bin/bash
#SBATCH -J long -t 1 --signal=B:USR1@58 --requeue
#SBATCH -o long.out --open-mode=append
save() { echo "saved ${SLURM_RESTART_COUNT:-0}"; touch state; scontrol requeue $SLURM_JOB_ID; }
trap save USR1
[ -e state ] && { echo "resumed ${SLURM_RESTART_COUNT:-0}"; exit; }
echo fresh
sleep 50 & wait; wait
"""


def test_a_job_saves_at_its_warning_requeues_itself_and_resumes(shell: Shell) -> None:
    script(shell.folder, "long.sh", CHECKPOINTING)
    told = shell.run("sbatch --parsable long.sh").out.strip()
    job = int(told)
    until(lambda: shell.served.job(job).restarts, "the requeue")
    shell.served.wait(job, "COMPLETED")
    lines = [line for line in shell.file("long.out").splitlines() if "error: ***" not in line]
    assert lines == ["fresh", "saved 0", "resumed 1"]
    rows = shell.run(f"sacct -D -X -n -P -o State,ElapsedRaw,End -j {job}").out.splitlines()
    first, last = (row.split("|") for row in rows)
    assert (first[0], last[0]) == ("REQUEUED", "COMPLETED")
    assert int(first[1]) >= 1
    assert first[2] != "Unknown"


def test_a_script_submits_itself_again_with_another_value(shell: Shell) -> None:
    text = """\
    #!/bin/bash
    #SBATCH -o again.out --open-mode=append
    echo "round $N of $SLURM_JOB_NAME"
    [ $N -ge 3 ] || sbatch -Q -J again.sh --export=ALL,N=$((N + 1)) "$0"
    """
    script(shell.folder, "again.sh", textwrap.dedent(text))
    shell.run("N=1 sbatch again.sh")
    assert shell.file("again.out", "round 3") == "".join(
        f"round {number} of again.sh\n" for number in (1, 2, 3)
    )


EXPORTS = [
    ("ALL", "foo=yes bar=a b x="),
    ("NONE", "foo= bar= x="),
    ("NIL", "foo= bar= x="),
    ("FOO", "foo=yes bar= x="),
    ("FOO,X=1", "foo=yes bar= x=1"),
    ("ALL,X=a b", "foo=yes bar=a b x=a b"),
    ("X=1", "foo= bar= x=1"),
    ("ALL,FOO=other", "foo=other bar=a b x="),
]


def test_what_is_exported_is_what_was_asked_for(shell: Shell) -> None:
    echo = shlex.quote('echo "foo=$FOO bar=$BAR x=$X"; test -n "$SLURM_JOB_ID"')
    for number, (export, _) in enumerate(EXPORTS):
        words = f"sbatch -o {number}.out --export={shlex.quote(export)} --wrap {echo}"
        shell.run(words, FOO="yes", BAR="a b")
    found = [shell.file(f"{number}.out") for number in range(len(EXPORTS))]
    assert found == [f"{line}\n" for _, line in EXPORTS]


def test_masks_and_limits_of_the_submitting_shell_hold_in_the_job(shell: Shell) -> None:
    shell.run(
        """
        umask 027; ulimit -S -n 300; ulimit -S -c 0
        sbatch -Q -W -o limits.out --wrap 'umask; ulimit -S -n; ulimit -S -c; touch made'
        """
    )
    assert shell.file("limits.out") == "0027\n300\n0\n"
    modes = [(shell.folder / name).stat().st_mode & 0o777 for name in ("made", "limits.out")]
    assert modes == [0o640, 0o640]


def test_many_are_submitted_in_a_loop_listed_and_cancelled_by_name_and_state(shell: Shell) -> None:
    told = shell.run(
        """
        for n in $(seq 40); do sbatch -H -J loop --wrap "echo $n" > last; done
        sbatch -Q -J kept --wrap 'sleep 60'
        until squeue -h -n kept -t R | grep -q kept; do sleep 0.05; done
        squeue -h -u $USER -n loop -t PD -o %A | wc -l
        squeue -h -j $(squeue -h -n loop -o %A | paste -sd,) | wc -l
        scancel -n loop -t PENDING
        squeue -h --me -o %j
        scancel --name=kept
        """
    )
    assert told.out.split() == ["40", "40", "kept"]


def test_thousands_of_ids_are_asked_for_at_once(shell: Shell) -> None:
    told = shell.run(
        """
        job=$(sbatch --parsable -H --wrap true)
        ids=$(seq -s, 1 20000)
        sacct -X -n -o JobID -j $ids,$job | grep -c "^$job "
        squeue -h -o %A -j $ids,$job | grep -cx $job
        scancel $(seq 90000 92000) $job
        """
    )
    assert told.out.split() == ["1", "1"]


def test_the_end_of_a_job_is_the_end_of_sbatch_wait(shell: Shell) -> None:
    told = shell.run(
        """
        for code in 0 7; do
          if sbatch -W -Q --wrap "exit $code"; then echo 0; else echo $?; fi
        done
        id=$(sbatch --parsable --wrap "kill -9 \\$\\$")
        while [ -n "$(squeue -h -j $id)" ]; do sleep 0.05; done
        sacct -X -n -P -o State,ExitCode -j $id
        """
    )
    assert told.out.split() == ["0", "7", "FAILED|0:9"]


def test_a_prompt_takes_commands_until_it_is_left(shell: Shell) -> None:
    told = shell.run(
        r"""
        job=$(sbatch --parsable -H --wrap true)
        printf 'oneliner\nupdate job %s comment="two words" timelimit=7\n!!\nquit\n' $job |
          scontrol > typed
        printf 'show job %s\nfoo\n' $job | scontrol -o > shown || echo status=$?
        """
    )
    assert told.out == "status=1\n"
    assert told.err == "invalid keyword: foo\n"
    typed = shell.file("typed", "quit")
    assert typed.count("scontrol: ") == 4
    assert typed.startswith("scontrol: oneliner\nscontrol: update job ")
    shown = shell.file("shown", "foo")
    assert "TimeLimit=00:07:00" in shown
    assert "Comment=two words" in shown
