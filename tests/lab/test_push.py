"""Machines of the box whose agents come by user data and post what happens there."""

import hashlib
import http.server
import json
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from accounting.tres import Tres
from broker.model.ids import NodeName
from broker.model.node import Node, NodeState
from broker.ports import Done, Place, Push
from broker.providers.ec2.keys import site_keys
from broker.providers.ec2.userdata import MOST_BYTES, user_data
from broker.run.agent import wire
from broker.run.arrival import Arrival
from broker.run.bootstrap import bring_up
from broker.run.launch import agent_package, agent_zipapp
from tests.e2e.agents import until
from tests.e2e.service import Preloaded, Service
from tests.e2e.test_push import free_port, ways
from tests.lab.boxed import boxed
from tests.lab.broken import cut_off
from tests.lab.running import CREDENTIALS, Running, here
from tests.lab.test_machines import AL2023
from tests.lab.test_nodes import CUT
from tests.unit.gateway.test_arrives import coming

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


# ---------------------------------------------------------------- the way there


class Door:
    """Serves the archive by its hash; says how often."""

    def __init__(self, content: bytes) -> None:
        self.gets = 0
        door = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                door.gets += 1
                self.send_response(200)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Nothing is to be said."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.url = f"http://127.0.0.1:{self.server.server_port}/agent"

    def __enter__(self) -> "Door":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def launched(lab: Running, folder: Path, url: str, count: int) -> list[Path]:
    """Folders of agents on so many machines of one purchase, by launch index."""
    keys = site_keys(folder)
    arrival = Arrival(
        url=url,
        digest=hashlib.sha256(agent_zipapp()).hexdigest(),
        names=[f"ec2-{number}" for number in range(7, 7 + count)],
        folder="~/node",
        python="/usr/bin/python3",
        user=lab.ssh_user,
        options=("--lease", "600"),
    )
    text = user_data(
        host=keys.host("t"), login=keys.login().public, minutes=60, arrives=arrival.argv()
    )
    assert "bootcmd" in text
    assert len(text) < MOST_BYTES / 2
    image = lab.client("ssm").get_parameter(Name=AL2023)["Parameter"]["Value"]
    asked = {"ImageId": image, "InstanceType": "m7i.large", "UserData": text}
    made = lab.client().run_instances(MinCount=count, MaxCount=count, **asked)["Instances"]
    order = [one["InstanceId"] for one in sorted(made, key=lambda one: one["AmiLaunchIndex"])]
    number = {str(one["id"]): int(one["number"]) for one in lab.machines()}
    return [lab.state / "m" / str(number[id]) / "home" / "node" for id in order]


class Only:
    """A channel that only asks: whoever puts something there has not seen what is."""

    def run(self, argv: object, *, stdin: bytes = b"", timeout: float) -> Done:
        raise AssertionError(argv)

    def put(self, data: bytes, path: str, mode: int) -> None:
        raise AssertionError(path)

    def read(self, path: str, offset: int) -> bytes:
        raise AssertionError(path)

    def ask(self, path: str, request: bytes, *, timeout: float) -> bytes:
        return wire.ask(path, request, timeout)


def test_agents_come_by_user_data_and_the_first_contact_finds_them(
    lab: Running, short_tmp: Path
) -> None:
    with Door(agent_zipapp()) as door:
        folders = launched(lab, short_tmp, door.url, 2)
        for folder in folders:
            until(lambda folder=folder: (folder / "agent.sock").exists(), folder)  # type: ignore[misc]
    assert door.gets == 2
    told = Push("https://127.0.0.1:1/", "00", "", "token")
    for number, folder in enumerate(folders, 7):
        node = Node(NodeName(f"ec2-{number}"), 1, NodeState.BOOTING, Tres(cpu=1), ("ec2",))
        said = bring_up(node, Place(Only(), str(folder), push=told))
        assert said["package"] == agent_package()
        assert json.loads((folder / "push").read_text())["token"] == "token"
        words = Path(f"/proc/{said['pid']}/cmdline").read_bytes().split(b"\0")
        assert words[words.index(b"--node") + 1] == node.name.encode()
    for machine in lab.living():
        lab.set("kill", id=machine["id"])


def test_another_archive_than_was_told_is_not_run(lab: Running, short_tmp: Path) -> None:
    with Door(agent_zipapp() + b"more") as door:
        (folder,) = launched(lab, short_tmp, door.url, 1)
        until(lambda: door.gets > 1, "that it is fetched again")
    assert not folder.exists()
    for machine in lab.living():
        lab.set("kill", id=machine["id"])


