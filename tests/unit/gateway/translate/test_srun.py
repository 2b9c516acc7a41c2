"""srun's and salloc's words to an allocation and its steps."""

# ruff: noqa: E501 - a row stays on one line

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from accounting.ids import JobId
from accounting.tres import Tres
from broker.model.ids import NodeName
from broker.model.job import Job, Owner, Share
from broker.model.site import Site
from broker.model.spec import CpuBind, Gres, SignalSpec, StepSpec, TaskSpec
from gateway.translate.environment import unpack
from gateway.translate.sbatch import Early, NeedFile, Setting
from gateway.translate.srun import Allocator, Request, allocation, translate
from gateway.translate.stepspec import step
from sbatch_shim.grammar.errors import GrammarError

from .conftest import NOW, UIDS, GivenFile, Typed

ALICE = Owner(2001, 2001, "alice", "alice", home="/home/alice")
IN_JOB = {"SLURM_JOB_ID": "700001", "PATH": "/bin"}


def read(
    site: Site,
    *argv: str,
    program: Allocator = "srun",
    environ: Mapping[str, str] | None = None,
    files: Mapping[str, bytes] | None = None,
) -> Request:
    given = {name: GivenFile(content) for name, content in (files or {}).items()}
    setting = Setting(site=site, now=NOW, zone=lambda _: 0, uid=UIDS["alice"])
    made = translate(program, Typed(argv, given, environ or {}), setting)
    assert isinstance(made, Request)
    return made


def job(*cpus: int) -> Job:
    """One that runs, with so many cpus on each of its nodes."""
    shares = tuple(
        Share(NodeName(f"ec2-{n}"), 0, Tres(cpu=count, mem_mib=1000, node=1))
        for n, count in enumerate(cpus, 1)
    )
    return Job(
        id=JobId(700001),
        spec=TaskSpec(name="job"),
        owner=ALICE,
        account="physics",
        qos="normal",
        partitions=("ec2",),
        submitted=NOW,
        time_limit=3600,
        want=Tres(),
        shares=shares,
    )


# fmt: off
STEPS: dict[str, tuple[tuple[str, ...], Mapping[str, str], int, Mapping[str, object]]] = {
    # argv, variables, cpus of the job, fields of the step
    "one task":          (("true",), {}, 4, {"tasks": 1, "name": "true", "interactive": True}),
    "tasks":             (("-n3", "true"), {}, 4, {"tasks": 3, "exact": False}),
    "tasks of the job":  (("true",), {"SLURM_NTASKS": "2"}, 4, {"tasks": 2}),
    "words win":         (("-n1", "true"), {"SLURM_NTASKS": "2"}, 4, {"tasks": 1}),
    "cpus say tasks":    (("-c", "2", "true"), {}, 4, {"tasks": 2, "cpus_per_task": 2, "exact": True}),
    "exclusive":         (("-n1", "--exclusive", "true"), {}, 4, {"exact": True}),
    "signal":            (("--signal=USR1@30", "true"), {}, 4, {"signal": SignalSpec(number=10, before=30, text="USR1@30")}),
    "cpu bind":          (("--cpu-bind=v,mask_cpu:0x3", "true"), {}, 4, {"cpu_bind": CpuBind(kind="mask_cpu", items=("3",), verbose=True)}),
    "cpu bind quietly":  (("--cpu-bind=quiet", "true"), {}, 4, {"cpu_bind": None}),
    "overlap":           (("--overlap", "true"), {}, 4, {"overlap": True}),
    "name of the job":   (("/bin/true",), {"SLURM_JOB_NAME": "job"}, 4, {"name": "true"}),
    "name":              (("-J", "nm", "true"), {"SLURM_JOB_NAME": "job"}, 4, {"name": "nm"}),
    "limit":             (("-t", "2", "true"), {}, 4, {"time_limit": 120}),
    "memory inherited":  (("true",), {"SLURM_MEM_PER_CPU": "100"}, 4, {"mem_per_cpu_mib": 100}),
    "memory said":       (("--mem=50", "true"), {"SLURM_MEM_PER_CPU": "100"}, 4, {"mem_per_node_mib": 50, "mem_per_cpu_mib": None}),
    "kill":              (("-K", "true"), {}, 4, {"kill_on_bad_exit": True}),
    "kill not":          (("-K0", "true"), {}, 4, {"kill_on_bad_exit": False}),
    "no gres":           (("--gres=none", "true"), {}, 4, {"gres": ()}),
    "all gres":          (("true",), {}, 4, {"gres": None}),
    "wait":              (("-W", "5", "-u", "-l", "true"), {}, 4, {"wait": 5, "unbuffered": True, "label": True}),
    "input of one task": (("-i", "1", "-n2", "cat"), {}, 4, {"input_rank": 1}),
}
# fmt: on


