"""SkyPurza for programs: SkyPilot's names (`Task`, `Resources`, `launch`, ...), loaded when used.

from gateway import sdk

task = sdk.Task(name="fit", run="python fit.py", resources=sdk.Resources(accelerators="A10G:1"))
run, cluster = sdk.get(sdk.launch(task, "dev", idle_minutes_to_autostop=10))
sdk.tail_logs("dev", run)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gateway.sdk import jobs as jobs
    from gateway.sdk.asked import RequestId as RequestId
    from gateway.sdk.records import ClusterStatus as ClusterStatus
    from gateway.sdk.records import JobStatus as JobStatus
    from gateway.sdk.records import ManagedJobStatus as ManagedJobStatus
    from gateway.sdk.sky import autostop as autostop
    from gateway.sdk.sky import cancel as cancel
    from gateway.sdk.sky import cost_report as cost_report
    from gateway.sdk.sky import down as down
    from gateway.sdk.sky import endpoints as endpoints
    from gateway.sdk.sky import exec as exec
    from gateway.sdk.sky import get as get
    from gateway.sdk.sky import job_status as job_status
    from gateway.sdk.sky import launch as launch
    from gateway.sdk.sky import logs as logs
    from gateway.sdk.sky import queue as queue
    from gateway.sdk.sky import start as start
    from gateway.sdk.sky import status as status
    from gateway.sdk.sky import stop as stop
    from gateway.sdk.sky import stream_and_get as stream_and_get
    from gateway.sdk.sky import tail_logs as tail_logs
    from gateway.sdk.tasks import AWS as AWS
    from gateway.sdk.tasks import Resources as Resources
    from gateway.sdk.tasks import Task as Task

HOMES = {
    **dict.fromkeys(("AWS", "Resources", "Task"), "tasks"),
    **dict.fromkeys(("ClusterStatus", "JobStatus", "ManagedJobStatus"), "records"),
    "RequestId": "asked",
    "jobs": "",
}
"""Where a name lives, if not in `sky`; empty: it is a module itself."""
FUNCTIONS = (
    *("autostop", "cancel", "cost_report", "down", "endpoints", "exec", "get", "job_status"),
    *("launch", "logs", "queue", "start", "status", "stop", "stream_and_get", "tail_logs"),
)


def __getattr__(name: str) -> Any:
    """The public names, each loaded when it is first asked for."""
    if name not in HOMES and name not in FUNCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = HOMES.get(name, "sky")
    if not home:
        return import_module(f"{__name__}.{name}")
    return getattr(import_module(f"{__name__}.{home}"), name)