def test_a_site_with_a_bucket_has_the_agent_fetched_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with here(time.time) as box:
        box.client("s3").create_bucket(Bucket="sites")
        text = f"objects: s3://sites/own\naws: {{endpoint_url: '{box.endpoint}'}}"
        (url, *_) = (word for word in coming(tmp_path, "s-", text) if "sites" in word)
        with urllib.request.urlopen(url) as answer:
            assert answer.read() == agent_zipapp()
        assert "own/agent/" in url
        box.client("s3").delete_object(Bucket="sites", Key=urlsplit(url).path.split("/", 2)[2])
        box.client("s3").delete_bucket(Bucket="sites")
        assert coming(tmp_path, "s-", text) == [], "it comes with the first contact"


# ---------------------------------------------------------------- jobs


@dataclass
class Network:
    """Between machines and the service's listener; can be cut."""

    to: int
    cut: bool = False
    guests: int = 0
    open: list[socket.socket] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.door = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.door.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                guest = self.door.accept()[0]
            except OSError:
                return
            self.guests += 1
            self.open.append(guest)
            if self.cut:
                continue  # it hears nothing
            try:
                other = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                guest.close()
                continue
            self.open.append(other)
            for ends in ((guest, other), (other, guest)):
                threading.Thread(target=self._pump, args=ends, daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(1 << 16):
                while self.cut:
                    time.sleep(0.05)
                other.sendall(data)
        except OSError:
            return
        finally:
            other.close()

    def close(self) -> None:
        for one in (self.door, *self.open):
            one.close()


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    made = Network(free_port())
    yield made
    made.close()


@pytest.fixture(scope="module")
def gateway(preloaded: Preloaded, lab: Running, network: Network) -> Iterator[Service]:
    listen = f"host: 127.0.0.1, port: {network.to}"
    url = f"https://127.0.0.1:{network.port}"
    more = f"    reports: push\npush: {{url: '{url}', {listen}}}\n"
    with boxed(preloaded, lab, idle=60, more=more) as made:
        yield made


def test_a_job_is_followed_from_its_launch_to_its_end_without_a_look(
    gateway: Service, network: Network
) -> None:
    job = gateway.wrap("srun hostname; exit 3")
    gateway.wait(job, "FAILED")
    assert gateway.exit(job) == (3, 0)
    assert ways(gateway)["ssh"] == 0
    assert ways(gateway)["push"] > 0
    assert network.guests > 0
    steps = gateway.run("sacct", "-nP", "-j", str(job), "-o", "jobid,state,exitcode").out
    assert steps.split() == [
        f"{job}|FAILED|3:0",
        f"{job}.batch|FAILED|3:0",
        f"{job}.0|COMPLETED|0:0",
    ]


@contextmanager
def silence(network: Network) -> Iterator[None]:
    network.cut = True
    try:
        yield
    finally:
        network.cut = False


def test_a_job_ends_once_though_nothing_came_through_for_a_while(
    gateway: Service, lab: Running, network: Network
) -> None:
    job = gateway.wrap(f"echo begun; sleep {CUT / 2}; exit 3")
    gateway.wait_file(f"slurm-{job}.out", "begun")
    with silence(network), cut_off(lab.state, CUT):
        gateway.kill()
        gateway.start()
    gateway.wait(job, "FAILED")
    assert gateway.exit(job) == (3, 0)
    ends = "select count(*) from events where job = ? and kind = 'Ended'"
    assert gateway.rows(ends, job) == [(1,)]


@pytest.mark.skipif(CUT < 30, reason="takes a minute: SKYPURZA_TEST_CUT=30")
def test_where_nothing_gets_out_the_journal_is_read_and_that_is_told(
    gateway: Service, network: Network
) -> None:
    with silence(network):
        job = gateway.wrap("sleep 60")
        node = until(lambda: gateway.job(job).last_node_names, "its node", 60)[0]
        until(
            lambda: "Comment=posts nothing" in gateway.run("scontrol", "show", "node", node).out,
            "word of it",
            90,
        )
        gateway.wait(job, "COMPLETED")
        assert ways(gateway)["ssh"] > 0
    until(lambda: "Comment" not in gateway.run("scontrol", "show", "node", node).out, "its end", 90)
