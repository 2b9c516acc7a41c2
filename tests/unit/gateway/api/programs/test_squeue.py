"""squeue as a program: filters, errors, exit codes, what is kept."""

from dataclasses import replace

import pytest

from accounting.order import Ranking
from broker.model.job import JobState
from broker.schedule.priority import TOP
from gateway.api.desk import Desk
from gateway.api.programs.squeue import Squeue
from gateway.api.wire import Answer, raw
from gateway.query import views
from tests.unit.gateway.api import office
from tests.unit.gateway.query.desk import Clock, ask, desk_of, snapshot, text
from tests.unit.gateway.query.records import CLOUD, NOON, SITE, pending, running
from tests.unit.gateway.query.scene import queue

HEAD = "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"


def squeue(*words: str, desk: Desk | None = None, **how: object) -> Answer:
    desk = desk or desk_of(snapshot(queue()))
    return ask(Squeue(), desk, ["squeue", *words], **how)  # type: ignore[arg-type]


def ids(*words: str, **how: object) -> str:
    out = text(squeue("-h", "-o", "%i", *words, **how).out)
    return " ".join(line.replace("70000", "") for line in out.splitlines())


LISTINGS = [
    (("-j", "700001"), "1"),
    (("-j", "700001,700003"), "3 1"),
    (("-j700001",), "1"),
    (("--jobs=700008",), "8_[2-3%1] 8_1"),
    (("-j", "700008_1"), "8_1"),
    (("-j", "700008_3"), "8_3"),
    (("-j", "700008_2,700008_3"), "8_[2-3]"),
    (("-j", "700008_3,700008"), "8_3 8_1"),
    (("-j", "700008,700008_3"), "8_[2-3%1] 8_1"),
    (("-j", "700008_3", "-r"), "8_3"),
    (("-j", "700008_99"), ""),
    (("-j", "700014"), "8_1"),
    (("-j", "700010"), ""),
    (("-j", "700010", "-t", "all"), "700010"),
    (("-j", ""), ""),
    (("-t", "R"), "2 3 8_1 1"),
    (("-t", "cd,f"), "700010 700011"),
    (("--me",), "9 5 8_[2-3%1] 7_[1-2,5-10%2] 4 3 8_1 1"),
    (("-u", "bob"), "6 2"),
    (("--me", "-u", "bob"), "6 2"),
    (("-u", "bob", "--me"), "9 5 8_[2-3%1] 7_[1-2,5-10%2] 4 3 8_1 1"),
    (("-n", "run1,dep"), "6 1"),
    (("-n", "RUN1,Dep"), "6 1"),
    (("-q", "NORMAL", "-t", "R"), "2 3 8_1 1"),
    (("--start", "-t", "R", "-S", "i"), "1 2 3 8_1"),
    (("--start", "-t", "PD,R", "-n", "run1,dep", "-S", "i"), "1 6"),
    (("--start", "-n", "run1,dep"), "6"),
    (("-w", "ec2-[1-2]"), "2 3 8_1 1"),
    (("-p", "nosuch"), ""),
    (("-A", "CHEM"), "6 2 3"),
    (("-P", "-n", "big"), "9 9"),
    (("-S", "i", "-t", "R"), "1 2 3 8_1"),
    (("--running-over=10",), ""),
    (("--running-over=0:10",), "2 3 1"),
]


@pytest.mark.parametrize(("words", "found"), LISTINGS)
def test_options_choose_jobs(words: tuple[str, ...], found: str) -> None:
    assert ids(*words) == found


@pytest.mark.parametrize(("more", "found"), [((), "8_[2-3]"), (("-r",), "8_3")])
def test_states_alone_are_told_of_whole_records(more: tuple[str, ...], found: str) -> None:
    assert ids("--only-job-state", "-j", "700008_3", *more).split() == [found, "PD"]


