"""What `spz` sends, shows and waits for, and how it exits."""

import io
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from broker.model.errors import Busy, Conflict, Refused, Unknown
from gateway.config.paths import Paths
from gateway.query.listed import lasted
from gateway.sdk import sending, show
from gateway.sdk.background import Background, _usable
from gateway.sdk.client import Client, NoService
from gateway.sdk.follow import Follower, Which, logs_status
from gateway.sdk.health import findings, lines
from gateway.sdk.launching import Launch, kept_running, sweep_text, which
from tests.contract.facts import commands


def test_check_says_what_to_do(short_tmp: Path) -> None:
    paths = Paths.from_environ(
        {"SKYPURZA_HOME": str(short_tmp), "SKYPURZA_CONFIG": f"{short_tmp}/none"},
        uid=1,
        user_home=short_tmp,
    )
    text = lines(list(findings(paths, python=Path("/no/python3"))))
    assert "FAIL  configuration: " in text
    assert "no such file" in text
    assert "FAIL  python of the commands: /no/python3 does not run\n      apt-get" in text


def home_at(folder: Path, **environ: str) -> Paths:
    return Paths.from_environ(
        {"SKYPURZA_HOME": str(folder), **environ}, uid=os.getuid(), user_home=folder
    )


@pytest.mark.parametrize(
    ("name", "told"),
    [("gateway.sock", "gateway.sock is there and no socket"), ("state.db", "state.db is a folder")],
)
def test_check_sees_what_stands_in_the_way(short_tmp: Path, name: str, told: str) -> None:
    (short_tmp / name).mkdir()
    bad = [one for one in findings(home_at(short_tmp)) if not one.good]
    assert [(one.text, one.hint[:12]) for one in bad] == [(f"{short_tmp}/{told}", "move it away")]


def test_check_says_where_the_sites_slurm_and_ours_claim_the_same(short_tmp: Path) -> None:
    bin_ = commands(short_tmp / "bin")
    (short_tmp / "config.yaml").write_text(
        f"first_job_id: 5000\npartitions: [{{name: gpu, elastic: {{}}}}]\n"
        f"passthrough: {{bin: {json.dumps(str(bin_))}}}\n"
    )
    found = [one for one in findings(home_at(short_tmp)) if one.name == "site's Slurm"]
    texts = [(one.good, one.text) for one in found]
    assert texts[0] == (True, "hpc, Slurm 24.05.3, by scontrol; partitions cpu (default), gpu")
    assert [(good, text[:21]) for good, text in texts[1:]] == [
        (False, "partition gpu is the "),
        (False, "job ids can meet: our"),
    ]
    down = str(commands(short_tmp / "down", broken=True))
    (short_tmp / "config.yaml").write_text(f"passthrough: {{bin: {json.dumps(down)}}}\n")
    (one,) = (one for one in findings(home_at(short_tmp)) if one.name == "site's Slurm")
    assert (one.good, one.text) == (False, "scontrol: down")


def test_check_asks_a_database_server_whether_it_answers(short_tmp: Path) -> None:
    url = "postgresql://u:hush@127.0.0.1:1/db?connect_timeout=1"
    bad = [one for one in findings(home_at(short_tmp, SKYPURZA_STATE_DB=url)) if not one.good]
    assert [one.name for one in bad] == ["database"]
    assert "does not answer" in bad[0].text and "hush" not in bad[0].text


def test_a_state_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(Refused, match=re.escape(f"cannot use {file}")), _usable(file / "home"):
        (file / "home").mkdir()


# --- what is sent


def test_an_existing_file_is_a_task_and_other_words_are_a_command(tmp_path: Path) -> None:
    file = tmp_path / "task"
    file.write_text("run: é")
    assert sending.task_text([str(file)]) == "run: é"
    assert json.loads(sending.task_text(["echo", "it's"])) == {"run": "echo it's"}
    assert json.loads(sending.task_text(["echo hi"])) == {"run": "echo hi"}
    assert sending.task_text([]) == "{}"


