"""Managed jobs, under the names and with the parameters that `sky.jobs` has (0.14)."""

import os
from collections.abc import Iterator, Sequence

from broker.model.errors import Refused, Unknown
from gateway.sdk import clusters, managed
from gateway.sdk.asked import RequestId, TextStream, stream_of
from gateway.sdk.client import Json
from gateway.sdk.follow import Follower, Which
from gateway.sdk.records import managed_record
from gateway.sdk.sending import make_folders
from gateway.sdk.sky import body_of, lines_of, service, text_of
from gateway.sdk.sky import exec as run_on
from gateway.sdk.tasks import Task
from gateway.sdk.verbs.pools import least_used

Launched = tuple[list[int], None]


def launch(
    task: Task | Sequence[Task],
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


def _on_pool(task: Task | Sequence[Task], pool: str, count: int) -> RequestId[Launched]:
    if not isinstance(task, Task):
        raise Refused("a pool takes one task at a time")
    for _ in range(count):
        run_on(task, least_used(service(), pool)["name"])
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
        raise Refused(f"version {version}: only the list of version 1 is given")
    return RequestId.done(
        [managed_record(one) for one in _queue(skip_finished, all_users, job_ids)]
    )


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
