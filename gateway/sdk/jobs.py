"""Managed jobs, under the names that `sky.jobs` has."""

import os
from collections.abc import Sequence
from typing import BinaryIO

from broker.model.errors import Unknown
from gateway.sdk.client import Json
from gateway.sdk.follow import Which
from gateway.sdk.sending import make_folders
from gateway.sdk.sky import RequestId, body_of, service, text_of
from gateway.sdk.tasks import Task


def launch(task: Task, name: str | None = None, *, num_jobs: int | None = None) -> RequestId:
    """A job that goes on elsewhere when its machines are lost. Raises BadSpec, Told."""
    body = body_of(task, name=name) | {"num_jobs": num_jobs}
    client = service()
    plan = client.post("/v1/managed", {**body, "dry_run": True})
    make_folders(body["home"], plan["cwd"])
    made = client.persist("/v1/managed", body)
    return RequestId.of(body["request"], {"job": made["jobs"][0]})


def queue(*, skip_finished: bool = False, all_users: bool = False) -> list[Json]:
    """The newest first."""
    jobs = service().get("/v1/managed", all=True)["jobs"]
    mine = [one for one in jobs if all_users or one["uid"] == os.getuid()]
    return [one for one in mine if not (skip_finished and one["over"])]


def cancel(
    name: str | None = None,
    job_ids: Sequence[int] | None = None,
    *,
    all: bool = False,
) -> list[int]:
    """Ends them; their ids. Raises Unknown."""
    live = queue(skip_finished=True)
    wanted = [
        one["id"]
        for one in live
        if all or one["id"] in (job_ids or ()) or (name is not None and one["name"] == name)
    ]
    if not wanted:
        raise Unknown("no such managed job that is not over")
    for number in wanted:
        service().post(f"/v1/jobs/{number}/cancel")
    return wanted


def tail_logs(
    name: str | None = None,
    job_id: int | None = None,
    *,
    follow: bool = True,
    tail: int | None = None,
    output: BinaryIO | None = None,
) -> int:
    """The text of a job, of the last of that name; as `sky.tail_logs`. Raises Unknown."""
    found = [one["id"] for one in queue() if name is None or one["name"] == name]
    if job_id is None and not found:
        raise Unknown("no such managed job")
    wanted = Which(found[0] if job_id is None else job_id)
    return text_of(service(), wanted, follow=follow, tail=tail, output=output)