@pytest.mark.parametrize(
    ("content", "told"), [(b"run: \xff", "not UTF-8 (byte 5)"), (None, "No such file or directory")]
)
def test_a_task_file_that_cannot_be_read_is_named(
    tmp_path: Path, content: bytes | None, told: str
) -> None:
    file = tmp_path / "t.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(Refused, match=re.escape(told)):
        sending.task_text([str(file)])


def test_words_beside_a_task_file_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text("run: x")
    with pytest.raises(Refused, match="'c' stands beside it"):
        sending.task_text([str(file), "c"])
    assert sending.task_text([str(file.with_name("no.yaml")), "c"]).endswith('no.yaml c"}')
    assert sending.task_text([]) == "{}"


def test_variables_come_from_files_then_options_then_the_shell(tmp_path: Path) -> None:
    file = tmp_path / "env"
    file.write_text("# those\nA=1\nexport B='two words'\n\nC=3\n")
    given = sending.variables(["C=9", "D", "E="], [file], {"D": "4"}, option="--env")
    assert given == {"A": "1", "B": "two words", "C": "9", "D": "4", "E": ""}


def test_folders_of_runs_are_made_and_a_missing_workdir_is_told(tmp_path: Path) -> None:
    sending.make_folders(str(tmp_path), f"{tmp_path}/sky_workdir")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sky_logs", "sky_workdir"]
    with pytest.raises(Refused, match="no such directory"):
        sending.make_folders(str(tmp_path), f"{tmp_path}/other")


# --- following


class Service:
    """A service whose job goes through given states, one at each look."""

    here = True

    def __init__(self, *states: Mapping[str, Any]) -> None:
        self.states = list(states)
        self.posted: list[tuple[str, Mapping[str, Any]]] = []
        self.answers: dict[str, Any] = {}

    def get(self, route: str, **query: object) -> dict[str, Any]:
        if route in self.answers:
            return dict(self.answers[route])
        return dict(self.states.pop(0) if len(self.states) > 1 else self.states[0])

    def post(self, route: str, body: Mapping[str, Any] | None = None, **query: object) -> Any:
        self.posted.append((route, body or {}))
        return self.answers.get(route, {})

    persist = post

    def stream(self, route: str, **query: object) -> Iterator[bytes]:
        yield b"all "
        yield b"of it"


def job(state: str, *runs: Mapping[str, Any], over: bool = False) -> dict[str, Any]:
    return {
        "id": 5,
        "state": state,
        "reason": "Resources" if state == "PENDING" else "None",
        "detail": "",
        "node_list": "ec2-1",
        "over": over,
        "runs": list(runs),
        "log": None,
        "texts": [],
    }


def run(
    status: str, *, over: bool = False, log: Path | None = None, code: int = 0, signal: int = 0
) -> dict[str, Any]:
    return {
        "id": 1,
        "status": status,
        "over": over,
        "log": None if log is None else str(log),
        "texts": [] if log is None else [str(log)],
        "exit": {"code": code, "signal": signal},
    }


def test_a_run_is_followed_from_the_queue_to_its_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    told: list[str] = []
    out = io.BytesIO()

    def write_more(seconds: float) -> None:
        with log.open("ab") as file:
            file.write(b"line\n")

    service = Service(
        job("PENDING"),
        job("PENDING"),
        job("CONFIGURING", run("INIT", log=log)),
        job("RUNNING", run("RUNNING", log=log)),
        job("RUNNING", run("SUCCEEDED", over=True, log=log)),
    )
    follower = Follower(service, out, say=told.append, sleep=write_more)
    ended = follower.follow(Which(5, 1))
    assert told == ["waiting (Resources)", "booting ec2-1"]
    assert out.getvalue() == b"line\n" * 4
    assert (ended["status"], logs_status(ended)) == ("SUCCEEDED", 0)


