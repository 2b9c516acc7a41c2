"""`sacctmgr add`: accounts, users with their associations, coordinators, QOS."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from accounting.assoc import ROOT, Account, Association, Person, Qos, lower
from accounting.change import Change, default_of
from accounting.ids import UserName
from gateway.translate.bookorder import (
    USE_WHERE,
    Complaints,
    Known,
    OrderError,
    Proposal,
    Words,
    associations,
    cut,
    key_of,
    means,
    must_be_here,
    must_be_plain,
    must_be_there,
    names_of,
    setting_of,
)
from gateway.translate.bookwords import ASSOC, BAD_VALUE, QOS, Name, Setting, put, shown

NOTHING = " Nothing new added.\n"
NO_ENTITY = (
    "No valid entity in add command\n"
    'Input line must include "Account", "Cluster", "Coordinator", "Federation", "QOS", "Resource", '
    'or "User"\n'
)
NO_PARENT = (
    " Parent account '{}' doesn't exist on cluster {}\n"
    "        Contact your admin to add this account.\n No associations created.\n"
)
BAD_START = BAD_VALUE.partition("{")[0]
"""Of a QOS that has such values alone nothing is said but that it is not made (22.05)."""
NO_ACCOUNT = " This account '{}' doesn't exist.\n        Contact your admin to add this account.\n"
NOTHING_MADE = " No associations or wckeys created.\n"
ONE_CLUSTER = "sacctmgr: error: adding a {} is not supported by SkyPurza\n"
LEVELS = ("None", "Operator", "Administrator")
Keys = tuple[tuple[str, int], ...]
ACCOUNT_KEYS: Keys = (
    ("cluster", 1), ("description", 1), ("name", 1), ("account", 1), ("organization", 1),
)  # fmt: skip
USER_KEYS: Keys = (
    ("account", 2), ("adminlevel", 2), ("cluster", 1), ("defaultaccount", 8),
    ("defaultwckey", 8), ("name", 1), ("user", 1), ("partition", 2), ("wckey", 1),
)  # fmt: skip
QOS_KEYS: Keys = (("name", 1), ("qos", 1), ("cluster", 2))
COORDINATOR_KEYS: Keys = (("account", 1), ("name", 1), ("user", 1), ("cluster", 2))


def add(words: Sequence[str], known: Known) -> Proposal:
    """What the order comes to. Raises OrderError."""
    entity = words[0].lower() if words else ""
    for name, least, make in ENTITIES:
        if means(entity, name, least):
            return make(words[1:], known)
    raise OrderError(NO_ENTITY)


def _words(
    words: Sequence[str], keys: Keys, known: Known, *, table: tuple[Name, ...], bare: str
) -> Words:
    """Bare words join what `bare` names. Raises OrderError."""
    given: dict[str, str] = {}
    settings: list[Setting] = []
    wrong = Complaints()
    for word in words:
        key, _, value = cut(word)
        if value is None:
            if key.lower() not in {"where", "set"}:
                given[bare] = ",".join(filter(None, (given.get(bare), key)))
            continue
        full = key_of(key, keys)
        if full is None:
            tail = USE_WHERE if bare in {"account", "qos"} else ""
            made = wrong.of(lambda word=word, tail=tail: setting_of(word, known, table, tail=tail))  # type: ignore[misc]
            settings.extend([] if made is None else [made])
        else:
            full = bare if full in {"name", "names"} else full
            given[full] = ",".join(filter(None, (given.get(full), value)))
    bad = (line.startswith(BAD_START) for line in wrong.err.splitlines())
    if bare == "qos" and not wrong.out and all(bad):
        wrong.out = wrong.err and NOTHING
    wrong.must_be_none()
    names = names_of(given.get(bare, ""))
    must_be_plain([*names, *(text for key, text in given.items() if key != bare)])
    return Words(names, given, settings)


def _settings(settings: Sequence[Setting], width: int) -> str:
    """In the order of the table, whatever the order in which they were typed."""
    labels = [one.label for one in (*ASSOC, *QOS)]
    order = sorted(settings, key=lambda one: labels.index(one.what.label))
    return "".join(f"  {one.what.label:<{width}} = {shown(one)}\n" for one in order)


# ---------------------------------------------------------------- accounts


PARENT = next(one for one in ASSOC if one.field == "parent")


def _accounts(words: Sequence[str], known: Known) -> Proposal:
    said = _words(words, ACCOUNT_KEYS, known, table=ASSOC, bare="account")
    if not said.names:
        raise OrderError(" Need name of account to add.\n")
    must_be_here(said.listed("cluster"), known)
    parent = lower(next((one.value for one in said.settings if one.what.field == "parent"), ROOT))
    names = [lower(name) for name in said.names if lower(name) not in known.book.accounts]
    if not names:
        raise OrderError(out=NOTHING)
    if parent not in known.book.accounts:
        raise OrderError(NO_PARENT.format(parent, known.cluster))
    rest = [one for one in said.settings if one.what.field != "parent"]
    about = _text(said, "description"), _text(said, "organization")
    new = [
        put(
            Account(
                name=name,
                parent=parent,
                description=about[0] or name,
                organization=about[1] or (name if parent == ROOT else parent),
            ),
            rest,
        )
        for name in dict.fromkeys(names)
    ]
    out = " Adding Account(s)\n" + "".join(f"  {one.name}\n" for one in new)
    out += f" Settings\n  Description     = {about[0] or 'Account Name'}\n"
    out += f"  Organization    = {about[1] or 'Parent/Account Name'}\n Associations\n"
    out += "".join(f"  A = {one.name:<10.10} C = {known.cluster:<10.10}\n" for one in new)
    if said.settings:
        below = Setting(PARENT, "", parent)
        out += " Settings\n" + _settings([*rest, below], 13)
    return Proposal(
        change=Change(accounts=tuple(new)),
        out=out,
        action="Add Accounts",
        where=",".join(one.name for one in new),
        info=_settings(said.settings, 0).strip(),
        denied="accounts",
    )


def _text(said: Words, key: str) -> str:
    """Slurm keeps these in lower case."""
    return said.given.get(key, "").strip("\"'").lower()


# ---------------------------------------------------------------- users


def _users(words: Sequence[str], known: Known) -> Proposal:
    said = _words(words, USER_KEYS, known, table=ASSOC, bare="user")
    default = _text(said, "defaultaccount")
    accounts = dict.fromkeys([lower(name) for name in said.listed("account")])
    accounts |= dict.fromkeys([lower(default)] if default else [])
    if not said.names:
        raise OrderError(" Need name of user to add.\n")
    if not accounts:
        raise OrderError(" Need name of account to add user to.\n")
    must_be_here(said.listed("cluster"), known)
    missing = [account for account in accounts if account not in known.book.accounts]
    err = "".join(NO_ACCOUNT.format(account) for account in missing)
    accounts = {name: None for name in accounts if name not in missing}
    if not accounts:
        fresh = any(UserName(name) not in known.book.associations for name in said.names)
        raise OrderError(err + NOTHING_MADE) if fresh else OrderError(err, out=NOTHING)
    have = {(own.user, own.account, own.partition) for own in associations(known.book)}
    new = [
        put(Association(user=UserName(user), account=account, partition=partition), said.settings)
        for user in said.names
        for account in accounts
        for partition in said.listed("partition") or (None,)
        if (user, account, partition) not in have
    ]
    people = _people(said, known)
    if not new and not people:
        raise OrderError(err, out=NOTHING)
    marked = _marked(new, known, default if default not in missing else "")
    return replace(_user_proposal(said, known, new=marked, people=people), err=err)


def _marked(new: Sequence[Association], known: Known, default: str) -> list[Association]:
    """Marks the default account: the one named, where it is new, else the first that one has."""
    marked: dict[UserName, str] = {}
    for own in new:
        if default_of(known.book, own.user) is None or own.account == default:
            marked.setdefault(own.user, default or own.account)
    return [replace(own, default_account=own.account == marked.get(own.user)) for own in new]


def _no_more_marked(new: Sequence[Association], known: Known) -> list[Association]:
    """What was the default account of those who get another one."""
    others = {own.user for own in new if own.default_account}
    return [
        replace(own, default_account=False)
        for user in others
        for own in known.book.associations.get(user, ())
        if own.default_account
    ]


def level_of(text: str) -> str:
    """The admin level that is called or begins so; empty if none does."""
    return next((one for one in LEVELS if text and one.lower().startswith(text.lower())), "")


def _people(said: Words, known: Known) -> list[Person]:
    """Users who are new, or get wckeys."""
    level = level_of(_text(said, "adminlevel"))
    if "adminlevel" in said.given and not level:
        raise OrderError(f" Unknown option: adminlevel={said.given['adminlevel']}\n")
    default = _text(said, "defaultwckey")
    keys = (*said.listed("wckey"), *((default,) if default else ()))
    found = []
    for name in said.names:
        before = known.book.people.get(UserName(name))
        person = before or Person(name=UserName(name), admin=level or "None")
        wckeys = tuple(dict.fromkeys((*person.wckeys, *keys)))
        chosen = default or person.default_wckey or next(iter(wckeys), "")
        made = replace(person, wckeys=wckeys, default_wckey=chosen)
        if made != before:
            found.append(made)
    return found


def _user_proposal(
    said: Words, known: Known, *, new: Sequence[Association], people: Sequence[Person]
) -> Proposal:
    fresh = [one.name for one in people if one.name not in known.book.people]
    out = " Adding User(s)\n" + "".join(f"  {name}\n" for name in fresh) if fresh else ""
    lines = []
    if fresh and "defaultaccount" in said.given:
        lines.append(f"  Default Account = {_text(said, 'defaultaccount')}\n")
    if fresh and "adminlevel" in said.given:
        lines.append(f"  Admin Level     = {level_of(_text(said, 'adminlevel'))}\n")
    out += " Settings =\n" + "".join(lines) if lines else ""
    if new:
        out += " Associations =\n" + "".join(_line(own, known.cluster) for own in new)
    keys = [(one.name, key) for one in people for key in _fresh_keys(one, known)]
    if keys:
        cluster = f"{known.cluster:<10.10}"
        out += " WCKeys =\n"
        out += "".join(f"  U = {user:<9.9} W = {key:<10.10} C = {cluster}\n" for user, key in keys)
    if new:
        out += " Non Default Settings\n" + _settings(said.settings, 13)
    return Proposal(
        change=Change(associations=(*_no_more_marked(new, known), *new), people=tuple(people)),
        out=out,
        action="Add Users" if fresh else "Add Associations",
        where=",".join(said.names),
        info=",".join(dict.fromkeys(str(own.account) for own in new)),
        denied="users",
    )


def _fresh_keys(person: Person, known: Known) -> list[str]:
    before = known.book.people.get(person.name)
    return [key for key in person.wckeys if before is None or key not in before.wckeys]


def _line(own: Association, cluster: str) -> str:
    where = f" P = {own.partition:<10.10}" if own.partition else ""
    return f"  U = {own.user:<9.9} A = {own.account:<10.10} C = {cluster:<10.10}{where}\n"


# ---------------------------------------------------------------- the rest


def _qos(words: Sequence[str], known: Known) -> Proposal:
    said = _words(words, QOS_KEYS, known, table=QOS, bare="qos")
    if not said.names:
        raise OrderError(" Need name of qos to add.\n")
    names = [name.lower() for name in said.names if name.lower() not in known.book.qos]
    if not names:
        raise OrderError(out=NOTHING)
    text = next((one.value for one in said.settings if one.what.field == "description"), "")
    rest = [one for one in said.settings if one.what.field != "description"]
    new = [put(Qos(name=name, description=text or name), rest) for name in dict.fromkeys(names)]
    out = " Adding QOS(s)\n" + "".join(f"  {one.name}\n" for one in new)
    flags = [one for one in rest if one.what.field == "flags"]
    others = [one for one in rest if one.what.field != "flags"]
    out += f" Settings\n  Description    = {text or new[0].name}\n"
    out += _settings(flags, 24) + _settings(others, 24)
    return Proposal(
        change=Change(qos=tuple(new)),
        out=out,
        action="Add QOS",
        where=",".join(one.name for one in new),
        info=_settings(rest, 0).strip(),
        denied="QOS",
    )


def _coordinators(words: Sequence[str], known: Known) -> Proposal:
    said = _words(words, COORDINATOR_KEYS, known, table=(), bare="user")
    accounts = [lower(name) for name in said.listed("account")]
    if not said.names:
        raise OrderError(" You need to specify a user list here.\n")
    if not accounts:
        raise OrderError(" You need to specify an account list here.\n")
    must_be_there(accounts, said.names, known)
    more = tuple(UserName(user) for user in said.names)
    changed = [
        replace(one, coordinators=tuple(dict.fromkeys((*one.coordinators, *more))))
        for one in (known.book.accounts[name] for name in accounts)
    ]
    out = " Adding Coordinator User(s)\n" + "".join(f"  {name}\n" for name in said.names)
    out += " To Account(s) and all sub-accounts\n" + "".join(f"  {name}\n" for name in accounts)
    return Proposal(
        change=Change(accounts=tuple(changed)),
        out=out,
        action="Add Account Coord",
        where=",".join(said.names),
        info=",".join(accounts),
        denied="coordinator",
    )


def _no_other(what: str) -> Callable[[Sequence[str], Known], Proposal]:
    def refuse(_: Sequence[str], __: Known) -> Proposal:
        raise OrderError(ONE_CLUSTER.format(what))

    return refuse


Make = Callable[[Sequence[str], Known], Proposal]
ENTITIES: tuple[tuple[str, int, Make], ...] = (
    ("account", 1, _accounts),
    ("cluster", 2, _no_other("cluster")),
    ("coordinator", 2, _coordinators),
    ("federation", 1, _no_other("federation")),
    ("qos", 1, _qos),
    ("resource", 1, _no_other("resource")),
    ("user", 1, _users),
)
DENIED: Mapping[str, str] = {
    what: f" Problem adding {what}: Access/permission denied\n"
    for what in ("accounts", "users", "QOS", "coordinator")
}