@pytest.mark.parametrize("what", STEPS)
def test_words_become_a_step_of_the_job_they_are_in(site: Site, what: str) -> None:
    argv, environ, cpus, fields = STEPS[what]
    made = step(read(site, *argv, environ={**IN_JOB, **environ}), job(cpus), None)
    assert {name: getattr(made, name) for name in fields} == dict(fields)


# fmt: off
NO_GRES: dict[str, tuple[str, str]] = {
    # option, what srun says
    "unknown":   ("--gres=bogus", "Invalid generic resource (gres) specification"),
    "no name":   ("--gres=:1", "Unable to create step for job 700001: Invalid Trackable RESource (TRES) specification"),
    "malformed": ("--gres=gpu:x:y:z", "Invalid Trackable RESource (TRES) specification"),
}
# fmt: on


@pytest.mark.parametrize("what", NO_GRES)
def test_srun_itself_tells_what_is_wrong_with_resources_of_a_step(site: Site, what: str) -> None:
    option, said = NO_GRES[what]
    with pytest.raises(GrammarError) as told:
        step(read(site, option, "true", environ=IN_JOB), job(4), None)
    assert told.value.stderr == f"srun: error: {said}\n"


# fmt: off
FILES: dict[str, tuple[tuple[str, ...], tuple[str | None, str | None, str | None]]] = {
    "all pass through": ((), (None, None, None)),
    "both in one":      (("-o", "a-%t"), (None, "a-%t", "a-%t")),
    "errors alone":     (("-e", "e"), (None, None, "e")),
    "each its own":     (("-o", "a", "-e", "e"), (None, "a", "e")),
    "none":             (("-i", "none", "-o", "none"), ("/dev/null", "/dev/null", "/dev/null")),
    "all":              (("-i", "all", "-o", "all"), (None, None, None)),
    "one task":         (("-o", "1"), (None, None, None)),
}
# fmt: on


@pytest.mark.parametrize("what", FILES)
def test_files_of_a_step_are_those_that_were_named(site: Site, what: str) -> None:
    argv, files = FILES[what]
    output = step(read(site, *argv, "a", environ=IN_JOB), job(1), None).output
    assert output is not None
    assert (output.stdin, output.stdout, output.stderr) == files
    assert output.shared_from == "/home/alice/work"


def variables(request: Request, made: StepSpec) -> dict[str, str]:
    assert made.environment is not None
    return unpack(request.blobs[made.environment])


# fmt: off
EXPORTS: dict[str, tuple[tuple[str, ...], Mapping[str, str], set[str]]] = {
    "all":       ((), {}, {"A", "PATH", "SLURM_JOB_ID"}),
    "none":      (("--export=NONE",), {}, {"SLURM_JOB_ID"}),
    "listed":    (("--export=B=1",), {}, {"B", "SLURM_JOB_ID"}),
    "inherited": ((), {"SLURM_EXPORT_ENV": "NONE"}, {"SLURM_JOB_ID", "SLURM_EXPORT_ENV"}),
    "undone":    (("--export=ALL",), {"SLURM_EXPORT_ENV": "NONE"}, {"A", "PATH", "SLURM_JOB_ID", "SLURM_EXPORT_ENV"}),
}
# fmt: on