ERRORS = [
    (("-j", "799999"), 1, "", "slurm_load_jobs error: Invalid job id specified\n"),
    (("-j", "799998,799999"), 0, HEAD, ""),
    (("-j", "abc"), 1, "", "squeue: error: Invalid job id: abc\n"),
    (("-u", "nosuch"), 0, HEAD, "squeue: error: Invalid user: nosuch\n\n"),
    (("-w", "nosuch"), 1, "", "squeue: error: Invalid node name nosuch\n"),
    (("-u", "99999"), 0, HEAD, "squeue: error: Invalid user: 99999\n\n"),
    (("-s", "x"), 1, "", "squeue: error: Invalid job_step id: x.??\n"),
    (("--steps=700001.0,1",), 1, "", "squeue: error: Invalid job_step id: 1.??\n"),
    (("-s", "x.0"), 1, "", "squeue: error: Invalid job_step id: x.0\n"),
    (("-S", "i,b^q"), 1, HEAD, "squeue: error: Invalid sort specification: q\n"),
    (("-S", "^"), 1, HEAD, "squeue: error: Invalid sort specification: ^\n"),
    (("-j", "0"), 1, "", "squeue: error: Invalid job id: 0\n"),
    (
        ("-o", "%i", "-O", "jobid"),
        1,
        "",
        "squeue: error: -O (--Format) is incompatible with -o (--format)\n",
    ),
    (
        ("-l", "-o", "%i"),
        1,
        "",
        "squeue: fatal: Options -o(--format) and -l(--long) are mutually exclusive."
        " Please remove one and retry.\n",
    ),
    (("-h", "-M", "oracle", "-j", "799998,799999"), 0, "", ""),
    (
        ("-s", "-h", "-o", "%Qx", "-j", "700009"),
        0,
        "",
        "squeue: error: Invalid job step format specification: Q\n",
    ),
    (("-i", "x"), 1, "", "squeue: error: --iterate=x\n\n"),
    (("--running-under=x",), 1, "", "squeue: fatal: Invalid time limit specification\n"),
    (("-V",), 0, "slurm 25.11.7\n", ""),
]


@pytest.mark.parametrize(("words", "code", "out", "err"), ERRORS)
def test_what_cannot_be_is_told_in_slurms_words(
    words: tuple[str, ...], code: int, out: str, err: str
) -> None:
    answer = squeue(*words)
    assert (answer.code, text(answer.out), text(answer.err)) == (code, out, err)


def test_a_bad_state_names_the_good_ones() -> None:
    answer = squeue("-t", "NOSUCH")
    assert answer.code == 1
    assert text(answer.err).startswith(
        "squeue: error: Invalid job state specified: NOSUCH\n"
        "squeue: error: Valid job states include: pending,running,suspended,"
    )
    assert text(answer.err).endswith(",stage_out,stopped\n\n")


def test_the_states_that_there_are_can_be_asked_for() -> None:
    lines = text(squeue("--helpstate").out).splitlines()
    assert (lines[:2], lines[-1], len(lines)) == (["pending", "running"], "stopped", 24)


def test_other_words_are_refused_with_the_usage() -> None:
    answer = squeue("foo")
    assert answer.code == 1
    assert text(answer.out).startswith("Usage: squeue [-A account]")
    assert text(answer.err) == "squeue: error: Unrecognized option: foo\n"


def test_the_line_that_watchers_ask_for() -> None:
    words = ("-h", "-r", "-t", "all", "-o", "%A|%T|%r|%i|%u", "-j", "700001,700008,700011")
    lines = text(squeue(*words).out).splitlines()
    assert sorted(lines) == [
        "700001|RUNNING|None|700001|alice",
        "700008|PENDING|JobArrayTaskLimit|700008_2|alice",
        "700008|PENDING|JobArrayTaskLimit|700008_3|alice",
        "700011|FAILED|NonZeroExitCode|700011|alice",
        "700014|RUNNING|None|700008_1|alice",
    ]


ENVIRONMENTS = [
    ({"SQUEUE_FORMAT": "%i;%T"}, "JOBID;STATE\n700001;RUNNING\n"),
    ({"SQUEUE_FORMAT2": "jobid:7,state:4"}, "JOBID  STAT\n700001 RUNN\n"),
    ({"SQUEUE_FORMAT": "nothing"}, "nothing\nnothing\n"),
    ({"SQUEUE_FORMAT": "%i", "SQUEUE_FORMAT2": "name"}, "JOBID\n700001\n"),
]


@pytest.mark.parametrize(("environ", "out"), ENVIRONMENTS)
def test_formats_come_from_the_environment(environ: dict[str, str], out: str) -> None:
    assert text(squeue("-j", "700001", environ=environ).out) == out


def test_the_command_line_goes_before_the_environment() -> None:
    environ = {"SQUEUE_FORMAT2": "jobid", "SQUEUE_STATES": "PD", "SQUEUE_USERS": "bob"}
    assert ids("-t", "R", environ=environ) == "2"


LONG = "            700001       ec2     run1    alice  RUNNING       0:12     30:00      1 ec2-1\n"
TYPED = [
    (("-o", "%i"), {"SQUEUE_FORMAT2": "name"}, "700001\n"),
    (("-O", "jobid:7"), {"SQUEUE_FORMAT": "%j"}, "700001 \n"),
    (("-O", "jobid:7", "-l"), {}, "700001 \n"),
    (("-l",), {"SQUEUE_FORMAT": "%j"}, LONG),
]


