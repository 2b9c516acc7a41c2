"""The file of `sacctmgr dump` and `load`: the account tree as lines of names and values."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from accounting.assoc import ROOT, USE_PARENT, Account, Association, Book, Person, lower
from accounting.change import Change, default_of, place
from accounting.ids import AccountName, UserName
from accounting.limits import Limits
from gateway.translate.bookabove import must_be_shallow
from gateway.translate.bookadd import level_of
from gateway.translate.bookorder import (
    Known,
    OrderError,
    associations,
    cut,
    must_be_here,
    must_be_plain,
)
from gateway.translate.bookwords import (
    ASSOC,
    BAD_VALUE,
    BadSettingError,
    Setting,
    find,
    put,
    read,
    tres_text,
)

HEADER = """\
# Accounts of cluster {cluster}, as `sacctmgr load` reads them.
# A line `Parent - 'NAME'` says below which account the lines after it belong.
# Account - 'NAME':Description='...':Organization='...':Fairshare=N and any limit
# User - 'NAME':DefaultAccount='NAME':Fairshare=N and any limit
"""
BAD_LINE = " error: line {}: {}\n"
OWN_WORDS = "sacctmgr: error: "
NO_CLUSTER = (
    " You need to specify a cluster name first in your file: nothing is cleaned by one without\n"
)
SHOWN = 60
"""Letters of a line that cannot be read, which may be the whole of a file."""
LIMITS = (
    ("GrpTRESMins", "grp_tres_mins"), ("GrpTRESRunMins", "grp_tres_run_mins"),
    ("GrpTRES", "grp_tres"), ("GrpJobs", "grp_jobs"), ("GrpJobsAccrue", "grp_jobs_accrue"),
    ("GrpSubmitJobs", "grp_submit_jobs"), ("GrpWall", "grp_wall"),
    ("MaxTRESMinsPerJob", "max_tres_mins_per_job"), ("MaxTRESPerJob", "max_tres_per_job"),
    ("MaxTRESPerNode", "max_tres_per_node"), ("MaxJobs", "max_jobs"),
    ("MaxJobsAccrue", "max_jobs_accrue"), ("MaxSubmitJobs", "max_submit_jobs"),
    ("MaxWallDurationPerJob", "max_wall"), ("MinPrioThreshold", "min_prio_threshold"),
)  # fmt: skip
WALLS = ("grp_wall", "max_wall")


def dumped(book: Book, cluster: str) -> list[str]:
    """The lines of a dump, without the header."""
    root = book.accounts[ROOT]
    return [f"Cluster - '{cluster}'{_shares(root)}", *_Tree(book).below(ROOT)]


class _Tree:
    """Who and what is below each account, in the order of a dump."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.users: dict[str, list[Association]] = {}
        self.children: dict[str, list[Account]] = {}
        self.led: dict[UserName, list[str]] = {}
        for own in sorted(associations(book), key=lambda own: (own.user, own.partition or "")):
            self.users.setdefault(own.account, []).append(own)
        for _, one in sorted(book.accounts.items()):
            self.children.setdefault(one.parent, []).extend([one] if one.name != ROOT else [])
            for user in one.coordinators:
                self.led.setdefault(user, []).append(one.name)

    def below(self, parent: AccountName) -> Iterator[str]:
        users, children = self.users.get(parent, []), self.children.get(parent, [])
        if users or children:
            yield f"Parent - '{parent}'"
        for own in users:
            yield _user_line(self.book, own, self.led.get(own.user, []))
        yield from (_account_line(self.book, one) for one in children)
        for one in children:
            yield from self.below(one.name)


def _account_line(book: Book, one: Account) -> str:
    about = f":Description='{one.description}':Organization='{one.organization}'"
    lone = [name for name in one.coordinators if not book.associations.get(name)]
    held = f":Coordinator='{','.join(lone)}'" if lone else ""
    return f"Account - '{one.name}'{about}{held}{_shares(one)}"


def _user_line(book: Book, own: Association, led: Sequence[str]) -> str:
    person = book.people.get(own.user, Person(name=own.user))
    parts = [
        f":Partition='{own.partition}'" if own.partition else "",
        f":DefaultAccount='{default_of(book, own.user)}'",
        f":AdminLevel='{person.admin}'" if person.admin != "None" else "",
        f":Coordinator='{','.join(led)}'" if led else "",
        f":DefaultWCKey='{person.default_wckey}'" if person.default_wckey else "",
        f":WCKeys='{','.join(person.wckeys)}'" if person.wckeys else "",
    ]
    return f"User - '{own.user}'{''.join(parts)}{_shares(own)}"


