"""The functions of `gateway.sdk`, with the names and parameters that `sky` has (0.14).

As there each answers with a request's id, of which `get` gives the result; what cannot be is
refused at once. Parameters that change nothing here are told by a warning.
"""

import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, BinaryIO, TypeVar, cast

from broker.model.errors import Conflict, Refused, Unknown
from gateway.config.paths import Paths
from gateway.sdk import clusters, requested, show
from gateway.sdk.asked import RequestId, TextStream, stream_of
from gateway.sdk.client import Client, Json
from gateway.sdk.dags import Dag
from gateway.sdk.follow import Follower, Which, logs_status, part_of
from gateway.sdk.launching import executed, state_of, which
from gateway.sdk.records import (
    Handle,
    JobStatus,
    cluster_record,
    cost_record,
    handle_of,
    job_record,
)
from gateway.sdk.sending import make_folders, request
from gateway.sdk.synced import synced
from gateway.sdk.tasks import Task
from gateway.translate.skypilot_yaml import written

T = TypeVar("T")
Tasks = Task | Sequence[Task] | Dag[Task]
Names = str | Sequence[str] | None
Launched = tuple[int | None, Handle | None]
"""A run's number, None without one, and its cluster."""


def home() -> Paths:
    """Where the service is that the environment means. Raises Refused."""
    return Paths.from_environ(os.environ, uid=os.getuid(), user_home=Path.home())


def service() -> Client:
    """The one that the environment means. Raises Refused."""
    return Client(home().socket)


def body_of(task: Tasks, **overrides: Any) -> Json:
    """What is sent for tasks; their secrets travel beside their text. Raises Refused."""
    tasks = tasks_of(task)
    trees = [_without(one.to_yaml_config(), "secrets") for one in tasks]
    if isinstance(task, Dag) and len(tasks) > 1 and (header := task.header()):
        trees = [header, *trees]
    secret = {name: text for one in tasks for name, text in one.secrets.items()}
    return request(written(trees), environ=os.environ, overrides=overrides, envs={}, secret=secret)


def tasks_of(task: Tasks) -> list[Task]:
    """In the order in which they run. Raises Refused for a dag that has none."""
    if isinstance(task, Task):
        return [task]
    return task.in_order() if isinstance(task, Dag) else list(task)


def _without(tree: Json, key: str) -> Json:
    return {name: value for name, value in tree.items() if name != key}


def ignored(**given: object) -> None:
    """Warns of what was given and changes nothing here."""
    for name, value in given.items():
        if value not in (None, False):
            warnings.warn(f"{name} is ignored: it changes nothing here", stacklevel=3)


def launch(
    task: Task | Dag[Task],
    cluster_name: str | None = None,
    retry_until_up: bool = False,
    idle_minutes_to_autostop: int | None = None,
    wait_for: str | None = None,
    dryrun: bool = False,
    down: bool = False,
    backend: object = None,
    optimize_target: object = None,
    no_setup: bool = False,
    clone_disk_from: str | None = None,
    fast: bool = False,
    resize: bool = False,
) -> RequestId[Launched]:
    """Runs a task on a cluster of that name, bought if need be; machines are always waited for.

    `get` waits until the cluster is up. Raises BadSpec and Told for what cannot be.
    """
    clusters.must_copy_no_disk(clone_disk_from)
    clusters.must_keep_size(resize)
    ignored(backend=backend, optimize_target=optimize_target)
    lets_go = down or idle_minutes_to_autostop is not None
    idle = {"idle_minutes": idle_minutes_to_autostop or 0, "down": down}
    waits = {"wait_for": wait_for} if wait_for else {}
    body = body_of(task, autostop={**idle, **waits} if lets_go else None)
    skips = no_setup or (fast and clusters.is_up(service(), cluster_name))
    body |= {"cluster": cluster_name, "setup": not skips}
    client = service()
    plan = client.post("/v1/launch", {**body, "dry_run": True})
    if dryrun:
        return RequestId.done((None, None))
    make_folders(body["home"], plan["cwd"])
    made = client.persist("/v1/launch", {**body, "cluster": plan["cluster"]})
    return RequestId.of(body["request"], lambda out: _stands(made, out))


def exec(
    task: Task | Dag[Task],
    cluster_name: str | None = None,
    dryrun: bool = False,
    down: bool = False,
    backend: object = None,
) -> RequestId[Launched]:
    """Runs a task, without its setup, on a cluster that is up. Raises Told, Refused."""
    if cluster_name is None:
        raise Refused("no cluster named", hint="exec(task, cluster_name)")
    ignored(backend=backend)
    if dryrun:
        return RequestId.done((None, None))
    body = body_of(task)
    made = executed(service(), cluster_name, body)
    if down:
        clusters.set_idle(service(), cluster_name, 0, down=True)
    return RequestId.of(body["request"], lambda out: _stands(made, out))


def _stands(made: Json, out: BinaryIO) -> Launched:
    """Raises Conflict where it ends before it is up."""

    def say(text: str) -> None:
        out.write(f"{text}\n".encode())

    Follower(service(), out, say=say).until_up(made["job"])
    found = [one for one in clusters.listed(service(), all_users=True) if one["job"] == made["job"]]
    return made["run"], handle_of(found[0]) if found else None