@pytest.mark.parametrize(("words", "environ", "out"), TYPED)
def test_formats_typed_go_before_the_environment(
    words: tuple[str, ...], environ: dict[str, str], out: str
) -> None:
    assert text(squeue("-h", "-j", "700001", *words, environ=environ).out) == out


def test_long_listings_begin_with_the_date() -> None:
    lines = text(squeue("-l", "-j", "700001").out).splitlines()
    assert lines[0] == "Mon Nov 30 12:00:00 2026"
    assert lines[1].endswith("    STATE       TIME TIME_LIMI  NODES NODELIST(REASON)")
    assert lines[2].endswith("  RUNNING       0:12     30:00      1 ec2-1")


DATED = [(("-l",), True), (("-l", "-O", "jobid"), True), (("-l", "-s"), True), (("-s",), False)]


@pytest.mark.parametrize(("words", "dated"), DATED)
def test_whatever_is_listed_long_begins_with_the_date_unless_without_header(
    words: tuple[str, ...], dated: bool
) -> None:
    assert text(squeue(*words).out).startswith("Mon Nov 30 12:00:00 2026\n") is dated
    assert "Nov" not in text(squeue(*words, "-h").out)


def test_all_letters_of_steps_at_once() -> None:
    head, row, *_ = text(squeue("-s", "-o", "%all", "-j", "700003").out).splitlines()
    assert head == (
        "TRES_PER_JOB|STEPID|NAME|TIME_LIMIT|USER|TASKS|TIME|NODELIST|PARTITION|START_TIME|UID|"
    )
    assert row.split("|")[1:3] == ["700003.0", "sleep"]


VERBOSE = [
    ((), {"all": "false", "users": "(null)", "sort": "(null)", "verbose": "1", "nodes": ""}),
    (("-vv", "--me"), {"users": "2001", "verbose": "3"}),
    (("--start",), {"sort": "S", "states": "PD", "start_flag": "1", "format": views.SQUEUE_START}),
    (("-p", "ec2", "-o", "%i"), {"all": "true", "partitions": "ec2", "format": "%i"}),
    (("-O", "jobid", "-j", "700001"), {"format": "(null)", "jobs": "700001", "job_flag": "1"}),
    (("-s", "-r", "-P"), {"step_flag": "1", "array": "true", "priority": "true"}),
]


@pytest.mark.parametrize(("words", "told"), VERBOSE)
def test_how_options_were_read_is_said_where_more_is_to_be_said(
    words: tuple[str, ...], told: dict[str, str]
) -> None:
    lines = text(squeue("-v", *words).out).splitlines()
    end = lines.index("-" * 29, 1)
    said = {line[:12].rstrip(" ="): line[12:].strip(" =") for line in lines[1:end]}
    assert len(said) == 22
    assert said | told == said
    assert lines[end + 3] == "Mon Nov 30 12:00:00 2026"
    assert lines[end + 4].startswith("last_update_time=")


def test_columns_of_steps_can_be_asked_for_too() -> None:
    assert text(squeue("-s", "--helpformat").out) == (
        "%A    %i    %j    %l    %M    %N    %P    %S    \n%u    %U    \n"
    )
    names = text(squeue("--helpFormat", "--steps").out).split()
    assert names[:3] == ["ArrayJobId", "ArrayTaskId", "Cluster"]
    assert names[-3:] == ["tres-per-task", "UserId", "UserName"]
    assert "Gres" not in names


def test_steps_have_rows_of_their_own() -> None:
    assert text(squeue("-s", "-h", "-o", "%i %j %u", "-j", "700003").out) == (
        "700003.0 sleep alice\n700003.batch batch alice\n"
    )
    assert not squeue("-s", "-h", "-p", "debug").out
    mine = text(squeue("-s", "-h", "--me", "-o", "%u", uid=2002).out)
    assert set(mine.split()) == {"bob"}
    assert not squeue("-s", "-h", "-w", "ec2-4").out


def test_clusters_are_named_and_unknown_ones_refused() -> None:
    assert text(squeue("-M", "oracle", "-j", "700001").out).startswith("CLUSTER: oracle\n" + HEAD)
    answer = squeue("-M", "nosuch")
    assert answer.code == 1
    assert text(answer.err).endswith("squeue: fatal: Could not get cluster information\n")


def test_jobs_of_hidden_partitions_are_shown_when_all_are_asked_for() -> None:
    parts = tuple(replace(part, hidden=part.name == "ec2") for part in SITE.partitions)
    desk = desk_of(snapshot(queue(), site=replace(SITE, partitions=parts)))
    assert ids(desk=desk) == "9"
    assert len(ids("-a", desk=desk).split()) == 10


