"""`spz stop` and `start` as processes against a running service whose machines are folders."""

import pytest

from tests.e2e.agents import until
from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.e2e


def status(spz: Terminal, name: str) -> str:
    (cluster,) = spz.json("status", name)["clusters"]
    return str(cluster["status"])


def test_a_cluster_of_two_is_stopped_kept_and_started(spz: Terminal) -> None:
    made = spz("launch", "-y", "-c", "dev", "--num-nodes", "2", "--cpus", "2+", "echo first > kept")
    assert made.code == 0, made
    assert spz("exec", "-d", "dev", "sleep 60").code == 0
    (up,) = spz.json("status", "dev")["clusters"]

    no = spz("stop", "dev", text="n\n")
    assert (no.code, status(spz, "dev")) == (1, "UP")
    done = spz("stop", "-y", "dev")
    assert (done.code, "is stopped" in done.out) == (0, True), done
    (kept,) = spz.json("status", "dev")["clusters"]
    assert (kept["status"], kept["nodes"], kept["addresses"]) == ("STOPPED", up["nodes"], [])
    assert [run["status"] for run in kept["runs"]] == ["SUCCEEDED", "CANCELLED"]
    assert "STOPPED" in spz("status").out
    assert "STOPPED" in spz("cost-report").out
    assert spz("stop", "-y", "dev").code == 0
    assert spz("logs", "dev", "1", "--no-follow").code == 0
    refused = spz("exec", "dev", "true")
    assert (refused.code, "is stopped" in refused.err) == (1, True)

    never = spz("start", "-y", "dev", "--async", "-r")
    assert (never.code, "--retry-until-up" in never.err) == (1, True), never
    assert status(spz, "dev") == "STOPPED"
    started = spz("start", "-y", "dev", "-i", "10")
    assert (started.code, "is up" in started.out) == (0, True), started
    (again,) = spz.json("status", "dev")["clusters"]
    assert (again["nodes"], again["idle_seconds"], again["idle_stops"]) == (up["nodes"], 600, True)
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
