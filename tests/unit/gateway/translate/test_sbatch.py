"""sbatch's words to a spec, and the answers of a real sbatch."""

import shlex
from collections.abc import Callable
from typing import Any

import pytest

from broker.model.errors import BadOption, OverLimit
from broker.model.site import Site
from broker.model.spec import ALL, DependencyKind
from gateway.translate.sbatch import Early, NeedFile, Setting, Submission, translate
from sbatch_shim.grammar.errors import GrammarError

from .conftest import NOW, GivenFile, Submit, Typed

Golden = Callable[[str], list[dict[str, Any]]]


def test_a_script_becomes_a_spec(sbatch: Submit) -> None:
    script = b"#!/bin/bash\n#SBATCH -J name -N 1-2 -n 4 -c 2 --mem=2G -t 30\necho \xff\n"
    made = sbatch("-D", "sub", "job.sh", "a b", "-n", "9", files={"job.sh": script})
    assert isinstance(made, Submission)
    spec = made.spec
    assert (spec.name, spec.cwd, spec.command) == (
        "name",
        "/home/alice/work/sub",
        "/home/alice/work/job.sh",
    )
    assert spec.submit_dir == "/home/alice/work"
    assert spec.submit_line == "sbatch -D sub job.sh a b -n 9"
    assert spec.time_limit == 1800
    asked = spec.resources
    assert (asked.min_nodes, asked.max_nodes, asked.tasks, asked.cpus_per_task) == (1, 2, 4, 2)
    assert asked.mem_per_node_mib == 2048
    assert spec.batch is not None
    phase = spec.batch.phases[0]
    assert phase.argv == (None, "a b", "-n", "9")
    assert phase.script is not None
    assert made.blobs[phase.script] == script


def test_wrap_makes_a_script_of_sh(sbatch: Submit) -> None:
    made = sbatch("--wrap", "echo hi")
    assert isinstance(made, Submission)
    assert (made.spec.name, made.spec.command) == ("wrap", None)
    assert b"#!/bin/sh\n# This script was created by sbatch --wrap.\n\necho hi\n" in list(
        made.blobs.values()
    )


def test_a_script_from_standard_input_is_named_sbatch(sbatch: Submit) -> None:
    made = sbatch(files={"-": b"#!/bin/sh\n"})
    assert isinstance(made, Submission)
    assert (made.spec.name, made.spec.command) == ("sbatch", None)


def test_files_are_asked_for_and_sought_along_path(site: Site) -> None:
    setting = Setting(site=site, now=NOW, zone=lambda _: 0, uid=2001)
    environ = {"PATH": "/opt/bin:/usr/bin"}
    files: dict[str, GivenFile] = {}
    asked = []
    for answer in (GivenFile(error=2), GivenFile(error=2), GivenFile(b"#!/bin/sh\n")):
        with pytest.raises(NeedFile) as need:
            translate(Typed(("tool",), files, environ), setting)
        asked.append(need.value.path)
        files[need.value.path] = answer
    made = translate(Typed(("tool",), files, environ), setting)
    assert asked == ["tool", "/opt/bin/tool", "/usr/bin/tool"]
    assert isinstance(made, Submission)
    assert made.spec.command == "/usr/bin/tool"


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (GivenFile(error=2), "Unable to open file e.sh\n"),
        (GivenFile(error=13), "Unable to open file /home/alice/work/e.sh\n"),
        (GivenFile(error=21), "Batch script is empty!\n"),
        (GivenFile(b""), "Batch script is empty!\n"),
    ],
)
def test_a_script_that_cannot_be_read_is_refused(site: Site, file: GivenFile, said: str) -> None:
    setting = Setting(site=site, now=NOW, zone=lambda _: 0, uid=2001)
    with pytest.raises(GrammarError) as refused:
        translate(Typed(("e.sh",), {"e.sh": file}), setting)
    assert (refused.value.stderr, refused.value.code) == (f"sbatch: error: {said}", 1)


