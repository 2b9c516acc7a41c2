"""Hooks of tasks: from every place where they may stand to what holds the allocation, by bash."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

import pytest

from broker.model.errors import BadSpec
from gateway.translate.skypilot import read
from gateway.translate.skypilot_hooks import EVENTS, Hook, hooks_of, keeper, seconds_of
from gateway.translate.skypilot_task import translate

from .tasks import ORIGIN


def test_buckets_that_are_not_to_stay_go_after_all_hooks() -> None:
    text = "config: {hooks: [{run: a}]}\nfile_mounts:\n  /a: {name: kept}\n"
    (task,) = read(text + "  /b: {name: passing, persistent: false}\n")
    first, last = hooks_of(task)
    assert (first.script, last.events, last.seconds) == ("a", ("down",), 600)
    assert last.script.endswith("\nspz_forget passing\n")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("run: x", []),
        ("config: {hooks: [{run: a}]}", [Hook("a", EVENTS, 3600)]),
        (
            "config: {hooks: [{run: a, events: [stop], timeout: 5}, {run: b, events: [down]}]}",
            [Hook("a", ("stop",), 5), Hook("b", ("down",), 3600)],
        ),
        ("experimental: {config_overrides: {hooks: [{run: a}]}}", [Hook("a")]),
        ("resources: {hooks: [{run: a}], any_of: [{cpus: 1}, {cpus: 2}]}", [Hook("a")]),
        ("resources: {termination_hook: {command: a, timeout: 9}}", [Hook("a", EVENTS, 9)]),
        (
            "resources: {autostop: {idle_minutes: 5, hook: a, hook_timeout: 60}}",
            [Hook("a", ("stop", "down"), 60)],
        ),
        (
            "resources: {autostop: {idle_minutes: 5, hook: a}}",
            [Hook("a", ("stop", "down"), 3600)],
        ),
        (
            "resources: {autostop: {idle_minutes: 5, hook: a, hook_timeout: 3d}}",
            [Hook("a", ("stop", "down"), 86400)],
        ),
        ("config: {hooks: [{run: a, timeout: 259200}]}", [Hook("a", EVENTS, 86400)]),
        (
            "resources: {preemption: {hook: a, hook_timeout: 9}}",
            [Hook("a", ("preemption",), 9)],
        ),
    ],
)
def test_hooks_are_found_where_any_version_has_them(text: str, found: list[Hook]) -> None:
    (task,) = read(text)
    assert list(hooks_of(task)) == found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("config: {hooks: [{run: a, events: [stopp]}]}", "'stopp' is none of stop, preemption"),
        ("config: {hooks: [{run: [a]}]}", "config.hooks.0.run"),
        ("config: {hooks: [{ran: a}]}", "config.hooks.0.ran: no such key"),
    ],
)
def test_a_bad_hook_is_refused(text: str, told: str) -> None:
    with pytest.raises(BadSpec) as refused:
        read(text)
    assert told.replace("'", "") in refused.value.message.replace("'", "")


HOOKS = (
    Hook('echo "it\'s $SKYPILOT_HOOK_EVENT" >> told', ("stop", "down")),
    Hook("echo taken >> told", ("preemption",)),
    Hook("exit 3", EVENTS),
    Hook("sleep 60", EVENTS, 1),
    Hook("echo $SKYPURZA_HOOK_EVENT >> told", EVENTS),
)


@pytest.mark.parametrize(
    ("why", "told"),
    [
        (signal.SIGTERM, ["it's down", "down"]),
        (signal.SIGUSR1, ["taken", "preemption"]),
        (signal.SIGUSR2, ["it's stop", "stop"]),
    ],
)
def test_what_holds_an_allocation_runs_the_hooks_of_its_end(
    tmp_path: Path, why: signal.Signals, told: list[str]
) -> None:
    script = keeper(HOOKS).replace("while :;", "echo ready\nwhile :;")
    process = subprocess.Popen(
        ["/bin/bash", "-c", script],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(why)
        process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # what is left, as an agent does
        said = process.stderr.read()
    assert (process.returncode, (tmp_path / "told").read_text().splitlines()) == (0, told)
    assert said.count("spz: a hook of ") == 2
    assert "ended with 3" in said and "ended with 124" in said


def test_a_cluster_and_a_managed_job_are_held_by_their_hooks() -> None:
    text = "envs: {A: b}\nconfig: {hooks: [{run: a, timeout: 5}, {run: b, timeout: 6}]}\nrun: x\n"
    file = read(text)
    cluster = translate(file[0], ORIGIN, cluster="dev")
    assert cluster.spec.keeper is not None
    (phase,) = cluster.spec.keeper.phases
    assert phase.script is not None
    assert b"hook 'stop preemption down' 5 a" in cluster.blobs[phase.script]
    assert cluster.spec.keeper.environment == cluster.spec.steps[0].environment
    assert cluster.spec.hook_seconds == seconds_of(hooks_of(file[0])) == 11
    assert cluster.notes == ()
