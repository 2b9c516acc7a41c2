"""The contract of SkyPilot's task YAML: one JSON Schema, which also says what each key does here.

`x-does` is `works`, `sensible` (read and done as far as EC2 has it), `noted` (accepted, changes
nothing, one note says so: `x-note`) or `refused` (accepted, refused at launch with `x-note`). The
models that read task files, the notes and the manual's table are checked against this or made
from it. Two keys go beyond JSON Schema: variables are also replaced, and `_...` keys are dropped.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.translate.skypilot_forms import (
    AMOUNT,
    ANYTHING,
    COUNT,
    NOTHING,
    NUMBER,
    SCALAR,
    SECONDS,
    TEXT,
    TREE,
    TRUTH,
    WHOLE,
    Schema,
    any_of,
    group,
    listed,
    mapped,
    noted,
    refused,
    sensible,
    works,
)

# --- resources

AUTOSTOP = any_of(
    AMOUNT,
    TRUTH,
    group(
        {
            "idle_minutes": works("Minutes without a run; 5 where absent.", AMOUNT),
            "down": works("Machines go; else they are stopped and their disks kept.", TRUTH),
            "wait_for": works("jobs, jobs_and_ssh (usual); none is a limit from the start.", TEXT),
            "hook": works("Older place of a hook.", TEXT),
            "hook_timeout": works("Its limit, seconds.", AMOUNT),
        }
    ),
)
RECOVERY = any_of(
    TEXT,
    {
        "type": "object",
        "properties": {
            "strategy": sensible("FAILOVER, EAGER_NEXT_REGION or none.", any_of(TEXT, NOTHING)),
            "max_restarts_on_errors": works("Starts again after failures of its own.", COUNT),
            "recover_on_exit_codes": sensible(
                "Exit codes, 0 to 255, after which it starts again.", any_of(WHOLE, listed(WHOLE))
            ),
        },
        "additionalProperties": True,
    },
)
HOOK = group(
    {
        "command": TEXT,
        "run": TEXT,
        "events": listed({"type": "string", "enum": ["stop", "preemption", "down"]}),
        "timeout": {**AMOUNT, "minimum": 1},
    },
)
HOOKS = listed(HOOK)
PREEMPTION = group({"hook": TEXT, "hook_timeout": AMOUNT}, required=("hook",))
GPU_LIST = listed(any_of(TEXT, mapped({"type": ["number", "string", "null"]})))
TPU = group(
    {
        "runtime_version": TEXT,
        "tpu_name": TEXT,
        "tpu_vm": TRUTH,
        "gcp_queued_resource": TRUTH,
        "tf_version": AMOUNT,
    }
)
PORT = {"type": ["string", "integer"]}
CANDIDATE_KEYS: dict[str, Schema] = {
    "infra": works("CLOUD[/REGION[/ZONE]]; `*` is any. Only `aws` can be served.", TEXT),
    "cloud": works("Older spelling, not beside `infra`.", TEXT),
    "region": works("Older spelling, not beside `infra`.", TEXT),
    "zone": works("Older spelling; a zone's name is read as its region, an id as it is.", TEXT),
    "instance_type": works("The type itself.", TEXT),
    "accelerators": works(
        "NAME, NAME:COUNT, a map, a set (any will do), a list (first best), or by memory: 80GB+.",
        any_of(TEXT, mapped({"type": ["number", "string", "null"]}), GPU_LIST),
    ),
    "gpus": works(
        "Older spelling of `accelerators`.",
        any_of(TEXT, mapped({"type": ["number", "string", "null"]}), GPU_LIST),
    ),
    "accelerator_args": refused("For TPUs.", TPU, "EC2 has no TPUs"),
    "cpus": works("vCPUs of a node: 4 exactly, 4+ at least.", AMOUNT),
    "memory": works("Memory of a node: 32, 32+, 64GB, 4x (times the vCPUs).", AMOUNT),
    "use_spot": works("Spot only, or no spot.", TRUTH),
    "job_recovery": sensible("How a managed job goes on after a loss.", RECOVERY),
    "spot_recovery": sensible("Older spelling of `job_recovery`.", RECOVERY),
    "disk_size": works(
        "Root disk, GB or with a unit; 256 beside an image of the task's own, else the site's.",
        AMOUNT,
    ),
    "ephemeral_storage": noted("For Kubernetes.", AMOUNT, "a machine's disk is disk_size"),
    "disk_tier": works(
        "low is magnetic, medium and high gp3 of 3,500 and 7,000 IOPS, ultra and best io2 of"
        " 20,000; none is the site's.",
        TEXT,
    ),
    "network_tier": works(
        "best: EFA where the type has it; several nodes have that anyway, in a placement group.",
        TEXT,
    ),
    "local_disk": works("Instance-store disks: nvme, ssd, nvme:1000+, 1000+.", AMOUNT),
    "max_hourly_cost": works("Dollars an hour that a machine may cost.", AMOUNT),
    "image_id": works(
        "docker:IMAGE runs setup and run in that container; an AMI (with its region), "
        "skypilot:TAG, or a map by region: what the machines start from.",
        any_of(TEXT, mapped(TEXT)),
    ),
    "ports": works(
        "Ports open to the world: 8080, 8080-8090, a list.",
        any_of(PORT, listed({"type": ["string", "integer", "null"]})),
    ),
    "labels": works("Tags of the machines and their volumes.", mapped(SCALAR)),
    "autostop": works("Stops a cluster in which nothing has run for so long.", AUTOSTOP),
    "priority": works(
        "-1000 to 1000: what is taken off the job's nice; above 0 for administrators.",
        {"type": "integer", "minimum": -1000, "maximum": 1000},
    ),
    "priority_class": noted("A class by name.", TEXT, "it belongs to Kubernetes"),
    "volumes": refused("Disks of a machine (GCP).", listed(TREE), "there are none to attach"),
    "hooks": works("Scripts for the end: run, events, timeout.", HOOKS),
    "termination_hook": works("The older form of one hook.", HOOK),
    "preemption": works("The older form of one, at the notice that a machine goes.", PREEMPTION),
}
CANDIDATE = group(CANDIDATE_KEYS)
RESOURCES = group(
    {
        **CANDIDATE_KEYS,
        "any_of": works("Alternatives; the cheapest is taken.", listed(CANDIDATE)),
        "candidates": works("Older spelling of `any_of`.", listed(CANDIDATE)),
        "ordered": works("Alternatives in order of liking.", listed(CANDIDATE)),
    }
)

# --- service and pool

PROBE = group(
    {
        "path": TEXT,
        "initial_delay_seconds": SECONDS,
        "timeout_seconds": SECONDS,
        "endpoint_probe_interval_seconds": SECONDS,
        "consecutive_failure_threshold_timeout": SECONDS,
        "post_data": any_of(TEXT, TREE),
        "headers": mapped(SCALAR),
    },
    required=("path",),
)
OLDER_REPLICAS = (
    *("autoscaler", "init_replicas", "num_init_replicas", "num_extra", "on_demand_zones"),
    *("spot_zones", "spot_placement", "spot_policy", "spot_mixer", "mix_policy"),
    *("dynamic_on_demand_fallback", "base_on_demand_fallback_replicas"),
    *("extra_on_demand_replicas", "min_on_demand_replicas"),
)
"""Keys of the first versions with services."""
REPLICAS = group(
    {
        "min_replicas": COUNT,
        "max_replicas": COUNT,
        "num_overprovision": COUNT,
        "target_qps_per_replica": any_of(SECONDS, mapped(SECONDS)),
        "dynamic_ondemand_fallback": TRUTH,
        "base_ondemand_fallback_replicas": COUNT,
        "spot_placer": TEXT,
        "upscale_delay_seconds": SECONDS,
        "downscale_delay_seconds": SECONDS,
        "qps_upper_threshold": SECONDS,
        "qps_lower_threshold": SECONDS,
        "auto_restart": TRUTH,
        **dict.fromkeys(OLDER_REPLICAS, ANYTHING),
    },
    required=("min_replicas",),
)
FIXED = "pools do not grow by themselves: `spz jobs pool apply --pool NAME --workers N` does it"
POOL = group(
    {
        "workers": works("How many.", COUNT),
        "min_workers": sensible("How many at least: so many are kept up, or one.", COUNT),
        "max_workers": noted("How many at most.", COUNT, FIXED),
        "queue_length_threshold": noted("Waiting jobs that call for a worker.", COUNT, FIXED),
        "upscale_delay_seconds": noted("Before one is added.", SECONDS, FIXED),
        "downscale_delay_seconds": noted("Before one goes.", SECONDS, FIXED),
    }
)
SERVICE = group(
    {
        "readiness_probe": any_of(TEXT, PROBE),
        "replicas": COUNT,
        "replica_policy": REPLICAS,
        "load_balancing_policy": TEXT,
        "ports": PORT,
        "replica_port": PORT,
        "port": PORT,
        "tls": group({"keyfile": TEXT, "certfile": TEXT}, required=("keyfile", "certfile")),
        "load_balancer": group({"stream_timeout_seconds": SECONDS}),
        "load_balancer_type": TEXT,
        "auth_key": TEXT,
        "controller_resources": TREE,
        "external_load_balancers": listed(TREE),
        "route53_hosted_zone": TEXT,
        "pool": any_of(TRUTH, POOL),
        "workers": COUNT,
    }
)

# --- files, variables, settings

BYTES: Schema = {
    "type": ["string", "integer"],
    "pattern": "^[0-9]+[bkmgtpBKMGTP]?$",
    "examples": ["64M"],
}
PERIOD: Schema = {
    "type": ["string", "integer"],
    "pattern": r"^([0-9]+(\.[0-9]+)?(ms|[smhdwMy])?)+$",
    "examples": ["5s"],
}
CACHED = group(
    {
        "transfers": works("Files sent at once.", {"type": "integer", "minimum": 1}),
        "buffer_size": works("Memory for each file that is read.", BYTES),
        "vfs_cache_max_size": works("The most that the cache keeps on disk.", BYTES),
        "vfs_cache_max_age": works("How long the cache keeps what nobody reads.", PERIOD),
        "vfs_read_ahead": works("Bytes read beyond what was asked for.", BYTES),
        "vfs_read_chunk_size": works("The first bytes asked of the bucket at once.", BYTES),
        "vfs_read_chunk_streams": works("Chunks read at once.", COUNT),
        "vfs_write_back": works("How long a written file waits to be sent; 1s.", PERIOD),
        "read_only": works("Nothing may be written.", TRUTH),
    }
)
MOUNTED = group(
    {
        "read_only": works("Nothing may be written.", TRUTH),
        "hf_mount_args": noted("For Hugging Face's stores.", listed(TEXT), "they are not served"),
    }
)
MOUNT_CONFIG = group(
    {
        "mount_cached": works("Of MOUNT_CACHED: words of rclone's.", CACHED),
        "mount": works("Of MOUNT.", MOUNTED),
        **dict.fromkeys(("disk_size", "disk_tier", "storage_type", "attach_mode"), SCALAR),
    }
)
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "MODEL_CHECKPOINT_RO": {
        "vfs_read_chunk_streams": 16,
        "vfs_read_chunk_size": "32M",
        "read_only": True,
    },
    "MODEL_CHECKPOINT_RW": {
        "vfs_read_chunk_streams": 16,
        "vfs_read_chunk_size": "32M",
        "transfers": 8,
    },
    "DATASET_RO": {"vfs_read_chunk_streams": 0, "vfs_read_chunk_size": "8M", "read_only": True},
    "DATASET_RW": {"vfs_read_chunk_streams": 0, "vfs_read_chunk_size": "8M", "transfers": 16},
}
"""Settings that a `type` stands for (SkyPilot 0.14.1)."""
STORAGE = group(
    {
        "name": works("The bucket's name.", TEXT),
        "source": works("s3://..., or local paths to upload.", any_of(TEXT, listed(TEXT))),
        "store": sensible("Only s3 can be served.", TEXT),
        "persistent": sensible("Whether the bucket outlives the cluster.", TRUTH),
        "mode": works("MOUNT, COPY or MOUNT_CACHED, in any case.", TEXT),
        "mount_options": noted("Options of the mounting program.", TEXT, "ours are used"),
        "type": works(f"Settings under a name: {', '.join(PRESETS)}.", TEXT),
        "config": works("Settings of mounts and caches, before those of `type`.", MOUNT_CONFIG),
    }
)
GIT = group({"url": TEXT, "ref": AMOUNT}, required=("url",))
VARIABLES: Schema = {
    "type": "object",
    "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
    "additionalProperties": ANYTHING,
}
SECRETS: Schema = any_of(
    {
        "type": "object",
        "propertyNames": {"pattern": "^(secrets:.+|[A-Za-z_][A-Za-z0-9_]*)$"},
        "additionalProperties": ANYTHING,
    },
    listed(TEXT),
)
OF_CLUSTERS = (
    *("allowed_clusters", "cluster_configs", "container_mounts", "gpu_partition_map", "pricing"),
    *("prometheus", "provision_timeout", "submit_as_user", "username_map"),
)
NO_CLUSTERS = "SkyPurza is the cluster, and its settings are the site's"
SLURM = group(
    {
        "sbatch_options": sensible("Options of sbatch by name.", TREE),
        "quota": sensible("account and queue (a QOS).", TREE),
        "cpu_partition": noted("For tasks without GPUs.", TEXT, "the default partition is used"),
        **dict.fromkeys(
            OF_CLUSTERS,
            noted("Of the clusters that SkyPilot sends jobs to.", ANYTHING, NO_CLUSTERS),
        ),
    }
)
DOCKER = group(
    {
        "run_options": works(
            "Words for docker run or podman run; other runtimes tell that they are not for them.",
            any_of(TEXT, listed(TEXT), NOTHING),
        )
    }
)
CONFIG = group(
    {
        "docker": DOCKER,
        "nvidia_gpus": TREE,
        "ssh": TREE,
        "kubernetes": TREE,
        "aws": TREE,
        "azure": TREE,
        "gcp": TREE,
        "oci": TREE,
        "vast": TREE,
        "nebius": TREE,
        "runpod": TREE,
        "slurm": SLURM,
        "active_workspace": TEXT,
        "hooks": {**HOOKS, "maxItems": 32},
        "logs": TREE,
        "jobs": TREE,
        "serve": TREE,
        "provision": TREE,
    },
    closed=False,
)
EGRESS = {**mapped(NUMBER), "maxProperties": 1}
OVERRIDES = group({"config_overrides": CONFIG})
JOB = group({"wait_for_scheduling_timeout": AMOUNT})

# --- the task

TASK_KEYS: dict[str, Schema] = {
    "name": works("Name of the task, shown in listings.", {"type": ["string", "number"]}),
    "num_nodes": works("Nodes, all alike; all or none.", {"type": "integer", "minimum": 1}),
    "workdir": works(
        "A folder, or a repository (url, ref), in which the task runs.", any_of(TEXT, GIT)
    ),
    "setup": works("For bash, once on each node before `run`.", TEXT),
    "run": works("For bash, on each node.", TEXT),
    "envs": works("Variables; one without a value has to be given with --env.", VARIABLES),
    "secrets": works("Variables that are never shown; without a value: --secret.", SECRETS),
    "managed_secrets": noted(
        "Names in a store of secrets.",
        any_of(listed(any_of(TEXT, TREE)), TREE),
        "there is no such store",
    ),
    "file_mounts": works("Files and buckets by where they go.", mapped(any_of(TEXT, STORAGE))),
    "volumes": works(
        "Volumes of `spz volumes` by where they go; the machine is bought in their zone.",
        mapped(any_of(TEXT, TREE)),
    ),
    "resources": works("What a node has to give.", {"$ref": "#/$defs/resources"}),
    "config": sensible("Settings for this task: `slurm`, `docker` and `hooks` are read.", CONFIG),
    "experimental": sensible("Older place of `config`.", OVERRIDES),
    "service": noted(
        "A service to keep up (`spz serve` refuses).", SERVICE, "the task itself is run, once"
    ),
    "pool": sensible("Workers for `jobs launch --pool`.", POOL),
    "inputs": noted("Where data comes from.", EGRESS, "egress is not in the estimate"),
    "outputs": noted("Where data goes.", EGRESS, "egress is not in the estimate"),
    "event_callback": works("A script that is told of a managed job's states.", TEXT),
    "api_server_access": noted(
        "Whether a job may call the service.", TRUTH, "on nodes of this host it may anyway"
    ),
    "api_access": noted(
        "Its older name.", TRUTH, "on nodes of this host a job may call the service anyway"
    ),
    "job": noted(
        "Of managed jobs: wait_for_scheduling_timeout.", JOB, "jobs wait until they can start"
    ),
    "file_mounts_mapping": noted("SkyPilot's own.", {}, "it is SkyPilot's own"),
    "volume_mounts": refused("SkyPilot's own.", {}, "there are none to attach"),
}
HEADER_KEYS: dict[str, Schema] = {
    "name": works("Name of the pipeline or group.", {"type": ["string", "number"]}),
    "execution": works(
        "serial (a pipeline) or parallel (a group).", {"enum": ["serial", "parallel"]}
    ),
    "primary_tasks": works("Tasks whose end ends the group.", listed(TEXT)),
    "termination_delay": works(
        "How long the others may go on then.", any_of(AMOUNT, mapped(AMOUNT))
    ),
    "inter_connection": noted("Names for one another's hosts.", TRUTH, "addresses are given"),
}
TASK = {**group(TASK_KEYS), "$defs": {"resources": RESOURCES}}
HEADER = group(HEADER_KEYS)
SCHEMA: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A task as SkyPilot writes it (0.14 and older spellings)",
    **TASK,
}
"""Of one document that is a task; `HEADER` is that of a first document that is none."""
SECTIONS: Mapping[str, Schema] = {
    "": TASK,
    "header": HEADER,
    "resources": RESOURCES,
    "resources.autostop": AUTOSTOP["anyOf"][-1],
    "resources.job_recovery": RECOVERY["anyOf"][-1],
    "file_mounts.PATH": STORAGE,
    "file_mounts.PATH.config.mount_cached": CACHED,
    "file_mounts.PATH.config.mount": MOUNTED,
    "workdir": GIT,
    "service": SERVICE,
    "pool": POOL,
    "config": CONFIG,
    "config.slurm": SLURM,
    "config.docker": DOCKER,
}
"""Groups of keys by where they stand."""


def keys_of(section: str) -> list[str]:
    """The keys that may stand there, for suggestions."""
    return list(SECTIONS[section]["properties"])


def described() -> Iterator[tuple[str, Schema]]:
    """Each key that says what it does, by its path."""
    for section, schema in SECTIONS.items():
        for name, form in schema["properties"].items():
            if "x-does" in form:
                yield f"{section}.{name}".lstrip("."), form
