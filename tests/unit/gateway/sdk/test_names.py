"""SkyPilot's names (0.14) in `gateway.sdk`: with its parameters in order, or refused by name."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from broker.model.errors import Refused
from gateway import sdk
from gateway.sdk import jobs

FUNCTIONS = {
    "api_cancel": "request_ids all_users silent",
    "api_info": "",
    "api_server_logs": "follow tail",
    "api_start": "deploy host foreground metrics metrics_port enable_basic_auth port",
    "api_status": "request_ids all_status limit fields cluster_name",
    "api_stop": "",
    "autostop": "cluster_name idle_minutes wait_for down hook hook_timeout",
    "cancel": "cluster_name all all_users job_ids",
    "cost_report": "days",
    "dashboard": "starting_page",
    "down": "cluster_name purge graceful graceful_timeout",
    "download_logs": "cluster_name job_ids",
    "endpoints": "cluster port",
    "exec": "task cluster_name dryrun down backend",
    "get": "request_id",
    "job_status": "cluster_name job_ids",
    "launch": "task cluster_name retry_until_up idle_minutes_to_autostop wait_for dryrun down "
    "backend optimize_target no_setup clone_disk_from fast resize",
    "optimize": "dag minimize",
    "list_accelerators": "gpus_only name_filter region_filter quantity_filter clouds "
    "case_sensitive all_regions require_price",
    "queue": "cluster_name skip_finished all_users",
    "start": "cluster_name idle_minutes_to_autostop wait_for retry_until_up down force",
    "status": "cluster_names refresh all_users",
    "stop": "cluster_name purge graceful graceful_timeout",
    "storage_delete": "name",
    "storage_ls": "",
    "stream_and_get": "request_id log_path tail follow output_stream relay_rich_status",
    "tail_logs": "cluster_name job_id follow tail output_stream preload_content",
    "Storage": "name source stores persistent mode sync_on_reconstruction mount_cached_config "
    "file_mount_type mount_config",
    **dict.fromkeys(sdk.CLOUDS, ""),
    "Dag": "",
}
OF_JOBS = {
    "cancel": "name job_ids all all_users pool graceful graceful_timeout task",
    "download_logs": "name job_id refresh controller local_dir",
    "launch": "task name pool num_jobs job_group",
    "pool_apply": "task pool_name mode workers",
    "pool_down": "pool_names all purge",
    "pool_status": "pool_names",
    "pool_sync_down_logs": "pool_name local_dir targets worker_ids tail",
    "pool_tail_logs": "pool_name target worker_id follow output_stream tail",
    "queue": "refresh skip_finished all_users job_ids version",
    "tail_logs": "name job_id follow controller refresh tail tail_offset output_stream task "
    "preload_content",
    "wait": "name job_id timeout poll_interval task",
}
VALUES = (
    "ClusterStatus DagExecution FileMountType JobStatus ManagedJobStatus OptimizeTarget Resources "
    "StatusRefreshMode StorageMode StoreType Task"
)
REFUSED = (
    "AdminPolicy AdminPolicyRequestName CLOUD_REGISTRY Config JOBS_RECOVERY_STRATEGY_REGISTRY "
    "MutatedUserRequest Optimizer UserRequest api_login backends batch create_debug_dump "
    "download_debug_dump get_user_workspace reload_config set_preferred_workspace"
)


@pytest.mark.parametrize(
    ("module", "name", "parameters"),
    [
        *((sdk, name, told) for name, told in FUNCTIONS.items()),
        *((jobs, name, told) for name, told in OF_JOBS.items()),
    ],
)
def test_a_function_takes_sky_pilots_parameters_in_its_order(
    module: object, name: str, parameters: str
) -> None:
    found = getattr(module, name)
    assert list(inspect.signature(found).parameters) == parameters.split()
    assert inspect.getdoc(found)


def test_the_values_are_there_and_nothing_else_has_been_forgotten() -> None:
    for name in VALUES.split():
        assert inspect.getdoc(getattr(sdk, name))
    assert set(sdk.ABSENT) == set(REFUSED.split())
    assert set(sdk.MODULE_OF) == {*FUNCTIONS, *VALUES.split(), "RequestId", "logs"}


@pytest.mark.parametrize("name", REFUSED.split())
def test_what_is_not_here_says_what_is_in_its_place(name: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}': ."):
        getattr(sdk, name)


@pytest.mark.parametrize(
    ("key", "order", "numbers"),
    [
        (None, None, [3, 1, 2]),
        ("job_id", "asc", [1, 2, 3]),
        ("job_id", "desc", [3, 2, 1]),
        ("name", "asc", [2, 3, 1]),
        ("end_at", "asc", [3, 1, 2]),
        ("end_at", "desc", [1, 3, 2]),
    ],
)
def test_records_of_managed_jobs_are_sorted(
    key: str | None, order: str | None, numbers: list[int]
) -> None:
    found: list[Any] = [
        {"job_id": 3, "job_name": "b", "end_at": 7},
        {"job_id": 1, "job_name": "c", "end_at": 9},
        {"job_id": 2, "job_name": "a", "end_at": None},
    ]
    assert [one["job_id"] for one in jobs.in_order(found, key, order)] == numbers
    with pytest.raises(Refused, match="sort_by colour: no such key"):
        jobs.in_order(found, "colour", None)


@pytest.mark.parametrize("name", ["download_logs_streaming"])
def test_so_do_names_of_managed_jobs(name: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}': ."):
        getattr(jobs, name)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (sdk.Storage, "a name or a source"),
        (lambda: sdk.Storage("mine", stores=["gcs"]), "GCS: buckets are in S3 only"),
        (lambda: sdk.list_accelerators(clouds=["gcp"]), "only aws is served"),
        (sdk.api_status, "no request named"),
        (sdk.api_cancel, "no request named"),
        (lambda: jobs.pool_apply(None, "p"), "a task, or a number of workers"),
        (lambda: jobs.pool_apply(sdk.Task(run="x"), "p"), "not one task with a `pool`"),
    ],
)
def test_what_cannot_be_is_refused_before_the_service_is_asked(
    call: Callable[[], object], why: str
) -> None:
    with pytest.raises(Refused, match=why):
        call()


def test_a_bucket_stands_in_a_task_as_in_its_file() -> None:
    task = sdk.Task(
        run="x",
        storage_mounts={"/data": sdk.Storage("mine", source="./in", mode=sdk.StorageMode.COPY)},
    )
    again = sdk.Task.from_yaml_str(task.to_yaml_str())
    assert again.file_mounts == {
        "/data": {"name": "mine", "source": "./in", "persistent": True, "mode": "COPY"}
    }
    assert sdk.Storage.from_yaml_config({"name": "mine", "store": "s3"})["mode"] == "MOUNT"


def test_settings_of_a_bucket_are_those_of_its_file() -> None:
    told = {
        "name": "mine",
        "persistent": True,
        "mode": "MOUNT_CACHED",
        "type": "DATASET_RW",
        "config": {"mount_cached": {"transfers": 2}, "mount": {"read_only": True}},
    }
    made = sdk.Storage(
        "mine",
        mode="mount_cached",
        file_mount_type=sdk.FileMountType.DATASET_RW,
        mount_cached_config={"transfers": 2},
        mount_config={"read_only": True},
    )
    assert made == told == sdk.Storage.from_yaml_config(told)


def test_an_alternative_on_another_cloud_is_one_of_the_task() -> None:
    task = sdk.Task(run="x").set_resources([sdk.Resources(sdk.GCP()), sdk.Resources(sdk.AWS())])
    assert task.to_yaml_config()["resources"] == {"ordered": [{"cloud": "gcp"}, {"cloud": "aws"}]}
