"""sbatch's words: command line, directives and environment."""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sbatch_shim.grammar.check import Rules
from sbatch_shim.grammar.errors import GrammarError
from sbatch_shim.grammar.options import lookup
from sbatch_shim.grammar.parse import Request, Script, look, parse_query, settle
from sbatch_shim.grammar.script import check_script
from sbatch_shim.grammar.show import listing, show_given

TABLE = Path(__file__).parents[4] / "tests" / "tables" / "grammar" / "directives.csv"
Wild = Callable[[str], Iterator[dict[str, Any]]]


def rules(program: str = "sbatch", root: bool = False) -> Rules:
    return Rules(program, 1_795_968_000, lambda _: 0, root)


def submit(
    argv: list[str] | None = None,
    script: str = "#!/bin/sh\n",
    environ: dict[str, str] | None = None,
) -> Request:
    seen = look("sbatch", argv or ["job.sh"])
    batch = None
    if seen.wrap is None:
        check_script(script, "sbatch")
        batch = Script("job.sh", script)
    return settle(seen, batch, environ=environ or {}, rules=rules())


def shown(request: Request, part: int = 0) -> dict[str, str]:
    table = lookup("sbatch").by_long
    return {long: show_given(table[long], given) for long, given in request.parts[part].items()}


def outcome(script: str) -> tuple[int, str]:
    try:
        submit(script=script)
    except GrammarError as refused:
        return refused.code, refused.stderr.rstrip("\n")
    return 0, ""


def rows() -> list[dict[str, str]]:
    with TABLE.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", rows(), ids=lambda row: repr(row["line"]))
def test_a_directive_is_taken_or_refused_in_slurms_words(row: dict[str, str]) -> None:
    expected = int(row["code"]), row["stderr"].replace("\\n", "\n")
    assert outcome(f"#!/bin/sh\n{row['line']}\ntrue\n") == expected


def test_every_line_of_the_corpus_is_judged_as_by_real_slurm(wild: Wild) -> None:
    wrong = []
    for row in wild("directives.jsonl"):
        by_controller = row["class"] == "config-refused" and row["rc"] == 1
        by_controller = by_controller or "controller" in row.get("note", "")
        older = "get-user-env" in row["line"] and "v22_05" in row
        taken = by_controller or older
        expected = (0, "") if taken else (row["rc"], row["error"])
        found = outcome(f"#!/bin/bash\n{row['line']}\ntrue\n")
        if found != expected:
            wrong.append((row["line"], found, expected))
    assert not wrong


KNOWN_OTHERWISE = {"get-user-env", "profile", "cpu-freq", "oversubscribe", "no-kill", "priority"}
"""Options whose listed form we do not copy: 22.05 had arguments for them, or other spellings."""
BY_PLACE = {"output", "error", "input", "chdir", "begin", "deadline", "gres", "test-only"}
"""Options whose recorded form depends on the recorder's folder, clock or version."""


def test_every_line_of_the_corpus_means_what_it_meant_to_real_slurm(wild: Wild) -> None:
    wrong = []
    for row in wild("directives.jsonl"):
        if row["class"] != "grammar-ok" or row.get("ignored") or "v22_05" in row:
            continue
        request = submit(script=f"#!/bin/bash\n{row['line']}\ntrue\n")
        recorded = row["opts"] if isinstance(row["opts"], list) else [row["opts"]]
        for number, options in enumerate(recorded):
            left_out = KNOWN_OTHERWISE | BY_PLACE | {"requeue", "no-requeue"}
            expected = {k: v.removesuffix("?") for k, v in options.items() if k not in left_out}
            found = {k: v for k, v in shown(request, number).items() if k not in left_out}
            if found != expected:
                wrong.append((row["line"], found, expected))
    assert not wrong


def test_whole_scripts_of_the_corpus_are_read_as_by_real_slurm(wild: Wild) -> None:
    for row in wild("placement.jsonl"):
        if row["name"] == "long-line":  # the controller's judgement
            continue
        assert outcome(row["script"]) == (row["rc"], row["error"]), row["name"]
        if row["rc"] == 0:
            request = submit(script=row["script"])
            assert len(request.parts) == len(row["opts"]), row["name"]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("", "Batch script is empty!"),
        ("true\n", "This does not look like a batch script.  The first"),
        ("\n#!/bin/sh\n", "This does not look like a batch script.  The first"),
        ("#!/bin/sh\ntrue\r\n", "Batch script contains DOS line breaks (\\r\\n)"),
        ("#!/bin/sh\n\0\n", "The Slurm controller does not allow scripts that"),
    ],
)
def test_what_is_no_batch_script_is_refused(script: str, words: str) -> None:
    with pytest.raises(GrammarError) as refused:
        check_script(script, "sbatch")
    assert refused.value.code == 1
    assert refused.value.stderr.startswith(f"sbatch: error: {words}\n")