@pytest.mark.parametrize("what", EXPORTS)
def test_variables_that_go_along(site: Site, what: str) -> None:
    argv, environ, names = EXPORTS[what]
    asked = read(site, *argv, "a", environ={**IN_JOB, "A": "1", **environ})
    assert set(variables(asked, step(asked, job(1), None))) == names


def test_how_tasks_are_spread_is_told_where_both_counts_are_known(site: Site) -> None:
    environ = {**IN_JOB, "SLURM_JOB_NUM_NODES": "1"}
    asked = read(site, "-n1", "a", environ=environ)
    assert variables(asked, step(asked, job(2), None))["SLURM_DISTRIBUTION"] == "cyclic"
    asked = read(site, "-n2", "a", environ=environ)
    assert variables(asked, step(asked, job(2), None))["SLURM_DISTRIBUTION"] == "block"
    asked = read(site, "a", environ=IN_JOB)
    assert "SLURM_DISTRIBUTION" not in variables(asked, step(asked, job(2), None))


def test_a_planes_size_is_told_alone_and_read_again(site: Site) -> None:
    asked = read(site, "-m", "plane=2", "a", environ=IN_JOB)
    told = variables(asked, step(asked, job(2), None))
    assert (told["SLURM_DISTRIBUTION"], told["SLURM_DIST_PLANESIZE"]) == ("plane", "2")
    assert step(read(site, "a", environ={**IN_JOB, **told}), job(2), None).distribution == "plane=2"


def test_what_a_site_says_of_failed_and_late_tasks_holds_where_srun_does_not(site: Site) -> None:
    strict = replace(site, kill_on_bad_exit=True, wait_time=30)
    made = step(read(strict, "a", environ=IN_JOB), job(1), None)
    assert (made.kill_on_bad_exit, made.wait) == (True, 30)
    made = step(read(strict, "-K0", "-W", "0", "a", environ=IN_JOB), job(1), None)
    assert (made.kill_on_bad_exit, made.wait) == (False, 0)


def test_a_terminal_is_given_where_there_is_one(site: Site) -> None:
    asked = read(site, "--pty", "bash")
    assert step(asked, job(1), (30, 100)).pty == (30, 100)
    assert step(asked, job(1), None).pty is None


# fmt: off
REFUSALS: dict[str, tuple[tuple[str, ...], str, int]] = {
    "no command":  ((), "srun: fatal: No command given to execute.\n", 1),
    "unknown":     (("--nosuch",), "srun: unrecognized option '--nosuch'\nTry \"srun --help\" for more information\n", 255),
    "bad limit":   (("-t", "bad", "a"), "srun: error: Invalid --time specification\n", 255),
    "mpi":         (("--mpi=pmix", "a"), "srun: error: Invalid MPI type 'pmix', --mpi=list for acceptable types\n", 1),
    "kill":        (("-Kx", "a"), 'srun: error: Invalid numeric value "x" for --kill-on-bad-exit.\n', 1),
    "relative":    (("-r5", "a"), "srun: fatal: --relative option invalid for job allocation request\n", 1),
    "not here":    (("--x11", "a"), "srun: error: --x11 is not supported here\n", 1),
}
# fmt: on


@pytest.mark.parametrize("what", REFUSALS)
def test_refusals_are_slurms(site: Site, what: str) -> None:
    argv, text, code = REFUSALS[what]
    with pytest.raises(GrammarError) as refused:
        read(site, *argv)
    assert (refused.value.stderr, refused.value.code) == (text, code)


