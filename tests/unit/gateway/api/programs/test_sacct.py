"""sacct as a program: which rows, from memory and from the store."""

# ruff: noqa: E501 - a row stays on one line

from dataclasses import replace

import pytest

from accounting.assoc import Qos
from accounting.ids import JobId
from broker.model.ids import Digest
from broker.model.job import ExitCode, HetPlace, Job, JobFlag, JobState, Run
from broker.model.spec import Phase, StepSpec
from gateway.api.programs.sacct import Sacct
from gateway.api.programs.sacct import sacct as program
from gateway.api.wire import Answer
from tests.unit.gateway.query.desk import Past, ask, desk_of, snapshot, text
from tests.unit.gateway.query.history import history
from tests.unit.gateway.query.records import BOB, NOON, SITE, ended, pending, running

GRADES = {**SITE.book.qos, "short": Qos(name="short")}
GRADED = replace(SITE, book=replace(SITE.book, qos=GRADES))
HEAD = "JobID           JobName  Partition    Account  AllocCPUS      State ExitCode \n"


def sacct(
    *words: str,
    past: Past | None = None,
    live: list[Job] | None = None,
    uid: int = 2001,
    environ: dict[str, str] | None = None,
) -> Answer:
    desk = desk_of(snapshot(live or [], site=GRADED), past or Past(history()))
    return ask(program, desk, ["sacct", *words], uid=uid, environ=environ)


def ids(*words: str, **how: object) -> str:
    out = text(sacct("-n", "-P", "-X", "-o", "jobid", *words, **how).out)  # type: ignore[arg-type]
    return " ".join(line.replace("7000", "") for line in out.split())


CHOICES = [
    ((), "01 02 03 05_1 05_2 05_3 08 09 12 13"),
    (("-a",), "01 02 03 04 05_1 05_2 05_3 08 09 12 13"),
    (("-u", "bob"), "04"),
    (("-j", "700004,700001"), "01 04"),
    (("-j", "700004", "-j", "700001", "--jobs=700002"), "01 02 04"),
    (("-j", "700005"), "05_1 05_2 05_3"),
    (("-j", "700005_2"), "05_2"),
    (("-j", "700010"), "10"),
    (("-j", "700011"), "11_[1-4%2]"),
    (("-j", "700011", "--array"), "11_1 11_2 11_3 11_4"),
    (("-j", "700011_2"), ""),
    (("-r", "EC2", "-j", "700004,700001"), "01 04"),
    (("-j", "1"), ""),
    (("-s", "CD", "-S", "now-5minutes", "-E", "now"), "01 05_1 08 09"),
    (("-s", "F,CA", "-S", "now-5minutes", "-E", "now"), "02 03 05_2 05_3 10 13"),
    (("-s", "R"), "12"),
    (("-s", "R", "-S", "now-5minutes"), ""),
    (("-s", "R", "-S", "now-5minutes", "-E", "now"), "01 02 03 05_1 05_2 05_3 08 09 12 13"),
    (("-s", "PD"), ""),
    (("-s", "PD", "-S", "now-5minutes", "-E", "now"), "01 02 03 05_1 05_2 05_3 08 09 12 13"),
    (("-s", "PD", "-j", "700001,700011"), "01"),
    (("-s", "", "-j", "700001"), "01"),
    (("-j", "700001", "-k", "60"), "01"),
    (("-j", "700001", "-k", "59"), ""),
    (("-j", "700001", "-k", "59", "-K", "2:00:00"), "01"),
    (("-j", "700001", "-K", "1"), "01"),
    (("--name=good,bad3",), "01 02"),
    (("--name=GOOD,bAd3",), "01 02"),
    (("-A", "chem"), "08"),
    (("-q", "", "-q", "short"), "09"),
    (("-q", "short"), "09"),
    (("-q", "SHORT"), "09"),
    (("-r", "nosuch"), ""),
    (("-S", "now+0"), "12"),
    (("-E", "now-1hour"), ""),
    (("-I", "2", "-j", "700001,700002"), "01"),
    (("-M", "nosuch"), ""),
    (("-s", ""), "01 02 03 05_1 05_2 05_3 08 09 12 13"),
    (("-j", ""), "01 02 03 05_1 05_2 05_3 08 09 12 13"),
    (("-j", ",", "-E", "now-1hour"), ""),
    (("-S", "", "-E", ""), "01 02 03 05_1 05_2 05_3 08 09 12 13"),
    (("-F", "schedMain", "-j", "700001,700010"), "01"),
    (("-F", "SchedMain,StartReceived", "-j", "700001,700010"), "01 10"),
    (("-F", "SchedBackfill"), ""),
    (("-x", "nosuch"), ""),
    (("-g", "2001", "-j", "700001,700004"), "01"),
    (("--whole-hetjob=No", "-j", "700001"), "01"),
]