def test_a_value_that_older_releases_took_is_told_and_ignored_in_scripts_alone() -> None:
    request = submit(script="#!/bin/sh\n#SBATCH --get-user-env=10L\n")
    told = "sbatch: warning: --get-user-env takes no value since Slurm 25.05: '10L' is ignored\n"
    assert request.notes == [told]
    assert shown(request) == {"get-user-env": "set"}
    with pytest.raises(GrammarError, match="doesn't allow an argument"):
        submit(["--get-user-env=10L", "job.sh"])


def test_reading_ends_at_the_first_command() -> None:
    script = "#!/bin/sh\n# x\n\n   # y\n#SBATCH -J a\n \t\ntrue\n#SBATCH -J b --bogus\n"
    assert shown(submit(script=script)) == {"job-name": "a"}


def test_a_value_left_out_takes_the_first_word_of_the_next_directive() -> None:
    script = "#!/bin/sh\n#SBATCH -o\n#SBATCH --job-name=x\n#SBATCH -N 2\n"
    assert shown(submit(script=script)) == {"output": "--job-name=x", "nodes": "2"}


def test_environment_beats_the_script_and_the_command_line_beats_both() -> None:
    script = "#!/bin/sh\n#SBATCH -J script -t 1 -p a -q x\n"
    environ = {"SBATCH_JOB_NAME": "env", "SBATCH_TIMELIMIT": "2", "SBATCH_PARTITION": "b"}
    request = submit(["-J", "line", "-t", "3", "job.sh"], script, environ)
    assert shown(request) == {
        "qos": "x",
        "partition": "b",
        "job-name": "line",
        "time": "00:03:00",
    }
    assert [given.source for given in request.parts[0].values()] == [
        "script",
        "environment",
        "command line",
        "command line",
    ]


def test_variables_without_meaning_stay_without_effect() -> None:
    names = ("NTASKS", "CPUS_PER_TASK", "NODES", "COMMENT", "DEPENDENCY", "MEM", "JOBID")
    environ = {f"SBATCH_{name}": "7" for name in names} | {"SLURM_NTASKS": "9"}
    assert shown(submit(environ=environ)) == {}


def test_flags_are_set_by_an_empty_variable() -> None:
    environ = {"SBATCH_EXCLUSIVE": "", "SBATCH_WAIT": "", "SBATCH_NO_REQUEUE": ""}
    assert shown(submit(environ=environ)) == {
        "exclusive": "exclusive",
        "no-requeue": "no-requeue",
        "wait": "set",
    }


def test_a_bad_value_is_refused_even_where_a_better_source_has_a_good_one() -> None:
    with pytest.raises(GrammarError, match="Invalid --time specification"):
        submit(["-t", "5", "job.sh"], "#!/bin/sh\n#SBATCH -t foo\n")


def test_an_unknown_option_of_the_line_is_refused_before_the_script_is_read() -> None:
    with pytest.raises(GrammarError, match="unrecognized option '--nosuch'"):
        look("sbatch", ["--nosuch", "job.sh"])


def test_memory_of_the_environment_gives_way_to_a_typed_one() -> None:
    environ = {"SBATCH_MEM_PER_CPU": "1G", "SBATCH_MEM_PER_NODE": "2G"}
    assert shown(submit(["--mem-per-gpu=1G", "job.sh"], environ=environ)) == {"mem-per-gpu": "1G"}
    with pytest.raises(GrammarError, match="SLURM_MEM_PER_NODE are mutually exclusive"):
        submit(environ=environ)


def test_cpus_of_the_environment_and_of_the_line_do_not_clash() -> None:
    request = submit(["-c", "2", "job.sh"], environ={"SBATCH_CPUS_PER_GPU": "4"})
    assert shown(request) == {"cpus-per-gpu": "4", "cpus-per-task": "2"}