def _shares(holder: Account | Association) -> str:
    shares = "parent" if holder.fairshare == USE_PARENT else str(holder.fairshare)
    default = f":DefaultQOS='{holder.default_qos}'" if holder.default_qos else ""
    limits = "".join(_limit(holder.limits, key, field) for key, field in LIMITS)
    qos = f":QOS='{','.join(sorted(holder.qos))}'" if holder.qos else ""
    rank = "" if holder.priority is None else f":Priority={holder.priority}"
    about = f":Comment='{holder.comment}'" if holder.comment else ""
    return f"{default}:Fairshare={shares}{limits}{rank}{qos}{about}"


def _limit(limits: Limits, key: str, field: str) -> str:
    value = getattr(limits, field)
    if value is None or value == {}:
        return ""
    if field in WALLS:
        return f":{key}={value // 60}"
    return f":{key}={value if isinstance(value, int) else tres_text(value)}"


# ---------------------------------------------------------------- reading


@dataclass(slots=True)
class _Reading:
    """How far a file is read: below which account, what was found."""

    known: Known
    clean: bool
    any_cluster: bool
    """Whether the file may be another cluster's."""
    line: int = 0
    parent: AccountName = ROOT
    accounts: dict[AccountName, Account] = field(default_factory=dict)
    owned: list[Association] = field(default_factory=list)
    people: dict[UserName, Person] = field(default_factory=dict)
    coordinators: list[tuple[int, AccountName, UserName]] = field(default_factory=list)
    """With the line that says so: an account may follow who coordinates it."""
    cluster: str = ""


def loaded(
    text: str, known: Known, *, clean: bool, any_cluster: bool = False
) -> tuple[Change, str]:
    """The change that makes the book what the file says, and what is printed of it.

    `clean` takes away first what the file does not name; without it what a line does not name
    stays. Raises OrderError naming the line.
    """
    reading = _Reading(known, clean, any_cluster)
    for number, line in enumerate(text.splitlines(), start=1):
        reading.line = number
        if line.strip() and not line.lstrip().startswith("#"):
            _checked(line.strip(), reading)
    for number, account, user in reading.coordinators:
        reading.line = number
        _coordinate(account, user, reading)
    if clean and not reading.cluster:
        raise OrderError(NO_CLUSTER)
    change = _difference(reading)
    out = f"For cluster {reading.cluster or known.cluster}\n"
    if _lines(must_be_shallow(change, known.book)) == _lines(known.book):
        return Change(), f"{out} Nothing new added.\n"
    return change, out + _told(change, known.book)


def _checked(line: str, into: _Reading) -> None:
    try:
        _read_line(line, into)
    except (ValueError, OrderError) as error:
        raise _bad(into, str(error).removeprefix(OWN_WORDS)) from None


def _bad(reading: _Reading, why: str) -> OrderError:
    return OrderError(BAD_LINE.format(reading.line, why.strip()))


def _coordinate(account: AccountName, user: UserName, into: _Reading) -> None:
    stays = {} if into.clean else into.known.book.accounts
    found = into.accounts.get(account) or stays.get(account)
    if found is None:
        raise _bad(into, f"no account {account!r} to coordinate")
    if user not in found.coordinators:
        found = replace(found, coordinators=(*found.coordinators, user))
    into.accounts[account] = found


def _lines(book: Book) -> list[str]:
    return sorted(dumped(book, ""))


def _read_line(line: str, into: _Reading) -> None:
    kind, dash, rest = line.partition("-")
    parts = list(_parts(rest.strip()))
    if not dash or not parts:
        raise ValueError(f"{line[:SHOWN]!r} is no `Kind - 'name'`")
    name, values = parts[0].strip("'\""), dict(part.partition("=")[::2] for part in parts[1:])
    nothing = next((part for part in parts[1:] if part and "=" not in part), None)
    if nothing is not None:
        raise ValueError(f"{nothing[:SHOWN]} has no value")
    must_be_plain((name, *values.values()))
    kinds = {"cluster": _cluster, "parent": _parent, "account": _account, "user": _user}
    take = kinds.get(kind.strip().lower())
    if take is None:
        raise ValueError(f"no such kind of line: {kind.strip()[:SHOWN]}")
    if not name:
        raise ValueError(f"{kind.strip()} has no name")
    take(name, values, into)


def _parts(text: str) -> Iterator[str]:
    """Pieces between colons that do not stand in quotes. Raises ValueError for one left open."""
    piece, quote = "", ""
    for letter in text:
        if letter == ":" and not quote:
            yield piece
            piece = ""
            continue
        if letter in "'\"" and quote in {"", letter}:
            quote = "" if quote else letter
        piece += letter
    if quote:
        raise ValueError(f"{piece[:SHOWN]!r} has no quote at its end")
    if piece:
        yield piece


