"""sinfo as a program: states of nodes, groups, elastic names."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from accounting.tres import Tres, gres_counts
from broker.model.ids import NodeName
from broker.model.job import Job, JobFlag, Owner, Share
from broker.model.node import Node, NodeState
from broker.model.site import Site
from gateway.api.programs.scontrol_show import Show
from gateway.api.programs.sinfo import Sinfo
from gateway.api.wire import Answer
from gateway.query.sinfo import LETTER_CELLS
from tests.unit.gateway.query.desk import ask, desk_of, snapshot, text
from tests.unit.gateway.query.records import CLOUD, NODES, NOON, SITE, ended, node, running
from tests.unit.gateway.query.scene import queue


def sinfo(
    *words: str,
    jobs: list[Job] | None = None,
    nodes: Mapping[str, Node] = NODES,
    site: Site = SITE,
    environ: Mapping[str, str] | None = None,
) -> Answer:
    desk = desk_of(snapshot(jobs or [], nodes=nodes, site=site))
    return ask(Sinfo(), desk, ["sinfo", *words], environ=dict(environ or {}))


def bought(name: str, state: NodeState, **changes: object) -> Node:
    known = {"launch": 1, "state": state, "whole": Tres(4, 15000, 1), "partitions": ("cloud",)}
    return Node(NodeName(name), **{**known, **changes})  # type: ignore[arg-type]


def held(name: str, cpus: int, **changes: object) -> Job:
    want = Tres(cpus, 1024, 1)
    return running(700100 + cpus, nodes=(name,), want=want, partitions=("cloud",), **changes)


ELASTIC = [
    ("nothing bought", {}, [], "idle~ 4 ec2-[1-4]"),
    (
        "one boots for a job",
        {"ec2-1": bought("ec2-1", NodeState.BOOTING)},
        [held("ec2-1", 4, flags=JobFlag.CONFIGURING)],
        "alloc# 1 ec2-1|idle~ 3 ec2-[2-4]",
    ),
    (
        "one is being bought, part of it for a job",
        {"ec2-1": bought("ec2-1", NodeState.LAUNCHING)},
        [held("ec2-1", 1, flags=JobFlag.CONFIGURING)],
        "mix# 1 ec2-1|idle~ 3 ec2-[2-4]",
    ),
    ("warm", {"ec2-1": bought("ec2-1", NodeState.UP)}, [], "idle 1 ec2-1|idle~ 3 ec2-[2-4]"),
    (
        "let go",
        {"ec2-1": bought("ec2-1", NodeState.TERMINATING)},
        [],
        "idle% 1 ec2-1|idle~ 3 ec2-[2-4]",
    ),
    ("lost", {"ec2-1": bought("ec2-1", NodeState.DOWN)}, [], "down* 1 ec2-1|idle~ 3 ec2-[2-4]"),
    (
        "a job is cleaned up",
        {"ec2-1": bought("ec2-1", NodeState.UP)},
        [
            ended(
                flags=JobFlag.COMPLETING,
                shares=held("ec2-1", 1).shares,
                last_node_names=("ec2-1",),
            )
        ],
        "comp 1 ec2-1|idle~ 3 ec2-[2-4]",
    ),
]


@pytest.mark.parametrize(("title", "nodes", "jobs", "lines"), ELASTIC, ids=[r[0] for r in ELASTIC])
def test_elastic_nodes_show_where_their_machine_stands(
    title: str, nodes: dict[str, Node], jobs: list[Job], lines: str
) -> None:
    answer = sinfo("-h", "-o", "%t %D %N", nodes=nodes, jobs=jobs, site=CLOUD)
    assert sorted(text(answer.out).splitlines()) == sorted(lines.split("|")), title


DRAINED = [
    ({"drain": True}, [], "drain drained 0/0/4/4"),
    ({"drain": True}, [running(want=Tres(4, 1024, 1))], "drng draining 4/0/0/4"),
    ({"drain": True}, [running()], "drng draining 1/0/3/4"),
    ({"state": NodeState.DOWN}, [], "down* down* 0/0/4/4"),
    ({}, [running()], "mix mixed 1/3/0/4"),
    ({}, [running(want=Tres(4, 1024, 1))], "alloc allocated 4/0/0/4"),
]


@pytest.mark.parametrize(("changes", "jobs", "line"), DRAINED)
def test_states_and_cpus_follow_jobs_and_drains(
    changes: dict[str, object], jobs: list[Job], line: str
) -> None:
    nodes = {**NODES, "ec2-1": node("ec2-1", **changes)}
    answer = sinfo("-h", "-N", "-n", "ec2-1", "-p", "ec2", "-o", "%t %T %C", jobs=jobs, nodes=nodes)
    assert text(answer.out) == line + "\n"


def test_reasons_are_listed_once_for_each_node() -> None:
    nodes = {
        **NODES,
        "ec2-1": node("ec2-1", drain=True, reason="bad disk", reason_at=NOON, reason_uid=0),
    }
    assert text(sinfo("-R", nodes=nodes).out) == (
        "REASON               USER      TIMESTAMP           NODELIST\n"
        "bad disk             root      2026-11-30T12:00:00 ec2-1\n"
    )


TOGETHER = [
    (("-s", "-R"), "NODES(A/I/O/T)", "ec2-1 - - -"),
    (("-s", "-N", "-p", "ec2"), "NODES(A/I/O/T)", "ec2-1 ec2-2 ec2-3 ec2-4"),
    (("-R", "-N"), "NODELIST   NODES", "drain drain drain drain"),
    (("-N", "-R", "-s", "-p", "debug"), "NODES(A/I/O/T)", "ec2-1"),
]


@pytest.mark.parametrize(("words", "head", "ends"), TOGETHER)
def test_a_summary_goes_before_nodes_and_these_before_reasons(
    words: tuple[str, ...], head: str, ends: str
) -> None:
    nodes = {**NODES, "ec2-1": node("ec2-1", drain=True, reason="bad disk")}
    first, *rows = text(sinfo(*words, nodes=nodes).out).splitlines()
    assert head in first
    last = [row.rstrip().rpartition(" ")[2] for row in rows]
    shown = ["-" if "/" in word else word for word in last]
    assert len(shown) >= len(ends.split())
    assert set(shown) == set(ends.split())


def test_which_gpus_jobs_hold_is_shown() -> None:
    gres = gres_counts({"gpu:a10g": 1})
    share = Share(NodeName("ec2-1"), 0, Tres(1, 512, 1, gres), cpu_ids=(0,), gpu_ids=(1,))
    jobs = [running(700001, want=Tres(1, 512, 1, gres), shares=(share,))]
    rows = text(sinfo("-h", "-p", "ec2", "-O", "gresused:20,nodes:2", jobs=jobs).out).splitlines()
    assert rows == ["gpu:a10g:1(IDX:1)   1 ", "gpu:a10g:0(IDX:N/A) 3 "]
    desk = desk_of(snapshot(jobs))
    shown = text(ask(Show(), desk, ["scontrol", "-d", "show", "node", "ec2-1"]).out)
    assert "   Gres=gpu:a10g:2\n   GresDrain=N/A\n   GresUsed=gpu:a10g:1(IDX:1)\n" in shown
    assert "GresUsed" not in text(ask(Show(), desk, ["scontrol", "show", "node", "ec2-1"]).out)


def test_lines_of_the_usual_listing() -> None:
    out = text(sinfo(jobs=queue()).out)
    assert out == (
        "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
        "ec2*         up 7-00:00:00      1    mix ec2-2\n"
        "ec2*         up 7-00:00:00      1  alloc ec2-1\n"
        "ec2*         up 7-00:00:00      2   idle ec2-[3-4]\n"
        "debug        up      30:00      1    mix ec2-2\n"
        "debug        up      30:00      1  alloc ec2-1\n"
        "debug        up      30:00      2   idle ec2-[3-4]\n"
        "down       down   infinite      1  alloc ec2-1\n"
        "rootonly     up   infinite      1  alloc ec2-1\n"
        "chemonly     up   infinite      1    mix ec2-2\n"
    )


FILTERS = [
    (("-t", "idle"), "idle ec2-[3-4]"),
    (("-t", "idle", "words", "beside"), "idle ec2-[3-4]"),
    (("-t", "alloc,mix"), "mix ec2-2|alloc ec2-1"),
    (("-t", "!idle"), "mix ec2-2|alloc ec2-1"),
    (("-t", "mixed&idle"), "n/a "),
    (("-n", "ec2-[2-3]"), "mix ec2-2|idle ec2-3"),
    (("-n", "nosuch"), "n/a "),
    (("-d",), "n/a "),
]


@pytest.mark.parametrize(("words", "lines"), FILTERS)
def test_filters_choose_nodes(words: tuple[str, ...], lines: str) -> None:
    out = text(sinfo("-h", "-p", "ec2", "-o", "%P %t %N", *words, jobs=queue()).out)
    assert out == "".join(f"ec2* {line}\n" for line in lines.split("|"))


def test_a_format_without_partitions_counts_a_node_once() -> None:
    assert text(sinfo("-h", "-o", "%D %T").out) == "4 idle\n"


WIDTHS = [
    ("%P|%1P|%3P|%.3P|%6P|", "PARTITION|P|PAR|PAR|PARTIT|", "ec2*|*|ec*|ec*|ec2*  |"),
    ("%.4N|%4N", "NODELIST|NODE", "ec2-|ec2-"),
]


@pytest.mark.parametrize(("shape", "head", "row"), WIDTHS)
def test_names_keep_their_star_and_their_header(shape: str, head: str, row: str) -> None:
    assert text(sinfo("-p", "ec2", "-o", shape).out) == f"{head}\n{row}\n"


def test_unlike_nodes_stand_apart_where_the_column_is_shown() -> None:
    assert text(sinfo("-h", "-p", "ec2", "-o", "%f %N").out) == (
        "spot,g5 ec2-[1-2]\nondemand,g5 ec2-[3-4]\n"
    )
    assert text(sinfo("-h", "-p", "ec2", "-o", "%w").out) == "1+\n"
    assert text(sinfo("-h", "-p", "ec2", "-e", "-o", "%w").out) == "1\n2\n3\n4\n"


@pytest.mark.parametrize("letter", sorted(LETTER_CELLS))
def test_a_width_puts_no_lines_together(letter: str) -> None:
    plain = text(sinfo("-h", "-o", f"%{letter}").out).splitlines()
    for width in ("3", ".3", "30"):
        fitted = text(sinfo("-h", "-o", f"%{width}{letter}").out).splitlines()
        assert len(fitted) == len(plain), width


ERRORS = [
    (("-t", "zz"), 1, 'sinfo: error: Bad state string: "zz"\n'),
    (("-l", "-o", "%N"), 1, "sinfo: fatal: Options -o(--format) and -l(--long) are mutually "),
    (("-O", "nodes", "--long"), 1, "sinfo: fatal: Options -o(--format) and -l(--long) are "),
    (("--no",), 1, "sinfo: option '--no' is ambiguous; possibilities: '--nodes' '--noconvert' "),
    (("--re",), 1, "sinfo: option '--re' is ambiguous; possibilities: '--responding' '--res"),
    (("-i", "x"), 1, "sinfo: error: Error: invalid entry for --iterate=x\n"),
    (("-S", "?"), 1, "sinfo: error: Invalid sort specification: ?\n"),
    (("-o", "%.3@x"), 0, "Invalid node format specification: @\n"),
    (("-O", "nosuch"), 0, "sinfo: error: Invalid job format specification: nosuch\n"),
]


@pytest.mark.parametrize(("words", "code", "err"), ERRORS)
def test_what_cannot_be_is_told_in_slurms_words(
    words: tuple[str, ...], code: int, err: str
) -> None:
    answer = sinfo(*words)
    assert answer.code == code
    assert text(answer.err).startswith(err)


def test_all_spreads_into_every_letter_and_is_called_unknown_as_a_name() -> None:
    answer = sinfo("-p", "ec2", "-O", "partition:9,all:30")
    head, first, *_ = answer.out.splitlines()
    assert head.startswith("PARTITIONAVAIL|ACTIVE_FEATURES|CPUS|")
    assert head.endswith("STATE |USER |CLUSTER |SOCKETS |CORES |THREADS ")
    assert first.startswith("ec2*     up|spot,g5|4|0|")
    assert answer.err == "sinfo: error: Invalid job format specification: all\n"
    assert sinfo("-p", "ec2", "-o", "%all").out.splitlines()[0] == head.removeprefix("PARTITION")


LAB = 3003
GUARDED = replace(
    SITE,
    partitions=tuple(
        replace(part, allow_groups=("lab",), allowed_gids=frozenset({LAB}))
        if part.name == "debug"
        else part
        for part in SITE.partitions
    ),
)


@pytest.mark.parametrize(
    ("groups", "words", "seen"),
    [((), (), False), ((LAB,), (), True), ((), ("-a",), True), ((), ("-p", "debug"), True)],
)
def test_a_partition_is_shown_to_whom_its_groups_let_in_or_who_asks_for_all(
    groups: tuple[int, ...], words: tuple[str, ...], seen: bool
) -> None:
    def owner(uid: int) -> Owner:
        return Owner(uid, uid, "alice", "alice", groups=groups)

    desk = replace(desk_of(snapshot(queue(), nodes=NODES, site=GUARDED)), names=owner)
    parts = text(ask(Sinfo(), desk, ["sinfo", "-h", "-o", "%R", *words]).out).split()
    assert ("debug" in parts) is seen
    every = [word for word in words if word == "-a"]
    shown = ask(Show(), desk, ["scontrol", *every, "show", "partition", "debug"])
    assert (shown.code == 0) is bool(groups or every)


def test_what_is_configured_of_a_partition_is_shown() -> None:
    part = replace(
        SITE.partitions[0],
        allow_groups=("lab", "staff"),
        deny_qos=("short",),
        qos="high",
        disable_root_jobs=True,
        req_resv=True,
        whole_nodes=True,
        max_cpus_per_node=3,
        def_mem_per_cpu_mib=100,
        max_mem_per_cpu_mib=200,
        over_time=300,
        grace_time=30,
        preempt_mode="requeue",
    )
    desk = desk_of(snapshot([], nodes=NODES, site=replace(SITE, partitions=(part,))))
    letters = ["sinfo", "-a", "-h", "-o", "%g|%h|%B|%M|"]
    assert text(ask(Sinfo(), desk, letters).out) == "lab,staff|EXCLUSIVE|3|REQUEUE|\n"
    shown = text(ask(Show(), desk, ["scontrol", "-a", "show", "partition"]).out)
    for word in (
        "AllowGroups=lab,staff AllowAccounts=ALL DenyQos=short",
        "QoS=high",
        "DisableRootJobs=YES",
        "GraceTime=30",
        "MaxCPUsPerNode=3 MaxCPUsPerSocket=UNLIMITED",
        "ReqResv=YES OverSubscribe=EXCLUSIVE",
        "OverTimeLimit=5 PreemptMode=REQUEUE",
        "DefMemPerCPU=100 MaxMemPerCPU=200",
    ):
        assert word in shown


ENVIRONMENT = [
    ("a format of one's own", {"SINFO_FORMAT": "%N"}, "", "NODELIST"),
    ("-l leaves it", {"SINFO_FORMAT": "%N"}, "-l", "Mon Nov 30"),
    ("-s has one of its own", {"SINFO_FORMAT": "%N"}, "-s", "PARTITION AVAIL"),
    ("and -N", {"SINFO_FORMAT": "%N"}, "-N", "NODELIST   NODES"),
    ("and -R", {"SINFO_FORMAT": "%N"}, "-R", "REASON "),
    ("typed ones win", {"SINFO_FORMAT": "%N"}, "-s -o %D", "NODES"),
    ("partitions", {"SINFO_PARTITION": "debug"}, "-h -o %R", "debug"),
    ("-a takes them away", {"SINFO_PARTITION": "debug"}, "-a -h -o %R", "chemonly"),
    ("both", {"SINFO_PARTITION": "debug", "SINFO_ALL": "1"}, "", "sinfo: error: Conflicting opt"),
    ("both typed", {}, "-a -p debug", "sinfo: error: Conflicting options, -a and -p, specified."),
]


@pytest.mark.parametrize(("what", "environ", "line", "head"), ENVIRONMENT)
def test_what_the_environment_says_counts_where_nothing_else_is_said(
    what: str, environ: dict[str, str], line: str, head: str
) -> None:
    answer = sinfo(*line.split(), environ=environ)
    told = text(answer.out or answer.err).splitlines()
    assert told[0].startswith(head) or told[-1] == head, what
    assert answer.code == int("error" in head)


def lines_of(*words: str) -> dict[str, str]:
    """The values that -v tells, by name."""
    pairs = (line.partition("=") for line in text(sinfo(*words).out).splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, _, value in pairs}


FLAGGED = [
    ("-v", {"format": "partition:9 ,available:.5 ,time:.10 ,nodes:.6 ,statecompact:.6 ,nodelist:0",
            "verbose": "1", "part_field": "true", "node_field": "false", "filtering": "false",
            "states": "(null)", "nodes": "n/a", "avail_flag": "true", "cpus_flag": "false"}),
    ("-vv -N -l", {"verbose": "2", "node_field": "true", "node_format": "true", "long": "true",
                   "features_flag": "true", "features_flag_act": "false", "weight_flag": "true"}),
    ("-v -R", {"states": "down,fail,drain", "filtering": "true", "part_field": "false",
               "reason_user_flag": "true"}),
    ("-v -e -h -p ec2 -n ec2-1 -o %C%b", {
        "exact": "1", "no_header": "true", "partition": "ec2", "nodes": "ec2-1", "format": "%C%b",
        "cpus_flag": "true", "features_flag": "false", "features_flag_act": "true",
        "all_flag": "true", "part_field": "false"}),
    ("-v -O share,gresused", {"oversubscribe_flag": "true", "gres_used_flag": "true"}),
]  # fmt: skip


@pytest.mark.parametrize(("line", "values"), FLAGGED)
def test_v_tells_how_the_options_were_read(line: str, values: dict[str, str]) -> None:
    told = lines_of(*line.split())
    assert {name: told[name] for name in values} == values
    assert "Mon Nov 30" not in text(sinfo("-v", "-h").out)
