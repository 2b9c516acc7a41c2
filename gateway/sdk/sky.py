"""The functions of `gateway.sdk`, under the names that `sky` has."""

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypedDict, Unpack

from broker.model.errors import Unknown
from gateway.config.paths import Paths
from gateway.sdk import show
from gateway.sdk.client import Client, Json
from gateway.sdk.follow import Follower, Which, logs_status, part_of
from gateway.sdk.launching import which
from gateway.sdk.sending import make_folders, request
from gateway.sdk.tasks import Task
from gateway.translate.skypilot_yaml import written

Names = str | Sequence[str] | None


class RequestId(str):
    """Of something asked; `job`, `cluster` and `run` tell what it became."""

    __slots__ = ("cluster", "job", "run")
    job: int
    cluster: str | None
    run: int | None

    @classmethod
    def of(cls, text: str, made: Json) -> "RequestId":
        """What the service answered."""
        found = cls(text)
        found.job, found.cluster, found.run = made["job"], made.get("cluster"), made.get("run")
        return found


def service() -> Client:
    """The one that the environment means. Raises Refused."""
    paths = Paths.from_environ(os.environ, uid=os.getuid(), user_home=Path.home())
    return Client(paths.socket)


def body_of(task: Task, **overrides: Any) -> Json:
    """What is sent for a task; its secrets travel beside its text."""
    tree = {key: value for key, value in task.to_yaml_config().items() if key != "secrets"}
    return request(
        written([tree]), environ=os.environ, overrides=overrides, envs={}, secret=task.secrets
    )


class How(TypedDict, total=False):
    """How a cluster is launched."""

    dryrun: bool
    """Only the plan."""
    down: bool
    """Let it go when its runs are over, or when it is idle for so long."""
    idle_minutes_to_autostop: int | None
    no_setup: bool


def launch(task: Task, cluster_name: str | None = None, **how: Unpack[How]) -> RequestId | Json:
    """Runs a task on a cluster of that name, bought if need be; with `dryrun` tells the plan.

    Raises BadSpec and Told for what cannot be.
    """
    idle = how.get("idle_minutes_to_autostop")
    lets_go = how.get("down") or idle is not None
    autostop = {"idle_minutes": idle or 0, "down": how.get("down", False)} if lets_go else None
    body = body_of(task, autostop=autostop)
    body |= {"cluster": cluster_name, "setup": not how.get("no_setup")}
    client = service()
    plan = client.post("/v1/launch", {**body, "dry_run": True})
    if how.get("dryrun"):
        return plan
    make_folders(body["home"], plan["cwd"])
    made = client.persist("/v1/launch", {**body, "cluster": plan["cluster"]})
    return RequestId.of(body["request"], made)


def exec(task: Task, cluster_name: str) -> RequestId:
    """Runs a task, without its setup, on a cluster that is up. Raises Told."""
    body = body_of(task)
    make_folders(body["home"], body["home"])
    return RequestId.of(
        body["request"], service().persist(f"/v1/clusters/{cluster_name}/exec", body)
    )


def get(request_id: RequestId) -> tuple[int | None, Json]:
    """Waits until it is over; the run's number, and how it ended."""
    ended = Follower(service(), io.BytesIO()).follow(Which(request_id.job, request_id.run))
    return request_id.run, ended


def stream_and_get(
    request_id: RequestId, output: BinaryIO | None = None
) -> tuple[int | None, Json]:
    """The same, with its text as it comes."""
    out = output or sys.stdout.buffer
    ended = Follower(service(), out).follow(Which(request_id.job, request_id.run))
    return request_id.run, ended


def status(cluster_names: Names = None, *, all_users: bool = False) -> list[Json]:
    """Clusters that are up or coming. Raises Unknown for a name that is none."""
    found = service().get("/v1/clusters")["clusters"]
    mine = [one for one in found if all_users or one["uid"] == os.getuid()]
    return [dict(one) for one in show.matching(mine, _listed(cluster_names))]


def queue(cluster_name: str, *, skip_finished: bool = False) -> list[Json]:
    """The runs of a cluster. Raises Told."""
    runs = service().get(f"/v1/clusters/{cluster_name}/queue")["runs"]
    return [one for one in runs if not (skip_finished and one["over"])]


def job_status(cluster_name: str, job_ids: Sequence[int] | None = None) -> dict[int, str]:
    """States by number; of the last run where none is named."""
    runs = {one["id"]: one["status"] for one in queue(cluster_name)}
    wanted = job_ids or ([max(runs)] if runs else [])
    return {number: runs[number] for number in wanted if number in runs}


def tail_logs(
    cluster_name: str,
    job_id: int | None = None,
    *,
    follow: bool = True,
    tail: int | None = None,
    output: BinaryIO | None = None,
) -> int:
    """The text of a run; 0 succeeded, 100 failed, 101 not over, 103 cancelled."""
    client = service()
    return text_of(
        client, which(client, cluster_name, job_id), follow=follow, tail=tail, output=output
    )


logs = tail_logs


def text_of(
    client: Client, wanted: Which, *, follow: bool, tail: int | None, output: BinaryIO | None
) -> int:
    """Copies it; the exit status of `spz logs`."""
    follower = Follower(client, output or sys.stdout.buffer)
    if follow:
        return logs_status(follower.follow(wanted, tail=tail))
    follower.show(wanted, tail=tail)
    return logs_status(part_of(client.get(f"/v1/jobs/{wanted.job}"), wanted))


def cancel(
    cluster_name: str,
    *,
    all: bool = False,
    job_ids: Sequence[int] | None = None,
) -> list[int]:
    """Ends runs; their numbers. The last that is not over where none is named. Raises Told."""
    client = service()
    live = [one["id"] for one in queue(cluster_name, skip_finished=True)]
    wanted = live if all else list(job_ids or live[-1:])
    if not wanted:
        raise Unknown(f"nothing runs in cluster {cluster_name!r}")
    for number in wanted:
        client.post(f"/v1/clusters/{cluster_name}/cancel", run=number)
    return wanted


def down(cluster_name: str) -> None:
    """Lets a cluster go. Raises Told."""
    service().post(f"/v1/clusters/{cluster_name}/down")


def stop(cluster_name: str) -> None:
    """Ends what runs in it and stops its machines; the disks are kept. Raises Told."""
    service().post(f"/v1/clusters/{cluster_name}/stop")


def start(cluster_name: str) -> None:
    """Starts a stopped cluster's machines where they are; `status` tells of it. Raises Told."""
    service().post(f"/v1/clusters/{cluster_name}/start")


def autostop(cluster_name: str, idle_minutes: int, *, down: bool = False) -> None:
    """Stops it after so long without a run, or lets it go; a negative number keeps it.

    Raises Told.
    """
    seconds = None if idle_minutes < 0 else idle_minutes * 60
    body = {"idle_seconds": seconds, "down": down}
    service().post(f"/v1/clusters/{cluster_name}/autostop", body)


def cost_report(days: int | None = 30) -> list[Json]:
    """Clusters of those days, gone ones too, with what they cost in micro-dollars."""
    found: list[Json] = service().get("/v1/report", days=days)["clusters"]
    return found


def _listed(names: Names) -> list[str] | None:
    return [names] if isinstance(names, str) else list(names) if names else None