@pytest.mark.parametrize(
    ("words", "mails", "warned"),
    [
        (("--mail-type=END",), False, True),
        (("--mail-type=END",), True, False),
        (("--mail-type=NONE",), False, False),
        ((), False, False),
    ],
)
def test_mail_that_nothing_sends_is_warned_of(
    site: Site, words: tuple[str, ...], mails: bool, warned: bool
) -> None:
    setting = Setting(site=site, now=NOW, zone=lambda _: 0, uid=2001, mails=mails)
    made = translate(Typed((*words, "--wrap", "true"), {}), setting)
    assert isinstance(made, Submission)
    said = "sbatch: warning: --mail-type has no effect here and is ignored\n"
    assert made.stderr == (said if warned else "")


def test_a_script_over_4_mib_is_refused(sbatch: Submit) -> None:
    with pytest.raises(GrammarError, match="parameter too long"):
        sbatch("job.sh", files={"job.sh": b"#!/bin/sh\n" + b"#" * (4 << 20)})


def test_options_become_fields_of_the_spec(sbatch: Submit) -> None:
    made = sbatch(
        *("-p", "ec2,debug", "-A", "chem", "-q", "high", "-H", "--no-requeue", "--nice=5"),
        *("-a", "1-9:2%3", "-d", "after:7+2?afterok:8_3", "--signal=B:USR1@90", "--mem=0"),
        *("-o", "o-%j", "-e", "e", "-i", "in", "--open-mode=a", "--comment=", "-b", "now+60"),
        *("--mail-type=END,FAIL", "--mail-user=x", "--kill-on-invalid-dep=yes", "--wckey=k"),
        *("-C", "spot,g5", "-w", "ec2-[1-2]", "-x", "ec2-3", "--exclusive", "--time-min=5"),
        *("--propagate=NOFILE", "--tmp=1G", "--mincpus=2", "--wrap", "true"),
    )
    assert isinstance(made, Submission)
    spec, asked = made.spec, made.spec.resources
    assert (spec.partitions, spec.account, spec.qos) == (("ec2", "debug"), "chem", "high")
    assert (spec.hold, spec.requeue, spec.nice, spec.comment) == (True, False, 5, "")
    assert spec.array is not None
    assert (spec.array.tasks, spec.array.limit, spec.array.step) == ((1, 3, 5, 7, 9), 3, 2)
    assert [(one.kind, one.job, one.task, one.delay) for one in spec.after] == [
        (DependencyKind.AFTER, 7, None, 120),
        (DependencyKind.AFTEROK, 8, 3, 0),
    ]
    assert spec.after_any
    assert spec.signal is not None
    assert (spec.signal.number, spec.signal.before, spec.signal.batch) == (10, 90, True)
    assert (spec.output.stdout, spec.output.stderr, spec.output.stdin) == ("o-%j", "e", "in")
    assert (spec.output.open_mode, spec.begin) == ("append", NOW + 60)
    assert (spec.mail_types, spec.mail_user) == (("END", "FAIL"), "x")
    assert (spec.kill_on_invalid_dep, spec.wckey, spec.time_min) == (True, "k", 300)
    assert spec.rlimits == (("NOFILE", 1024, 4096),)
    assert (asked.constraint, asked.nodelist, asked.exclude) == (
        "spot&g5",
        ("ec2-1", "ec2-2"),
        ("ec2-3",),
    )
    assert (asked.min_nodes, asked.max_nodes, asked.exclusive) == (2, None, True)
    assert (asked.mem_per_node_mib, asked.tmp_mib, asked.min_cpus_per_node) == (ALL, 1024, 2)