def test_nodes_that_could_be_bought_are_known_names() -> None:
    desk = desk_of(snapshot([], nodes={}, site=CLOUD))
    assert squeue("-w", "ec2-4", desk=desk).code == 0
    assert squeue("-w", "ec2-5", desk=desk).code == 1


def test_names_that_are_no_utf8_come_back_as_they_were() -> None:
    desk = desk_of(snapshot([pending(spec={"name": "caf\udce9"})]))
    answer = squeue("-h", "-o", "%j", desk=desk)
    assert raw(answer.out) == b"caf\xe9\n"
    turn = squeue("-h", "-i", "5", "-o", "%j", desk=desk)
    assert raw(turn.out) == b"caf\xe9\n\n"
    assert turn.rest is not None
    turn.rest.close()  # type: ignore[attr-defined]


def test_control_characters_are_shown_as_they_were_typed_and_count_as_letters() -> None:
    """As Slurm does (22.05)."""
    odd = "a\tb\x01c\x1b[31md"
    desk = desk_of(snapshot([pending(spec={"name": odd}, comment="x\ny")]))
    assert squeue("-h", "-o", "%j|%k|%.4j|", desk=desk).out == f"{odd}|x\ny|{odd[:4]}|\n"
    assert squeue("-h", "-O", "name:20,jobid:8", desk=desk).out == f"{odd:<20}700001  \n"


# ---------------------------------------------------------------- what is kept


def test_the_same_listing_is_made_once_for_a_version_of_the_world() -> None:
    command, desk = Squeue(), desk_of(snapshot(queue()))
    first = ask(command, desk, ["squeue", "-o", "%i"])
    assert ask(command, desk, ["squeue", "-o", "%i"]) is first
    assert ask(command, desk, ["squeue", "-o", "%i"], uid=2002) is not first
    assert ask(command, desk, ["squeue", "-o", "%i"], environ={"SQUEUE_STATES": "R"}) is not first


def test_a_new_version_of_the_world_is_listed_anew() -> None:
    snaps = [snapshot(queue()), snapshot([running()], version=2)]
    command, desk = Squeue(), desk_of(lambda: snaps[0])
    first = ask(command, desk, ["squeue", "-h", "-o", "%i"])
    snaps.pop(0)
    assert text(ask(command, desk, ["squeue", "-h", "-o", "%i"]).out) == "700001\n"
    assert text(first.out) != "700001\n"


def test_what_changes_with_time_is_kept_for_a_second_only() -> None:
    command, desk = Squeue(), desk_of(snapshot([running()]))
    assert isinstance(desk.clock, Clock)
    words = ["squeue", "-h", "-o", "%M"]
    first = ask(command, desk, words)
    assert ask(command, desk, words) is first
    desk.clock.at = NOON + 1
    assert (text(first.out), text(ask(command, desk, words).out)) == ("0:30\n", "0:31\n")


def test_ten_thousand_jobs_are_listed_to_each_who_asks() -> None:
    jobs = [pending(700001 + n, priority=n % 7) for n in range(10_000)]
    command, desk = Squeue(), desk_of(snapshot(jobs))
    assert text(ask(command, desk, ["squeue", "-h", "-j", "700001"]).out).count("\n") == 1
    for uid in range(3):
        assert text(ask(command, desk, ["squeue"], uid=uid).out).count("\n") == 10_001


@pytest.mark.parametrize("ran", [True, False])
def test_a_finished_job_has_the_priority_that_it_had_last(ran: bool) -> None:
    ranking = Ranking(multifactor=True, age=1000, partition=500, max_age=1000)
    part = replace(office.SITE.partitions[1], priority_job_factor=20)
    site = replace(office.SITE, ranking=ranking, partitions=(office.SITE.partitions[0], part))
    desk = office.Office(site)
    job = desk.submit(partitions=("debug",))
    desk.clock.at = office.START + 900
    until = office.START + 300
    end: dict[str, object]
    end = {"state": JobState.COMPLETED, "ended": until + 300, "started": until}
    if not ran:
        end = {"state": JobState.CANCELLED, "ended": until, "started": None}
    desk.change(job, **end, eligible=office.START, hold=None, priority=TOP - job, reason="None")
    for letter, shown in (("%Q", "800"), ("%p", f"{800 / 2**32:16.14f}")):
        listed = desk.run(Squeue(), "-h", "-t", "all", "-o", letter, name="squeue")
        assert str(listed.out).strip() == shown
