"""Managed jobs, under the names and with the parameters that `sky.jobs` has (0.14)."""

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from broker.model.errors import Refused, Unknown
from gateway.sdk import api, clusters, managed, pools, records
from gateway.sdk.asked import RequestId, TextStream, stream_of
from gateway.sdk.client import Json
from gateway.sdk.follow import LOOK_AGAIN, UNFINISHED, Follower, Which, logs_status
from gateway.sdk.launching import state_of
from gateway.sdk.records import cluster_record, managed_record
from gateway.sdk.sending import make_folders
from gateway.sdk.sky import Tasks, body_of, ignored, lines_of, service, tasks_of, text_of
from gateway.sdk.sky import exec as run_on
from gateway.sdk.synced import synced
from gateway.translate.skypilot import read_file
from gateway.translate.skypilot_yaml import written

ManagedJobStatus = records.ManagedJobStatus
Launched = tuple[list[int], None]
Page = tuple[list[Json], int, dict[str, int], int]
"""Records, how many fit, how many of each state, how many there are."""
ABSENT = {
    "download_logs_streaming": "download_logs copies them",
}
"""Names of SkyPilot's that are not here, and what is in their place."""


def __getattr__(name: str) -> object:
    why = f": {ABSENT[name]}" if name in ABSENT else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{why}")


def launch(
    task: Tasks,
    name: str | None = None,
    pool: str | None = None,
    num_jobs: int | None = None,
    job_group: int | str | None = None,
) -> RequestId[Launched]:
    """Jobs that go on elsewhere when their machines are lost: `get` gives their ids.

    Several tasks are a pipeline. Raises BadSpec, Told, and Refused for a group to join.
    """
    managed.must_join_none(job_group)
    if pool is not None:
        return _on_pool(task, pool, num_jobs or 1)
    body = body_of(task, name=name) | {"num_jobs": num_jobs}
    client = service()
    plan = client.post("/v1/managed", {**body, "dry_run": True})
    make_folders(body["home"], plan["cwd"])
    made = client.persist("/v1/managed", body)
    return RequestId.of(body["request"], lambda _: ([int(job) for job in made["jobs"]], None))


def _on_pool(task: Tasks, pool: str, count: int) -> RequestId[Launched]:
    (one, *others) = tasks_of(task)
    if others:
        raise Refused("a pool takes one task at a time")
    for _ in range(count):
        run_on(one, pools.least_used(service(), pool)["name"])
    return RequestId.done(([], None))


def queue(
    refresh: bool = False,
    skip_finished: bool = False,
    all_users: bool = False,
    job_ids: Sequence[int] | None = None,
    version: int = 1,
) -> RequestId[list[Json]]:
    """The newest first; it is always fresh. Raises Refused for a version that is not 1."""
    if version != 1:
        raise Refused(f"version {version}: only the list of version 1", hint="queue_v2 has more")
    return RequestId.done(
        [managed_record(one) for one in _queue(skip_finished, all_users, job_ids)]
    )


def queue_v2(
    refresh: bool = False,
    skip_finished: bool = False,
    all_users: bool = False,
    job_ids: Sequence[int] | None = None,
    limit: int | None = None,
    fields: Sequence[str] | None = None,
    sort_by: str | None = None,
    sort_order: str | None = None,
    statuses: Sequence[str] | None = None,
    submitted_after: float | None = None,
    submitted_before: float | None = None,
    infra_match: str | None = None,
    name_match: str | None = None,
) -> RequestId[Page]:
    """The newest first, or sorted by a key of the records; instants in seconds.

    `get` gives the records, at most `limit` of them and only `fields`; how many fit; how many of
    each state; how many there are. Raises Refused for a key that is none.
    """
    every = _queue(False, all_users)
    kept = managed.of_name(every if job_ids is None else managed.of_ids(every, job_ids), name_match)
    first, last = submitted_after or 0.0, submitted_before or float("inf")
    fitting = [
        managed_record(one)
        for one in kept
        if not (skip_finished and one["over"])
        and one["status"] in (statuses or [one["status"]])
        and first <= one["submitted"] <= last
        and (infra_match is None or managed.is_in(one, infra_match))
    ]
    counts = dict(Counter(str(one["status"]) for one in fitting))
    page = in_order(fitting, sort_by, sort_order)[:limit]
    shown = page if fields is None else [{key: one.get(key) for key in fields} for one in page]
    return RequestId.done((shown, len(fitting), counts, len(every)))


