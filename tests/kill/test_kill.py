"""The service is killed at any moment: nothing that was printed is lost, nothing happens twice.

SKYPURZA_TEST_KILLS says how often (`make chaos`: 200), SKYPURZA_TEST_SEED repeats a former run.
"""

import json
import os
import random
import secrets
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accounting.ids import JobId
from broker.model.ids import StepId
from broker.model.job import Job
from broker.model.lifecycle import apply
from broker.ports import HistoryQuery
from gateway.store.sql import open_store
from tests.e2e.agents import until
from tests.e2e.luck import drawn
from tests.e2e.service import Preloaded, Service, service
from tests.kill.load import TASKS, Load, Submission
from tests.kill.runs import RUNS, Clusters
from tests.sim.audit import MINIMUM_SECONDS

KILLS = int(os.environ.get("SKYPURZA_TEST_KILLS") or 40)
SEED = int(os.environ.get("SKYPURZA_TEST_SEED") or secrets.randbelow(1 << 32))
CLIENTS = 4
LOOK = 1.0
"""Seconds for which a chosen moment is waited for; then the kill comes anyway."""
SETTLE = 60.0

pytestmark = [pytest.mark.kill, pytest.mark.timeout(900)]


# --- moments


def any_time(served: Service, dice: random.Random) -> None:
    served.wait_up()
    time.sleep(dice.uniform(0, 0.5))


def while_starting(served: Service, dice: random.Random) -> None:
    time.sleep(dice.uniform(0, 0.15))


def after_a_commit(served: Service, dice: random.Random) -> None:
    """When a submission has come to be on disk; its reply is on the way, or is not."""
    served.wait_up()
    with served.database() as connection:

        def count() -> int:
            return int(connection.execute("select count(*) from requests").fetchone()[0])

        _watch(count, pause=0)


def after_a_purchase(served: Service, dice: random.Random) -> None:
    served.wait_up()
    folder = served.home / "machines" / "purchases"
    drafts = dice.random() < 0.3
    _watch(lambda: sum(1 for path in folder.iterdir() if drafts or not path.suffix), pause=0)


def after_news_of_a_node(served: Service, dice: random.Random) -> None:
    """When an agent has written of a step's begin or end, which nobody has read yet."""
    served.wait_up()
    journals = list(served.home.glob("*/*/journal"))
    _watch(lambda: sum(path.stat().st_size for path in journals))


def while_a_machine_ends(served: Service, dice: random.Random) -> None:
    served.wait_up()
    _watch(lambda: sum(1 for _ in served.home.glob("machines/*/halted")))


def _watch(count: Callable[[], int], pause: float = 0.0005) -> None:
    before, end = count(), time.monotonic() + LOOK
    while count() == before and time.monotonic() < end:
        time.sleep(pause)


MOMENTS = {
    any_time: 5,
    while_starting: 3,
    after_a_commit: 5,
    after_a_purchase: 2,
    after_news_of_a_node: 3,
    while_a_machine_ends: 1,
}
"""And how often each comes among them."""


# --- the test


def test_no_kill_loses_or_repeats_a_job(preloaded: Preloaded) -> None:
    print(f"\nseed {SEED}, {KILLS} kills")
    dice = random.Random(SEED)
    every = [moment for moment, times in MOMENTS.items() for _ in range(times)]
    moments = drawn(every, KILLS, dice)
    began = time.monotonic()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)  # who watches for a moment must not wait for those who submit
    try:
        with service(preloaded) as served:
            load = Load(served, SEED)
            load.start(CLIENTS)
            unheard = 0
            for moment in moments:
                moment(served, dice)
                until(lambda: not load.clusters.waits_long(), "an answer before the kill", SETTLE)
                served.kill(wait=dice.random() < 0.7)
                unheard += _bought_unheard(served)
                served.launch()
            killed = time.monotonic()
            load.stop()
            print(_told(load, moments, killed - began), f"{unheard} between purchase and commit")
            check_everything(served, load)
            print(f"in all {time.monotonic() - began:.0f} s")
    finally:
        sys.setswitchinterval(interval)