@pytest.mark.parametrize("here", [True, False])
def test_a_job_that_waits_again_is_followed_into_its_next_attempt(
    tmp_path: Path, here: bool
) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    first.write_bytes(b"all of it")
    second.write_bytes(b"all of it")
    service = Service(
        {**job("RUNNING"), "attempt": 1, "texts": [str(first)]},
        {**job("PENDING"), "attempt": 1},
        {**job("COMPLETED", over=True), "attempt": 2, "texts": [str(second)]},
    )
    service.here = here
    told: list[str] = []
    out = io.BytesIO()
    Follower(service, out, say=told.append, sleep=lambda _: None).follow(Which(5))
    assert out.getvalue() == b"all of it" * 2
    assert told[-1] == "attempt 2:"


def test_a_job_that_ends_before_its_run_is_told(tmp_path: Path) -> None:
    service = Service(job("CANCELLED", run("PENDING"), over=True))
    with pytest.raises(Conflict, match="job 5 ended CANCELLED before the run did"):
        Follower(service, io.BytesIO(), sleep=lambda _: None).follow(Which(5, 1))


def test_only_the_last_lines_are_shown_when_asked(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"".join(b"line %d\n" % n for n in range(5000)))
    out = io.BytesIO()
    Follower(Service(job("RUNNING", run("RUNNING", log=log))), out).show(Which(5, 1), tail=2)
    assert out.getvalue() == b"line 4998\nline 4999\n"


def of_two(tmp_path: Path) -> dict[str, Any]:
    logs = [tmp_path / "0", tmp_path / "1"]
    for rank, log in enumerate(logs):
        log.write_text(f"first of {rank}\nlast of {rank}")
    return {**run("SUCCEEDED", over=True, log=logs[0]), "texts": list(map(str, logs))}


@pytest.mark.parametrize(
    ("only", "tail", "shown"),
    [
        (
            *(None, None),
            b"(head, rank=0) first of 0\n(worker1, rank=1) first of 1\n"
            b"(head, rank=0) last of 0\n(worker1, rank=1) last of 1\n",
        ),
        (None, 1, b"(head, rank=0) last of 0\n(worker1, rank=1) last of 1\n"),
        (1, None, b"first of 1\nlast of 1"),
        (0, None, b"first of 0\nlast of 0"),
    ],
)
def test_lines_of_several_nodes_stand_under_their_names(
    tmp_path: Path, only: int | None, tail: int | None, shown: bytes
) -> None:
    for ask in ("show", "follow"):
        out = io.BytesIO()
        follower = Follower(Service(job("RUNNING", of_two(tmp_path))), out, only=only)
        getattr(follower, ask)(Which(5, 1), tail=tail)
        assert out.getvalue() == shown


def test_a_node_that_the_run_is_not_on_has_no_text(tmp_path: Path) -> None:
    follower = Follower(Service(job("RUNNING", of_two(tmp_path))), io.BytesIO(), only=2)
    with pytest.raises(Unknown, match="runs on 2 nodes, 0 is the head: no node 2"):
        follower.show(Which(5, 1))


def test_the_text_comes_from_the_service_when_it_is_elsewhere() -> None:
    log = Path("/somewhere/else")
    service = Service(job("RUNNING", run("SUCCEEDED", over=True, log=log)))
    service.here = False
    out = io.BytesIO()
    Follower(service, out).follow(Which(5, 1))
    assert out.getvalue() == b"all of it"


@pytest.mark.parametrize(
    ("state", "logs"),
    [
        (run("SUCCEEDED", over=True), 0),
        (run("FAILED", over=True, code=3), 100),
        (run("FAILED_SETUP", over=True, code=2), 100),
        (run("FAILED", over=True, signal=9), 100),
        (run("FAILED_DRIVER", over=True), 100),
        (run("CANCELLED", over=True, signal=15), 103),
        (run("RUNNING"), 101),
    ],
)
def test_exit_statuses_are_sky_pilots(state: dict[str, Any], logs: int) -> None:
    assert logs_status(state) == logs


