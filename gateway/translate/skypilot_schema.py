"""The contract of SkyPilot's task YAML: one JSON Schema, which also says what each key does here.

`x-does` is `works`, `sensible` (read and done as far as EC2 has it), `noted` (accepted, changes
nothing, one note says so: `x-note`) or `refused` (accepted, refused at launch with `x-note`). The
models that read task files, the notes and the manual's table are checked against this or made
from it. Two keys go beyond JSON Schema: variables are also replaced, and `_...` keys are dropped.
"""

from collections.abc import Iterator, Mapping
from typing import Any

Schema = dict[str, Any]
WORKS, SENSIBLE, NOTED, REFUSED = "works", "sensible", "noted", "refused"

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
TRUTH: Schema = {"type": "boolean"}
NOTHING: Schema = {"type": "null"}
TREE: Schema = {"type": "object"}
COUNT: Schema = {"type": "integer", "minimum": 0}
SECONDS: Schema = {"type": "number", "minimum": 0}
SCALAR: Schema = {"type": ["string", "number", "boolean", "null"]}
ANYTHING: Schema = {"type": ["string", "number", "boolean", "null", "array", "object"]}
AMOUNT: Schema = {"type": ["string", "number"]}
INTERNAL: Schema = {"^_": {}}
"""Keys of SkyPilot's own; whatever they hold is passed over."""


def _any(*forms: Schema) -> Schema:
    return {"anyOf": list(forms)}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _map(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def _group(
    keys: Mapping[str, Schema], *, required: tuple[str, ...] = (), closed: bool = True
) -> Schema:
    """A group of keys, and no others but internal ones; a key given as nothing is not given."""
    made: Schema = {
        "type": ["object", "null"],
        "properties": {name: _or_nothing(form) for name, form in keys.items()},
        "patternProperties": INTERNAL,
        "additionalProperties": not closed,
    }
    return made | ({"required": list(required)} if required else {})


def _or_nothing(form: Schema) -> Schema:
    if not form or "$ref" in form or form.get("type") == ["object", "null"]:
        return form
    told: Schema = {key: form[key] for key in ("description", "x-does", "x-note") if key in form}
    bare = {key: value for key, value in form.items() if key not in told}
    return {**told, **_any(bare, NOTHING)}


def _key(does: str, told: str, form: Schema, *, note: str = "") -> Schema:
    why = {"x-note": note} if note else {}
    return {"description": told, "x-does": does, **why, **form}


def works(told: str, form: Schema) -> Schema:
    return _key(WORKS, told, form)


def sensible(told: str, form: Schema) -> Schema:
    return _key(SENSIBLE, told, form)


def noted(told: str, form: Schema, note: str) -> Schema:
    return _key(NOTED, told, form, note=note)


def refused(told: str, form: Schema, note: str) -> Schema:
    return _key(REFUSED, told, form, note=note)


# --- resources

AUTOSTOP = _any(
    AMOUNT,
    TRUTH,
    _group(
        {
            "idle_minutes": works("Minutes without a run; 5 where absent.", AMOUNT),
            "down": works("Machines go; else they are stopped and their disks kept.", TRUTH),
            "wait_for": works("jobs, jobs_and_ssh (usual); none is a limit from the start.", TEXT),
            "hook": works("Older place of a hook.", TEXT),
            "hook_timeout": works("Its limit, seconds.", AMOUNT),
        }
    ),
)
RECOVERY = _any(
    TEXT,
    {
        "type": "object",
        "properties": {
            "strategy": sensible("FAILOVER, EAGER_NEXT_REGION or none.", _any(TEXT, NOTHING)),
            "max_restarts_on_errors": works("Starts again after failures of its own.", COUNT),
            "recover_on_exit_codes": sensible(
                "Exit codes, 0 to 255, after which it starts again.", _any(WHOLE, _list(WHOLE))
            ),
        },
        "additionalProperties": True,
    },
)
HOOK = _group(
    {
        "command": TEXT,
        "run": TEXT,
        "events": _list({"type": "string", "enum": ["stop", "preemption", "down"]}),
        "timeout": AMOUNT,
    },
)
HOOKS = _list(HOOK)
PREEMPTION = _group({"hook": TEXT, "hook_timeout": AMOUNT}, required=("hook",))
GPU_LIST = _list(_any(TEXT, _map({"type": ["number", "string", "null"]})))
TPU = _group(
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
        _any(TEXT, _map({"type": ["number", "string", "null"]}), GPU_LIST),
    ),
    "gpus": works(
        "Older spelling of `accelerators`.",
        _any(TEXT, _map({"type": ["number", "string", "null"]}), GPU_LIST),
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
        _any(TEXT, _map(TEXT)),
    ),
    "ports": works(
        "Ports open to the world: 8080, 8080-8090, a list.",
        _any(PORT, _list({"type": ["string", "integer", "null"]})),
    ),
    "labels": works("Tags of the machines and their volumes.", _map(SCALAR)),
    "autostop": works("Stops a cluster in which nothing has run for so long.", AUTOSTOP),
    "priority": works(
        "-1000 to 1000: what is taken off the job's nice; above 0 for administrators.",
        {"type": "integer", "minimum": -1000, "maximum": 1000},
    ),
    "priority_class": noted("A class by name.", TEXT, "it belongs to Kubernetes"),
    "volumes": refused("Disks of a machine (GCP).", _list(TREE), "there are none to attach"),
    "hooks": works("Scripts for the end: run, events, timeout.", HOOKS),
    "termination_hook": works("The older form of one hook.", HOOK),
    "preemption": works("The older form of one, at the notice that a machine goes.", PREEMPTION),
}
CANDIDATE = _group(CANDIDATE_KEYS)
RESOURCES = _group(
    {
        **CANDIDATE_KEYS,
        "any_of": works("Alternatives; the cheapest is taken.", _list(CANDIDATE)),
        "candidates": works("Older spelling of `any_of`.", _list(CANDIDATE)),
        "ordered": works("Alternatives in order of liking.", _list(CANDIDATE)),
    }
)