def _bought_unheard(served: Service) -> bool:
    """Whether a machine exists of which the database knows only that it was to be bought."""
    launching = '%"state":"LAUNCHING"%'
    found = served.rows("select name, launch from nodes where gone = 0 and doc like ?", launching)
    purchases = (served.home / "machines" / "purchases").iterdir()
    whole = [path for path in purchases if not path.suffix]
    machines = [one for path in whole for one in json.loads(path.read_text())["machines"]]
    return any((one["node"], one["launch"]) in found for one in machines)


def _told(load: Load, moments: list[Any], seconds: float) -> str:
    between = sum(one.unanswered for one in load.made)
    again = sum(one.tries > 1 for one in load.made)
    kinds = ", ".join(f"{kind.__name__} {n}" for kind, n in Counter(moments).items())
    return (
        f"{len(moments)} kills in {seconds:.0f} s ({kinds}); {len(load.made)} submissions, "
        f"{len(load.clusters.runs)} runs in {len(load.clusters.down)} clusters, "
        f"{load.requeued} requeues, "
        f"{again} asked again, {between} killed between commit and reply"
    )


def check_everything(served: Service, load: Load) -> None:
    served.wait_up()
    assert not load.failures, load.failures
    until(lambda: _over(served), "the end of all jobs", SETTLE)
    until(lambda: _machines_gone(served), "the end of all machines", SETTLE)
    until(lambda: not _strays(served), f"the end of {_strays(served)}", 10)
    assert not list(served.home.glob("*/*/steps/*")), "a step's folder is left"
    assert not list(served.home.glob("*/*/kills/*")), "a promise to kill is left"
    served.stop()
    _check_ids(served, load)
    for one in load.made:
        _check_job(served, one)
    _check_runs(served, load.clusters)
    _check_history(served)
    _check_money(served)


def _over(served: Service) -> bool:
    assert Path(f"/proc/{served.pid}").exists(), served.words()
    return served.rows("select count(*) from jobs where over = 0")[0][0] == 0


def _machines_gone(served: Service) -> bool:
    live = served.rows("select count(*) from nodes where gone = 0 and launch > 0")[0][0]
    return live == 0 and all(machine["terminated_at"] for machine in _machines(served))


def _strays(served: Service) -> dict[int, str]:
    """What lives beside the agents of declared nodes."""
    left = served.processes()
    for node in ("own-1", "own-2"):
        own = [pid for pid, words in left.items() if f"--node {node} " in words]
        for pid in own[:1]:
            del left[pid]
    return left


def _machines(served: Service) -> list[dict[str, Any]]:
    found = served.home.glob("machines/*/machine.json")
    return [json.loads(path.read_text()) for path in found]


def _check_ids(served: Service, load: Load) -> None:
    ids = [one.job for one in load.made] + load.clusters.down
    assert all(ids), [one for one in load.made if not one.job]
    assert len(set(ids)) == len(ids), "an id was printed for two submissions"
    rows = served.rows("select job_id, array_base from jobs")
    bases = {base or job for job, base in rows}
    assert bases == set(ids), "jobs that nobody submitted, or that are lost"
    elements = sum(TASKS if one.array else 1 for one in load.made)
    assert len(rows) == elements + len(load.clusters.down)


def _check_runs(served: Service, clusters: Clusters) -> None:
    """Each run of a cluster once, ended as it was told."""
    assert len({(run.job, run.number) for run in clusters.runs}) == len(clusters.runs)
    for run in clusters.runs:
        step = served.job(run.job).step(StepId(str(run.number - 1)))
        assert step is not None, run
        assert (step.exit.code, step.exit.signal) == (run.code, 0), (run, step)
        assert len(_lines(served, run.name)) == 1, run
    for job in clusters.down:
        record = served.job(job)
        assert (record.state.label, record.attempt) == ("CANCELLED", 1), record
        assert len([step for step in record.steps if step.id.isdigit()]) == RUNS, record


