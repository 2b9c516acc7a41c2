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
USAGE_FACTORS = {"normal": 1.0, "fast": 0.5, PARTITION_QOS: 2.0}
"""The same at all times: what is kept of the past is read with the factor of now."""
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


OF_BOTH = ("grp_jobs", "grp_submit_jobs", "grp_jobs_accrue", "grp_wall", "grp_tres", "grp_tres_mins", "grp_tres_run_mins", "max_jobs", "max_jobs_accrue", "max_submit_jobs", "max_wall", "max_tres_per_job", "max_tres_per_node", "max_tres_mins_per_job")  # fmt: skip # noqa: E501
OF_QOS = ("max_jobs_per_account", "max_submit_jobs_per_account", "max_tres_per_user", "max_tres_per_account", "max_tres_run_mins_per_user", "max_tres_run_mins_per_account", "min_tres_per_job")  # fmt: skip # noqa: E501
FLAGS = ("DenyOnLimit", "OverPartQOS", "NoDecay", "PartitionTimeLimit")


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
            usage_factor=USAGE_FACTORS[name],
            limit_factor=draw(st.sampled_from((None, None, None, 2.0, 0.5))),
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
        ranking=Ranking(half_life=half_life),
        book=made,
    )