@pytest.mark.parametrize(
    ("argv", "tasks"),
    [
        (["--ntasks-per-gpu=2", "--gpus=1"], 2),
        (["--gpus-per-task=1", "--gpus=2"], 2),
        (["--gpus=2"], None),
        (["-N", "2"], None),
        (["-n", "3", "--gpus=2"], 3),
    ],
)
def test_figures_per_gpu_imply_tasks(sbatch: Submit, argv: list[str], tasks: int | None) -> None:
    made = sbatch(*argv, "--wrap", "true")
    assert isinstance(made, Submission)
    assert made.spec.resources.tasks == tasks


def test_the_last_of_requeue_and_no_requeue_counts(sbatch: Submit) -> None:
    for argv, requeue in ((["--requeue", "--no-requeue"], False), (["--requeue=expedite"], True)):
        made = sbatch(*argv, "--wrap", "true")
        assert isinstance(made, Submission)
        assert made.spec.requeue is requeue


def test_nodes_may_be_named_in_a_file(sbatch: Submit) -> None:
    files = {"nodes.txt": b"ec2-2\nec2-1\n", "./x": b"ec2-3\n"}
    made = sbatch("-F", "nodes.txt", "-x", "./x", "--wrap", "true", files=files)
    assert isinstance(made, Submission)
    assert made.spec.resources.nodelist == ("ec2-1", "ec2-2")
    assert made.spec.resources.exclude == ("ec2-3",)


def test_export_chooses_variables_and_a_file_adds_some(sbatch: Submit) -> None:
    environ = {"A": "1", "B": "2", "SLURM_C": "3"}
    made = sbatch("--export=A", "--wrap", "true", environ=environ)
    assert isinstance(made, Submission)
    assert made.spec.login_environment
    assert made.spec.environment is not None
    assert made.blobs[made.spec.environment] == b"A=1\0SLURM_C=3"
    made = sbatch(
        "--export-file=f", "--wrap", "true", files={"f": b"X=y\0junk"}, environ={"A": "1"}
    )
    assert isinstance(made, Submission)
    assert made.spec.environment is not None
    assert made.blobs[made.spec.environment] == b"X=y\0A=1"
    with pytest.raises(GrammarError, match="Could not open user environment file nosuch"):
        sbatch("--export-file=nosuch", "--wrap", "true")


def test_answers_are_worded_as_asked(sbatch: Submit) -> None:
    def said(*argv: str) -> str:
        made = sbatch(*argv, "--wrap", "true")
        assert isinstance(made, Submission)
        return made.said(700001)

    assert said() == "Submitted batch job 700001\n"
    assert said("-M", "oracle") == "Submitted batch job 700001 on cluster oracle\n"
    assert said("--parsable") == "700001\n"
    assert said("--parsable", "-M", "oracle") == "700001;oracle\n"
    assert said("--parsable", "-Q") == ""


def test_flags_are_told_to_the_caller(sbatch: Submit) -> None:
    script = {"job.sh": b"#!/bin/sh\n#SBATCH --test-only --wait -v\n"}
    made = sbatch("job.sh", files=script)
    assert isinstance(made, Submission)
    assert (made.test_only, made.wait, made.quiet, made.stderr) == (True, True, False, "")


def test_an_option_without_effect_is_warned_of_and_one_that_is_not_offered_refused(
    sbatch: Submit,
) -> None:
    made = sbatch("--network=x", "-S", "1", "--wrap", "true", warn=True)
    assert isinstance(made, Submission)
    assert "sbatch: warning: --network has no effect here and is ignored\n" in made.stderr
    assert made.stderr.count("\n") == 2
    assert made.spec.option("network") == "x"
    with pytest.raises(GrammarError, match="--bbf is not supported here: "):
        sbatch("--bbf=f", "--wrap", "true")


def test_components_of_a_heterogeneous_job_are_specs_of_one_script(sbatch: Submit) -> None:
    made = sbatch("-n1", "-J", "het", "-H", "-c2", "--wrap", "true", ":", "-n2", "--mem=9")
    assert isinstance(made, Submission)
    (other,) = made.more
    assert (made.spec.resources.tasks, other.resources.tasks) == (1, 2)
    assert (other.batch, other.name, other.hold) == (made.spec.batch, "het", True)
    assert (made.spec.resources.cpus_per_task, other.resources.cpus_per_task) == (2, None)


