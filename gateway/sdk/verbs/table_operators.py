"""The verbs that are the service's own, not SkyPilot's: their options, and where they are done."""

from gateway.sdk.verbs.line import FLAG, MANY, NUMBER, PAIR, TEXT, Opt, Verb
from gateway.sdk.verbs.options import LISTED, WORKSPACE

ONE = "a request is named by its id"
HOST = "where it listens is in the configuration"
OPERATORS = (
    Verb(
        "why",
        "listing:why",
        "Why this type, zone and market, and what the runner-up would have cost.",
        "CLUSTER|JOB",
        LISTED,
    ),
    Verb(
        "cost",
        "money:cost",
        "What was spent, by account unless said otherwise: a table, JSON, CSV, a picture.",
        "",
        (
            Opt("--by", MANY, "user account qos partition type region market why day.", "WHAT"),
            Opt("--since", TEXT, "2026-11-01 or 2026-11-01T12:00; else 30 days ago.", "WHEN"),
            Opt("--until", TEXT, "Likewise; usual: now.", "WHEN"),
            Opt("--zone", TEXT, "Whose moments and days; usual: TZ's, else UTC.", "ZONE"),
            Opt("--user", TEXT, "Of one user.", "NAME"),
            Opt("--account", TEXT, "Of one account.", "NAME"),
            Opt("--qos", TEXT, "Of one QOS.", "NAME"),
            Opt("--partition", TEXT, "Of one partition.", "NAME"),
            Opt("--type", TEXT, "Of one type of machine.", "NAME"),
            Opt("--region", TEXT, "Of one region.", "NAME"),
            Opt("--market", TEXT, "Spot or on-demand.", "NAME"),
            Opt("--csv", FLAG, "As CSV."),
            Opt("--svg", TEXT, "As a picture, into a file.", "FILE"),
            Opt("--focus", FLAG, "Every entry of the ledger, as FOCUS 1.2 in CSV."),
            *LISTED,
        ),
    ),
    Verb(
        "reconcile",
        "money:reconcile",
        "Compare the bill (FOCUS or CUR 2.0, CSV; none: Cost Explorer's) with the ledger. "
        "Exits 1 if they differ.",
        "[FILE]",
        (
            Opt("--post", FLAG, "Post corrections for what differs."),
            Opt("--since", TEXT, "Of Cost Explorer: since when, UTC; usual: 13 days ago.", "WHEN"),
            Opt("--until", TEXT, "Likewise; usual: now.", "WHEN"),
            *LISTED,
        ),
    ),
    Verb(
        "budget show",
        "budgets:show",
        "Budgets: what was spent, and what running jobs may still cost.",
        "",
        LISTED,
    ),
    Verb(
        "budget set",
        "budgets:put",
        "Make or change a budget; none for the dollars takes it away.",
        "SCOPE:NAME [USD]",
        (
            Opt("--window", TEXT, "day, month, quarter, total; usual: month.", "WINDOW"),
            Opt("--zone", TEXT, "Time zone in which it begins; usual: UTC.", "ZONE"),
            Opt("--action", TEXT, "warn, hold (jobs wait), stop; usual: hold.", "ACTION"),
            Opt("--running", TEXT, "With stop: end jobs never, with notice, now.", "WHEN"),
            Opt("--warn-percent", NUMBER, "From when on it counts as nearly used up; usual: 80."),
            *LISTED,
        ),
    ),
    Verb("serve", "operators:serve", "Run the service in the foreground, until SIGTERM or Ctrl-C."),
    Verb(
        "api start",
        "operators:start",
        "Start the service and wait until it takes requests.",
        "",
        (
            Opt("--deploy", FLAG, "For others too.", "", HOST),
            Opt("--host", TEXT, "Where it listens.", "HOST", HOST),
            Opt("--port", TEXT, "Where it listens.", "PORT", HOST),
            Opt("--foreground", FLAG, "Here.", "", "`spz serve` runs in the foreground"),
            Opt("--enable-basic-auth", FLAG, "Ask for passwords.", "", HOST),
        ),
    ),
    Verb(
        "api stop",
        "operators:stop",
        "Stop it; what runs on machines goes on, and is taken up again at the next start.",
    ),
    Verb(
        "api status",
        "service:status",
        "Whether it runs, and what it has to do; or of one request. Exits 1 without an answer.",
        "[REQUEST...]",
        (
            Opt("-a --all-status", FLAG, "Of all requests.", "", ONE),
            Opt("-l --limit", TEXT, "At most so many requests.", "N", ONE),
            Opt("-c --cluster", TEXT, "Of a cluster.", "NAME", "`spz queue NAME` lists its runs"),
            Opt("-v --verbose", FLAG, "It always tells all."),
            *LISTED,
        ),
    ),
    Verb(
        "api logs",
        "service:log",
        "The end of its log; or what a request began says.",
        "[REQUEST]",
        (
            Opt("-n --lines", NUMBER, "How many of the last; 50 if not given."),
            Opt("--tail", NUMBER, "The same."),
            Opt("--server-logs", FLAG, "The service's own; that is usual."),
            Opt("-l --log-path", TEXT, "A file.", "PATH", "the service has one log"),
            Opt("--follow", PAIR, "What a request began, until it is over; that is usual."),
        ),
    ),
    Verb(
        "check",
        "operators:check",
        "Look at what a service needs here. Exits 1 if something has to be done.",
        "[CLOUD...]",
        (Opt("-v --verbose", FLAG, "It always tells all."), WORKSPACE, *LISTED),
    ),
    Verb(
        "sweep",
        "operators:sweep",
        "Let go of machines that providers hold and nobody knows, and of what nothing uses.",
        "",
        (
            Opt("--dry-run", FLAG, "Only look; exits 1 if it finds any."),
            Opt("--all", FLAG, "In every region of the account, as after a lost state directory."),
            *LISTED,
        ),
    ),
    Verb(
        "unprotect",
        "operators:unprotect",
        "Buy machines again of which several in a row did not come up; without KIND list them.",
        "[KIND...]",
        (Opt("--all", FLAG, "Of every kind."), *LISTED),
    ),
    Verb(
        "shims install",
        "gateway.cli:shims_install",
        "Write sbatch, squeue, sacct, scancel, sinfo and scontrol for a site.",
        "",
        (
            Opt("--prefix", TEXT, "They go to PREFIX/bin.", "PREFIX"),
            Opt("--socket", TEXT, "The service's; absent: as here.", "SOCKET"),
        ),
    ),
    Verb(
        "shims env",
        "gateway.cli:shims_env",
        'What puts them first on PATH: eval "$(spz shims env)".',
    ),
    Verb(
        "db backup",
        "operators:db_backup",
        "Copy the database as of one moment; the service may be running.",
        "[FILE]",
    ),
    Verb(
        "db check",
        "operators:db_check",
        "Read all of the database and say what is wrong with it. Exits 1 if something is.",
    ),
    Verb("version", "operators:version", "Versions of SkyPurza and of the Slurm it presents."),
)
GROUPS = {
    "workspace": "Not offered: says why.",
    "ssh": "Not offered: says why.",
    "api": "The service in the background, for this user.",
    "task": "Task files: check, show.",
    "jobs": "Managed jobs.",
    "jobs pool": "Workers that are kept up for managed jobs.",
    "gpus": "Accelerators and what they cost.",
    "catalog": "Types and prices.",
    "budget": "Budgets in dollars.",
    "shims": "The Slurm commands (sbatch, squeue, ...).",
    "db": "The database.",
    "storage": "Buckets.",
    "volumes": "Volumes.",
}
"""Words that stand before others."""