# fmt: off
PLACES: dict[str, tuple[tuple[str, ...], Mapping[str, str], tuple[int, ...], Mapping[str, object]]] = {
    # argv, variables, cpus of the job's nodes, fields of the step
    "all nodes":          ((), {}, (2, 2), {"nodes": 2, "tasks": 2}),
    "some nodes":         (("-N2",), {"SLURM_JOB_NUM_NODES": "3"}, (2, 2, 2), {"nodes": 2, "tasks": 2}),
    "fewer tasks":        (("-n1",), {"SLURM_JOB_NUM_NODES": "2"}, (2, 2), {"nodes": 1, "tasks": 1}),
    "tasks of the job":   ((), {"SLURM_NTASKS": "4", "SLURM_JOB_NUM_NODES": "2"}, (3, 1), {"nodes": 2, "tasks": 4}),
    "cpus say tasks":     (("-c2",), {}, (4, 2), {"nodes": 2, "tasks": 3}),
    "tasks of each node": (("--ntasks-per-node=2",), {}, (2, 2), {"nodes": 2, "tasks": 4, "tasks_per_node": 2}),
    "second node":        (("-r1", "-N1", "-n1"), {}, (2, 2), {"nodes": 1, "relative": 1}),
    "those behind":       (("-r1",), {}, (2, 2, 2), {"nodes": 2, "relative": 1}),
    "named":              (("-w", "ec2-2", "-n1"), {}, (2, 2), {"nodes": 1, "nodelist": ("ec2-2",)}),
    "named more":         (("-w", "ec2-[1-2]", "-n1", "-N1"), {}, (2, 2), {"nodes": 2, "nodelist": ("ec2-1", "ec2-2")}),
    "but for":            (("-x", "ec2-1"), {}, (2, 2, 2), {"nodes": 2, "tasks": 2, "exclude": ("ec2-1",)}),
    "arbitrary":          (("-m", "arbitrary", "-w", "ec2-2,ec2-1,ec2-2"), {}, (2, 2), {"nodes": 2, "tasks": 3, "hosts": ("ec2-2", "ec2-1", "ec2-2"), "nodelist": ()}),
    "spread":             (("-m", "plane=2", "-n4"), {}, (2, 2), {"distribution": "plane=2"}),
    "gpus of all":        (("-G3",), {}, (2, 2), {"gres": (Gres(name="gpu", count=2),), "gres_per_task": ()}),
    "gpus of tasks":      (("-n2", "--gpus-per-task=1"), {}, (2, 2), {"gres": (), "gres_per_task": (Gres(name="gpu"),)}),
}
# fmt: on


@pytest.mark.parametrize("what", PLACES)
def test_a_step_is_placed_on_nodes_of_its_job(site: Site, what: str) -> None:
    argv, environ, cpus, fields = PLACES[what]
    made = step(read(site, *argv, "a", environ={**IN_JOB, **environ}), job(*cpus), None)
    assert {name: getattr(made, name) for name in fields} == dict(fields)


@pytest.mark.parametrize(
    ("argv", "cpus", "text"),
    [
        (("-N2", "-n2"), (2,), "Only allocated 1 nodes asked for 2"),
        (
            ("-r2", "-N1", "-n1"),
            (2, 2),
            "--relative and --nodes option incompatible with count of allocated nodes (2+1>2)",
        ),
        (("-x", "ec2-1"), (2,), "Hostlist is empty!  Can't run job."),
    ],
)
def test_nodes_that_the_job_has_not_are_refused(
    site: Site, argv: tuple[str, ...], cpus: tuple[int, ...], text: str
) -> None:
    with pytest.raises(GrammarError) as refused:
        step(read(site, *argv, "a", environ=IN_JOB), job(*cpus), None)
    assert refused.value.stderr == f"srun: error: {text}\n"


