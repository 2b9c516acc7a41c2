"""The configuration: what it takes, what it says about mistakes, what the broker gets from it."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from accounting.assoc import Level, LevelKind, standing
from accounting.ids import UserName
from accounting.tres import Tres
from gateway.config.load import check, load
from gateway.config.manual import form_of, group_in, groups, settings_page
from gateway.config.problems import ConfigError
from gateway.config.settings import Config
from gateway.config.site import site

SITE_YAML = Path(__file__).parents[2] / "conformance" / "site.yaml"


def said(text: str) -> list[str]:
    return list(map(str, check(text)))


def partition(**settings: object) -> str:
    return json.dumps({"nodes": [{"names": "n[1-2]"}], "partitions": [{"name": "p", **settings}]})


def test_an_empty_file_is_one_elastic_partition_with_nothing_enforced() -> None:
    config = load("")
    assert config == Config()
    (only,) = config.partitions
    assert (config.cluster, only.name, only.default, only.def_mem_per_cpu) == (
        "skypurza",
        "ec2",
        True,
        1024,
    )
    assert only.elastic is not None and only.elastic.provider == "local"
    assert config.accounting.enforce == ()


PRIORITY_FLAGS = {
    # of slurm.conf(5), 25.11: what the ranking goes by; None is refused by its name
    "ACCRUE_ALWAYS": {"ACCRUE_ALWAYS"},
    "CALCULATE_RUNNING": None,
    "DEPTH_OBLIVIOUS": None,
    "FAIR_TREE": {"FAIR_TREE"},
    "INCR_ONLY": None,
    "MAX_TRES": {"MAX_TRES"},
    "MAX_TRES_GRES": {"MAX_TRES_GRES"},
    "NO_FAIR_TREE": None,
    "NO_NORMAL_ALL": {"NO_NORMAL_ASSOC", "NO_NORMAL_PART", "NO_NORMAL_QOS", "NO_NORMAL_TRES"},
    "NO_NORMAL_ASSOC": {"NO_NORMAL_ASSOC"},
    "NO_NORMAL_PART": {"NO_NORMAL_PART"},
    "NO_NORMAL_QOS": {"NO_NORMAL_QOS"},
    "NO_NORMAL_TRES": {"NO_NORMAL_TRES"},
    "SMALL_RELATIVE_TO_TIME": {"SMALL_RELATIVE_TO_TIME"},
}


@pytest.mark.parametrize("flag", PRIORITY_FLAGS)
def test_a_flag_of_priority_has_its_effect_or_is_refused_by_its_name(flag: str) -> None:
    text, wanted = f"priority: {{flags: {flag}}}", PRIORITY_FLAGS[flag]
    if wanted is None:
        (problem,) = said(text)
        assert flag in problem
    else:
        made = site(load(text), service_uid=0, uid_of=lambda _: None, price_of=lambda _: None)
        assert made.ranking.flags == wanted


TIMES = [
    ("60", 3600),
    (60, 3600),
    ("10:00", 600),
    ("10:00:00", 36000),
    ("7-00:00:00", 604800),
    ("1-12", 129600),
    ("UNLIMITED", "UNLIMITED"),
    ("infinite", "UNLIMITED"),
]


@pytest.mark.parametrize(("written", "seconds"), TIMES)
def test_times_are_slurms(written: object, seconds: object) -> None:
    assert load(partition(max_time=written)).partitions[0].max_time == seconds


def test_yaml_does_not_read_clock_times_as_numbers_nor_no_as_false() -> None:
    config = load("partitions: [{name: p, max_time: 10:00:00, oversubscribe: NO}]")
    assert config.partitions[0].max_time == 36000
    assert config.partitions[0].oversubscribe == "NO"


@pytest.mark.parametrize(
    ("written", "mib"), [(16000, 16000), ("16000M", 16000), ("2G", 2048), ("1T", 1048576)]
)
def test_memory_is_slurms(written: object, mib: int) -> None:
    assert load(partition(def_mem_per_cpu=written)).partitions[0].def_mem_per_cpu == mib


def test_lists_of_names_may_be_written_as_in_slurm() -> None:
    text = partition(deny_accounts="root, default", allow_qos="ALL")
    assert load(text).partitions[0].deny_accounts == ("root", "default")
    assert load(text).partitions[0].allow_qos is None


def test_words_are_taken_in_any_case() -> None:
    assert load(partition(state="drain")).partitions[0].state == "DRAIN"


MISTAKES = {
    "clutser: x": ["clutser: no such setting (did you mean cluster?)"],
    "partitions: [{name: p, staet: UP}]": [
        "partitions[p].staet: no such setting (did you mean state?)"
    ],
    "partitions: [{name: p, state: DWN}]": [
        "partitions[p].state: DWN: not one of the words allowed (did you mean DOWN?)"
    ],
    "partitions: [{name: p, max_time: soon}]": [
        "partitions[p].max_time: soon: not a time as Slurm writes it (minutes, minutes:seconds, "
        "hours:minutes:seconds, days-hours[:minutes[:seconds]] or UNLIMITED)"
    ],
    "partitions: [{default: true}]": ["partitions[0].name: missing"],
    "partitions: [{name: p, nodes: 'n[3-'}]": [
        "partitions[p].nodes: n[3-: not a list of hosts (names as Slurm writes them, "
        "such as ec2-[1-4,7])"
    ],
    "partitions: [{name: p, nodes: n1}]": [
        "partitions[p].nodes: n1: no such node (none is declared)"
    ],
    "partitions: [{name: p, elastic: {provider: ec3}}]": [
        "partitions[p].elastic.provider: ec3: not one of the words allowed (one of: local, ec2)"
    ],
    "partitions: [{name: p, default_time: 2:00:00, max_time: 1:00:00}]": [
        "partitions[p].default_time: longer than max_time (at most max_time)"
    ],
    "partitions: [{name: p, oversubscribe: force}]": [
        "partitions[p].oversubscribe: FORCE: a cpu is rented for one job at a time (NO or "
        "EXCLUSIVE; jobs that may crowd ask for fewer cpus, or --overcommit)"
    ],
    "partitions: [{name: p, def_mem_per_cpu: 2G, max_mem_per_cpu: 1G}]": [
        "partitions[p].def_mem_per_cpu: 2048: more than max_mem_per_cpu"
    ],
    "nodes: [{names: n1, sockets: 3, boards: 2}]": [
        "nodes[n1].boards: 2: 3 sockets are not even on them (a divisor of the sockets)"
    ],
    "partitions: [{name: p, min_nodes: 3, max_nodes: 2}]": [
        "partitions[p].min_nodes: 3: more than max_nodes"
    ],
    "partitions: [{name: p, allow_accounts: chme}]\naccounts: [{name: chem}]": [
        "partitions[p].allow_accounts: chme: no such account (did you mean chem?)"
    ],
    "partitions: [{name: p, default: true}, {name: q, default: true}]": [
        "partitions: p, q: all are the default (default: true once)"
    ],
    "partitions: [{name: p}, {name: p}]": ["partitions: p: declared 2 times (names are unique)"],
    "partitions: [{name: p, preempt_mode: suspend}]": [
        "partitions[p].preempt_mode: SUSPEND: jobs are not suspended to make room"
        " (REQUEUE or CANCEL)"
    ],
    "nodes: [{names: ec2-3}]": [
        "partitions[ec2].elastic: ec2-3: is the name of a declared node (another name_prefix)"
    ],
    "nodes: [{names: n1, cpus: 5, sockets: 2, cores_per_socket: 2}]": [
        "nodes[n1].cpus: 5: not 2 x 2 x 1 (sockets x cores_per_socket (x threads_per_core), "
        "or leave cpus out)"
    ],
    "nodes: [{names: n1, gres: 'gpu:a10g:two'}]": [
        "nodes[n1].gres: gpu:a10g:two: 'gpu:a10g:two' is not a generic resource "
        "(NAME[:TYPE][:COUNT], as gpu:a10g:2)"
    ],
    "nodes: [{names: n1, usd_per_hour: -1}]": [
        "nodes[n1].usd_per_hour: -1: not an amount of dollars "
        "(a number with at most six decimals, such as 1.006)"
    ],
    "accounts: [{name: overhead}]": [
        "accounts[overhead]: the name is kept for idle time (another name)"
    ],
    "accounts: [{name: a}, {name: A}]": ["accounts: account 'a' is given twice"],
    "accounts: [{name: a, parent: b}, {name: b, parent: a}]": [
        "accounts[a].parent: b: is below it (cut the ring)",
        "accounts[b].parent: a: is below it (cut the ring)",
    ],
    "users: [{name: u, associations: [{account: x}]}]": [
        "users[u].associations[x]: x: no such account (one of: root)"
    ],
    "users: [{name: u, associations: [{account: root, qos: normal, default_qos: hi}]}]": [
        "users[u].associations[root].default_qos: hi: may not be used (one of its qos: normal)"
    ],
    "qos: [{name: normal, max_tres_per_user: gpus=1}]": [
        "qos[normal].max_tres_per_user: gpus=1: 'gpus=1' names no TRES (NAME=NUMBER of: cpu, mem, "
        "node, billing, energy, fs/disk, vmem, pages, gres/NAME[:TYPE], license/NAME)"
    ],
    "accounting: {enforce: 'associations,limit'}": [
        "accounting.enforce: associations,limit: not one of the words allowed "
        "(did you mean limits?)"
    ],
    "partitions: [{name: p, tres_billing_weights: CPU=much}]": [
        "partitions[p].tres_billing_weights: CPU=much: CPU=much is not a weight "
        "(CPU=1.0, or Mem=0.25G per gigabyte)"
    ],
    "http: {port: 8080}": ["http.token: missing (a port needs one)"],
    "partitions: []": ["partitions: none is declared (at least one, or leave them out)"],
    "min_job_age: -1": ["min_job_age: -1: must be greater than or equal to 0"],
    "min_job_age: soon": ["min_job_age: soon: not a whole number"],
    "cluster: {a: 1}": ["cluster: {'a': 1}: not a text (write it in quotes)"],
    "partitions: 3": ["partitions: 3: not a list (one `- ` line for each)"],
    "- a": ["configuration: not a list of `name: value` lines"],
    "cluster: a\ncluster: b": ["line 2, column 1: 'cluster' is given twice"],
    "cluster: [": ["line 1, column 11: expected the node content, but found '<stream end>'"],
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_told_with_its_place_its_value_and_the_way_out(text: str) -> None:
    assert said(text) == MISTAKES[text]


def test_everything_wrong_is_told_at_once() -> None:
    text = "clutser: x\nkill_wait: soon\npartitions: [{name: p, state: DWN, nodes: n1}]"
    assert len(check(text)) == 4
    with pytest.raises(ConfigError) as caught:
        load(text)
    assert [problem.path for problem in caught.value.problems] == [
        "kill_wait",
        "partitions[p].state",
        "clutser",
        "partitions[p].nodes",
    ]


def test_what_is_missing_only_because_its_bad_value_was_told_is_not_told_too() -> None:
    (only,) = said("nodes:\n- {names: 'n-[1-'}")
    assert only.startswith("nodes[n-[1-].names: n-[1-: not a list of hosts")


def test_a_value_that_a_terminal_would_obey_is_quoted() -> None:
    (only,) = said('cluster: "a\\e[2J"')
    assert only.startswith(r"cluster: 'a\x1b[2J': not a name")


def test_a_file_nested_without_end_is_told() -> None:
    assert said("cluster: " + "[" * 5000) == ["configuration: nested too deeply"]


def test_more_elastic_nodes_than_a_list_of_hosts_can_have_are_refused() -> None:
    (only,) = said(partition(elastic={"max_nodes": 999_999_999}))
    assert "elastic.max_nodes: 999999999: must be less than or equal to 65536" in only


def test_a_token_is_never_shown() -> None:
    text = "http: {port: 8080, token: sesame}"
    assert "sesame" not in str(check(text)) + repr(load(text.replace("sesame", "s" * 16)))
    assert said(text) == ["http.token: too short (at least 16 characters)"]


def test_every_setting_says_what_it_is_and_how_it_is_written() -> None:
    silent = [
        f"{path}.{name}"
        for path, group in groups(Config)
        for name, field in group.model_fields.items()
        if not (field.description or "").endswith(".")
        or not (group_in(field.annotation) or form_of(field))
    ]
    assert silent == []


def test_the_manual_shows_form_and_default_of_each_setting() -> None:
    page = settings_page()
    for line in (
        "| `min_job_age` | seconds | `300` | MinJobAge: how long an ended job stays in squeue. |",
        "| `decay_half_life` | time | `7-00:00:00` | PriorityDecayHalfLife:",
        "| `name` | name | required | Name of the partition. |",
        "| `memory_share` | whole number, 50 to 100 | `95` | Percent of a type's memory",
    ):
        assert line in page
    assert "## `users[].associations[]`" in page


def test_the_broker_gets_declared_nodes_with_their_price() -> None:
    text = """
    nodes:
      - {names: "n[1-2]", cpus: 8, real_memory: 32G, gres: "gpu:a10g:2", weight: 3}
      - {names: big, cpus: 2, usd_per_hour: 0.25}
      - {names: typed, cpus: 4, instance_type: g5.xlarge}
    partitions: [{name: p, nodes: ALL}]
    """
    got = site(load(text), service_uid=1000, uid_of={}.get, price_of={"g5.xlarge": 1_006_000}.get)
    assert [(n.name, n.micro_usd_per_hour) for n in got.nodes] == [
        ("n1", 0),
        ("n2", 0),
        ("big", 250_000),
        ("typed", 1_006_000),
    ]
    first = got.nodes[0]
    assert first.whole == Tres(cpu=8, mem_mib=32768, node=1, gres=(("gpu", 2), ("gpu:a10g", 2)))
    assert (first.gres_text, first.sockets, first.weight) == ("gpu:a10g:2", 8, 3)
    assert got.partitions[0].nodes == ("n1", "n2", "big", "typed")
    assert got.service_uid == 1000


def test_the_broker_gets_the_buying_policy_of_an_elastic_partition() -> None:
    text = """
    partitions:
      - name: p
        elastic: {max_nodes: 3, spot: true, regions: "us-east-1,eu-west-1", max_usd_per_hour: 2.5}
    """
    elastic = site(load(text), service_uid=0, uid_of={}.get, price_of={}.get).partitions[0].elastic
    assert elastic is not None
    assert (elastic.prefix, elastic.max_nodes, elastic.buy.spot) == ("ec2-", 3, True)
    assert elastic.buy.regions == ("us-east-1", "eu-west-1")
    assert elastic.buy.max_micro_usd_per_hour == 2_500_000


def test_administrators_of_the_configuration_are_the_brokers() -> None:
    text = (
        "users: [{name: olga, admin_level: administrator}, {name: x, admin_level: administrator}]"
    )
    got = site(load(text), service_uid=0, uid_of={"olga": 2001}.get, price_of={}.get)
    assert got.admins == {0, 2001}
    assert got.service_uid is None


def test_accounting_gets_users_with_their_limits() -> None:
    text = """
    accounts: [{name: lab, max_jobs: 3}, {name: chem, parent: lab, fairshare: 7}]
    users:
      - name: alice
        default_account: chem
        associations: [{account: lab}, {account: chem, max_wall: UNLIMITED, grp_tres: cpu=8}]
    qos: [{name: normal}, {name: short, max_jobs_per_user: 2, flags: denyonlimit}]
    accounting: {enforce: limits}
    """
    book = site(load(text), service_uid=0, uid_of={}.get, price_of={}.get).book
    found = standing(book, UserName("alice"))
    assert (found.account, found.limit("grp_tres", "cpu")) == (
        "chem",
        (Level(LevelKind.USER, "alice", book.associations[UserName("alice")][1].limits), 8),
    )
    assert [level.name for level in found.levels] == ["normal", "alice", "chem", "lab", "root"]
    assert book.qos["short"].flags == {"DenyOnLimit"}
    assert book.qos["short"].limits.max_jobs == 2


def test_the_recorded_site_is_expressed() -> None:
    config = load(SITE_YAML.read_text())
    got = site(config, service_uid=0, uid_of={"root": 0}.get, price_of={}.get)
    assert [p.name for p in got.partitions] == ["ec2", "debug", "down", "rootonly", "chemonly"]
    assert got.default_partition is not None and got.default_partition.default_time == 3600
    assert got.nodes[3].features == ("ondemand", "g5")
    assert config.qos[2].max_wall == 3600
    assert config.qos[3].max_tres_per_user == {"gres/gpu": 1}
    assert config.qos[0].usage_factor == Decimal(1)


def test_the_recorded_site_agrees_with_its_record(shared: Path) -> None:
    record = json.loads((shared / "conformance" / "site.json").read_text())
    config = load(SITE_YAML.read_text())
    assert config.cluster == record["cluster"]["name"]
    assert config.first_job_id == record["job_ids"]["first"]
    assert config.max_job_count == record["job_ids"]["max_job_count"]
    assert list(config.accounting.tres) == record["accounting"]["tres"]
    assert [a.name for a in config.accounts] == [a["name"] for a in record["accounts"]]
    assert {q.name: q.priority for q in config.qos} == {
        q["name"]: q["priority"] for q in record["qos"]
    }
    limits = {
        key.removesuffix("_seconds").removesuffix("_minutes"): value
        for key, value in record["limits"].items()
    }
    limits.pop("batch_start_timeout")  # a start is told by its node's journal, or its node is lost
    assert {key: getattr(config, key) for key in limits} == limits
    shares = {(u.name, a.account): a.fairshare for u in config.users for a in u.associations}
    assert shares == {(a["user"], a["account"]): a["fairshare"] for a in record["associations"]}
    for mine, theirs in zip(config.partitions, record["partitions"], strict=True):
        assert (mine.name, mine.state) == (theirs["name"], theirs["state"])
        assert mine.max_nodes == theirs.get("max_nodes")
        assert mine.priority_job_factor == theirs.get("priority_job_factor", 1)
        assert mine.tres_billing_weights == theirs.get("tres_billing_weights", "")


HOSTILE = (
    *(f"kill_wait: {'9' * 5000}", "kill_wait: 99999999999999999999", "kill_wait: !!int x"),
    *("kill_wait: !!bool x", "kill_wait: !!float x", "kill_wait: !!timestamp x", "? [a]\n: b"),
    *("kill_wait: !!binary YQ==", "kill_wait: !!set [a]", "kill_wait: !!timestamp [a]"),
    *("kill_wait: 2020-99-99", "kill_wait: .nan", "? {a: b}\n: c", "&a [*a]", "kill_wait: &a [*a]"),
)


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:30])
def test_whatever_a_file_holds_it_is_told_what_is_wrong(text: str) -> None:
    assert said(text)
