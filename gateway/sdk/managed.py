"""Which managed jobs are meant: by id, by name, by task."""

from collections.abc import Collection, Sequence
from typing import Protocol

from broker.model.errors import Refused, Unknown
from gateway.sdk.client import Json, Told

OVER = 409
"""How the service answers for a job that is over already."""
HINT = "`spz jobs queue -a` lists them"


def of_ids(jobs: Sequence[Json], ids: Collection[int]) -> list[Json]:
    """Jobs, and all tasks of the wholes that are named. Raises Unknown."""
    for number in ids:
        if not any(number in _numbers(one) for one in jobs):
            raise Unknown(f"no managed job {number}", hint=HINT)
    return [one for one in jobs if not _numbers(one).isdisjoint(ids)]


def of_name(jobs: Sequence[Json], name: str | None) -> list[Json]:
    """Of tasks or wholes with this name; all without one."""
    return [one for one in jobs if name in {None, one["name"], one["whole"]}]


def of_task(jobs: Sequence[Json], task: str | int | None) -> list[Json]:
    """That task of each, by name or number."""
    return [one for one in jobs if task is None or str(task) in {str(one["task"]), one["name"]}]


def one_of(jobs: Sequence[Json], job: int | None, *, task: str | int | None) -> Json:
    """The job, or that task of it; the last one without an id. Raises Unknown."""
    found = of_task(jobs if job is None else of_ids(jobs, [job]), task)
    if not found:
        raise Unknown("no such managed job", hint=HINT)
    own = [one for one in found if one["id"] == job]
    latest = sorted(found, key=lambda one: (-int(one["root"]), int(one["id"])))
    return (own if own and task is None else latest)[0]


def is_in(one: Json, infra: str) -> bool:
    """Whether it runs there; `*` is any place, and of jobs that are over nobody asks that."""
    cloud, *places = infra.strip("/").split("/")
    here = one["infra"] or ""
    wanted = [place for place in places if place != "*"]
    return bool(here) and cloud.lower() in {"aws", "*"} and all(p in here for p in wanted)


class Ends(Protocol):
    """The part of a client that this takes."""

    def persist(self, route: str, /) -> Json: ...


def end(service: Ends, jobs: Sequence[Json]) -> list[int]:
    """Ends them, those that wait for others first, and says which. Raises Told."""
    ids = sorted((int(one["id"]) for one in jobs), reverse=True)
    for number in ids:
        try:
            service.persist(f"/v1/jobs/{number}/cancel")
        except Told as error:
            if error.status != OVER:  # it ended by itself just now
                raise
    return ids


def _numbers(one: Json) -> set[int]:
    """Ids by which a job is meant: its own, and that of the whole."""
    return {one["id"], one["root"]}


def must_join_none(group: int | str | None) -> None:
    """Raises Refused for a group that runs: its tasks have begun together."""
    if group is not None:
        told = f"--job-group {group}: nothing joins a group that runs, its tasks begin together"
        raise Refused(told, hint="one file with `execution: parallel` in its header is a group")