def test_a_run_is_found_by_its_clusters_name() -> None:
    service = Service(job("RUNNING"))
    service.answers["/v1/clusters/dev/queue"] = {"job": 5, "runs": [{"id": 1}, {"id": 2}]}
    assert which(service, "dev", None) == Which(5, 2)  # type: ignore[arg-type]
    assert which(service, "dev", 1) == Which(5, 1)  # type: ignore[arg-type]
    assert which(service, "17", None) == Which(17, None)  # type: ignore[arg-type]
    with pytest.raises(Unknown, match="has no run 3"):
        which(service, "dev", 3)  # type: ignore[arg-type]


# --- launching


OFFER = {
    "instance_type": "g5.xlarge",
    "region": "us-east-1",
    "zones": ["use1-az1"],
    "market": "spot",
    "cpus": 4,
    "mem_mib": 16384,
    "gpus": "a10g:1",
    "micro_usd_per_hour": 1_006_000,
    "expected_micro_usd": 1_039_534,
    "most_micro_usd_per_hour": 1_100_000,
    "reason": "least expected cost",
    "old_price": "price of 2025-04-04, 604 days old: `spz catalog refresh`",
    "notes": ["price of 2025-04-04, 604 days old: `spz catalog refresh`"],
}


def planned(tmp_path: Path, **more: object) -> Service:
    service = Service(job("RUNNING", run("FAILED", over=True, code=4)))
    service.answers["/v1/launch"] = {
        "cluster": "dev",
        "job": 5,
        "run": 1,
        "reused": False,
        "notes": ["x: ignored"],
        "cwd": str(tmp_path),
        "workdir": None,
        "nodes": 1,
        "candidates": [OFFER],
        **more,
    }
    return service


def launched(service: Service, said: list[str], **more: Any) -> tuple[Launch, io.BytesIO]:
    out = io.BytesIO()
    return Launch(service, said.append, out=out, **more), out  # type: ignore[arg-type]


def test_a_launch_shows_what_it_would_buy_and_asks_first(tmp_path: Path) -> None:
    service, said, asked = planned(tmp_path), [], []  # type: ignore[var-annotated]
    made, out = launched(service, said)

    def no(question: str) -> bool:
        asked.append(question)
        return False

    with pytest.raises(Refused, match="nothing was launched"):
        made.launch({"home": str(tmp_path)}, confirm=no, dry_run=False)
    text = out.getvalue().decode()
    assert (
        "INFRA                     INSTANCE         vCPUs  Mem(GB)  GPUS    COST ($)  CHOSEN"
        in text
    )
    assert "AWS (us-east-1/use1-az1)  g5.xlarge[spot]  4      16       a10g:1  1.006     ✔" in text
    assert "about $1.04 for a run of an hour, $1.100 an hour at most, as budgets count" in text
    assert said == ["note: x: ignored"]
    assert asked == ["Launch dev?"]
    assert [body.get("dry_run") for _, body in service.posted] == [True]


def test_a_launch_ends_as_logs_of_its_run_do(tmp_path: Path) -> None:
    service, said = planned(tmp_path), []  # type: ignore[var-annotated]
    made, _ = launched(service, said)
    assert made.launch({"home": str(tmp_path)}, confirm=None, dry_run=False)
    assert made.finish(detach=False, goes=True) == 100
    assert [route for route, _ in service.posted] == ["/v1/launch", "/v1/launch"]
    assert said[-1] == "run 1 FAILED; cluster dev goes when its runs are over"