def _settings(values: dict[str, str], into: _Reading, besides: Iterable[str]) -> list[Setting]:
    found = []
    for key, value in values.items():
        if key.lower() in besides:
            continue
        name, sign, _ = cut(f"{key}=")
        what = find(name, ASSOC)
        if what is None:
            raise ValueError(f"no such value: {key}")
        try:
            found.append(read(what, sign, value, words=into.known.words))
        except BadSettingError as error:
            raise ValueError(error.text or BAD_VALUE.format(what.label, value)) from None
    return found


def _said(values: dict[str, str], key: str) -> str:
    return next((v.strip("'\"") for k, v in values.items() if k.lower() == key), "")


def _cluster(name: str, values: dict[str, str], into: _Reading) -> None:
    if not into.any_cluster:
        must_be_here([name], into.known)
    into.cluster = into.known.cluster
    root = into.known.book.accounts[ROOT]
    into.accounts[ROOT] = put(root, _settings(values, into, ("classification",)))


def _parent(name: str, _: dict[str, str], into: _Reading) -> None:
    into.parent = lower(name)
    if not any(into.parent in there for there in (into.accounts, into.known.book.accounts)):
        raise ValueError(f"no account {name!r} to be below")


def _account(name: str, values: dict[str, str], into: _Reading) -> None:
    settings = _settings(values, into, ("description", "organization", "coordinator"))
    fresh = Account(name=lower(name), description=name)
    before = fresh if into.clean else into.known.book.accounts.get(fresh.name, fresh)
    made = replace(
        before,
        parent=into.parent,
        description=_said(values, "description") or before.description,
        organization=_said(values, "organization") or before.organization,
    )
    into.accounts[made.name] = put(made, settings)
    for user in filter(None, _said(values, "coordinator").split(",")):
        into.coordinators.append((into.line, made.name, UserName(user)))


USER_WORDS = ("partition", "defaultaccount", "adminlevel", "defaultwckey", "wckeys", "coordinator")


def _user(name: str, values: dict[str, str], into: _Reading) -> None:
    user = UserName(name)
    own = Association(user=user, account=into.parent, partition=_said(values, "partition") or None)
    if not into.clean:
        kept = into.known.book.associations.get(user, ())
        own = next((one for one in kept if place(one) == place(own)), own)
    default = lower(_said(values, "defaultaccount"))
    if default or into.clean:
        own = replace(own, default_account=default == into.parent)
    into.owned.append(put(own, _settings(values, into, USER_WORDS)))
    for account in filter(None, _said(values, "coordinator").split(",")):
        into.coordinators.append((into.line, lower(account), user))
    into.people[user] = _person(user, values, into)


def _person(user: UserName, values: dict[str, str], into: _Reading) -> Person:
    """Who they are; what a line does not name stays as an earlier one has it."""
    level = _said(values, "adminlevel")
    if level and not level_of(level):
        raise ValueError(BAD_VALUE.format("AdminLevel", level))
    before = into.known.book.people.get(user, Person(name=user))
    if into.clean:
        before = Person(name=user, uid=before.uid)
    before = into.people.get(user, before)
    keys = tuple(filter(None, _said(values, "wckeys").split(",")))
    return replace(
        before,
        admin=level_of(level) or before.admin,
        wckeys=keys or before.wckeys,
        default_wckey=_said(values, "defaultwckey") or before.default_wckey,
    )


def _difference(reading: _Reading) -> Change:
    change = Change(
        accounts=tuple(reading.accounts.values()),
        associations=tuple(reading.owned),
        people=tuple(reading.people.values()),
    )
    if not reading.clean:
        return change
    book, stays = reading.known.book, {place(own) for own in reading.owned}
    named = {ROOT, *reading.accounts}
    return replace(
        change,
        no_accounts=tuple(name for name in book.accounts if name not in named),
        no_associations=tuple(place(own) for own in associations(book) if place(own) not in stays),
        no_people=tuple(name for name in book.people if name not in reading.people),
    )


def _told(change: Change, book: Book) -> str:
    fresh = [one.name for one in change.accounts if one.name not in book.accounts]
    users = [one.name for one in change.people if one.name not in book.people]
    had = set(map(place, associations(book)))
    own = [one for one in change.associations if place(one) not in had]
    return (
        _section(" Adding Account(s)\n", [f"  {name}\n" for name in fresh])
        + _section(" Adding User(s)\n", [f"  {name}\n" for name in users])
        + _section(" Associations\n", [f"  U = {o.user:<9.9} A = {o.account}\n" for o in own])
        + _section(" Removing Account(s)\n", [f"  {name}\n" for name in change.no_accounts])
        + _section(" Removing User(s)\n", [f"  {name}\n" for name in change.no_people])
    )


def _section(head: str, lines: Sequence[str]) -> str:
    return head + "".join(lines) if lines else ""