def get(request_id: RequestId[T]) -> T:
    """Waits for what it comes to; of a bare id that it is up. Raises Told, Conflict."""
    return stream_and_get(request_id, output_stream=_Nowhere())


class _Nowhere:
    """Takes text and keeps none."""

    def write(self, text: str, /) -> int:
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


def stream_and_get(
    request_id: RequestId[T],
    log_path: str | None = None,
    tail: int | None = None,
    follow: bool = True,
    output_stream: TextStream | None = None,
    relay_rich_status: bool = False,
) -> T:
    """The same, and tells what is waited for."""
    ignored(log_path=log_path, tail=tail, relay_rich_status=relay_rich_status)
    out = stream_of(output_stream)
    asked: object = request_id
    if not isinstance(asked, RequestId):  # the bare id that `--async` printed
        told = service().get(f"/v1/requests/{asked}")
        return cast(T, _seen(str(asked), out) if told["job"] is None else _stands(told, out))
    return request_id.wait(out)


def status(
    cluster_names: Names = None, refresh: object = None, all_users: bool = False
) -> RequestId[list[Json]]:
    """Clusters; they are always fresh. Raises Unknown for a name that is none."""
    found = show.matching(clusters.listed(service(), all_users=all_users), _listed(cluster_names))
    return RequestId.done([cluster_record(dict(one)) for one in found])


def endpoints(cluster: str, port: int | str | None = None) -> RequestId[dict[int, str]]:
    """`ADDRESS:PORT` by open port, or of one. Raises Unknown, and Refused where it is closed."""
    (one,) = show.matching(clusters.listed(service(), all_users=True), [cluster])
    return RequestId.done(clusters.endpoints(one, None if port is None else int(port)))


def queue(
    cluster_name: str, skip_finished: bool = False, all_users: bool = False
) -> RequestId[list[Json]]:
    """The runs of a cluster, which are its owner's. Raises Told."""
    runs = _runs(cluster_name)
    return RequestId.done([job_record(one) for one in runs if not (skip_finished and one["over"])])


def _runs(cluster_name: str) -> list[Json]:
    runs: list[Json] = service().get(f"/v1/clusters/{cluster_name}/queue")["runs"]
    return runs


def job_status(
    cluster_name: str, job_ids: Sequence[int] | None = None
) -> RequestId[dict[int, JobStatus]]:
    """States by number; of the last run where none is named."""
    runs = {one["id"]: JobStatus(one["status"]) for one in _runs(cluster_name)}
    wanted = job_ids or ([max(runs)] if runs else [])
    return RequestId.done({number: runs[number] for number in wanted if number in runs})


def tail_logs(
    cluster_name: str,
    job_id: int | None = None,
    follow: bool = True,
    tail: int = 0,
    output_stream: TextStream | None = None,
    *,
    preload_content: bool = True,
) -> int | Iterator[str]:
    """The text of a run; 0 succeeded, 100 failed, 101 not over, 103 cancelled.

    Without `preload_content` its lines as they come.
    """
    client = service()
    wanted = which(client, cluster_name, job_id)
    if not preload_content:
        return lines_of(wanted, follow=follow, tail=tail or None)
    out = stream_of(output_stream)
    return text_of(client, wanted, out, follow=follow, tail=tail or None)


logs = tail_logs


def download_logs(cluster_name: str, job_ids: Sequence[int | str] | None = None) -> dict[str, str]:
    """Copies texts of runs below ~/sky_logs, of the last one where none is named.

    The folder of each by its number. Raises Unknown, Told.
    """
    client, found = service(), {}
    numbers: list[int | None] = [int(number) for number in job_ids or ()]
    for number in numbers or [None]:
        wanted = which(client, cluster_name, number)
        folder = Path.home() / "sky_logs" / f"{cluster_name}-{wanted.job}-{wanted.run}"
        synced(client, wanted, state_of(client, wanted), start=folder / "run")
        found[str(wanted.run)] = str(folder)
    return found


def text_of(client: Client, wanted: Which, out: BinaryIO, *, follow: bool, tail: int | None) -> int:
    """Copies it; the exit status of `spz logs`."""
    follower = Follower(client, out)
    if follow:
        return logs_status(follower.follow(wanted, tail=tail))
    follower.show(wanted, tail=tail)
    return logs_status(part_of(client.get(f"/v1/jobs/{wanted.job}"), wanted))


def lines_of(wanted: Which, *, follow: bool, tail: int | None) -> Iterator[str]:
    """Its lines as they come, without waiting for the end."""
    parts: SimpleQueue[bytes | None] = SimpleQueue()

    class Out:
        """Hands on what is written."""

        write = parts.put

        def flush(self) -> None:
            """Nothing is held back."""

    def copy() -> None:
        try:
            text_of(service(), wanted, cast(BinaryIO, Out()), follow=follow, tail=tail)
        finally:
            parts.put(None)

    Thread(target=copy, daemon=True).start()
    left = b""
    for part in iter(parts.get, None):
        *lines, left = (left + part).split(b"\n")
        yield from (f"{line.decode('utf-8', 'replace')}\n" for line in lines)
    if left:
        yield left.decode("utf-8", "replace")