def test_what_components_share_goes_on_from_one_to_the_next_and_round_to_the_first(
    sbatch: Submit,
) -> None:
    made = sbatch("-n1", ":", "-t5", "--mem=9", ":", "-t9", "-J", "x", "--wrap", "true")
    assert isinstance(made, Submission)
    specs = (made.spec, *made.more)
    assert [spec.time_limit for spec in specs] == [540, 300, 540]
    assert [spec.resources.mem_per_node_mib for spec in specs] == [9, 9, 9]
    assert [spec.resources.tasks for spec in specs] == [1, None, None]


def test_quiet_keeps_errors_and_drops_warnings(sbatch: Submit) -> None:
    made = sbatch("-Q", "-S1", "-N3", "-n2", "--network=x", "--wrap", "true", warn=True)
    assert isinstance(made, Submission)
    assert made.stderr.startswith("sbatch: error: Ignoring -S")
    assert made.stderr.count("\n") == 1


def test_verbose_lists_options(sbatch: Submit) -> None:
    made = sbatch("-v", "--mem=64gb", "--wrap", "true")
    assert isinstance(made, Submission)
    assert "sbatch: mem                 : 64G\n" in made.stderr


def test_early_options_only_say_something(sbatch: Submit) -> None:
    assert sbatch("--version") == Early("version")
    assert sbatch("--gres=help", "--wrap", "true") == Early(
        "gres", "Valid gres options are:\ngpu[[:type]:count]\n"
    )


@pytest.mark.parametrize("name", ["nosuch", ""])
def test_other_clusters_are_refused(sbatch: Submit, name: str) -> None:
    with pytest.raises(GrammarError) as refused:
        sbatch(f"--clusters={name}", "--wrap", "true")
    assert refused.value.stderr.startswith(
        f"sbatch: error: No cluster '{name}' known by database.\n"
    )
    assert refused.value.code == 1


def test_refusals_of_the_controller_take_the_status_that_the_user_chose(sbatch: Submit) -> None:
    with pytest.raises(GrammarError) as refused:
        sbatch("-a", "x", "--wrap", "true", environ={"SLURM_EXIT_ERROR": "9"})
    assert refused.value.code == 9
    assert refused.value.stderr == (
        "sbatch: error: Batch job submission failed: Invalid job array specification\n"
    )
    with pytest.raises(GrammarError) as refused:
        sbatch("--test-only", "-a", "x", "--wrap", "true")
    assert refused.value.stderr == "allocation failure: Invalid job array specification\n"


def test_refusals_of_the_engine_are_worded_as_slurm_does(sbatch: Submit) -> None:
    made = sbatch("-p", "ec2,debug", "--wrap", "true")
    assert isinstance(made, Submission)
    assert made.refused(BadOption("partition", "ec2", "Invalid partition name specified")) == (
        "sbatch: error: invalid partition specified: ec2,debug\n"
        "sbatch: error: Batch job submission failed: Invalid partition name specified\n",
        1,
    )
    over = OverLimit("QOSMaxWallDurationPerJobLimit", "7200", "3600", message="Job violates policy")
    assert made.refused(over)[0].startswith("sbatch: error: QOSMaxWallDurationPerJobLimit\n")


WRONG = (
    ("--gres=gpu:x:y:z", "Trackable RESource"),
    ("--nice=-5", "Invalid --nice value"),
    ("-a 9-1", "Invalid job array specification"),
    ("-w nosuch", "Invalid node name specified"),
    ("-p nosuch", "Invalid partition name specified"),
    ("--time-min=9-0", "Invalid time-min specification"),
    ("-L nosuch", "Invalid license specification"),
    ("-d x", "Job dependency problem"),
)
"""Options that are refused, in the order in which the controller looks at them (22.05)."""


