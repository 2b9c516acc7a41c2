"""Nodes that post what happens on them: nobody reads their journals, until they cannot post."""

import hashlib
import http.client
import json
import os
import re
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from broker.model.ids import NodeName
from broker.run.launch import agent_zipapp
from gateway.translate.token import sign_node
from tests.e2e.agents import until, with_argument
from tests.e2e.service import Preloaded, Service, service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as door:
        return int(door.getsockname()[1])


PORT = free_port()
CONFIG = """\
cluster: tests
kill_wait: 1
nodes:
  - {{names: "own-[1-2]", cpus: 4, real_memory: 8000}}
partitions:
  - {{name: own, default: true, nodes: own-1, def_mem_per_cpu: 100, reports: {reports}}}
  - {{name: ssh, nodes: own-2, def_mem_per_cpu: 100}}
push: {{url: "https://127.0.0.1:{port}/", host: 127.0.0.1, port: {port}}}
"""


@pytest.fixture(scope="module")
def gateway(preloaded: Preloaded) -> Iterator[Service]:
    with service(preloaded, CONFIG.format(reports="push", port=PORT)) as made:
        made.wait(made.wrap("true"), "COMPLETED")  # the node is told where to post
        yield made


def ways(gateway: Service) -> dict[str, int]:
    """How often something new came, by way."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(gateway.socket))
    connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
    with connection, connection.makefile() as told:
        found = re.findall(r'^skypurza_reports_total\{way="(\w+)"\} (\d+)$', told.read(), re.M)
    return {way: int(count) for way, count in found}


def test_a_job_is_followed_to_its_end_without_a_look_at_its_node(gateway: Service) -> None:
    before = ways(gateway)
    job = gateway.wrap("srun true; exit 3", env=inside(gateway))
    gateway.wait(job, "FAILED")
    assert gateway.exit(job) == (3, 0)
    after = ways(gateway)
    assert after["ssh"] == before["ssh"]
    assert after["push"] > before["push"]
    assert [row.split("|")[:2] for row in rows(gateway, job)] == [
        [f"{job}", "FAILED"],
        [f"{job}.batch", "FAILED"],
        [f"{job}.0", "COMPLETED"],
    ]


def inside(gateway: Service) -> dict[str, str]:
    """Where jobs find the commands."""
    return {"PATH": f"{gateway.bin}:/usr/bin:/bin"}


def rows(gateway: Service, job: int) -> list[str]:
    return gateway.run("sacct", "-nP", "-j", str(job), "-o", "jobid,state,exitcode").out.split()


def test_both_ways_give_the_same_rows(gateway: Service) -> None:
    script = "srun sh -c 'exit 7'; srun true; kill -9 $$"
    jobs = [gateway.wrap(script, "-p", part, env=inside(gateway)) for part in ("own", "ssh")]
    for job in jobs:
        gateway.wait(job, "FAILED")
    posted, read = ([row.partition("|")[2] for row in rows(gateway, job)] for job in jobs)
    assert posted == read
    assert len(posted) == 4


def test_ends_while_the_service_is_dead_come_when_it_is_there_again(gateway: Service) -> None:
    job = gateway.wrap("echo x > begun; sleep 0.5; exit 5")
    gateway.wait_file("begun")
    gateway.kill()
    time.sleep(0.7)
    gateway.start()
    gateway.wait(job, "FAILED")
    assert gateway.exit(job) == (5, 0)
    ends = "select count(*) from events where job = ? and kind = 'Ended'"
    assert gateway.rows(ends, job) == [(1,)]


def test_an_agent_that_dies_is_missed_at_once_and_begun_again(gateway: Service) -> None:
    job = gateway.wrap("echo x > lives; sleep 2; exit 4")
    gateway.wait_file("lives")
    folder = gateway.home / "nodes" / "own-1"
    pid = agent_of(folder)
    os.kill(pid, signal.SIGKILL)
    until(lambda: agent_of(folder) not in (0, pid), "another agent")
    gateway.wait(job, "FAILED")
    assert gateway.exit(job) == (4, 0)


def test_another_certificate_is_told_to_nodes_that_live(gateway: Service) -> None:
    gateway.wait(gateway.wrap("true"), "COMPLETED")
    certificate = gateway.home / "push" / "certificate.pem"
    before = certificate.read_text()
    gateway.kill()
    certificate.unlink()
    gateway.start()
    assert certificate.read_text() != before

    def posts() -> bool:
        gateway.wait(gateway.wrap("true"), "COMPLETED")
        return ways(gateway)["push"] > 0

    until(posts, "a node that posts again")


def test_a_process_that_posts_and_is_killed_is_begun_by_the_next_news(gateway: Service) -> None:
    gateway.wait(gateway.wrap("true"), "COMPLETED")
    folder = gateway.home / "nodes" / "own-1"
    pid = until(lambda: poster_of(folder), "who posts")
    os.kill(pid, signal.SIGKILL)
    before = ways(gateway)["push"]
    gateway.wait(gateway.wrap("true"), "COMPLETED")
    until(lambda: ways(gateway)["push"] > before, "a letter")
    assert poster_of(folder) not in (0, pid)


def poster_of(folder: Path) -> int:
    """Its process; 0 where there is none."""
    found = [pid for pid in with_argument("push") if cwd(pid) == folder]
    return found[0] if found else 0


def cwd(pid: int) -> Path | None:
    try:
        return Path(f"/proc/{pid}/cwd").readlink()
    except OSError:
        return None


def test_a_partition_may_change_its_way_and_back_while_jobs_run(gateway: Service) -> None:
    job = gateway.wrap("until [ -e switched ]; do sleep 0.05; done; exit 6")
    gateway.wait(job, "RUNNING")
    for way in ("ssh", "push"):
        (gateway.root / "config.yaml").write_text(CONFIG.format(reports=way, port=PORT))
        assert gateway.run("scontrol", "reconfigure").code == 0
        gateway.wait(gateway.wrap("true"), "COMPLETED")
    (gateway.work / "switched").touch()
    gateway.wait(job, "FAILED")
    assert gateway.exit(job) == (6, 0)


def agent_of(folder: Path) -> int:
    found = [pid for pid in with_argument("serve") if pid in with_argument(str(folder))]
    return found[0] if found else 0


# ---------------------------------------------------------------- strangers


def ask(method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
    context = ssl._create_unverified_context()
    line = http.client.HTTPSConnection("127.0.0.1", PORT, timeout=10, context=context)
    try:
        line.request(method, path, body, headers)
        answer = line.getresponse()
        return answer.status, answer.read()
    finally:
        line.close()


def post(token: str, body: bytes) -> tuple[int, dict[str, Any]]:
    status, text = ask("POST", "/reports", body, Authorization=f"Bearer {token}")
    return status, json.loads(text)


def seal(gateway: Service) -> bytes:
    return bytes.fromhex((gateway.home / "push" / "seal").read_text())


NODE = NodeName("own-1")
PULSE = b'{"at":null,"said":null}\n'


def test_nobody_without_the_nodes_own_token_reports_anything(gateway: Service) -> None:
    good = sign_node(seal(gateway), NODE, 0)
    others = sign_node(b"another site's", NODE, 0)
    for token in (others, good[:-1] + "x", good.replace("own-1", "own-2"), "", "x" * 5000):
        status, told = post(token, PULSE)
        assert (status, "token" in told["error"]) == (403, True), token
    over = sign_node(seal(gateway), NODE, 7)
    assert post(over, PULSE) == (410, {"error": "launch 7 of own-1 is over"})
    gone = sign_node(seal(gateway), NodeName("no-such"), 1)
    assert post(gone, PULSE)[0] == 410
    assert ask("POST", "/reports", PULSE)[0] == 403
    assert post(good, PULSE)[0] == 200


def test_what_is_no_letter_is_refused_by_name_and_loses_nothing(gateway: Service) -> None:
    token = sign_node(seal(gateway), NODE, 0)
    position = post(token, PULSE)[1]["position"]
    at = json.dumps({"at": position, "said": None}).encode() + b"\n"
    line = b'{"at":1.0,"kind":"exited","key":"1/1/batch","attempt":"1/1","code":%b}\n'
    for body, status in (
        (b"", 400),
        (b"\xff\x00garbage", 400),
        (b"[]\n", 400),
        (b"[" * 50_000 + b"\n", 400),
        (b'{"at":"x","said":null}\n', 400),
        (b'{"at":true,"said":null}\n', 400),
        (b'{"at":0,"said":[]}\n', 400),
        (at + b"no journal\n", 400),
        (at + line % b'"x"', 400),
        (at + line % b"0" + b'{"half', 400),
        (at + b"x" * (5 << 20), 413),
        (json.dumps({"at": position + 1, "said": None}).encode() + b"\n" + line % b"0", 409),
        (b'{"at":0,"said":null}\n' + line % b"0", 409),
        (b'{"at":-5,"said":null}\n' + line % b"0", 409),
    ):
        found, told = post(token, body)
        assert found == status, body[:80]
        assert told["error"], body[:80]
    assert post(token, PULSE) == (200, {"position": position})


def test_the_listener_has_nothing_but_reports_and_the_agent(gateway: Service) -> None:
    digest = hashlib.sha256(agent_zipapp()).hexdigest()
    assert ask("GET", f"/agent/{digest}") == (200, agent_zipapp())
    for method, path in (
        ("GET", f"/agent/{'0' * 64}"),
        ("GET", "/healthz"),
        ("POST", "/x/squeue"),
        ("GET", "/reports"),
        ("GET", "/metrics"),
        ("POST", f"/agent/{NODE}"),
    ):
        assert ask(method, path)[0] == 404, path


def test_who_connects_and_says_nothing_or_anything_holds_up_nobody(gateway: Service) -> None:
    with ExitStack() as ends:
        for number in range(300):
            one = ends.enter_context(socket.create_connection(("127.0.0.1", PORT)))
            if number % 2:
                one.sendall(b"\x16\x03\x01 garbage\r\n\r\n")
        job = gateway.wrap("true")
        gateway.wait(job, "COMPLETED")
        assert post(sign_node(seal(gateway), NODE, 0), PULSE)[0] == 200


def test_of_who_shows_no_token_nothing_is_read_without_end(gateway: Service) -> None:
    context = ssl._create_unverified_context()
    with (
        socket.create_connection(("127.0.0.1", PORT)) as raw,
        context.wrap_socket(raw) as line,
    ):
        line.sendall(b"POST /reports HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999\r\n\r\n")
        with pytest.raises(OSError):
            while True:
                line.sendall(b"x" * (1 << 14))
                time.sleep(0.01)