def in_order(every: list[Json], key: str | None, order: str | None) -> list[Json]:
    """As they are without a key; nothing stands last in either order. Raises Refused."""
    if key is None:
        return every
    key = "job_name" if key == "name" else key
    if every and key not in every[0]:
        raise Refused(f"sort_by {key}: no such key", hint="job_id, name, submitted_at, ...")
    known = [one for one in every if one[key] is not None]
    known.sort(key=lambda one: one[key], reverse=order == "desc")
    return known + [one for one in every if one[key] is None]


def _queue(skip_finished: bool, all_users: bool, ids: Sequence[int] | None = None) -> list[Json]:
    jobs = service().get("/v1/managed", all=True)["jobs"]
    mine = [one for one in jobs if all_users or one["uid"] == os.getuid()]
    wanted = mine if ids is None else managed.of_ids(mine, ids)
    return [one for one in wanted if not (skip_finished and one["over"])]


def cancel(
    name: str | None = None,
    job_ids: Sequence[int] | None = None,
    all: bool = False,
    all_users: bool = False,
    pool: str | None = None,
    graceful: bool = False,
    graceful_timeout: int | None = None,
    task: int | str | None = None,
) -> RequestId[None]:
    """Ends them; they always get their signal first. Raises Unknown, Refused."""
    if pool is not None:
        raise Refused("jobs of pools are runs of their workers", hint="sdk.cancel(worker)")
    if not (name or job_ids or all or all_users):
        raise Refused("no job named", hint="name, job_ids or all")
    live = _queue(True, all_users or bool(job_ids), job_ids)
    wanted = managed.of_task(managed.of_name(live, name), task)
    if not wanted:
        raise Unknown("no such managed job that is not over")
    managed.end(service(), wanted)
    return RequestId.done(None)


def tail_logs(
    name: str | None = None,
    job_id: int | None = None,
    follow: bool = True,
    controller: bool = False,
    refresh: bool = False,
    tail: int | None = None,
    tail_offset: int | None = None,
    output_stream: TextStream | None = None,
    task: int | str | None = None,
    *,
    preload_content: bool = True,
) -> int | Iterator[str]:
    """The text of a job's attempts, of the last job of that name; as `sdk.tail_logs`.

    Raises Unknown, and Refused for an offset of the tail.
    """
    if tail_offset:
        raise Refused("tail_offset is not taken: `tail` counts from the end")
    every = _queue(False, job_id is not None)
    job = int(managed.one_of(managed.of_name(every, name), job_id, task=task)["id"])
    if controller:
        lines = clusters.why(service(), job)
        return iter(lines) if not preload_content else _said(lines, output_stream)
    how: Json = {"follow": follow, "tail": tail}
    if not preload_content:
        return lines_of(Which(job), **how)
    out = stream_of(output_stream)
    if not tail:
        Follower(service(), out).earlier(Which(job))
    return text_of(service(), Which(job), out, **how)


def _said(lines: Sequence[str], stream: TextStream | None) -> int:
    out = stream_of(stream)
    out.write("".join(f"{line}\n" for line in lines).encode())
    return 0


def wait(
    name: str | None = None,
    job_id: int | None = None,
    timeout: float | None = None,
    poll_interval: float = LOOK_AGAIN,
    task: int | str | None = None,
) -> RequestId[int]:
    """`get` waits until it is over, with all of its tasks or with one.

    0 succeeded, 100 failed, 103 cancelled. Raises Unknown, and there TimeoutError.
    """
    root = managed.one_of(
        managed.of_name(_queue(False, job_id is not None), name), job_id, task=None
    )

    def over(_: BinaryIO) -> int:
        ends = None if timeout is None else time.monotonic() + timeout
        while True:
            found = managed.of_task(_queue(False, True, [int(root["root"])]), task)
            codes = [logs_status(one) for one in found]
            if UNFINISHED not in codes:
                return next((code for code in codes if code), 0)
            if ends is not None and time.monotonic() >= ends:
                raise TimeoutError(f"managed job {root['root']} is not over after {timeout} s")
            time.sleep(poll_interval)

    return RequestId.of(str(root["root"]), over)