@pytest.mark.parametrize("place", range(len(WRONG) - 1))
def test_of_several_wrong_options_the_first_that_slurm_looks_at_is_told(
    sbatch: Submit, place: int
) -> None:
    first, text = WRONG[place]
    for other, _ in WRONG[place + 1 :]:
        with pytest.raises(GrammarError, match=text):
            sbatch(*other.split(), *first.split(), "--wrap", "true")


def test_an_unknown_partition_is_named_in_a_line_of_its_own(sbatch: Submit) -> None:
    for words, named in (
        (("-p", "ec2,nosuch,other"), "nosuch,other"),
        (("--test-only", "-p", "x"), "x"),
    ):
        with pytest.raises(GrammarError) as refused:
            sbatch(*words, "--wrap", "true")
        first, last = refused.value.stderr.splitlines()
        assert first == f"sbatch: error: invalid partition specified: {named}"
        assert last.endswith("Invalid partition name specified")


def test_a_blank_partition_is_the_default_and_no_blank_name_else(sbatch: Submit) -> None:
    assert sbatch("--partition=", "--wrap", "true").spec.partitions == ()  # type: ignore[union-attr]
    for word, text in (
        ("--account=", "Invalid account or account/partition combination specified"),
        ("--qos=", "Invalid qos specification"),
    ):
        with pytest.raises(GrammarError, match=text):
            sbatch(word, "--wrap", "true")


def test_cores_are_set_aside_in_one_way_only(sbatch: Submit) -> None:
    with pytest.raises(GrammarError) as refused:
        sbatch("-S0", "--thread-spec=4", "--wrap", "true")
    assert refused.value.stderr == (
        "sbatch: fatal: -S/--core-spec and --thred-spec options are mutually exclusive\n"
    )


@pytest.mark.parametrize(
    ("word", "folder"), [("--chdir=", "{here}/"), ("-Dsub", "{here}/sub"), ("-D/tmp", "/tmp")]
)
def test_a_folder_is_seen_from_where_it_was_typed(sbatch: Submit, word: str, folder: str) -> None:
    made = sbatch(word, "--wrap", "true")
    assert isinstance(made, Submission)
    assert made.spec.cwd == folder.format(here=made.spec.submit_dir)


def test_of_named_nodes_and_a_file_of_them_the_last_counts(sbatch: Submit) -> None:
    with pytest.raises(GrammarError, match="error opening file /nosuch"):
        sbatch("-w", "ec2-1", "--nodefile=/nosuch", "--wrap", "true")
    made = sbatch("--nodefile=/nosuch", "-w", "ec2-1", "--wrap", "true")
    assert made.spec.resources.nodelist == ("ec2-1",)  # type: ignore[union-attr]


def test_what_is_passed_over_is_told_before_a_refusal(sbatch: Submit) -> None:
    told = "sbatch: error: Ignoring -S since it's not allowed by configuration"
    for words in (("--mem=1", "--mem-per-cpu=1"), ("--nodefile=/nosuch",), ("--time-min=9-0",)):
        with pytest.raises(GrammarError) as refused:
            sbatch("-S1", *words, "--wrap", "true")
        assert refused.value.stderr.startswith(told)
        assert refused.value.stderr.count("\n") >= 2


@pytest.mark.parametrize(
    ("words", "shape"),
    [
        (("--sockets-per-node=2", "-B", "1"), (1, None, None)),
        (("-B", "1", "--sockets-per-node=2"), (2, None, None)),
        (("--cores-per-socket=9", "-B", "1:2"), (1, 2, None)),
        (("--threads-per-core=2", "-B", "1:2:1"), (1, 2, 1)),
    ],
)
def test_of_a_shape_said_twice_the_last_counts(
    sbatch: Submit, words: tuple[str, ...], shape: tuple[int | None, ...]
) -> None:
    made = sbatch(*words, "--wrap", "true")
    assert isinstance(made, Submission)
    need = made.spec.resources
    assert (need.sockets, need.cores_per_socket, need.threads_per_core) == shape


