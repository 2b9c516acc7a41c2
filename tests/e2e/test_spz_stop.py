"""`spz stop` and `start` as processes against a running service whose machines are folders."""

import pytest

from tests.e2e.agents import until
from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.e2e


def status(spz: Terminal, name: str) -> str:
    (cluster,) = spz.json("status", name)
    return str(cluster["status"])


def test_a_cluster_of_two_is_stopped_kept_and_started(spz: Terminal) -> None:
    made = spz("launch", "-y", "-c", "dev", "--num-nodes", "2", "--cpus", "2+", "echo first > kept")
    assert made.code == 0, made
    assert spz("exec", "-d", "dev", "sleep 60").code == 0
    (up,) = spz.json("status", "dev")

    no = spz("stop", "dev", text="n\n")
    assert (no.code, status(spz, "dev")) == (1, "UP")
    done = spz("stop", "-y", "dev")
    assert (done.code, "is stopped" in done.out) == (0, True), done
    (kept,) = spz.json("status", "dev")
    assert (kept["status"], kept["node_names"], kept["addresses"]) == (
        *("STOPPED", up["node_names"]),
        [],
    )
    assert [run["status"] for run in kept["runs"]] == ["SUCCEEDED", "CANCELLED"]
    assert "STOPPED" in spz("status").out
    assert "STOPPED" in spz("cost-report").out
    assert spz("stop", "-y", "dev").code == 0
    assert spz("logs", "dev", "1", "--no-follow").code == 0
    refused = spz("exec", "dev", "true")
    assert (refused.code, "is stopped" in refused.err) == (1, True)

    started = spz("start", "-y", "dev", "-i", "10")
    assert (started.code, "is up" in started.out) == (0, True), started
    (again,) = spz.json("status", "dev")
    assert (again["node_names"], again["autostop"], again["to_down"]) == (
        *(up["node_names"], 10),
        False,
    )
    assert "up already" in spz("start", "-y", "dev").out
    assert spz("exec", "dev", "cat kept").out == "first\n"
    assert [run["id"] for run in spz.json("queue", "dev")["dev"]] == [1, 2, 3]

    assert spz("stop", "-y", "dev").code == 0
    again_up = spz("launch", "-y", "-c", "dev", "--cpus", "2+", "echo launched")
    assert (again_up.code, again_up.out.splitlines()[-1]) == (0, "launched"), again_up
    assert spz("stop", "-y", "dev").code == 0
    assert spz("down", "-y", "dev").code == 0
    assert "no cluster 'dev'" in spz("status", "dev").err


def test_an_idle_cluster_is_stopped_unless_it_is_to_go_down(spz: Terminal) -> None:
    assert spz("launch", "-y", "-d", "-c", "idle", "-i", "0", "--cpus", "2+", "echo x").code == 0
    until(lambda: status(spz, "idle") == "STOPPED", "the cluster's stop", 40)
    assert spz("autostop", "-y", "--cancel", "idle").code == 0
    assert spz("start", "-y", "idle").code == 0
    listed = spz("autostop", "-y", "-i", "7", "--down", "idle")
    assert "goes after 7 minutes" in listed.out
    assert "7m (down)" in spz("status", "idle").out
    assert spz("autostop", "-y", "-i", "7", "idle").code == 0
    assert spz("down", "-y", "idle").code == 0
    until(lambda: not spz.served.rows("select 1 from nodes where gone = 0"), "its machine to go")


def test_each_verb_gives_a_request_that_is_followed(spz: Terminal) -> None:
    """SIGKILL of the service in between: what was asked for is seen through all the same."""

    def asked(*argv: str) -> str:
        done = spz(*argv, "--async")
        assert done.code == 0, done
        return done.out.splitlines()[-1]

    launched = asked("launch", "-y", "-c", "far", "--cpus", "2+", "sleep 60")
    until(lambda: status(spz, "far") == "UP", "the cluster", 40)
    assert spz.json("api", "status", launched)[launched]["verb"] == "launch"
    cancelled = asked("cancel", "-y", "far")
    assert spz("api", "logs", cancelled).code == 0
    kept = asked("autostop", "-y", "-i", "9", "far")
    told = spz("api", "logs", kept)
    assert (told.code, told.out) == (0, "Cluster far stops after 9 minutes without a run\n")

    stopped = asked("stop", "-y", "far")
    started = asked("start", "-y", "-r", "far")
    assert [started, "start"] in [line.split() for line in spz("api", "status").out.splitlines()]
    spz.served.kill()
    spz.served.start()
    assert spz("api", "logs", started).out.splitlines()[-1] == "far: UP"
    assert "start: SUCCEEDED" in spz("api", "status", started).out
    assert spz("api", "cancel", started).code == 1
    assert stopped in spz("api", "status", stopped).out
    ended = asked("down", "-y", "far")
    assert spz("api", "logs", ended).out.splitlines()[-1] == "far: GONE"
    assert "No request waits." in spz("api", "cancel", "-a", "-y").out


def test_who_ends_a_cluster_gracefully_waits_for_no_run(spz: Terminal) -> None:
    begun = spz("launch", "-y", "-d", "-c", "kind", "--cpus", "2+", "sleep 600")
    assert begun.code == 0, begun
    refused = spz("launch", "-y", "-c", "kind", "--resize", "--num-nodes", "2", "true")
    assert (refused.code, "do not change" in refused.err) == (1, True)
    until(lambda: status(spz, "kind") == "UP", "the cluster", 40)
    ended = spz("down", "-y", "--graceful", "--async", "kind").out.strip()
    assert spz("api", "logs", ended).out.splitlines()[-1] == "kind: GONE"