def download_logs(
    name: str | None = None,
    job_id: int | None = None,
    refresh: bool = False,
    controller: bool = False,
    local_dir: str = "~/sky_logs",
) -> dict[int, str]:
    """Copies what a job has said; its folder, by its number. Raises Unknown, Told."""
    ignored(refresh=refresh)
    client = service()
    every = _queue(False, job_id is not None)
    job = int(managed.one_of(managed.of_name(every, name), job_id, task=None)["id"])
    folder = Path(local_dir).expanduser() / "managed_jobs" / str(job)
    if controller:
        folder.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{line}\n" for line in clusters.why(client, job))
        (folder / "controller.log").write_text(lines)
    else:
        synced(client, Which(job), state_of(client, Which(job)), start=folder / "run")
    return {job: str(folder)}


def pool_apply(
    task: Tasks | None, pool_name: str, mode: object = None, workers: int | None = None
) -> RequestId[None]:
    """Starts workers until there are as many as asked for, and lets the last ones go.

    Without a task their number alone changes; those that are there stay as they are. Raises Told,
    and Refused for what is no pool.
    """
    ignored(mode=mode)
    body, count = None, workers
    if task is not None:
        (one, *_) = tasks = tasks_of(task)
        trees = [each.to_yaml_config() for each in tasks]
        _, usual = pools.worker_of(read_file(written(trees)).tasks, pool_name)
        plain = {key: value for key, value in one.others.items() if key != "pool"}
        body, count = body_of(replace(one, others=plain)), usual if workers is None else workers
    if count is None:
        raise Refused("a pool needs a task, or a number of workers", hint="workers=2")
    pools.scale(service(), pool_name, count, body=body, say=lambda _: None)
    return RequestId.done(None)


def dashboard() -> None:
    """Opens the page of managed jobs in a browser, or prints its address."""
    api.dashboard("jobs")


def pool_status(pool_names: str | Sequence[str] | None = None) -> RequestId[list[Json]]:
    """Pools and their workers. Raises Unknown for a name that is none."""
    client = service()
    found = {name: pools.must_have(client, name) for name in _listed(pool_names) or ()}
    every = found if pool_names else pools.workers(client)
    return RequestId.done(
        [{"name": name, "replica_info": [*map(cluster_record, one)]} for name, one in every.items()]
    )


def pool_down(
    pool_names: str | Sequence[str] | None = None, all: bool = False, purge: bool = False
) -> RequestId[None]:
    """Lets their workers go. Raises Unknown, and Refused where none is named."""
    ignored(purge=purge)
    client = service()
    names = _listed(pool_names) or (list(pools.workers(client)) if all else [])
    if not names and not all:
        raise Refused("no pool named", hint="pool_names or all")
    pools.end(client, names)
    return RequestId.done(None)


def pool_tail_logs(
    pool_name: str,
    target: object = "replica",
    worker_id: int | None = None,
    follow: bool = True,
    output_stream: TextStream | None = None,
    tail: int | None = None,
) -> None:
    """What a worker's setup said, of the first without a number. Raises Unknown."""
    client = service()
    first = pools.must_have(client, pool_name)[0]
    number = pools.number_of(first) if worker_id is None else worker_id
    wanted = pools.setup_of(client, pool_name, number)
    text_of(client, wanted, stream_of(output_stream), follow=follow, tail=tail)


def pool_sync_down_logs(
    pool_name: str,
    local_dir: str,
    *,
    targets: object = None,
    worker_ids: Sequence[int] | None = None,
    tail: int | None = None,
) -> None:
    """Copies what their setups said into a folder, of all workers where none is named."""
    ignored(targets=targets, tail=tail)
    client = service()
    every = map(pools.number_of, pools.must_have(client, pool_name))
    for number in worker_ids or every:
        wanted = pools.setup_of(client, pool_name, number)
        start = Path(local_dir).expanduser() / f"{pool_name}-{number}"
        synced(client, wanted, state_of(client, wanted), start=start)


def _listed(names: str | Sequence[str] | None) -> list[str]:
    return [names] if isinstance(names, str) else list(names or ())