def test_who_follows_a_run_is_told_how_to_go_on_where_the_service_ends(tmp_path: Path) -> None:
    service, said = planned(tmp_path), []  # type: ignore[var-annotated]
    made, _ = launched(service, said)
    made.launch({"home": str(tmp_path)}, confirm=None, dry_run=False)

    def gone(*_: object, **__: object) -> None:
        raise NoService("no service answers")

    service.get = gone  # type: ignore[method-assign]
    with pytest.raises(NoService):
        made.finish(detach=False, goes=False)
    assert said[-1].startswith("it goes on: `spz logs dev 1` follows it again")


def test_a_detached_launch_says_how_to_follow_it(tmp_path: Path) -> None:
    service, said = planned(tmp_path), []  # type: ignore[var-annotated]
    made, out = launched(service, said, as_json=True)
    made.launch({"home": str(tmp_path)}, confirm=None, dry_run=False)
    assert made.finish(detach=True, goes=False) == 0
    assert json.loads(out.getvalue())["job"] == 5
    assert said[-2] == "`spz logs dev 1` follows it"
    assert "days old: `spz catalog refresh`" in said[-1], "of the prices that JSON has"


# --- tables


def test_a_table_is_as_wide_as_its_cells() -> None:
    assert show.table(("A", "LONG"), [("xxx", 1), (None, "")]) == "A    LONG\nxxx  1\n-    -"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, None), (5, "5s"), (65, "1m 5s"), (7265, "2h 1m"), (90000, "1d 1h")],
)
def test_spans_are_told_in_two_units(seconds: int | None, text: str | None) -> None:
    assert lasted(seconds) == text


def test_names_of_clusters_may_hold_wildcards() -> None:
    found = [{"name": name} for name in ("a1", "a2", "b")]
    assert show.matching(found, ["a*"]) == found[:2]
    assert show.matching(found, None) == found
    with pytest.raises(Unknown, match="no cluster 'c'"):
        show.matching(found, ["a*", "c"])
    told: list[str] = []
    assert show.matching(found, ["c", "b"], say=told.append) == found[2:]
    assert told == ["no cluster 'c'"]


def test_a_name_breaks_no_table_and_paints_no_terminal() -> None:
    table = show.table(("ID", "NAME"), [(1, "a\nb"), (2, "\x1b[31mred\u202e"), (3, "ü")])
    assert table.splitlines() == ["ID  NAME", "1   a\\nb", "2   \\x1b[31mred\\u202e", "3   ü"]


def test_stopping_says_what_goes_on() -> None:
    node = {"name": "ec2-1", "declared": False}
    service = Service({"nodes": [node], "jobs_live": 2, "jobs_running": 1})
    assert kept_running(service) == (  # type: ignore[arg-type]
        "1 jobs go on, machines keep costing money: ec2-1. `spz api start` takes them up again."
    )
    service = Service({"nodes": [], "jobs_live": 2, "jobs_running": 0})
    assert kept_running(service) == "2 jobs wait."  # type: ignore[arg-type]


def test_a_sweep_names_what_it_found() -> None:
    machine = {
        "id": "i-1",
        "node": "ec2-9",
        "instance_type": "t3.large",
        "region": "eu-west-1",
        "micro_usd_per_hour": 91_200,
        "old_price": "price of 2025",
    }
    things = [
        {"kind": "volume", "id": "vol-1", "region": "eu-west-1", "gone": True},
        {"kind": "address", "id": "eip-1", "region": "us-east-1", "gone": False},
    ]
    found = {"provider": "ec2", "stray": [machine], "lost": ["ec2-2"], "leftovers": things}
    assert sweep_text({"providers": [found]}, dry_run=True) == (
        "ec2: 1 machines nobody knows would be let go\n"
        "  i-1 ec2-9 t3.large eu-west-1 $0.0912 an hour (price of 2025)\n"
        "  gone, though still known: ec2-2\n"
        "  2 things that nothing uses would be let go:\n"
        "  volume vol-1 in eu-west-1\n"
        "  address eip-1 in us-east-1"
    )
    done = sweep_text({"providers": [found]}, dry_run=False).splitlines()
    assert done[-2:] == [
        "  volume vol-1 in eu-west-1",
        "  address eip-1 in us-east-1 stays: it is used, or machines are bought there",
    ]
    nothing = {**found, "stray": [], "lost": [], "leftovers": []}
    assert sweep_text({"providers": [nothing]}, dry_run=False) == (
        "ec2: 0 machines nobody knows let go"
    )