@pytest.mark.parametrize(("words", "found"), CHOICES)
def test_options_choose_jobs(words: tuple[str, ...], found: str) -> None:
    assert ids(*words) == found


def test_root_sees_everybodys_jobs() -> None:
    assert "04" in ids(uid=0).split()


def het() -> Past:
    """Two components, and a job of the next id that is none."""
    group = [
        replace(ended(700020 + offset), het=HetPlace(JobId(700020), offset, 2)) for offset in (0, 1)
    ]
    return Past([*group, ended(700022)])


COMPONENTS = [
    (("-j", "700020"), "20+0 20+1"),
    (("-j", "700020+0"), "20+0"),
    (("-j", "700020+1"), "20+1"),
    (("-j", "700021"), "20+1"),
    (("-j", "700020+2"), ""),
    (("-j", "700022"), "22"),
    (("-j", "700020", "--whole-hetjob=no"), "20+0"),
    (("-j", "700020+1", "--whole-hetjob=yes"), "20+0 20+1"),
    (("-j", "700022", "--whole-hetjob=no"), "22"),
    (("-j", "700022", "--whole-hetjob=yes"), "22"),
]


@pytest.mark.parametrize(("words", "found"), COMPONENTS)
def test_components_are_named_alone_or_all_together(words: tuple[str, ...], found: str) -> None:
    assert ids(*words, past=het()) == found


@pytest.mark.parametrize("step", ["batch", "0", "7"])
def test_of_steps_that_are_named_the_job_alone_is_listed_where_no_steps_are(step: str) -> None:
    assert ids("-j", f"700001.{step}") == "01"


SAID = [
    (("-X",), "Eligible", "Mon Nov 30 00:00:00 2026"),
    (("-j", "700001"), "Eligible", "Epoch 0"),
    (("-s", "R,PD"), "PENDING,RUNNING", "Mon Nov 30 12:00:00 2026"),
]


@pytest.mark.parametrize(("words", "states", "since"), SAID)
def test_what_is_looked_for_is_said_where_more_is_to_be_said(
    words: tuple[str, ...], states: str, since: str
) -> None:
    until = "Mon Nov 30 12:00:01 2026"
    assert text(sacct("-v", *words).err) == (
        f"sacct: Jobs {states} in the time window from {since} to {until}\n"
    )
    assert not sacct(*words).err


def test_steps_follow_their_job_and_can_be_named_alone() -> None:
    words = ("-n", "-P", "-o", "jobid")
    assert text(sacct(*words, "-j", "700001").out) == ("700001\n700001.batch\n700001.0\n700001.1\n")
    assert text(sacct(*words, "-j", "700001.0,700001.1").out) == "700001.0\n700001.1\n"


def test_the_usual_table() -> None:
    out = text(sacct("-j", "700003").out)
    assert out == (
        HEAD + "------------ ---------- ---------- ---------- ---------- ---------- -------- \n"
        "700003             sig9        ec2    physics          1     FAILED      0:9 \n"
        "700003.batch      batch               physics          1  CANCELLED      0:9 \n"
    )


EXITS = [
    (JobState.FAILED, ExitCode(137), "FAILED|137:0"),
    (JobState.FAILED, ExitCode(0, 1), "FAILED|1:0"),
    (JobState.CANCELLED, ExitCode(0, 15), "CANCELLED by 2001|0:0"),
    (JobState.TIMEOUT, ExitCode(0, 15), "TIMEOUT|0:0"),
    (JobState.OUT_OF_MEMORY, ExitCode(0, 125), "OUT_OF_MEMORY|0:125"),
]


@pytest.mark.parametrize(("state", "code", "row"), EXITS)
def test_exit_codes_are_those_of_25_11(state: JobState, code: ExitCode, row: str) -> None:
    by = 2001 if state is JobState.CANCELLED else None
    past = Past([ended(state=state, exit=code, ended_by=by)])
    assert text(sacct("-nXP", "-o", "state,exitcode", "-j", "700001", past=past).out) == row + "\n"


def test_a_job_that_may_start_later_only_is_listed_by_name_alone() -> None:
    later = pending(700001, eligible=NOON + 3600)
    again = pending(700002, eligible=NOON + 120, restarts=1)
    assert ids(live=[later, again], past=Past([])) == "02"
    assert ids("-j", "700001", live=[later], past=Past([])) == "01"
    assert ids("-s", "PD", live=[later, pending(700003)], past=Past([])) == "03"


