"""Every option of the submit commands: one that is served does something, the others are named."""

# ruff: noqa: E501 - a row stays on one line

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from accounting.ids import JobId
from accounting.tres import Tres
from broker.model.ids import NodeName
from broker.model.job import Job, Owner, Share
from broker.model.site import Site
from broker.model.spec import TaskSpec
from broker.schedule.demand import demand
from gateway.api.programs import srun as programs
from gateway.query.compatibility import options_of
from gateway.translate.sbatch import Early, Setting, Submission
from gateway.translate.sbatch import translate as read_sbatch
from gateway.translate.srun import Allocator, Request, allocation
from gateway.translate.srun import translate as read_srun
from gateway.translate.stepspec import step
from sbatch_shim.grammar.errors import GrammarError
from sbatch_shim.grammar.options import lookup
from sbatch_shim.grammar.table import ACCEPTED, CORE, FLAG, IGNORED, NO, OLD, Opt

from .conftest import NOW, GivenFile, Typed

COMMANDS = ("sbatch", "salloc", "srun")
# fmt: off
VALUES: Mapping[str, tuple[str, ...]] = {
    # Values of options, and what must stand beside them.
    "account": ("chem",), "array": ("1-3",), "begin": ("now+1hour",), "chdir": ("/tmp",),
    "clusters": ("nosuch",), "comment": ("text",), "constraint": ("spot",),
    "core-spec": ("1",), "cores-per-socket": ("2", "--sockets-per-node=1"), "cpu-bind": ("cores",),
    "cpu-freq": ("high",), "cpus-per-gpu": ("2", "--gpus=1"), "deadline": ("now+10days",),
    "delay-boot": ("5",), "dependency": ("singleton",), "distribution": ("cyclic",),
    "exclude": ("ec2-1",), "export": ("NIL",), "export-file": ("vars",), "extra": ("text",),
    "extra-node-info": ("1:2",), "gid": ("alice",), "gpus": ("1",), "gpus-per-node": ("1",),
    "gpus-per-socket": ("1", "--sockets-per-node=1"), "gpus-per-task": ("1", "--ntasks=2"),
    "gres": ("gpu:1",), "het-group": ("0",), "hint": ("nomultithread",), "immediate": ("1",), "jobid": ("700001",),
    "kill-on-bad-exit": ("1",), "kill-on-invalid-dep": ("yes",), "licenses": ("nosuch",),
    "mail-type": ("END",), "mem": ("100",), "mem-bind": ("local",), "mem-per-cpu": ("100",),
    "mem-per-gpu": ("100", "--gpus=1"), "mincpus": ("2",), "mpi": ("list",), "nice": ("5",),
    "nodefile": ("nodes",), "nodelist": ("ec2-2",), "nodes": ("2",), "ntasks": ("2",),
    "ntasks-per-core": ("1",), "ntasks-per-gpu": ("2", "--gpus=1"), "ntasks-per-node": ("2",),
    "ntasks-per-socket": ("1",), "ntasks-per-tres": ("2", "--gpus=1"), "open-mode": ("append",),
    "oom-kill-step": ("1",), "partition": ("debug",), "prefer": ("spot",), "priority": ("5",),
    "propagate": ("NONE",), "qos": ("high",), "relative": ("1",), "reservation": ("nosuch",),
    "segment": ("1",), "signal": ("USR1",), "sockets-per-node": ("1",), "switches": ("1",),
    "thread-spec": ("1",), "threads": ("2",), "threads-per-core": ("1",), "time": ("7",),
    "time-min": ("1",), "tmp": ("100",), "tres-bind": ("gres/gpu:single:1",),
    "tres-per-task": ("cpu=2",), "uid": ("alice",), "use-min-nodes": ("", "--nodes=1-2"),
    "wait": ("5",), "wait-all-nodes": ("0",), "wrap": ("true",),
    "kill-command": ("TERM",), "multi-prog": ("", "--ntasks=1"), "output": ("file",),
}
"""Others get no value where they take none, else `x`."""
SHOWN = {("sbatch", "distribution"), ("salloc", "distribution"),
         *((c, long) for c in COMMANDS for long in ("extra", "no-kill"))}
"""A text that is kept and shown; what srun inside the job reads; what the listing itself says."""
BY_PROGRAM = ("disable-status", "het-group", "immediate", "jobid", "kill-command", "no-shell", "quiet",
              "quit-on-interrupt", "test-only", "verbose")
"""Options of srun and salloc that the programs themselves ask about."""
# fmt: on
SCRIPT = b"#!/bin/sh\n#PBS -N pbs\n"
FILES = {"job.sh": SCRIPT, "vars": b"A=1\0", "nodes": b"ec2-3\n", "prog": b"0 true\n"}
OWNER = Owner(0, 0, "root", "root", home="/root")


def words_of(opt: Opt, command: str) -> tuple[list[str], list[str]]:
    """What has to stand beside the option, and the option."""
    value, *beside = VALUES.get(opt.long, ("x",))
    bare = opt.arg in (NO, OLD) or not value
    return beside, [f"--{opt.long}" if bare else f"--{opt.long}={value}"]


def setting(site: Site) -> Setting:
    return Setting(site=site, now=NOW, zone=lambda _: 0, uid=0)


def typed(words: list[str]) -> Typed:
    files = {name: GivenFile(content) for name, content in FILES.items()}
    return Typed(tuple(words), files, {"HOME": "/root", "SLURM_JOB_ID": "700001"}, cwd="/root")