def test_mail_types_and_signal_flags_add_up_others_are_replaced() -> None:
    script = "#!/bin/sh\n#SBATCH --mail-type=END --signal=B:TERM@30 -J a\n"
    request = submit(["--mail-type=BEGIN", "--signal=TERM@61", "-J", "b", "job.sh"], script)
    assert shown(request) == {"mail-type": "BEGIN,END", "signal": "B:TERM@61", "job-name": "b"}


def test_more_nodes_than_tasks_are_cut_with_a_warning() -> None:
    request = submit(["-N", "3", "-n", "2", "job.sh"])
    assert request.notes == [
        "sbatch: warning: can't run 2 processes on 3 nodes, setting nnodes to 2\n"
    ]
    assert shown(request) == {"nodes": "2", "ntasks": "2"}
    request = submit(["-w", "n[1-2],n1", "-n", "1", "job.sh"])
    assert request.notes == [
        "sbatch: warning: can't run 1 processes on 2 nodes, setting nnodes to 1\n"
    ]
    assert not submit(["-w", "/a/file", "-n", "1", "job.sh"]).notes


@pytest.mark.parametrize(
    ("words", "text", "code"),
    [
        (("--wait-all-nodes=x",), 'Invalid numeric value "x" for --wait-all-nodes.', 1),
        (("--wait-all-nodes=-1",), 'Invalid numeric value "-1" for --wait-all-nodes.', 1),
        (("--wait-all-nodes=5",), "Invalid --wait-all-nodes specification", 255),
        (("--thread-spec=",), 'Invalid numeric value "" for --thread-spec.', 1),
    ],
)
def test_numbers_that_are_none_are_told_from_those_that_mean_nothing(
    words: tuple[str, ...], text: str, code: int
) -> None:
    with pytest.raises(GrammarError) as refused:
        submit([*words, "job.sh"])
    assert (refused.value.stderr, refused.value.code) == (f"sbatch: error: {text}\n", code)


def test_specialized_cores_are_ignored_with_slurms_line() -> None:
    tail = "since it's not allowed by configuration (AllowSpecResourcesUsage = No)\n"
    for words, told in (
        (("-S", "1"), "-S"),
        (("--core-spec=",), "-S"),
        (("--thread-spec=1",), "--thread-spec"),
    ):
        request = submit([*words, "job.sh"])
        assert request.notes == [f"sbatch: error: Ignoring {told} {tail}"]


def test_words_behind_the_script_are_its_own() -> None:
    seen = look("sbatch", ["-J", "x", "job.sh", "-n", "5", ":", "--bogus"])
    assert (seen.script, seen.args) == ("job.sh", ["-n", "5", ":", "--bogus"])


def test_a_flag_that_swallows_wrap_leaves_its_text_as_the_script() -> None:
    seen = look("sbatch", ["-J", "--wrap", "true"])
    assert (seen.script, seen.wrap) == ("true", None)


def test_wrap_excludes_a_script() -> None:
    with pytest.raises(GrammarError) as refused:
        look("sbatch", ["--wrap", "true", "job.sh"])
    assert refused.value.stderr == (
        "sbatch: error: Script arguments not permitted with --wrap option\n"
    )


@pytest.mark.parametrize(
    ("argv", "early"), [(["-V"], "version"), (["-h", "--bogus"], "help"), (["--usa", "x"], "usage")]
)
def test_help_and_version_end_the_command_where_they_stand(argv: list[str], early: str) -> None:
    assert look("sbatch", argv).early == early


def test_a_colon_or_hetjob_begins_the_next_component() -> None:
    by_line = submit(["-n1", "--wrap", "true", ":", "-n2"])
    by_script = submit(script="#!/bin/sh\n#SBATCH -n 1\n#SBATCH HETJOB\n#SBATCH -n 2\n")
    assert [shown(by_line, part)["ntasks"] for part in (0, 1)] == ["1", "2"]
    assert [shown(by_script, part)["ntasks"] for part in (0, 1)] == ["1", "2"]


def test_one_command_line_counts_for_every_component_of_a_script() -> None:
    script = "#!/bin/sh\n#SBATCH -n 1\n#SBATCH packjob\n#SBATCH -n 2\n"
    request = submit(["-J", "top", "het.sh"], script)
    assert [shown(request, part)["job-name"] for part in (0, 1)] == ["top", "top"]
    assert request.notes == [
        'sbatch: warning: The "packjob" component separator is deprecated.'
        ' Please use "hetjob" instead.\n'
    ]


