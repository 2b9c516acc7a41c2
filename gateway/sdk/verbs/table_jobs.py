"""The verbs of managed jobs and pools: their options, and where they are done."""

from gateway.sdk.verbs.line import FLAG, MANY, NUMBER, TEXT, Opt, Verb
from gateway.sdk.verbs.options import (
    ALL_OF_MINE,
    ASYNC,
    DETACH,
    EVERYBODY,
    LISTED,
    LOGS,
    OVERRIDES,
    VARIABLES,
    YES,
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
            Opt("--job-group", FLAG, "The file's tasks together."),
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
        "managed:queue",
        "Managed jobs.",
        "",
        (
            Opt("-l --limit", NUMBER, "At most so many; 50 if not given."),
            Opt("-s --status", MANY, "Only these.", "STATUS"),
            Opt("--skip-finished", FLAG, "Only what is not over."),
            Opt("-r --refresh", FLAG, "No difference: it is always fresh."),
            Opt("-a --all", FLAG, "However many."),
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
            Opt("--graceful", FLAG, "They always get their signal first."),
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
            Opt("--controller", FLAG, "Why it is where it is."),
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
            *VARIABLES,
            YES,
        ),
    ),
    Verb("jobs pool status", "pools:status", "Pools and their workers.", "[POOL...]", LISTED),
    Verb("jobs pool logs", "pools:logs", "What a worker said.", "POOL [WORKER]", LOGS),
    Verb("jobs pool down", "pools:down", "Let pools go.", "[POOL...]", (ALL_OF_MINE, YES)),
)
