"""Options that several verbs have."""

from gateway.sdk.verbs.line import FLAG, MANY, NUMBER, PAIR, TEXT, Opt

YES = Opt("-y --yes", FLAG, "Do not ask.")
OUTPUT = Opt("-o --output", TEXT, "How it is told.", "FORM", choices=("table", "json"))
AS_JSON = Opt("--json", FLAG, "The same as -o json.")
ALL_OF_MINE = Opt("-a --all", FLAG, "All of yours.")
EVERYBODY = Opt("-u --all-users", FLAG, "Of all users.")
ASYNC = Opt("--async", PAIR, "Print the request's id and come back at once.")
DETACH = Opt("-d --detach-run", FLAG, "Do not wait for the run.")
SETTINGS = Opt(
    "--config",
    MANY,
    "Settings of SkyPilot's client; there are none here.",
    "KEY=VALUE",
    "settings are the service's: `spz check` shows its file",
)
WORKSPACE = Opt(
    "-w --workspace", TEXT, "One of SkyPilot's.", "NAME", "there is one workspace, accounts part it"
)
TIMEOUT = Opt("--graceful-timeout", NUMBER, "How long that may take; absent: for ever.", "SECONDS")
PURGE = Opt("-p --purge", FLAG, "Whatever the machines say; no difference here.")
CONFIG = Opt("--config", MANY, "Settings of the task, KEY=VALUE.", "KEY=VALUE")
LISTED = (OUTPUT, AS_JSON)
DISK_TIERS = ("low", "medium", "high", "ultra", "best", "none")
NETWORK_TIERS = ("standard", "best", "none")
WAITS = ("jobs_and_ssh", "jobs", "none")
WAIT_FOR = Opt("--wait-for", TEXT, "What holds an autostop off.", "WHAT", choices=WAITS)

VARIABLES = (
    Opt("--env", MANY, "NAME=VALUE, or NAME of this shell's.", "NAME[=VALUE]"),
    Opt("--env-file", MANY, "File of NAME=VALUE lines.", "FILE"),
    Opt("--secret", MANY, "As --env, and never shown.", "NAME[=VALUE]"),
    Opt("--secret-file", MANY, "As --env-file, and never shown.", "FILE"),
)
OVERRIDES = (
    Opt("-n --name", TEXT, "Name of the task.", "NAME"),
    Opt("--workdir", TEXT, "Folder where it runs.", "DIR"),
    Opt("--git-url", TEXT, "Repository where it runs.", "URL"),
    Opt("--git-ref", TEXT, "Its branch, tag or commit.", "REF"),
    Opt("--infra", TEXT, "aws, aws/REGION, aws/REGION/ZONE-ID; none clears.", "INFRA"),
    Opt("--cloud", TEXT, "Older spelling of --infra.", "CLOUD"),
    Opt("--region", TEXT, "Older spelling of --infra.", "REGION"),
    Opt("--zone", TEXT, "Older spelling of --infra.", "ZONE"),
    Opt("--gpus", TEXT, "NAME or NAME:COUNT; none clears.", "GPUS"),
    Opt("--cpus", TEXT, "4 exactly, 4+ at least.", "N"),
    Opt("--memory", TEXT, "GB: 16, 16+, or 4x times the vCPUs.", "GB"),
    Opt("-t --instance-type", TEXT, "As g5.xlarge.", "TYPE"),
    Opt("--num-nodes", NUMBER, "Nodes."),
    Opt("--use-spot", PAIR, "Spot only."),
    Opt("--image-id", TEXT, "Image of the machines.", "IMAGE"),
    Opt("--disk-size", TEXT, "Of the root disk, GB.", "GB"),
    Opt("--disk-tier", TEXT, "Of the root disk.", "TIER", choices=DISK_TIERS),
    Opt("--network-tier", TEXT, "Of the network.", "TIER", choices=NETWORK_TIERS),
    Opt("--local-disk", TEXT, "Instance-store disks: nvme:1000+.", "DISK"),
    Opt("--ports", MANY, "To be open.", "PORT"),
    Opt("--priority", TEXT, "-1000 to 1000; none clears.", "N"),
    *VARIABLES,
    CONFIG,
)
LOGS = (
    Opt("--no-follow", FLAG, "Only what there is."),
    Opt("--follow", FLAG, "Until it is over; that is usual."),
    Opt("--tail", NUMBER, "Only the last lines; 0 is all."),
    Opt("--status", FLAG, "Only the status."),
    Opt("-s --sync-down", FLAG, "Copy the text to ./sky_logs."),
    Opt("--hook", FLAG, "What hooks of a cluster said."),
    Opt("-w --worker", NUMBER, "Of one node alone; 0 is the head.", "N"),
    Opt("--provision", FLAG, "What the cluster waits for or was bought from."),
)