def test_memory_and_store_make_one_list_and_the_later_version_counts() -> None:
    stored = [running(700001, version=3), ended(700002, version=9)]
    live = [ended(700001, version=5), running(700003, version=6)]
    words = ("-nXP", "-o", "jobid,state", "-j", "700001,700002,700003")
    assert text(sacct(*words, past=Past(stored), live=live).out) == (
        "700001|COMPLETED\n700002|COMPLETED\n700003|RUNNING\n"
    )


def test_the_store_is_asked_for_no_more_than_the_window() -> None:
    past = Past(history())
    sacct("-S", "now-1hour", past=past)
    sacct("-j", "700001", past=past)
    assert [(one.since, one.until, one.jobs) for one in past.asked] == [
        (NOON - 3600, NOON, ()),
        (None, None, (700001,)),
    ]


def test_cost_is_in_dollars_with_six_decimals() -> None:
    past = Past(history(), spent={700001: 1_234_567})
    words = ("-n", "-P", "-o", "jobid,cost", "-j", "700001,700002", "-X")
    assert text(sacct(*words, past=past).out) == "700001|1.234567\n700002|0.000000\n"


def test_earlier_attempts_are_listed_with_duplicates() -> None:
    job = ended(700001, restarts=1)
    earlier = replace(running(700001, ended=NOON - 20), flags=JobFlag.NONE)
    past = Past([job], former={700001: [Run(earlier)]})
    words = ("-nXP", "-o", "jobid,state,elapsed", "-j", "700001")
    assert text(sacct(*words, past=past).out) == "700001|COMPLETED|00:00:20\n"
    assert text(sacct(*words, "-D", past=past).out) == (
        "700001|REQUEUED|00:00:10\n700001|COMPLETED|00:00:20\n"
    )


def test_a_job_that_never_started_holds_nothing() -> None:
    words = ("-nXP", "-o", "start,elapsed,nodelist,alloccpus,allocnodes,alloctres,eligible")
    assert text(sacct(*words, "-j", "700010").out) == ("None|00:00:00|None assigned|0|0||Unknown\n")
    waits = Past([pending()])
    assert text(sacct("-nXP", "-o", "start,end,state", past=waits).out) == (
        "Unknown|Unknown|PENDING\n"
    )


LAYOUTS = [
    (("-X", "-o", "jobname%3,jobid%12,state%-10"), "Job        JobID State      \n--- ------------ ---------- \nba+       700002 FAILED     \n"),
    (("-X", "-n", "-o", "JoBn,stat"), "      bad3     FAILED \n"),
    (("-X", "-n", "-p", "-o", "jobid,state"), "700002|FAILED|\n"),
    (("-X", "-n", "-P", "--delimiter=;", "-o", "jobid,state"), "700002;FAILED\n"),
    (("-X", "-n", "-P", "-p", "-o", "jobid,state"), "700002|FAILED|\n"),
    (("-X", "-n", "-p", "-P", "-o", "jobid,state"), "700002|FAILED\n"),
    (("-X", "-n", "-P", "-o", "jobid", "-o", "state"), "700002|FAILED\n"),
    (("-X", "-n", "-o", "jobname%0"), " \n"),
    (("-X", "-n", "-P", "--units=K", "-o", "reqmem,alloctres"), "1048576K|billing=1,cpu=1,mem=1048576K,node=1\n"),
    (("-X", "-n", "-P", "-o", "timelimit,timelimitraw,submit"), "01:00:00|60|2026-11-30T11:59:00\n"),
    (("-X", "-n", "-P", "-o", "qos,qosraw"), "normal|1\n"),
    (("-n", "-P", "-o", "TRESUsageInAve,TRESUsageInMin,TRESUsageOutTot,TRESUsageOutMax"), "|||\nenergy=0||energy=0|\n"),
    (("-b", "-n", "-X"), "700002           FAILED      3:0 \n"),
    (("-b", "-n", "-X", "-P", "-o", "user"), "alice|700002|FAILED|3:0\n"),
    (("-X", "-n", "-o", "jobname%5.5,user%-6x,uid%+5,gid% 5"), " bad3 alice   2001  2001 \n"),
    (("-X", "-n", "-P", "-o", "jobid,,state"), "700002\n"),
    (("-X", "-n", "-P", "-o", "jobid,", "-o", "state"), "700002\n"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "out"), LAYOUTS)