def _check_job(served: Service, one: Submission) -> None:
    """Its own line once, its own end."""
    where = "array_base" if one.array else "job_id"
    found = served.rows(f"select job_id, state, doc from jobs where {where} = ?", one.job)
    lines = {name: _lines(served, name) for name in one.files}
    if one.to_requeue:
        _check_requeued(one, served.job(one.job), _lines(served, one.name))
        return
    if one.to_cancel:
        assert [state for _, state, _ in found] == ["CANCELLED"], (one, found)
        assert lines[one.name] in ([], [str(one.job)]), (one, lines)
        return
    assert sorted(lines.values()) == sorted([str(job)] for job, _, _ in found), (one, lines, found)
    for _, state, doc in found:
        record = json.loads(doc)
        assert state == ("FAILED" if one.code else "COMPLETED"), (one, record)
        assert record.get("exit", {}).get("code", 0) == one.code, (one, record)
        assert record["attempt"] == 1, (one, record)


def _lines(served: Service, name: str) -> list[str]:
    return served.file(f"lines/{name}").splitlines()


def _check_requeued(one: Submission, job: Job, lines: list[str]) -> None:
    """Each attempt at most once and never beside another, the last one to its end."""
    assert len(set(lines)) == len(lines), (one, lines)
    assert set(lines) <= {f"{one.job} {count}" for count in range(job.restarts + 1)}, (one, lines)
    assert lines[-1] == f"{one.job} {job.restarts}", (one, lines)
    assert job.state.label == ("FAILED" if one.code else "COMPLETED"), (one, job)
    assert (job.exit.code, job.attempt) == (one.code, job.restarts + 1), (one, job)


def _check_history(served: Service) -> None:
    """Each row is the fold of its events; each attempt's use is posted once, and right."""
    store = open_store(str(served.home / "state.db"), clock=_NoClock())
    try:
        jobs = list(store.history.jobs(HistoryQuery()))
        for job in jobs:
            folded = None
            for event in store.history.events(JobId(job.id)):
                folded = apply(folded, event, version=job.version)  # type: ignore[arg-type]
            assert folded == job
    finally:
        store.close()
    use = [json.loads(doc) for (doc,) in served.rows("select doc from ledger where kind='usage'")]
    assert len({(entry["job"], entry["attempt"]) for entry in use}) == len(use)
    posted = {(one["job"], one["attempt"]): one["tres_seconds"].get("cpu", 0) for one in use}
    for job in jobs:
        if job.started is not None:
            seconds = (job.ended or 0) - job.started
            assert posted.get((job.id, job.attempt), 0) == job.alloc.cpu * seconds, job


class _NoClock:
    def now(self) -> int:
        return 0


def _check_money(served: Service) -> None:
    """What was posted of each machine is what it has cost, to the micro-dollar."""
    machines = {f"{one['node']}.{one['launch']}": one for one in _machines(served)}
    posted: Counter[str] = Counter()
    for (doc,) in served.rows("select doc from ledger"):
        entry = json.loads(doc)
        if entry.get("machine"):
            posted[entry["machine"]] += entry.get("cost", 0)
    known = {f"{n}.{k}" for n, k in served.rows("select name, launch from nodes where launch > 0")}
    assert set(machines) <= known, "a machine that nobody knew"
    for name, machine in machines.items():
        assert posted[name] == _bill(machine), (name, machine, posted[name])
    assert set(posted) <= set(machines)


def _bill(machine: dict[str, Any]) -> int:
    start, end = machine["running_at"], machine["terminated_at"]
    if start is None:
        return 0
    return int(machine["micro_usd_per_hour"] * max(end - start, MINIMUM_SECONDS) // 3600)


def test_a_first_start_that_is_killed_leaves_a_home_that_starts(preloaded: Preloaded) -> None:
    dice = random.Random(SEED)
    with service(preloaded) as served:
        for _ in range(max(1, KILLS // 10)):
            served.stop()
            served.sweep()
            shutil.rmtree(served.home)
            served.home.mkdir()
            for _ in range(2):
                served.launch()
                time.sleep(dice.uniform(0, 0.2))
                served.kill()
            served.start()
            job = served.wrap("true", "-o", "/dev/null")
            served.wait(job, "COMPLETED")
            assert job == 1
