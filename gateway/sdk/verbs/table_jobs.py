"""The verbs of managed jobs and pools: their options, and where they are done."""

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
    TIMEOUT,
    WORKSPACE,
    YES,
)

CONTROLLER = Opt("--controller", FLAG, "Why it is where it is.")
POOLS = (
    Opt("-v --verbose", FLAG, "It always tells all."),
    Opt("-a --all", FLAG, "All workers; that is usual."),
    *LISTED,
)
JOBS = (
    Verb(
        "jobs launch",
        "managed:launch",
        "A job that goes on elsewhere when its machines are lost; a pipeline; a group.",
        "[TASK...]",
        (
            Opt("-p --pool", TEXT, "On a worker of this pool.", "POOL"),
            Opt("--num-jobs", NUMBER, "So many, each with its SKYPILOT_JOB_RANK."),
            Opt("--job-recovery", TEXT, "FAILOVER, EAGER_NEXT_REGION or none.", "STRATEGY"),
            Opt("--job-group", PAIR, "The file's tasks together."),
            Opt("-c --cluster", TEXT, "Older spelling of --name.", "NAME"),
            WORKSPACE,
            Opt("--dryrun", FLAG, "Only show what it would be bought from."),
            DETACH,
            ASYNC,
            YES,
            *OVERRIDES,
            *LISTED,
        ),
    ),
    Verb(
        "jobs queue",
        "managed_queue:queue",
        "Managed jobs.",
        "",
        (
            Opt("-l --limit", NUMBER, "At most so many; 50 if not given."),
            Opt("-s --status", MANY, "Only these: FAILED,CANCELLED.", "STATUS"),
            Opt("--skip-finished", FLAG, "Only what is not over."),
            Opt("-r --refresh", FLAG, "No difference: it is always fresh."),
            Opt("-a --all", FLAG, "However many."),
            Opt("-v --verbose", FLAG, "More columns."),
            Opt("--since", TEXT, "Submitted within so long: 30m, 48h, 7d; seconds.", "TIME"),
            Opt("--after", TEXT, "Submitted since: 2026-11-30 or '2026-11-30 15:30:00'.", "WHEN"),
            Opt("--before", TEXT, "Submitted until then.", "WHEN"),
            Opt("--infra", TEXT, "Running there: aws, aws/REGION.", "INFRA"),
            EVERYBODY,
            *LISTED,
        ),
    ),
    Verb(
        "jobs cancel",
        "managed:cancel",
        "End managed jobs.",
        "[ID...]",
        (
            Opt("-n --name", TEXT, "Those of this name.", "NAME"),
            Opt("-p --pool", TEXT, "Those on this pool.", "POOL"),
            ALL_OF_MINE,
            EVERYBODY,
            Opt("--task", TEXT, "Only this task of them, by name or number.", "TASK"),
            Opt("--graceful", FLAG, "They always get their signal first."),
            TIMEOUT,
            YES,
        ),
    ),
    Verb(
        "jobs logs",
        "managed:logs",
        "The text of a managed job; absent: of the last one.",
        "[ID] [TASK]",
        (
            Opt("-n --name", TEXT, "The last of this name.", "NAME"),
            CONTROLLER,
            Opt("--attempt", NUMBER, "Only the text of this attempt; the first is 1."),
            Opt("-r --refresh", FLAG, "No difference: it is always fresh."),
            *LOGS,
        ),
    ),
    Verb(
        "jobs pool apply",
        "pools:apply",
        "Keep workers up for `jobs launch --pool`.",
        "[FILE]",
        (
            Opt("-p --pool", TEXT, "Its name; absent: that of the file.", "NAME"),
            Opt("--workers", NUMBER, "How many."),
            Opt("--mode", TEXT, "rolling or blue_green.", "MODE", "workers that are up stay"),
            *OVERRIDES,
            ASYNC,
            YES,
        ),
    ),
    Verb("jobs pool status", "pools:status", "Pools and their workers.", "[POOL...]", POOLS),
    Verb(
        "jobs pool logs", "pools:logs", "What a worker said.", "POOL [WORKER]", (CONTROLLER, *LOGS)
    ),
    Verb(
        "jobs pool down",
        "pools:down",
        "Let pools go.",
        "[POOL...]",
        (ALL_OF_MINE, PURGE, ASYNC, YES),
    ),
)
