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
    from gateway.sdk.accelerators import list_accelerators as list_accelerators
    from gateway.sdk.api import api_cancel as api_cancel
    from gateway.sdk.api import api_info as api_info
    from gateway.sdk.api import api_server_logs as api_server_logs
    from gateway.sdk.api import api_start as api_start
    from gateway.sdk.api import api_status as api_status
    from gateway.sdk.api import api_stop as api_stop
    from gateway.sdk.api import dashboard as dashboard
    from gateway.sdk.asked import RequestId as RequestId
    from gateway.sdk.clouds import AWS as AWS
    from gateway.sdk.clouds import GCP as GCP
    from gateway.sdk.clouds import IBM as IBM
    from gateway.sdk.clouds import OCI as OCI
    from gateway.sdk.clouds import SCP as SCP
    from gateway.sdk.clouds import SSH as SSH
    from gateway.sdk.clouds import Azure as Azure
    from gateway.sdk.clouds import Cudo as Cudo
    from gateway.sdk.clouds import Fluidstack as Fluidstack
    from gateway.sdk.clouds import Hyperbolic as Hyperbolic
    from gateway.sdk.clouds import K8s as K8s
    from gateway.sdk.clouds import Kubernetes as Kubernetes
    from gateway.sdk.clouds import Lambda as Lambda
    from gateway.sdk.clouds import Mithril as Mithril
    from gateway.sdk.clouds import Nebius as Nebius
    from gateway.sdk.clouds import Paperspace as Paperspace
    from gateway.sdk.clouds import PrimeIntellect as PrimeIntellect
    from gateway.sdk.clouds import RunPod as RunPod
    from gateway.sdk.clouds import Seeweb as Seeweb
    from gateway.sdk.clouds import Shadeform as Shadeform
    from gateway.sdk.clouds import Slurm as Slurm
    from gateway.sdk.clouds import Vast as Vast
    from gateway.sdk.clouds import Vsphere as Vsphere
    from gateway.sdk.clouds import Yotta as Yotta
    from gateway.sdk.dags import Dag as Dag
    from gateway.sdk.dags import DagExecution as DagExecution
    from gateway.sdk.optimizing import OptimizeTarget as OptimizeTarget
    from gateway.sdk.optimizing import optimize as optimize
    from gateway.sdk.records import ClusterStatus as ClusterStatus
    from gateway.sdk.records import JobStatus as JobStatus
    from gateway.sdk.records import ManagedJobStatus as ManagedJobStatus
    from gateway.sdk.records import StatusRefreshMode as StatusRefreshMode
    from gateway.sdk.sky import autostop as autostop
    from gateway.sdk.sky import cancel as cancel
    from gateway.sdk.sky import cost_report as cost_report
    from gateway.sdk.sky import down as down
    from gateway.sdk.sky import download_logs as download_logs
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
    from gateway.sdk.storages import FileMountType as FileMountType
    from gateway.sdk.storages import Storage as Storage
    from gateway.sdk.storages import StorageMode as StorageMode
    from gateway.sdk.storages import StoreType as StoreType
    from gateway.sdk.storages import storage_delete as storage_delete
    from gateway.sdk.storages import storage_ls as storage_ls
    from gateway.sdk.tasks import Resources as Resources
    from gateway.sdk.tasks import Task as Task

CLOUDS = (
    *("AWS", "Azure", "Cudo", "Fluidstack", "GCP", "Hyperbolic", "IBM", "K8s", "Kubernetes"),
    *("Lambda", "Mithril", "Nebius", "OCI", "Paperspace", "PrimeIntellect", "RunPod", "SCP", "SSH"),
    *("Seeweb", "Shadeform", "Slurm", "Vast", "Vsphere", "Yotta"),
)
HOMES = {
    "accelerators": ("list_accelerators",),
    "api": (
        *("api_cancel", "api_info", "api_server_logs", "api_start", "api_status", "api_stop"),
        "dashboard",
    ),
    "asked": ("RequestId",),
    "clouds": CLOUDS,
    "dags": ("Dag", "DagExecution"),
    "optimizing": ("OptimizeTarget", "optimize"),
    "records": ("ClusterStatus", "JobStatus", "ManagedJobStatus", "StatusRefreshMode"),
    "sky": (
        *("autostop", "cancel", "cost_report", "down", "download_logs", "endpoints", "exec"),
        *("get", "job_status", "launch", "logs", "queue", "start", "status", "stop"),
        *("stream_and_get", "tail_logs"),
    ),
    "storages": (
        *("FileMountType", "Storage", "StorageMode", "StoreType", "storage_delete"),
        "storage_ls",
    ),
    "tasks": ("Resources", "Task"),
}
"""Modules, and what each is asked for."""
MODULE_OF = {name: home for home, names in HOMES.items() for name in names}
RULES = "a site's rules stand in the service's configuration"
INNER = "it is of SkyPilot's own working"
NO_DUMP = "`spz api logs` and `spz why JOB` tell what went wrong"
ACCOUNTS = "accounts part users' work: `#SPZ account=`, slurm.sbatch_options"
ABSENT = {
    **dict.fromkeys(
        ("AdminPolicy", "AdminPolicyRequestName", "MutatedUserRequest", "UserRequest"), RULES
    ),
    **dict.fromkeys(("CLOUD_REGISTRY", "JOBS_RECOVERY_STRATEGY_REGISTRY", "backends"), INNER),
    **dict.fromkeys(("create_debug_dump", "download_debug_dump"), NO_DUMP),
    **dict.fromkeys(("get_user_workspace", "set_preferred_workspace"), ACCOUNTS),
    "Config": "settings are those of the task (`config:`) and of the service",
    "reload_config": "settings are read by the service: `scontrol reconfigure`",
    "Optimizer": "optimize(dag) tells what the service ranks first",
    "api_login": "who you are is known by your uid; SKYPURZA_SOCKET names another service",
    "batch": "jobs.launch(task, num_jobs=N) makes an array",
}
"""Names of SkyPilot's that are not here, and what is in their place."""


def __getattr__(name: str) -> Any:
    """The public names, each loaded when it is first asked for. Raises AttributeError."""
    if name == "jobs":
        return import_module(f"{__name__}.jobs")
    if name not in MODULE_OF:
        why = f": {ABSENT[name]}" if name in ABSENT else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{why}")
    return getattr(import_module(f"{__name__}.{MODULE_OF[name]}"), name)