def bare(spec: TaskSpec, site: Site) -> tuple[object, ...]:
    """What the spec asks for, however it was typed."""
    plain = spec.model_copy(update={"options": (), "submit_line": "", "environment": None})
    return plain, demand(spec, site.default_partition)


def of_sbatch(site: Site, words: list[str]) -> object:
    """Everything that follows from the words, the listing of them aside."""
    script = [] if any(word.startswith("--wrap") for word in words) else ["job.sh"]
    try:
        made = read_sbatch(typed([*words, *script]), setting(site))
    except GrammarError as error:
        return error.stderr
    if isinstance(made, Early):
        return made
    contents = sorted(made.blobs.values())
    said = replace(made, spec=TaskSpec(name=""), blobs={}, stderr="")
    return bare(made.spec, site), contents, said, "sbatch: comm" in made.stderr or made.stderr


def of_srun(site: Site, words: list[str], program: Allocator) -> object:
    command = ["prog" if "--multi-prog" in words else "true"]
    try:
        made = read_srun(program, typed([*words, *command]), setting(site))
    except GrammarError as error:
        return error.stderr
    if isinstance(made, Early):
        return made
    return [_tried(made, site, what) for what in (_allocated, _stepped)]


def _tried(made: Request, site: Site, what: object) -> object:
    try:
        return what(made, site)  # type: ignore[operator]
    except GrammarError as error:
        return error.stderr


def _allocated(made: Request, site: Site) -> object:
    return bare(allocation(made), site), made.quiet, made.verbose


def _stepped(made: Request, site: Site) -> object:
    share = Share(NodeName("ec2-1"), 0, Tres(cpu=4, mem_mib=1000, node=1))
    job = Job(
        id=JobId(700001),
        spec=TaskSpec(name="job"),
        owner=OWNER,
        account="physics",
        qos="normal",
        partitions=("ec2",),
        submitted=NOW,
        time_limit=3600,
        want=Tres(),
        shares=(share,),
    )
    return step(made, job, (24, 80)).model_copy(update={"submit_line": ""}), made.blobs


def outcome(site: Site, command: str, words: list[str]) -> object:
    if command == "sbatch":
        return of_sbatch(site, words)
    return of_srun(site, words, "salloc" if command == "salloc" else "srun")


def rows(*classes: str) -> list[tuple[str, Opt]]:
    return [
        (command, opt)
        for command in COMMANDS
        for cls in classes
        for opt in options_of(command, cls)
    ]


@pytest.mark.parametrize(("command", "opt"), rows(CORE), ids=lambda it: getattr(it, "long", it))
def test_a_served_option_changes_what_is_asked_for_or_the_answer(
    site: Site, command: str, opt: Opt
) -> None:
    if (command, opt.long) in SHOWN or (command != "sbatch" and opt.long in BY_PROGRAM):
        return
    beside, words = words_of(opt, command)
    same = outcome(site, command, [*beside, *words]) == outcome(site, command, beside)
    assert not same


def test_the_programs_ask_about_the_options_that_are_theirs() -> None:
    folder = Path(programs.__file__).parent
    text = "".join(
        (folder / name).read_text()
        for name in ("srun.py", "salloc.py", "allocating.py", "../../translate/srun.py")
    )
    for long in BY_PROGRAM:
        assert f'"{long}"' in text, long


@pytest.mark.parametrize(("command", "opt"), rows(IGNORED), ids=lambda it: getattr(it, "long", it))
def test_an_option_without_effect_is_named_in_one_line(site: Site, command: str, opt: Opt) -> None:
    beside, words = words_of(opt, command)
    argv = [*beside, *words]
    try:
        if command == "sbatch":
            made = read_sbatch(typed([*argv, "--wrap=true"]), setting(site))
        else:
            program: Allocator = "salloc" if command == "salloc" else "srun"
            made = read_srun(program, typed([*argv, "true"]), setting(site))  # type: ignore[assignment]
    except GrammarError as refusal:
        assert refusal.stderr
        return
    assert isinstance(made, Submission | Request)
    named = [line for line in made.stderr.splitlines() if opt.long in line or "-S" in line]
    assert len(named) == 1, made.stderr


@pytest.mark.parametrize(
    ("words", "warned"),
    [
        (["--hint=multithread"], False),
        (["--hint=nomultithread"], True),
        (["--wait-all-nodes=1"], False),
        (["--oom-kill-step=0"], False),
        (["--gpu-bind=none"], False),
        (["--exclusive"], False),
        (["--exclusive=user"], True),
        (["--oversubscribe"], False),
    ],
)
def test_only_values_that_change_nothing_are_warned_of(
    site: Site, words: list[str], warned: bool
) -> None:
    made = read_sbatch(typed([*words, "--wrap=true"]), setting(site))
    assert isinstance(made, Submission)
    assert ("has no effect here" in made.stderr) is warned


def test_what_is_only_accepted_asks_for_what_happens_anyway() -> None:
    accepted = {opt.long for _, opt in rows(ACCEPTED)}
    assert accepted == {"interactive", "no-bell", "oversubscribe"}
    assert all(lookup("salloc").by_long[long].kind == FLAG for long in accepted - {"interactive"})


def test_autocomplete_lists_options_that_begin_so(site: Site) -> None:
    made = read_sbatch(typed(["--autocomplete=--mem", "job.sh"]), setting(site))
    assert made == Early("autocomplete", "--mem=\n--mem-bind=\n--mem-per-cpu=\n--mem-per-gpu=\n")