# --- service and pool

PROBE = _group(
    {
        "path": TEXT,
        "initial_delay_seconds": SECONDS,
        "timeout_seconds": SECONDS,
        "endpoint_probe_interval_seconds": SECONDS,
        "consecutive_failure_threshold_timeout": SECONDS,
        "post_data": _any(TEXT, TREE),
        "headers": _map(SCALAR),
    },
    required=("path",),
)
OLDER_REPLICAS = (
    *("autoscaler", "init_replicas", "num_extra", "on_demand_zones"),
    *("spot_zones", "spot_placement", "spot_policy", "spot_mixer", "mix_policy"),
    *("dynamic_on_demand_fallback", "base_on_demand_fallback_replicas"),
    "extra_on_demand_replicas",
)
"""Keys of the first versions with services."""
REPLICAS = _group(
    {
        "min_replicas": COUNT,
        "max_replicas": COUNT,
        "num_overprovision": COUNT,
        "target_qps_per_replica": _any(SECONDS, _map(SECONDS)),
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
POOL = _group(
    {
        "workers": sensible("How many.", COUNT),
        "min_workers": sensible("How many at least.", COUNT),
        "max_workers": sensible("How many at most.", COUNT),
        "queue_length_threshold": noted(
            "Waiting jobs that call for a worker.", COUNT, "each waiting job calls for one"
        ),
        "upscale_delay_seconds": noted("Before one is added.", SECONDS, "none is waited"),
        "downscale_delay_seconds": noted(
            "Before one goes.", SECONDS, "the partition's idle_seconds rule"
        ),
    }
)
SERVICE = _group(
    {
        "readiness_probe": _any(TEXT, PROBE),
        "replicas": COUNT,
        "replica_policy": REPLICAS,
        "load_balancing_policy": TEXT,
        "ports": PORT,
        "replica_port": PORT,
        "port": PORT,
        "tls": _group({"keyfile": TEXT, "certfile": TEXT}, required=("keyfile", "certfile")),
        "load_balancer": _group({"stream_timeout_seconds": SECONDS}),
        "load_balancer_type": TEXT,
        "auth_key": TEXT,
        "controller_resources": TREE,
        "pool": _any(TRUTH, POOL),
        "workers": COUNT,
    }
)

# --- files, variables, settings

STORAGE = _group(
    {
        "name": works("The bucket's name.", TEXT),
        "source": works("s3://..., or local paths to upload.", _any(TEXT, _list(TEXT))),
        "store": sensible("Only s3 can be served.", TEXT),
        "persistent": sensible("Whether the bucket outlives the cluster.", TRUTH),
        "mode": works("MOUNT, COPY or MOUNT_CACHED, in any case.", TEXT),
        "mount_options": noted("Options of the mounting program.", TEXT, "ours are used"),
        "type": noted("A preset for caches.", TEXT, "the usual cache is used"),
        "config": noted("Settings of mounts and caches.", TREE, "the usual ones are used"),
    }
)
GIT = _group({"url": TEXT, "ref": AMOUNT}, required=("url",))
VARIABLES: Schema = {
    "type": "object",
    "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
    "additionalProperties": ANYTHING,
}
SECRETS: Schema = _any(
    {
        "type": "object",
        "propertyNames": {"pattern": "^(secrets:.+|[A-Za-z_][A-Za-z0-9_]*)$"},
        "additionalProperties": SCALAR,
    },
    _list(TEXT),
)
SLURM = _group(
    {
        "sbatch_options": sensible("Options of sbatch by name.", TREE),
        "quota": sensible("account and queue (a QOS).", TREE),
        "cpu_partition": noted("For tasks without GPUs.", TEXT, "the default partition is used"),
    }
)
DOCKER = _group(
    {
        "run_options": works(
            "Words for docker run or podman run; other runtimes tell that they are not for them.",
            _any(TEXT, _list(TEXT), NOTHING),
        )
    }
)
CONFIG = _group(
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
EGRESS = {**_map(NUMBER), "maxProperties": 1}
OVERRIDES = _group({"config_overrides": CONFIG})
JOB = _group({"wait_for_scheduling_timeout": AMOUNT})

# --- the task

TASK_KEYS: dict[str, Schema] = {
    "name": works("Name of the task, shown in listings.", {"type": ["string", "number"]}),
    "num_nodes": works("Nodes, all alike; all or none.", {"type": "integer", "minimum": 1}),
    "workdir": works(
        "A folder, or a repository (url, ref), in which the task runs.", _any(TEXT, GIT)
    ),
    "setup": works("For bash, once on each node before `run`.", TEXT),
    "run": works("For bash, on each node.", TEXT),
    "envs": works("Variables; one without a value has to be given with --env.", VARIABLES),
    "secrets": works("Variables that are never shown; without a value: --secret.", SECRETS),
    "managed_secrets": noted(
        "Names in a store of secrets.",
        _any(_list(_any(TEXT, TREE)), TREE),
        "there is no such store",
    ),
    "file_mounts": works("Files and buckets by where they go.", _map(_any(TEXT, STORAGE))),
    "volumes": works(
        "Volumes of `spz volumes` by where they go; the machine is bought in their zone.",
        _map(_any(TEXT, TREE)),
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
    "primary_tasks": works("Tasks whose end ends the group.", _list(TEXT)),
    "termination_delay": works("How long the others may go on then.", _any(AMOUNT, _map(AMOUNT))),
    "inter_connection": noted("Names for one another's hosts.", TRUTH, "addresses are given"),
}
TASK = {**_group(TASK_KEYS), "$defs": {"resources": RESOURCES}}
HEADER = _group(HEADER_KEYS)
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
    for section, group in SECTIONS.items():
        for name, form in group["properties"].items():
            if "x-does" in form:
                yield f"{section}.{name}".lstrip("."), form