def cancel(
    cluster_name: str,
    all: bool = False,
    all_users: bool = False,
    job_ids: Sequence[int] | None = None,
) -> RequestId[None]:
    """Ends runs; the last that is not over where none is named. Raises Told, Unknown."""
    live = [one["id"] for one in _runs(cluster_name) if not one["over"]]
    wanted = live if all or all_users else list(job_ids or live[-1:])
    if not wanted:
        raise Unknown(f"nothing runs in cluster {cluster_name!r}")
    route, goals = f"/v1/clusters/{cluster_name}/cancel", []
    for number in wanted:
        job = service().persist(route, run=number)["job"]
        goals.append({"to": "over", "job": job, "run": number, "name": cluster_name})
    return _asked("cancel", goals)


def _asked(verb: str, goals: Sequence[Json], *, again: bool = False) -> RequestId[None]:
    """The service sees to it; `get` waits until it has come to an end."""
    request = requested.begun(service(), verb, goals, again=again)
    return RequestId.of(request, lambda out: _seen(request, out))


def _seen(request: str, out: BinaryIO) -> None:
    """Raises Conflict for what has not come to what it was to."""
    lines: list[str] = []

    def tell(line: str) -> None:
        lines.append(line)
        out.write(f"{line}\n".encode())

    if requested.follow(service(), request, tell):
        raise Conflict(f"request {request}: {'; '.join(lines)}", hint=f"`spz api status {request}`")


def down(
    cluster_name: str,
    purge: bool = False,
    graceful: bool = False,
    graceful_timeout: int | None = None,
) -> RequestId[None]:
    """Lets a cluster go; `graceful` once what its runs wrote is kept. Raises Told."""
    return _ended(cluster_name, graceful=graceful, down=True, within=graceful_timeout)


def stop(
    cluster_name: str,
    purge: bool = False,
    graceful: bool = False,
    graceful_timeout: int | None = None,
) -> RequestId[None]:
    """Stops its machines; the disks are kept, and billed. Raises Told."""
    return _ended(cluster_name, graceful=graceful, down=False, within=graceful_timeout)


def _ended(name: str, *, graceful: bool, down: bool, within: int | None) -> RequestId[None]:
    verb = "down" if down else "stop"
    if graceful:
        (one,) = show.matching(clusters.listed(service(), all_users=True), [name])
        goal = clusters.end_gracefully(service(), dict(one), down=down, within=within)
    else:
        job = service().persist(f"/v1/clusters/{name}/{verb}")["job"]
        goal = {"to": "gone" if down else "stopped", "job": job, "name": name}
    return _asked(verb, [goal])


def start(
    cluster_name: str,
    idle_minutes_to_autostop: int | None = None,
    wait_for: str | None = None,
    retry_until_up: bool = False,
    down: bool = False,
    force: bool = False,
) -> RequestId[Handle]:
    """Starts a stopped cluster where it is; `get` waits until it is up. Raises Told."""
    job = service().persist(f"/v1/clusters/{cluster_name}/start")["job"]
    if idle_minutes_to_autostop is not None:
        minutes = idle_minutes_to_autostop
        clusters.set_idle(service(), cluster_name, minutes, down=down, waits=wait_for)
    one = {"name": cluster_name, "job": job}
    goal = {"to": "up", **one}
    request = requested.begun(service(), "start", [goal], again=retry_until_up)
    return RequestId.of(request, lambda _: _started(one, again=retry_until_up))


def _started(one: Json, *, again: bool) -> Handle:
    """Raises Conflict where it is stopped again, Refused where it is gone."""
    now = clusters.came_up(service(), one, again=again, say=lambda _: None)
    if now["status"] == "STOPPED":
        why = now["detail"] or now["reason"]
        raise Conflict(f"cluster {one['name']!r} did not start: {why}", hint="retry_until_up waits")
    return handle_of(now)


def autostop(
    cluster_name: str,
    idle_minutes: int,
    wait_for: str | None = None,
    down: bool = False,
    hook: str | None = None,
    hook_timeout: int | None = None,
) -> RequestId[None]:
    """Stops it after so long without a run, or lets it go; a negative number keeps it.

    Raises Told, and Refused for a hook: these stand in the task.
    """
    if hook is not None:
        raise Refused("hook: hooks stand in the task", hint="config: {hooks: [...]}")
    ignored(hook_timeout=hook_timeout)
    clusters.set_idle(service(), cluster_name, idle_minutes, down=down, waits=wait_for)
    return _asked("autostop", [])


def cost_report(days: int | None = 30) -> RequestId[list[Json]]:
    """Clusters of those days, gone ones too, with what they cost."""
    told = service().get("/v1/report", days=days)
    return RequestId.done([cost_record(one, told["at"]) for one in told["clusters"]])


def _listed(names: Names) -> list[str] | None:
    return [names] if isinstance(names, str) else list(names) if names else None
