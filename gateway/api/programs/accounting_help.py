"""What `sacctmgr help` and `sreport help` list: the commands, and what they are about."""

from collections.abc import Iterable
from textwrap import fill

WIDTH, LONGEST = 32, 72
INDENT = " " * 4

# fmt: off
OF_SACCTMGR = (
    ("add ENTITY SETTINGS", "make accounts, users, QOS, coordinators, wckeys (or: create)"),
    ("archive dump|load SETTINGS", "write old records into files, or put them back"),
    ("associations", "show associations beside the rest (prompt)"),
    ("clear stats", "refused: there is no slurmdbd"),
    ("delete ENTITY CONDITIONS", "take them away (or: remove)"),
    ("dump CLUSTER [file=NAME]", "write the accounts into a file"),
    ("exit, quit", "leave the prompt"),
    ("help", "this list"),
    ("list ENTITY [CONDITIONS]", "show them (or: show)"),
    ("load NAME [clean] [cluster=NAME]", "make of the accounts what a file says"),
    ("modify ENTITY [where] CONDITIONS", "change them: ... set SETTINGS (or: update)"),
    ("ping", "whether the service answers"),
    ("quiet", "print errors only (prompt)"),
    ("reconfigure, shutdown", "refused: there is no slurmdbd"),
    ("verbose", "print more (prompt)"),
    ("version", "the version that is presented"),
)
ENTITIES = (
    "association", "account", "cluster", "configuration", "coordinator", "event", "federation",
    "instance", "problem", "qos", "resource", "reservation", "runawayjob", "stat",
    "transaction", "tres", "user", "wckey",
)
OF_SREPORT = (
    ("cluster REPORT [CONDITIONS]", "what accounts and users used, and what became of the nodes"),
    ("job REPORT [CONDITIONS]", "use by the size of jobs"),
    ("reservation REPORT [CONDITIONS]", "use of reservations"),
    ("user REPORT [CONDITIONS]", "who used most"),
    ("exit, quit", "leave the prompt"),
    ("help", "this list"),
    ("nonparsable, parsable, parsable2", "how columns are told apart (prompt)"),
    ("quiet, verbose", "print errors only, or more (prompt)"),
    ("time UNIT", "the unit of amounts (prompt)"),
    ("version", "the version that is presented"),
)
REPORTS = {
    "cluster": (
        "AccountUtilizationByQOS", "AccountUtilizationByUser", "UserUtilizationByAccount",
        "UserUtilizationByWCKey", "Utilization", "WCKeyUtilizationByUser",
    ),
    "job": ("SizesByAccount", "SizesByAccountAndWCKey", "SizesByWCKey"),
    "reservation": ("Utilization",),
    "user": ("TopUsage",),
}
CONDITIONS = {
    "all": ("all_clusters", "clusters=", "end=", "format=", "start="),
    "cluster": ("accounts=", "qos=", "tree", "users=", "wckeys="),
    "job": (
        "accounts=", "acctasparent", "flatview", "gid=", "grouping=", "jobs=", "nodes=",
        "partitions=", "printjobcount", "users=", "wckeys=",
    ),
    "reservation": ("flags=", "ids=", "names=", "nodes="),
    "user": ("accounts=", "group", "topcount=", "users="),
}
UNITS = ("Seconds", "Minutes", "Hours", "Percent", "SecPer", "MinPer", "HourPer")
# fmt: on


def sacctmgr_text() -> str:
    """The list below the options."""
    return f"{_commands(OF_SACCTMGR)}\nENTITY is one of\n{_lines(ENTITIES)}"


def sreport_text() -> str:
    """The list below the options."""
    told = f"{_commands(OF_SREPORT)}\nREPORT is one of\n"
    told += "".join(f"  {kind}:\n{_lines(names)}" for kind, names in REPORTS.items())
    told += "\nCONDITIONS are\n"
    told += "".join(f"  {kind}:\n{_lines(names)}" for kind, names in CONDITIONS.items())
    return f"{told}\nUNIT is one of\n{_lines(UNITS)}"


def _commands(rows: Iterable[tuple[str, str]]) -> str:
    found = "".join(f"  {usage:<{WIDTH}} {text}\n" for usage, text in rows)
    return f"\nValid <COMMAND> values are:\n{found}"


def _lines(words: Iterable[str]) -> str:
    """Words with commas between, in lines that are not too long."""
    listed = fill(", ".join(words), LONGEST, initial_indent=INDENT, subsequent_indent=INDENT)
    return f"{listed}\n"