def test_tasks_of_each_node_that_fit_no_other_count_are_left_out(site: Site) -> None:
    environ = {**IN_JOB, "SLURM_JOB_NUM_NODES": "2", "SLURM_NTASKS": "4"}
    asked = read(site, "--ntasks-per-node=1", "a", environ=environ)
    assert asked.stderr == (
        "srun: warning: can't honor --ntasks-per-node set to 1 which doesn't match the requested "
        "tasks 4 with the number of requested nodes 2. Ignoring --ntasks-per-node.\n"
    )
    assert step(asked, job(2, 2), None).tasks_per_node is None


# fmt: off
HOSTS: dict[str, tuple[tuple[str, ...], int, tuple[str, ...]]] = {
    "as many tasks as hosts":   ((),                     3, ("ec2-2", "ec2-1", "ec2-2")),
    "fewer":                    (("-n2",),               2, ("ec2-2", "ec2-1")),
    "whatever is said of them": (("-m", "block", "-n1"), 1, ("ec2-2",)),
    "unless nodes are named":   (("-w", "ec2-1", "-n1"), 1, ()),
}
# fmt: on


@pytest.mark.parametrize("what", HOSTS)
def test_a_variable_names_a_file_with_the_host_of_each_task(site: Site, what: str) -> None:
    words, tasks, hosts = HOSTS[what]
    environ = {**IN_JOB, "SLURM_HOSTFILE": "hosts"}
    files = {"./hosts": b"ec2-2\nec2-1\nec2-2\n"}
    made = step(read(site, *words, "a", environ=environ, files=files), job(2, 2), None)
    assert (made.tasks, made.hosts) == (tasks, hosts)


def test_the_tasks_of_an_own_allocation_have_their_hosts_too(site: Site) -> None:
    asked = read(site, "-m", "arbitrary", "-w", "ec2-2,ec2-1,ec2-2", "-n3", "a")
    assert step(asked, job(2, 2), None).hosts == ("ec2-2", "ec2-1", "ec2-2")


@pytest.mark.parametrize(("words", "hosts"), [((), 0), (("-w", "ec2-1"), 1)])
def test_a_layout_without_a_host_for_each_task_is_refused(
    site: Site, words: tuple[str, ...], hosts: int
) -> None:
    asked = read(site, "-m", "arbitrary", *words, "-n2", "a", environ=IN_JOB)
    with pytest.raises(GrammarError, match=f"asked for 2 tasks but hostlist specified {hosts} "):
        step(asked, job(2, 2), None)


def test_a_file_with_too_few_hosts_is_refused(site: Site) -> None:
    environ = {**IN_JOB, "SLURM_HOSTFILE": "/hosts"}
    with pytest.raises(GrammarError) as refused:
        read(site, "-n2", "a", environ=environ, files={"/hosts": b"ec2-2\n"})
    assert refused.value.stderr == (
        "srun: error: Too few NodeNames in Slurm Hostfile\n"
        "srun: error: Failure getting NodeNames from hostfile\n"
    )


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (("./a",), "/home/alice/work/./a"),
        (("-D", "/tmp", "../a"), "/tmp/../a"),
        (("d/a",), "d/a"),
        (("a",), "a"),
    ],
)
def test_programs_below_a_dot_are_told_with_their_folder(
    site: Site, words: tuple[str, ...], program: str
) -> None:
    made = step(read(site, *words, environ=IN_JOB), job(1), None)
    assert made.phases[0].argv == (program,)


def test_what_only_says_something_asks_for_nothing(site: Site) -> None:
    setting = Setting(site=site, now=NOW, zone=lambda _: 0, uid=2001)
    table = {
        "version": ("-V",),
        "mpi": ("--mpi=list",),
        "help": ("--help",),
        "cpu-bind": ("--cpu-bind=help", "true"),
    }
    for said, argv in table.items():
        made = translate("srun", Typed(argv), setting)
        assert isinstance(made, Early)
        assert made.name == said


def made(site: Site, *argv: str, program: Allocator = "srun", **how: Any) -> TaskSpec:
    return allocation(read(site, *argv, program=program, **how))


