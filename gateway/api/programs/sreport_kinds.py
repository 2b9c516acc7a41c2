"""What reports sreport has: their headlines, columns, conditions and names (25.11, 22.05)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gateway.api.programs import sreport_rows as rows
from gateway.api.programs.sreport_rows import Rows

NO_ANSWER = "slurmdb_report_cluster_{}: Problem with get query.\n"
USED, STATES = ("Used", "Energy"), ("Allocated", "Down", "PLND Down", "Idle", "Planned", "Reported")
OF_ACCOUNTS = ("accounts", "tree", "users")
OF_WCKEYS = ("wckeys",)
OF_TOP = ("accounts", "group", "topcount", "users")
OF_RESERVATIONS = ("flags", "ids", "names", "nodes")
BAD_CONDITION = " Unknown condition: {}\n"
OF_JOBS = (
    "accounts", "acctasparent", "flatview", "gid", "grouping", "jobs", "nodes", "partitions",
    "printjobcount", "users", "wckeys",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Report:
    """A report's headline and columns; `sums` are those that a list of TRES comes before.

    In the headline `top` is how many users are told of.
    """

    title: str
    columns: tuple[str, ...]
    sums: tuple[str, ...]
    rows: Rows
    by: tuple[str, ...] = ("account", "user")
    """What has to be told apart."""
    takes: tuple[str, ...] = OF_ACCOUNTS
    """Its conditions, beside those of every report."""
    spelled: bool = True
    """Whether the headline says how many seconds that is."""
    denied: str | None = None
    """Of wckeys: it is for operators alone, and this is what others are told of it beside."""
    unknown: str = BAD_CONDITION + "Use keyword set to modify value\n"
    """What is said of other conditions."""
    widths: Mapping[str, int] = field(default_factory=dict)
    """Of columns that are not as wide as elsewhere."""
    held: bool = False
    """Whether reservations are told of."""
    grows: bool = True
    """Whether columns of amounts become wider where one needs it."""
    named: bool = False
    """Whether each line names its TRES, asked or not."""
    sized: bool = False
    """Whether its columns are groups of sizes."""

    @property
    def states(self) -> bool:
        """Whether it tells of the cluster's time, whoever used it."""
        return self.sums == STATES


INDENTED = -20
"""The account's column where it shows a tree."""
LOGIN = ("Login", "Proper Name")
SIZED = ("account", "user", "wckey", "size")
CLUSTER = {
    "accountutilizationbyuser": Report(
        "Cluster/Account/User Utilization", ("Cluster", "Account", *LOGIN), USED, rows.accounts
    ),
    "accountutilizationbyqos": Report(
        "Cluster/Account/QOS Utilization", ("Cluster", "Account", "QOS"), USED, rows.grades,
        by=("account", "qos"), takes=("accounts", "qos", "tree"),
    ),
    "userutilizationbyaccount": Report(
        "Cluster/User/Account Utilization", ("Cluster", *LOGIN, "Account"), USED, rows.users
    ),
    "userutilizationbywckey": Report(
        "Cluster/User/WCKey Utilization", ("Cluster", *LOGIN, "WCKey"), ("Used",),
        rows.users_of_wckeys, by=("wckey", "user"), takes=OF_WCKEYS,
        denied=NO_ANSWER.format("user_by_wckey"), unknown=BAD_CONDITION,
    ),
    "utilization": Report(
        "Cluster Utilization", ("Cluster",), STATES, rows.cluster, by=(), takes=(),
        spelled=False, held=True,
    ),
    "wckeyutilizationbyuser": Report(
        "Cluster/WCKey/User Utilization", ("Cluster", "WCKey", *LOGIN), ("Used",), rows.wckeys,
        by=("wckey", "user"), takes=OF_WCKEYS, denied=NO_ANSWER.format("wckey_by_user"),
        unknown=BAD_CONDITION,
    ),
}  # fmt: skip
USER = {
    "topusage": Report(
        "Top {top} Users",
        ("Cluster", *LOGIN, "Account"),
        USED,
        rows.top_users,
        takes=OF_TOP,
        grows=False,
    )
}
SIZES = Report(
    "Job Sizes", ("Cluster", "Account"), (), rows.sizes, SIZED, OF_JOBS, sized=True,
    widths={"Account": 9},
)  # fmt: skip
JOB = {
    "sizesbyaccount": SIZES,
    "sizesbyaccountandwckey": replace(
        SIZES, rows=rows.sizes_of_both, widths={"Account": INDENTED}, denied=""
    ),
    "sizesbywckey": replace(
        SIZES, title="Job Sizes by Wckey", columns=("Cluster", "Wckey"),
        rows=rows.sizes_of_wckeys, widths={"Wckey": 9}, denied="",
    ),
}  # fmt: skip
RESERVATION = {
    "utilization": Report(
        "Reservation Utilization", ("Cluster", "Name", "Start", "End"), ("Allocated", "Idle"),
        rows.reservations, by=(), takes=OF_RESERVATIONS, spelled=False, held=True, named=True,
        grows=False, widths={"Allocated": 20, "Idle": 20},
    ),
}  # fmt: skip
NAMES = {
    "cluster": '"AccountUtilizationByUser", "AccountUtilizationByQOS", "UserUtilizationByAccount", '
    '"UserUtilizationByWckey", "Utilization", and "WCKeyUtilizationByUser"',
    "job": '"SizesByAccount, SizesByAccountAndWcKey, and  SizesByWckey"',
    "reservation": '"Utilization"',
    "user": '"Top"',
}
GROUPS: Mapping[str, Mapping[str, Report]] = {
    "cluster": CLUSTER, "job": JOB, "reservation": RESERVATION, "user": USER,
}  # fmt: skip
LEAST = {
    ("", "cluster"): 2, ("", "reservation"): 2, ("cluster", "utilization"): 2,
    ("cluster", "userutilizationbyaccount"): 18, ("cluster", "userutilizationbywckey"): 18,
}  # fmt: skip
"""Letters that are enough where one is not (22.05), by the group of reports."""