def test_columns_and_widths(words: tuple[str, ...], out: str) -> None:
    assert text(sacct("-j", "700002", *words).out) == out


def test_the_environment_may_name_the_columns() -> None:
    environ = {"SACCT_FORMAT": "jobid,user"}
    assert text(sacct("-nXP", "-j", "700002", environ=environ).out) == "700002|alice\n"
    assert text(sacct("-nXPb", "-j", "700002", environ=environ).out) == "700002|FAILED|3:0\n"


ERRORS = [
    (("foo",), "sacct: error: Unknown arguments:\nsacct: error:  foo\n"),
    (("-l", "-o", "jobid"), "sacct: fatal: Options -o(--format) and -l(--long) are mutually exclusive. Please remove one and retry.\n"),
    (("--st=R",), "sacct: option '--st=R' is ambiguous; possibilities: '--state' '--starttime'\n"),
    (("--no",), "sacct: option '--no' is ambiguous; possibilities: '--nodelist' '--noconvert' '--noheader'\n"),
    (("-o", "jobid,nosuch"), 'sacct: error: Invalid field requested: "nosuch"\n'),
    (("-o", "ReqGRES"), "sacct: fatal: ReqGRES has been removed, please use ReqTRES\n"),
    (("-s", "XX"), "sacct: fatal: unrecognized job state value 'XX'\n"),
    (("-u", "nosuch"), "sacct: error: Invalid user id: nosuch\n"),
    (("-j", "700005_[1-2]"), "sacct: fatal: Bad job array element specified: 700005\n"),
    (("-S", "nosuch"), "Invalid time specification (pos=0): nosuch\n"),
    (("-S", "2030-01-01"), "sacct: error: Start time (2030-01-01T00:00:00) requested is after end time (2026-11-30T12:00:00).\n"),
    (("-q", "normal,nosuch"), "sacct: error: You gave a bad qos 'nosuch'. Valid QOS's are normal,short\nsacct: fatal: problem processing qos list\n"),
    (("-i", "1-x"), 'sacct: error: Invalid numeric value "1-x" for requested node range.\n'),
    (("-I", "x"), 'sacct: error: Invalid numeric value "x" for requested cpu range.\n'),
    (("-k", "x"), "sacct: fatal: Invalid time limit specification\n"),
    (("-j", "1.x"), "sacct: fatal: Bad step specified: 1\n"),
    (("-j", "1+x"), "sacct: fatal: Bad hetjob offset specified: 1\n"),
    (("-u", ""), ""),
    (("-g", ""), ""),
    (("-g", "nosuch"), "sacct: error: Invalid group id: nosuch\n"),
    (("-F", "x"), "sacct: error: str_2_job_flags: Invalid job flag x\n"),
    (("--whole-hetjob=x",), 'sacct: error: Invalid --whole-hetjob value "x". Valid values: [yes|no].\n'),
    (("-B",), "sacct: fatal: When requesting job scripts you must also request specific jobs with the '-j' option.\n"),
    (("--env-vars",), "sacct: fatal: When requesting job environment you must also request specific jobs with the '-j' option.\n"),
    (("-B", "--env-vars", "-j", "1"), "sacct: fatal: Options --batch-script and --env-vars are mutually exclusive\n"),
    (("--nosuch",), "sacct: unrecognized option '--nosuch'\n"),
    (("-nu", "me", "-1"), "sacct: invalid option -- '1'\n"),
    (("-o",), "sacct: option requires an argument -- 'o'\n"),
    (("-j", "x"), "sacct: fatal: Bad job/step specified: x\n"),
    (("--units=x",), "sacct: error: Invalid unit type 'x'. Possible options are 'KMGTP'\nsacct: fatal: Invalid unit type\n"),
    (("-c",), "Slurm job completion is disabled\n"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "err"), ERRORS)
def test_what_cannot_be_is_told_in_slurms_words(words: tuple[str, ...], err: str) -> None:
    answer = sacct(*words)
    assert (answer.code, text(answer.err), text(answer.out)) == (1, err, "")


def test_scripts_are_shown_to_their_owner_alone() -> None:
    script = Digest("ab" * 32)
    batch = StepSpec(name="batch", phases=(Phase(script=script),))
    job = ended(owner=BOB, spec={"batch": batch})
    past = Past([job], blobs={script: b"#!/bin/sh\nexit 3\n"})
    rule = "-" * 80
    assert text(sacct("-B", "-j", "700001", past=past, uid=2002).out) == (
        f"Batch Script for 700001\n{rule}\n#!/bin/sh\nexit 3\n"
    )
    assert text(sacct("-B", "-j", "700001", past=past, uid=2001).out) == ""


