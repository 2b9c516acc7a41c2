"""Every verb, those that speak SkyPilot here: its options, its words, and where it is done."""

from gateway.sdk.verbs.line import FLAG, MANY, NUMBER, PAIR, TEXT, Opt, Verb
from gateway.sdk.verbs.options import (
    ALL_OF_MINE,
    ASYNC,
    DETACH,
    EVERYBODY,
    LISTED,
    LOGS,
    OVERRIDES,
    PURGE,
    SETTINGS,
    TIMEOUT,
    VARIABLES,
    WAIT_FOR,
    WORKSPACE,
    YES,
)
from gateway.sdk.verbs.table_jobs import JOBS
from gateway.sdk.verbs.table_operators import OPERATORS

LAUNCHED = (
    Opt("-c --cluster", TEXT, "Its name; absent: one is made up.", "NAME"),
    Opt("-p --partition", TEXT, "In this partition; the same as for sbatch.", "NAME"),
    Opt("--dryrun", FLAG, "Only show what it would be bought from."),
    DETACH,
    Opt("-i --idle-minutes-to-autostop", NUMBER, "Stop it when nothing has run for so long."),
    WAIT_FOR,
    Opt("--down", FLAG, "Let it go when its runs are over; with -i: then, not stop."),
    Opt("-r --retry-until-up", FLAG, "Wait for machines for ever; that is always done."),
    Opt("--no-setup", FLAG, "Leave setup out."),
    Opt("--fast", FLAG, "Leave setup out on a cluster that is up."),
    Opt("-s --detach-setup", FLAG, "Nothing waits for setup alone."),
    Opt("--resize", FLAG, "Other machines for a cluster that is up: refused."),
    Opt("--clone --clone-disk-from", TEXT, "A cluster with the data: refused.", "NAME"),
    Opt("--docker", FLAG, "Older.", "", "image_id: docker:IMAGE names a container"),
    WORKSPACE,
    ASYNC,
    YES,
)
ENDED = (
    ALL_OF_MINE,
    EVERYBODY,
    PURGE,
    Opt("--graceful", FLAG, "Keep what its runs wrote: end them, and wait for its buckets."),
    TIMEOUT,
    ASYNC,
    YES,
)
CLUSTERS = (
    Verb(
        "launch",
        "clusters:launch",
        "Run a task on machines bought for it, or on those of that name: a cluster.",
        "[TASK...]",
        (*LAUNCHED, *OVERRIDES, *LISTED),
    ),
    Verb(
        "exec",
        "clusters:execute",
        "Run a task, without its setup, on a cluster that is up.",
        "[CLUSTER] [TASK...]",
        (
            Opt("-c --cluster", TEXT, "Its name, if it is not the first word.", "NAME"),
            DETACH,
            ASYNC,
            *OVERRIDES,
            *LISTED,
        ),
    ),
    Verb(
        "status",
        "listing:status",
        "Clusters, and jobs that are not over.",
        "[CLUSTER...]",
        (
            Opt("-r --refresh", FLAG, "Ask the machines; the service does so all the time."),
            Opt("--ip", FLAG, "Only the address of the head node."),
            Opt("--endpoints", FLAG, "Addresses with the ports that are open."),
            Opt("--endpoint", NUMBER, "One of them.", "PORT"),
            Opt("-v --verbose", FLAG, "More columns."),
            Opt("--show-managed-jobs", PAIR, "Jobs that are no clusters too; that is usual."),
            Opt("--show-services", PAIR, "There are none here."),
            Opt("--show-pools", PAIR, "`spz jobs pool status` shows them."),
            EVERYBODY,
            *LISTED,
        ),
    ),
    Verb(
        "queue",
        "listing:queue",
        "The runs of clusters.",
        "[CLUSTER...]",
        (Opt("-s --skip-finished", FLAG, "Only what is not over."), EVERYBODY, *LISTED),
    ),
    Verb(
        "logs",
        "listing:logs",
        "The text of a run. Exits 0 if it succeeded, 100 failed, 101 not over, 102 not found,"
        " 103 cancelled.",
        "CLUSTER|JOB [ID...]",
        LOGS,
    ),
    Verb(
        "cancel",
        "clusters:cancel",
        "End runs of a cluster, which stays up; or a job.",
        "CLUSTER|JOB [ID...]",
        (Opt("-a --all", FLAG, "All its runs."), EVERYBODY, ASYNC, YES),
    ),
    Verb(
        "down",
        "clusters:down",
        "End clusters and let their machines go.",
        "[CLUSTER...]",
        ENDED,
    ),
    Verb(
        "stop",
        "clusters:stop",
        "End what runs in clusters and stop their machines; the disks are kept, and billed.",
        "[CLUSTER...]",
        ENDED,
    ),
    Verb(
        "start",
        "clusters:start",
        "Start stopped clusters: the same machines, where they are.",
        "[CLUSTER...]",
        (
            ALL_OF_MINE,
            Opt("-i --idle-minutes-to-autostop", NUMBER, "As for launch."),
            Opt("--down", FLAG, "With -i: let it go then, not stop."),
            WAIT_FOR,
            Opt(
                "-r --retry-until-up",
                FLAG,
                "Ask again for ever, after 30 s at first.",
            ),
            Opt("-f --force", FLAG, "Whatever it is said to be; no difference here."),
            ASYNC,
            YES,
        ),
    ),
    Verb(
        "autostop",
        "clusters:autostop",
        "Stop clusters when nothing has run in them for so long.",
        "[CLUSTER...]",
        (
            Opt("-i --idle-minutes", NUMBER, "Minutes; 5 if not given."),
            Opt("--cancel", FLAG, "Keep them."),
            Opt("--down", FLAG, "Let them go, not stop."),
            WAIT_FOR,
            ALL_OF_MINE,
            EVERYBODY,
            ASYNC,
            YES,
        ),
    ),
    Verb(
        "cost-report",
        "listing:cost_report",
        "What clusters cost, those that are gone too.",
        "",
        (
            Opt("--days", NUMBER, "Of so many days; 30 if not given."),
            Opt("-a --all", FLAG, "However long ago."),
            *LISTED,
        ),
    ),
)
FORMS = ("yaml", "sbatch")
TASKS = (
    Verb(
        "task check",
        "tasks:check",
        "Whether files are tasks, and what each would launch: a line each. Needs no service.",
        "FILE...",
        (*VARIABLES, *LISTED),
    ),
    Verb(
        "task show",
        "tasks:show",
        "A task or batch script as a task file or as a batch script. Needs no service.",
        "FILE",
        (Opt("--as", TEXT, "Absent: the other one", "FORM", choices=FORMS), *VARIABLES),
    ),
    Verb("task schema", "tasks:schema", "The JSON Schema of task files.", "", ()),
)
KNOWN = "who asks is known by the socket"
VOLUMES = (
    Verb(
        "volumes apply",
        "volumes:apply",
        "Make a volume: a disk that outlives machines.",
        "[FILE]",
        (
            Opt("-n --name", TEXT, "Its name.", "NAME"),
            Opt("--infra", TEXT, "aws/REGION or aws/REGION/ZONE: where it is.", "INFRA"),
            Opt("--type", TEXT, "ebs; others of SkyPilot's are refused.", "TYPE"),
            Opt("--size", TEXT, "100Gi.", "SIZE"),
            Opt("--use-existing", PAIR, "A disk that was not made here: refused."),
            ASYNC,
            YES,
        ),
    ),
    Verb(
        "volumes ls",
        "volumes:ls",
        "Volumes, what they cost and who uses them.",
        "[NAME...]",
        (
            Opt("-v --verbose", FLAG, "More columns."),
            Opt("-r --refresh", FLAG, "The service knows them as they are anyway."),
            EVERYBODY,
            *LISTED,
        ),
    ),
    Verb(
        "volumes delete",
        "volumes:delete",
        "Delete volumes with all that is on them.",
        "[NAME...]",
        (
            ALL_OF_MINE,
            Opt("-p --purge", FLAG, "Forget them, whatever the provider says."),
            ASYNC,
            YES,
        ),
    ),
)
NO_BROWSER = (Opt("--no-browser", FLAG, "Only print the address that lets you in, once."),)
REST = (
    Verb("api info", "service:info", "Where the service is, and who asks.", "", LISTED),
    Verb(
        "api login",
        "service:login",
        "Remember the service that -e names.",
        "",
        (
            Opt("-e --endpoint", TEXT, "Its socket.", "SOCKET"),
            Opt("--relogin", FLAG, "Again.", "", KNOWN),
            Opt("-t --token --service-account-token", TEXT, "Who asks.", "TOKEN", KNOWN),
            Opt("--no-browser", FLAG, "Here.", "", KNOWN),
        ),
    ),
    Verb("api logout", "service:logout", "Nothing is remembered that could be forgotten.", "", ()),
    Verb(
        "api cancel",
        "service:cancel",
        "End what a request began.",
        "[REQUEST...]",
        (
            Opt("-a --all", FLAG, "All that are not over."),
            EVERYBODY,
            YES,
        ),
    ),
    Verb("dashboard", "dashboard:overview", "The pages, in a browser.", "", NO_BROWSER),
    Verb(
        "storage ls",
        "storage:ls",
        "Buckets that tasks have by name.",
        "",
        (Opt("-v --verbose", FLAG, "More columns; there are no more."), EVERYBODY, *LISTED),
    ),
    Verb(
        "storage delete",
        "storage:delete",
        "Delete such buckets with all that is in them.",
        "[NAME...]",
        (
            ALL_OF_MINE,
            ASYNC,
            YES,
        ),
    ),
    *VOLUMES,
    *(
        Verb(f"serve {word}", "service:serve", "Not offered: says why.", "[WORD...]!", ())
        for word in ("up", "down", "status", "logs", "update")
    ),
    *(
        Verb(name, "service:absent", "Not offered: says why.", "[WORD...]!", ())
        for name in (
            *("workspace use", "workspace info", "ssh up", "ssh down", "debug-dump"),
            *("gpus label", "local up", "local down"),
        )
    ),
    Verb("jobs dashboard", "dashboard:jobs", "That of managed jobs.", "", NO_BROWSER),
)
GPUS = (
    Opt("-a --all", FLAG, "All of them; that is usual."),
    Opt("--region", MANY, "Of these regions.", "REGION"),
    Opt("--all-regions", FLAG, "The price in each region."),
    Opt("--infra", TEXT, "aws or aws/REGION.", "INFRA"),
    Opt("--cloud", TEXT, "Older spelling of --infra.", "CLOUD"),
    Opt("-v --verbose", FLAG, "It always tells all."),
    *LISTED,
)
MARKET = (
    Verb(
        "offers",
        "market:offers",
        "What could be bought, the best first: H100:8, 4+ (cpus), or a task file.",
        "[REQUEST...]",
        (
            Opt("-p --partition", TEXT, "As this partition buys.", "NAME"),
            Opt("--minutes", NUMBER, "How long it runs; 60 if not given."),
            Opt("-l --limit", NUMBER, "So many; 20 if not given, 50 at most."),
            Opt("-C --constraint", TEXT, "Features, as sbatch takes them: spot&(c7i|m7i).", "LIST"),
            Opt("--prefer", TEXT, "cost, time, or features, as sbatch takes them.", "LIST"),
            *OVERRIDES,
            *LISTED,
        ),
    ),
    Verb("gpus list", "market:gpus", "Accelerators and what they cost where.", "[GPU]", GPUS),
    Verb("show-gpus", "market:gpus", "The same as gpus list.", "[GPU]", GPUS),
    Verb(
        "catalog refresh",
        "refreshing:refresh",
        "Read types, offerings and prices of EC2 now. Needs credentials, and no service.",
        "[REGION...]",
        LISTED,
    ),
    Verb(
        "catalog rates",
        "tariff:rates",
        "What volumes, addresses and traffic cost, by region, of what day. Needs no service.",
        "[REGION...]",
        LISTED,
    ),
)


def _settled(verb: Verb) -> Verb:
    """With SkyPilot's --config where it has none of its own."""
    if verb.words.endswith("!") or any(opt.key == SETTINGS.key for opt in verb.options):
        return verb
    return verb._replace(options=(*verb.options, SETTINGS))


SKY = tuple(map(_settled, (*CLUSTERS, *JOBS, *MARKET, *REST)))
SHARED = frozenset({"check", "api logs", "api status"})
"""Verbs of ours that SkyPilot has as well."""
OWN = tuple(_settled(verb) if verb.name in SHARED else verb for verb in OPERATORS)
VERBS = (*SKY, *TASKS, *OWN)
BY_NAME = {verb.name: verb for verb in VERBS}