def test_slurm_lines_count_with_a_complaint() -> None:
    request = submit(script="#!/bin/sh\n#SLURM -J old\n#SLURM -n 2\n")
    assert shown(request) == {"job-name": "old", "ntasks": "2"}
    assert len(request.notes) == 1


def test_pbs_lines_win_over_directives_wherever_they_stand() -> None:
    script = (
        "#!/bin/sh\n#SBATCH -J slurm\ntrue\n#PBS -N pbs -q long -m abe\n"
        "#PBS -l walltime=00:07:00,nodes=2:ppn=2,mem=2gb,ngpus=1\n#PBS -W depend=afterok:5\n"
    )
    assert shown(submit(script=script)) == {
        "job-name": "pbs",
        "partition": "long",
        "mail-type": "BEGIN,END,FAIL",
        "time": "00:07:00",
        "nodes": "2",
        "ntasks": "4",
        "mem": "2G",
        "gres": "gpu:1",
        "dependency": "afterok:5",
    }


@pytest.mark.parametrize(
    ("argv", "script", "environ"),
    [
        (["--ignore-pbs", "job.sh"], "", {}),
        (["job.sh"], "#SBATCH --ignore-pbs\n", {}),
        (["job.sh"], "", {"SBATCH_IGNORE_PBS": ""}),
    ],
)
def test_pbs_lines_can_be_ignored(argv: list[str], script: str, environ: dict[str, str]) -> None:
    request = submit(argv, f"#!/bin/sh\n{script}#PBS -N pbs -X\n", environ)
    assert "job-name" not in shown(request)


def test_bsub_lines_are_obeyed_too() -> None:
    script = "#!/bin/sh\n#BSUB -J b -n 2,4 -W 10 -x -o none\n#BSUB -m 'n1 n2'\n"
    assert shown(submit(script=script)) == {
        "job-name": "b",
        "ntasks": "4",
        "time": "00:10:00",
        "exclusive": "exclusive",
        "output": "/dev/null",
        "nodelist": "n1,n2",
    }


def test_verbose_lists_the_options_by_name() -> None:
    request = submit(["-v", "--wrap", "true"])
    rule = "sbatch: -------------------- --------------------\n"
    assert listing("sbatch", list(shown(request).items())) == (
        f"sbatch: defined options\n{rule}sbatch: verbose             : 1\n"
        f"sbatch: wrap                : true\n{rule}sbatch: end of defined options\n"
    )


def test_askers_take_options_anywhere_and_ids_beside_them() -> None:
    query = parse_query("scancel", ["700001", "-s", "USR1", "--", "-5"], {"SCANCEL_BATCH": "true"})
    assert query.operands == ["700001", "-5"]
    assert query.given["signal"].text == "USR1"
    assert query.given["batch"].source == "environment"


def test_optional_values_are_only_taken_attached() -> None:
    query = parse_query("squeue", ["-j", "5", "--jobs=7", "-hu", "me", "--users", "you"], {})
    assert [(one.opt.long, one.text) for one in query.said] == [
        ("jobs", None),
        ("jobs", "7"),
        ("noheader", None),
        ("user", "me"),
        ("user", "you"),
    ]
    assert query.operands == ["5"]


def test_an_abbreviation_of_two_spellings_of_one_option_is_not_ambiguous() -> None:
    assert "sibling" in parse_query("squeue", ["--sib"], {}).given
    assert parse_query("sinfo", ["--clus=x"], {}).given["clusters"].text == "x"


def test_askers_end_with_one_for_an_unknown_option() -> None:
    with pytest.raises(GrammarError) as refused:
        parse_query("squeue", ["--array-unique"], {})
    assert refused.value.code == 1
    assert refused.value.stderr == (
        "squeue: unrecognized option '--array-unique'\nTry \"squeue --help\" for more information\n"
    )


def test_root_may_submit_for_others() -> None:
    seen = look("sbatch", ["--uid=bob", "--wrap", "true"])
    request = settle(seen, None, environ={}, rules=rules(root=True))
    assert request.parts[0]["uid"].value == "bob"


def test_srun_and_salloc_stop_at_their_command() -> None:
    seen = look("srun", ["-n2", "-l", "env", "-i"])
    assert (seen.script, seen.args) == ("env", ["-i"])
    request = settle(seen, None, environ={"SLURM_TIMELIMIT": "5"}, rules=rules("srun"))
    assert request.parts[0]["time"].value == 300