def test_an_allocation_is_a_job_without_a_script(site: Site) -> None:
    spec = made(site, "-n2", "-p", "debug", "-t5", "/bin/hostname", "-f")
    assert (spec.name, spec.batch, spec.allocator) == ("hostname", None, "srun")
    assert (spec.resources.tasks, spec.partitions, spec.time_limit) == (2, ("debug",), 300)
    assert spec.submit_line == "srun -n2 -p debug -t5 /bin/hostname -f"


@pytest.mark.parametrize("words", [("-F", "hosts"), ("-w", "./hosts"), ("-x", "./hosts")])
def test_files_of_nodes_are_asked_for_before_anything_is_allocated(
    site: Site, words: tuple[str, str]
) -> None:
    with pytest.raises(NeedFile) as need:
        read(site, *words, "a")
    path = need.value.path
    nodes = made(site, *words, "a", files={path: b"ec2-2\nec2-1\n"}).resources
    assert (nodes.nodelist or nodes.exclude) == ("ec2-1", "ec2-2")


@pytest.mark.parametrize("program", ["srun", "salloc"])
def test_refusals_of_resources_begin_with_the_commands_own_name(
    site: Site, program: Allocator
) -> None:
    for words in (("--gpus-per-task=1",), ("--mem-per-gpu=1",), ("--gpus-per-socket=1",)):
        with pytest.raises(GrammarError) as refused:
            made(site, *words, "a", program=program)
        lines = refused.value.stderr.splitlines()
        assert all(line.startswith(f"{program}: error: ") for line in lines)


def test_sallocs_job_is_interactive_and_stays_without_a_shell(site: Site) -> None:
    spec = made(site, "false", program="salloc")
    assert (spec.name, spec.command, spec.allocator) == ("interactive", "false", "salloc")
    assert made(site, "--no-shell", program="salloc").allocator is None
    assert made(site, "-J", "nm", program="salloc").name == "nm"


def test_sallocs_job_is_of_where_it_was_typed_and_sruns_of_where_it_is_to_run(site: Site) -> None:
    assert made(site, "-D", "below", "a", program="srun").cwd == "/home/alice/work/below"
    assert made(site, "-D", "below", program="salloc").cwd == "/home/alice/work"


def test_programs_come_from_the_file_that_is_named(site: Site) -> None:
    with pytest.raises(NeedFile):
        read(site, "--multi-prog", "mp.conf")
    content = b"# who\n0 echo zero %t\n1-2 echo 'task %t' %o\n"
    asked = read(site, "--multi-prog", "mp.conf", files={"mp.conf": content})
    assert allocation(asked).resources.tasks == 3
    programs = step(asked, job(3), None).programs
    assert [(one.ranks, one.argv) for one in programs] == [
        ((0,), ("echo", "zero", "%t")),
        ((1, 2), ("echo", "task %%t", "%o")),
    ]


def test_a_variable_that_repeats_what_was_asked_is_no_warning(site: Site) -> None:
    noisy = replace(job(1))
    asked = read(site, "a", environ={**IN_JOB, "SLURMD_DEBUG": "2"})
    assert asked.stderr == ""
    assert step(asked, noisy, None).tasks == 1
    assert "--slurmd-debug" in read(site, "--slurmd-debug=2", "a").stderr


@pytest.mark.parametrize(
    ("program", "long", "value"),
    [
        ("srun", "prolog", "=/bin/true"),
        ("srun", "epilog", "=/bin/true"),
        ("srun", "task-prolog", "=/bin/true"),
        ("srun", "task-epilog", "=/bin/true"),
        ("srun", "bcast", ""),
        ("salloc", "bell", ""),
    ],
)
def test_what_is_not_done_is_named(site: Site, program: Allocator, long: str, value: str) -> None:
    said = read(site, f"--{long}{value}", "a", program=program).stderr
    assert said == f"{program}: warning: --{long} has no effect here and is ignored\n"