def test_only_operators_raise_priority(sbatch: Submit) -> None:
    with pytest.raises(GrammarError, match="Invalid --nice value"):
        sbatch("--nice=-5", "--wrap", "true")
    made = sbatch("--nice=-5", "--uid=bob", "--wrap", "true", user="root")
    assert isinstance(made, Submission)
    assert (made.spec.nice, made.uid) == (-5, "bob")


NOT_OURS = {
    "sbatch-errors": {"usage", "help", "version"},
    "sbatch-options": {"het-3", "het-4", "het-0"},
    "sbatch-script": {"het-directive", "het-packjob"},
    "new-in-25.11": {"opt-68"},
}
"""Heterogeneous jobs and node counts in features, which we refuse by name; texts of help."""
OF_ENGINE = (
    "Node count specification",
    "Requested node configuration",
    "Memory specification",
    "invalid partition",
    "Invalid qos",
    "Invalid account",
    "Invalid feature",
    "Job dependency problem",
    "QOSMax",
    "CPU count",
    "Temporary disk",
    "Requested time limit",
    "Requested reservation",
)
"""Refusals that need the queue or the nodes: the engine's."""
ELSEWHERE = {"e.sh", "b.sh", "nosuch.sh", "true", "d"}


def _single(case: dict[str, Any]) -> list[str] | None:
    """The words of a case that is one sbatch and nothing of the shell's."""
    command = case["cmd"]
    if not command.startswith("sbatch ") or any(
        mark in command for mark in ("; ", "$J", "<", "| ")
    ):
        return None
    words = shlex.split(command)[1:]
    return None if ELSEWHERE & set(words) and "--wrap" in words[:2] else words


@pytest.mark.parametrize("area", list(NOT_OURS))
def test_recorded_answers_are_given_as_far_as_words_decide(
    sbatch: Submit, golden: Golden, area: str
) -> None:
    wrong = []
    for case in golden(area):
        words = _single(case)
        if words is None or case["name"] in NOT_OURS[area]:
            continue
        files = {name: text.encode() for name, text in (case.get("files") or {}).items()}
        files |= {"/dev/null": b"", "true": b"\x7fELF"}
        environ = {"PATH": "/usr/bin", **(case.get("env") or {})}
        try:
            made = sbatch(*words, files=files, environ=environ, user=case["as"])
            found = 0, made.stderr if isinstance(made, Submission) else ""
        except GrammarError as refused:
            found = refused.code, refused.stderr
        expected = case["exit"], case["stderr"]
        by_engine = found[0] == 0 and any(text in case["stderr"] for text in OF_ENGINE)
        runs_on = {"--test-only", "--wait", "-W"} & set(words) and found[0] == 0
        if found != expected and not by_engine and not runs_on:
            wrong.append((case["name"], case["cmd"], found, expected))
    assert not wrong


def test_lines_of_real_scripts_are_judged_as_by_real_slurm(
    sbatch: Submit, wild: Callable[[str], list[dict[str, Any]]]
) -> None:
    wrong = []
    for row in wild("directives.jsonl"):
        script = f"#!/bin/bash\n{row['line']}\ntrue\n".encode("utf-8", "surrogateescape")
        try:
            sbatch("--test-only", "job.sh", files={"job.sh": script})
            found = 0, ""
        except GrammarError as refused:
            found = refused.code, refused.stderr.rstrip("\n")
        by_engine = found[0] == 0 and any(text in row["error"] for text in OF_ENGINE)
        if found != (row["rc"], row["error"]) and not by_engine:
            wrong.append((row["line"], found, row["error"]))
    ours = {"#SBATCH packjob", "#SBATCH --get-user-env=L", "#SBATCH --get-user-env=10L"}
    sampling = "Invalid accounting frequency requested"
    assert [one for one in wrong if one[0] not in ours and sampling not in one[2]] == []