def test_the_environment_kept_has_what_sbatch_adds() -> None:
    given = Digest("cd" * 32)
    limits = (("CORE", 0, -1), ("STACK", -1, -1), ("LOCKS", 1, 1))
    spec = {"environment": given, "rlimits": limits, "submit_dir": "/home/bob", "umask": 0o27}
    past = Past([ended(owner=BOB, spec=spec)], blobs={given: b"A=1\0B=x y"})
    told = text(sacct("--env-vars", "-j", "700001", past=past, uid=2002).out).splitlines()
    assert told[0] == "Environment used for 700001 (must be batch to display)"
    assert told[2:] == [
        "A=1",
        "B=x y",
        "SLURM_PRIO_PROCESS=0",
        "SLURM_RLIMIT_CORE=0",
        "SLURM_RLIMIT_STACK=18446744073709551615",
        "SLURM_SUBMIT_DIR=/home/bob",
        "SLURM_UMASK=0027",
    ]
    assert text(sacct("--env-vars", "-j", "700001", past=past, uid=2001).out) == ""


@pytest.mark.parametrize(
    ("flags", "shown"),
    [
        (("job_comment", "job_extra"), "700001|hello|more\n"),
        (("job_comment",), "700001|hello|\n"),
        (("job_extra",), "700001||more\n"),
    ],
)
def test_texts_that_the_site_does_not_keep_are_empty(flags: tuple[str, ...], shown: str) -> None:
    past = Past([ended(owner=BOB, spec={"options": (("extra", "more"),)}, comment="hello")])
    words = ("sacct", "-nXP", "-j", "700001", "-o", "jobid,comment,extra")
    answer = ask(Sacct(flags=flags), desk_of(snapshot([]), past), words, uid=2002)
    assert text(answer.out) == shown


@pytest.mark.parametrize(
    ("word", "head"),
    [
        ("-B", "Batch Script for 700001"),
        ("--env-vars", "Environment used for 700001 (must be batch to display)"),
    ],
)
def test_scripts_and_environments_that_the_site_does_not_keep_are_none(
    word: str, head: str
) -> None:
    given = Digest("cd" * 32)
    batch = StepSpec(name="batch", phases=(Phase(script=given),))
    job = ended(owner=BOB, spec={"environment": given, "batch": batch})
    past = Past([job], blobs={given: b"A=1"})
    words = ("sacct", word, "-j", "700001")
    answer = ask(Sacct(flags=()), desk_of(snapshot([]), past), words, uid=2002)
    assert text(answer.out) == f"{head}\n{'-' * 80}\nNONE\n"


CUT = ("-n", "-P", "-o", "jobid,start,end,elapsed", "-T")
BEGAN, ENDS = "2026-11-30T11:59:30", "2026-11-30T11:59:50"


@pytest.mark.parametrize(
    ("words", "job", "step"),
    [
        ((), (BEGAN, ENDS, "00:00:20"), (BEGAN, ENDS, "00:00:20")),
        (("-S", "11:59:40"), ("2026-11-30T11:59:40", ENDS, "00:00:10"), ("2026-11-30T11:59:40", ENDS, "00:00:10")),
        (("-S", "11:59:00", "-E", "11:59:45"), (BEGAN, "2026-11-30T11:59:45", "00:00:15"), (BEGAN, "2026-11-30T11:59:45", "00:00:15")),
        (("-S", "11:59:35", "-E", "11:59:45"), ("2026-11-30T11:59:35", "2026-11-30T11:59:45", "00:00:10"), ("2026-11-30T11:59:35", "2026-11-30T11:59:45", "00:00:10")),
    ],
)  # fmt: skip
def test_times_are_cut_to_the_window_where_that_is_asked(
    words: tuple[str, ...], job: tuple[str, ...], step: tuple[str, ...]
) -> None:
    rows = text(sacct(*CUT, "-j", "700002", *words).out).splitlines()
    assert rows == ["|".join(("700002", *job)), "|".join(("700002.batch", *step))]


def test_what_runs_on_ends_with_the_window_and_what_waits_is_left() -> None:
    live = [running(700012), pending(700013)]
    past = Past([])
    rows = text(sacct(*CUT, "-X", "-S", "11:59:40", live=live, past=past).out).splitlines()
    assert rows == [
        "700012|2026-11-30T11:59:40|2026-11-30T12:00:00|00:00:20",
        "700013|Unknown|Unknown|00:00:00",
    ]
