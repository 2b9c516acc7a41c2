"""What `gateway.sdk` tells of clusters, runs and managed jobs: SkyPilot's keys beside our own."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Json = dict[str, Any]


class ClusterStatus(StrEnum):
    """Of a cluster; TERMINATING and STOPPING are ways out that SkyPilot does not show."""

    INIT = "INIT"
    UP = "UP"
    STOPPED = "STOPPED"
    STARTING = "STARTING"
    STOPPING = "STOPPING"
    TERMINATING = "TERMINATING"


class StatusRefreshMode(StrEnum):
    """What `status` is given; here it is fresh with each of them."""

    NONE = "NONE"
    AUTO = "AUTO"
    FORCE = "FORCE"


class JobStatus(StrEnum):
    """Of a run in a cluster."""

    INIT = "INIT"
    PENDING = "PENDING"
    SETTING_UP = "SETTING_UP"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    FAILED_SETUP = "FAILED_SETUP"
    FAILED_DRIVER = "FAILED_DRIVER"
    CANCELLED = "CANCELLED"

    def is_terminal(self) -> bool:
        """Whether it will not change."""
        return self not in {JobStatus.INIT, "PENDING", "SETTING_UP", "RUNNING"}


class ManagedJobStatus(StrEnum):
    """Of a managed job."""

    PENDING = "PENDING"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    RECOVERING = "RECOVERING"
    WINDING_DOWN = "WINDING_DOWN"
    CANCELLING = "CANCELLING"
    SUCCEEDED = "SUCCEEDED"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"
    FAILED_SETUP = "FAILED_SETUP"
    FAILED_NO_RESOURCE = "FAILED_NO_RESOURCE"

    def is_terminal(self) -> bool:
        """Whether it will not change."""
        return self in {"CANCELLED", "SUCCEEDED"} or self.startswith("FAILED")


@dataclass(frozen=True, slots=True)
class Handle:
    """A cluster as `launch`, `exec` and `start` give it."""

    cluster_name: str
    job: int
    """By which `squeue` and `sacct` know it."""
    head_ip: str | None = None
    launched_nodes: int = 0
    launched_resources: str | None = None

    def get_cluster_name(self) -> str:
        """Its name."""
        return self.cluster_name


def handle_of(one: Json) -> Handle:
    """Of a cluster as the service lists it."""
    address = next(iter(one["addresses"]), None)
    return Handle(one["name"], one["job"], address, len(one["nodes"]), one["resources"])


def cluster_record(one: Json) -> Json:
    """An entry of `status`."""
    return {**cluster_told(one), "handle": handle_of(one)}


def cluster_told(one: Json) -> Json:
    """The same as JSON has it."""
    idle, place = one["idle_seconds"], one["infra"] or ""
    return {
        **one,
        "status": ClusterStatus(one["status"]),
        "launched_at": one["submitted"],
        "cloud": place.partition(" ")[0] or None,
        "region": place.partition("(")[2].strip(")").partition("/")[0] or None,
        "nodes": len(one["nodes"]),
        "node_names": one["nodes"],
        "cluster_hash": str(one["job"]),
        "autostop": -1 if idle is None else idle // 60,
        "to_down": idle is not None and not one["idle_stops"],
        "user_name": one["user"],
        "user_hash": str(one["uid"]),
        "resources_str": one["resources"],
        "is_managed": False,
    }


def job_record(one: Json) -> Json:
    """An entry of `queue`."""
    return {
        **one,
        "job_id": one["id"],
        "job_name": one["name"],
        "username": one["user"],
        "status": JobStatus(one["status"]),
        "submitted_at": one["submitted"],
        "start_at": one["started"],
        "end_at": one["ended"],
        "log_path": one["log"],
    }


def managed_record(one: Json) -> Json:
    """An entry of `jobs.queue`: a task of a managed job."""
    return {
        **one,
        "job_id": one["root"],
        "task_id": one["task"],
        "job_name": one["whole"] or one["name"],
        "task_name": one["name"],
        "status": ManagedJobStatus(one["status"]),
        "submitted_at": one["submitted"],
        "start_at": one["started"],
        "end_at": one["ended"],
        "job_duration": (one["ended"] or one["started"] or 0) - (one["started"] or 0),
        "recovery_count": one["restarts"],
        "user_name": one["user"],
        "resources": one["tres"],
        "is_job_group": one["kind"] == "group",
    }


def cost_record(one: Json, now: int) -> Json:
    """An entry of `cost-report`; `total_cost` in dollars, `duration` in seconds."""
    started = one["started"]
    tres = dict(part.partition("=")[::2] for part in (one["tres"] or "").split(","))
    return {
        **one,
        "status": "TERMINATED" if one["over"] else "STOPPED" if one["stopped"] else "UP",
        "launched_at": one["submitted"],
        "duration": 0 if started is None else (one["ended"] or now) - started,
        "num_nodes": int(tres.get("node") or 1),
        "total_cost": (one["cost_micro_usd"] or 0) / 1_000_000,
        "user_name": one["user"],
        "user_hash": str(one["uid"]),
    }
