"""Sites with limits, and changes of them, drawn for `tests.sim.reckoning`."""

from hypothesis import strategies as st

from accounting.assoc import Account, Association, Book, Qos, book
from accounting.ids import AccountName, UserName
from accounting.limits import Limits
from accounting.order import Ranking
from broker.model.site import Partition, Site
from tests.sim.site import NAMES, NODES, elastic

USERS, ACCOUNTS, GRADES = ("alice", "bob"), ("lab", "sub"), ("normal", "fast")
PARTITION_QOS = "part"
TRES = ("cpu", "node", "gres/gpu", "billing", "mem")
HALF_LIVES = (0, 0, 6_000)

few = st.one_of(st.none(), st.none(), st.integers(1, 4))


@st.composite
def _of_a_tres(draw: st.DrawFn, least: int, most: int) -> dict[str, int]:
    if draw(st.integers(0, 3)) == 0:
        return {}
    tres = draw(st.sampled_from(TRES))
    return {tres: draw(st.integers(least, most)) * (1024 if tres == "mem" else 1)}


counts, minutes = _of_a_tres(1, 6), _of_a_tres(5, 40)
seconds = st.one_of(st.none(), st.none(), st.integers(2, 12).map(lambda n: n * 100))


def _limits(*names: str) -> st.SearchStrategy[Limits]:
    def of(name: str) -> st.SearchStrategy[object]:
        if "tres" in name:
            return minutes if "mins" in name else counts
        return seconds if "wall" in name else few

    return st.builds(Limits, **{name: of(name) for name in names})


OF_BOTH = ("grp_jobs", "grp_submit_jobs", "grp_jobs_accrue", "grp_wall", "grp_tres", "grp_tres_mins", "grp_tres_run_mins", "max_jobs", "max_jobs_accrue", "max_submit_jobs", "max_wall", "max_tres_per_job", "max_tres_per_node", "max_tres_mins_per_job", "min_prio_threshold")  # fmt: skip # noqa: E501
OF_QOS = ("max_jobs_per_account", "max_submit_jobs_per_account", "max_tres_per_user", "max_tres_per_account", "max_tres_run_mins_per_user", "max_tres_run_mins_per_account", "min_tres_per_job")  # fmt: skip # noqa: E501
FLAGS = (
    "DenyOnLimit",
    "OverPartQOS",
    "NoDecay",
    "PartitionTimeLimit",
    "UsageFactorSafe",
    "EnforceUsageThreshold",
)


@st.composite
def some_limits(draw: st.DrawFn, names: tuple[str, ...]) -> Limits:
    """A few of them: with all at once nothing would ever start."""
    return draw(_limits(*draw(st.lists(st.sampled_from(names), max_size=3, unique=True))))


@st.composite
def associations(draw: st.DrawFn) -> list[Association]:
    """Everybody's with each account, and one of alice's in a partition alone."""
    places = [(user, account, None) for user in USERS for account in ACCOUNTS]
    return [
        Association(
            user=UserName(user),
            account=AccountName(account),
            partition=where,
            qos=GRADES,
            limits=draw(some_limits(OF_BOTH)),
        )
        for user, account, where in [*places, ("alice", "lab", "own")]
    ]


@st.composite
def grades(draw: st.DrawFn, names: tuple[str, ...] = (*GRADES, PARTITION_QOS)) -> list[Qos]:
    return [
        Qos(
            name=name,
            limits=draw(some_limits(OF_BOTH + OF_QOS)),
            flags=draw(st.frozensets(st.sampled_from(FLAGS), max_size=2)),
            usage_factor=draw(st.sampled_from((1.0, 1.0, 0.5, 2.0))),
            limit_factor=draw(st.sampled_from((None, None, None, 2.0, 0.5))),
            usage_threshold=draw(st.sampled_from((None, 0.3, 0.6))),
        )
        for name in names
    ]


@st.composite
def accounts(draw: st.DrawFn) -> list[Account]:
    return [
        Account(name=AccountName("lab"), limits=draw(some_limits(OF_BOTH))),
        Account(
            name=AccountName("sub"),
            parent=AccountName("lab"),
            limits=draw(some_limits(OF_BOTH)),
        ),
    ]


@st.composite
def sites(draw: st.DrawFn) -> Site:
    """Declared nodes under a QOS of their own, bought ones, and both together."""
    word = draw(st.sampled_from(("limits", "safe")))
    made = book(draw(accounts()), draw(associations()), qos=draw(grades()), enforce=[word, "qos"])
    return site_of(made, half_life=draw(st.sampled_from(HALF_LIVES)))


spent = st.builds(
    lambda tres, most: Limits(grp_tres_mins={tres: most}),
    st.sampled_from(("cpu", "node", "billing")),
    st.integers(4, 30),
)


@st.composite
def spending_sites(draw: st.DrawFn) -> Site:
    """Where only what was used keeps jobs waiting: it fades or lasts, and counts by a factor."""
    grades = [
        Qos(
            name=name,
            limits=draw(spent),
            flags=draw(st.sampled_from((frozenset({"NoDecay"}), frozenset[str]()))),
            usage_factor=draw(st.sampled_from((0.25, 1.0, 4.0))),
        )
        for name in GRADES
    ]
    held = [
        Account(name=AccountName("lab")),
        Account(name=AccountName("sub"), parent=AccountName("lab"), limits=draw(spent)),
    ]
    own = [
        Association(user=UserName(user), account=account.name, qos=GRADES)
        for user in USERS
        for account in held
    ]
    known = [*grades, Qos(name=PARTITION_QOS)]
    made = book(held, own, qos=known, enforce=["limits", "qos"])
    return site_of(made, half_life=draw(st.sampled_from((0, 300, 600))))


def site_of(made: Book, *, half_life: int = 0) -> Site:
    usual = {"def_mem_per_cpu_mib": 1024}
    return Site(
        partitions=(
            Partition("own", nodes=NAMES, default=True, qos=PARTITION_QOS, **usual),  # type: ignore[arg-type]
            Partition("ec2", elastic=elastic("ec2-", 4), max_time=900, **usual),  # type: ignore[arg-type]
            Partition("both", nodes=NAMES[2:], elastic=elastic("ec2-", 4), **usual),  # type: ignore[arg-type]
        ),
        nodes=NODES,
        requeue_delay=30,
        ranking=Ranking(half_life=half_life, multifactor=True, period=1),
        book=made,
    )