# --- the service in the background


class Time:
    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds


def background(folder: Path, *argv: str) -> tuple[Background, list[str]]:
    said: list[str] = []
    time = Time()
    environ = {"SKYPURZA_HOME": str(folder / "s")}
    paths = Paths.from_environ(environ, uid=os.getuid(), user_home=folder)
    service = Background(paths, said.append, sleep=time.sleep, clock=time, argv=argv)
    return service, said


def test_a_folder_that_cannot_be_made_is_named_with_the_way_out(short_tmp: Path) -> None:
    service, _ = background(short_tmp, "/bin/true")
    (short_tmp / "s").write_text("no folder")
    with pytest.raises(Refused, match="s/log: Not a directory") as caught:
        service.start()
    assert "SKYPURZA_HOME" in caught.value.hint


def test_a_service_that_does_not_come_up_is_told_with_its_last_words(short_tmp: Path) -> None:
    service, said = background(short_tmp)
    words = ("/bin/sh", "-c", "echo 'spz: error: no luck' >&2; exit 1")

    def look_again(seconds: float) -> None:
        subprocess.run(["/bin/true"], check=True)

    failing = Background(
        service.paths, said.append, sleep=look_again, clock=lambda: 0.0, argv=words
    )
    with pytest.raises(Refused, match="the service did not start: no luck"):
        failing.start()


def test_starting_tells_how_long_it_takes_and_gives_up(short_tmp: Path) -> None:
    service, said = background(short_tmp, "/bin/sleep", "60")
    with pytest.raises(Busy, match="did not answer within 60 s"):
        service.start()
    assert said[:2] == ["starting, 3 s", "starting, 6 s"]


def test_a_pid_of_nobody_is_no_service(short_tmp: Path) -> None:
    service, _ = background(short_tmp)
    assert service.pid() is None
    service.paths.home.mkdir()
    ended = subprocess.Popen(["/bin/true"])
    ended.wait()
    service.paths.pid.write_text(f"{ended.pid}\n")
    assert service.pid() is None
    with pytest.raises(Refused, match="no service runs on"):
        service.stop()


def test_stopping_sends_sigterm_and_waits(short_tmp: Path) -> None:
    service, _ = background(short_tmp)
    service.paths.home.mkdir()
    running = subprocess.Popen(["/bin/sleep", "60"])
    service.paths.pid.write_text(f"{running.pid}\n")
    patient = Background(service.paths, print, sleep=lambda _: running.wait())
    assert patient.stop() == running.pid
    assert running.wait() == -15


def test_nobody_answers_on_a_socket_that_is_not_there(short_tmp: Path) -> None:
    client = Client(short_tmp / "none.sock")
    assert not client.answers()
    with pytest.raises(NoService, match="No such file or directory") as caught:
        client.get("/v1/health")
    assert "spz api start" in caught.value.hint


def test_a_request_with_an_id_is_sent_again_until_somebody_answers(short_tmp: Path) -> None:
    slept: list[float] = []
    client = Client(short_tmp / "none.sock", sleep=slept.append)
    with pytest.raises(NoService):
        client.persist("/v1/launch", {})
    assert slept == []  # no socket at all: there is no service to wait for
    address = Client(address=("127.0.0.1", 9), tries=4, sleep=slept.append)
    with pytest.raises(NoService, match=r"127\.0\.0\.1:9"):
        address.persist("/v1/launch", {})
    assert len(slept) == 3
