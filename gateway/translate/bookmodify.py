"""`sacctmgr modify`: what stands before `set` chooses, what stands behind it is set."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from accounting.assoc import ROOT, Account, Association, Person, Qos, allowed_qos, lower
from accounting.change import Change
from accounting.ids import UserName
from gateway.translate.bookabove import given_way, must_be_there, settings_of
from gateway.translate.bookadd import level_of
from gateway.translate.bookorder import (
    UNKNOWN_CONDITION,
    UNKNOWN_OPTION,
    USE_WHERE,
    Complaints,
    Known,
    OrderError,
    Proposal,
    associations,
    cut,
    key_of,
    means,
    must_be_here,
    must_be_plain,
    names_of,
    setting_of,
)
from gateway.translate.bookreset import reset
from gateway.translate.bookwords import (
    ASSOC,
    NOTHING_SET,
    QOS,
    RAW_USAGE,
    Name,
    Setting,
    put,
    shown,
)

NOTHING = " Nothing modified\n"
NO_ENTITY = (
    "No valid entity in modify command\n"
    'Input line must include "Account", "Cluster", "Federation", "Job", "QOS", "Resource" or '
    '"User"\n'
)
NO_CONDITION = "You didn't set any conditions with 'WHERE'.\nAre you sure you want to continue?"
NOT_DEFAULT = (
    " Can't modify because these users aren't associated with new default account '{}'...\n"
)
NO_ACCESS = (
    " These associations don't have access to their default qos.\n"
    " Please give them access before they the default can be set to this.\n"
)
NOT_HERE = "sacctmgr: error: modifying a {} is not supported by SkyPurza\n"
Keys = tuple[tuple[str, int], ...]
ACCOUNT_KEYS: Keys = (
    ("name", 1), ("account", 2), ("cluster", 1), ("description", 1), ("organization", 1),
    ("parent", 1), ("qos", 1),
)  # fmt: skip
USER_KEYS: Keys = (
    ("name", 1), ("user", 1), ("account", 2), ("adminlevel", 2), ("cluster", 1),
    ("defaultaccount", 8), ("partition", 3), ("qos", 1),
)  # fmt: skip
QOS_KEYS: Keys = (("name", 1), ("qos", 1), ("id", 1), ("cluster", 2))
CLUSTER_KEYS: Keys = (("name", 1), ("cluster", 1))
ACCOUNT_TEXTS: Keys = (("description", 1), ("organization", 1))
USER_TEXTS: Keys = (("adminlevel", 2), ("defaultaccount", 8), ("defaultwckey", 8), ("newname", 1))
NOT_ITS_NAME = " Can't modify the name of an account\n"
BAD_QOS_ID = "sacctmgr: error: Invalid value for QOS ID ({})\n"
BAD_QOS_VALUE = "sacctmgr: error: Invalid value for "
ONE_NAME = (
    "sacctmgr: error: Can only change one at a time\n"
    " Error with request: Can only change one at a time\n"
    " If you are changing a users name you can only specify 1 user at a time.\n"
)
NAME_TAKEN = "sacctmgr: accounting_storage/slurmdbd: acct_storage_p_modify_users: No error\n"


@dataclass(frozen=True, slots=True)
class Said:
    """Conditions by key, texts to set by key, settings; a key that is absent allows any."""

    where: dict[str, tuple[str, ...]]
    texts: dict[str, str]
    settings: list[Setting]

    def wants(self, key: str, value: str) -> bool:
        chosen = self.where.get(key)
        return chosen is None or value.lower() in {one.lower() for one in chosen}


@dataclass(frozen=True, slots=True)
class Grammar:
    """What one entity takes: conditions (bare words are the first's), texts, settings."""

    bare: str
    keys: Keys
    texts: Keys
    table: tuple[Name, ...]


def modify(words: Sequence[str], known: Known) -> Proposal:
    """What the order comes to. Raises OrderError."""
    entity = words[0].lower() if words else ""
    for name, least, grammar, make in ENTITIES:
        if means(entity, name, least):
            said = _said(words[1:], grammar, known)
            must_be_here(said.where.get("cluster", ()), known)
            if not (said.settings or said.texts):
                raise OrderError(NOTHING_SET)
            usage = [one.value for one in said.settings if one.what is RAW_USAGE]
            if usage:
                return reset(name, said.where, known, value=usage[-1])
            made = make(said, known)
            alone = not said.where and name != "cluster"
            return replace(made, sure=NO_CONDITION) if alone else made
    raise OrderError(NO_ENTITY)


def conditions(words: Sequence[str], bare: str, keys: Keys) -> dict[str, tuple[str, ...]]:
    """Names by key; bare words are of `bare`. Raises OrderError."""
    where: dict[str, tuple[str, ...]] = {}
    for word in words:
        key, _, value = cut(word)
        if value is None and key.lower() == "where":
            continue
        full = bare if value is None else key_of(key, keys)
        if full is None:
            raise OrderError(UNKNOWN_CONDITION.format(word))
        full = bare if full == "name" else full
        where[full] = (*where.get(full, ()), *names_of(key if value is None else value))
    return where


def _said(words: Sequence[str], grammar: Grammar, known: Known) -> Said:
    before: list[str] = []
    behind: list[str] = []
    into = False
    for word in words:
        if word.lower() in {"set", "where"}:
            into = word.lower() == "set"
        else:
            (behind if into else before).append(word)
    wrong = Complaints()
    where = wrong.of(lambda: conditions(before, grammar.bare, grammar.keys))
    said = Said(where or {}, {}, [])
    for word in behind:
        key, _, value = cut(word)
        full = key_of(key, grammar.texts)
        if full is not None and value is not None:
            said.texts[full] = value.strip("\"'")
            continue
        if value is None and grammar.bare == "account":
            wrong.err += NOT_ITS_NAME
            continue
        made = wrong.of(lambda word=word: setting_of(word, known, grammar.table, tail=USE_WHERE))  # type: ignore[misc]
        said.settings.extend([] if made is None else [made])
    if len(behind) == 1 and wrong.err.startswith(BAD_QOS_VALUE) and grammar.bare == "qos":
        wrong.err += NOTHING_SET
    wrong.must_be_none()
    must_be_plain(said.texts.values())
    return said


# ---------------------------------------------------------------- accounts


def _account(said: Said, known: Known) -> Proposal:
    chosen = [one for one in known.book.accounts.values() if _is_chosen(one, said)]
    if chosen:
        must_be_there(said.settings, known)
    chosen = [one for one in chosen if said.texts or settings_of(one, said.settings)]
    if not chosen:
        raise OrderError(out=NOTHING)
    made = [_described(put(one, settings_of(one, said.settings)), said.texts) for one in chosen]
    made += given_way(chosen, made, known)
    out = ""
    if said.texts:
        out += " Modified accounts...\n" + "".join(f"  {one.name}\n" for one in chosen)
    if said.settings:
        out += " Modified account associations...\n"
        out += "".join(_line(one, known) for one in chosen)
        out += "".join(user_line(own, known.cluster) for own in _heirs(chosen, said, known))
    return _proposal(
        said, Change(accounts=tuple(made)), out=out, names=[str(one.name) for one in chosen]
    )


def _described(one: Account, texts: Mapping[str, str]) -> Account:
    return replace(
        one,
        description=texts.get("description", one.description),
        organization=texts.get("organization", one.organization),
    )


def _is_chosen(one: Account, said: Said) -> bool:
    return (
        said.wants("account", one.name)
        and said.wants("parent", one.parent)
        and said.wants("description", one.description)
        and said.wants("organization", one.organization)
    )


def _line(one: Account, known: Known) -> str:
    below = "" if one.name == ROOT else f" of {one.parent}"
    return f"  C = {known.cluster:<10.10} A = {one.name}{below}\n"


def user_line(own: Association, cluster: str) -> str:
    """`  C = oracle     A = aa                   U = u5       `."""
    where = f" P = {own.partition}" if own.partition else ""
    return f"  C = {cluster:<10.10} A = {own.account:<20.20} U = {own.user:<9.9}{where}\n"


def _heirs(chosen: Sequence[Account], said: Said, known: Known) -> list[Association]:
    """Users below whose own limit is not set, so that it is another one now."""
    names = {one.name for one in chosen}
    fields = [
        one.what.field
        for one in said.settings
        if one.what.field.startswith("max_") or one.what.field in {"qos", "default_qos"}
    ]
    below = (
        own
        for own in reversed(associations(known.book))
        if names & {step.name for step in known.book.lineage(own.account)}
    )
    return [own for own in below if any(not _own(own, field) for field in fields)]


def _own(own: Association, field: str) -> object:
    return getattr(own.limits if field.startswith("max_") else own, field)


# ---------------------------------------------------------------- users


def _user(said: Said, known: Known) -> Proposal:
    chosen = [own for own in associations(known.book) if _wants_association(own, said, known)]
    if not chosen:
        raise OrderError(out=NOTHING)
    names = list(dict.fromkeys(own.user for own in chosen))
    if "newname" in said.texts:
        return _renamed(said, names, known)
    _must_have_default(chosen, said, known)
    made = {(own.user, own.account, own.partition): put(own, said.settings) for own in chosen}
    if "defaultaccount" in said.texts:
        for own in _defaults(said.texts["defaultaccount"], names, known):
            before = made.get((own.user, own.account, own.partition), own)
            mark = replace(before, default_account=own.default_account)
            made[own.user, own.account, own.partition] = mark
    out = ""
    if said.texts:
        out += " Modified users...\n" + "".join(f"  {name}\n" for name in names)
    if said.settings:
        out += " Modified user associations...\n"
        out += "".join(user_line(own, known.cluster) for own in reversed(chosen))
    marked = bool(said.settings) or "defaultaccount" in said.texts
    change = Change(
        associations=tuple(made.values()) if marked else (),
        people=tuple(_people(said, names, known)),
    )
    return _proposal(said, change, out=out, names=[str(name) for name in names])


def _renamed(said: Said, names: Sequence[UserName], known: Known) -> Proposal:
    """All that is known of a user under another name. Raises OrderError."""
    book, new = known.book, UserName(said.texts["newname"])
    if len(said.where.get("user", ())) != 1:
        raise OrderError(ONE_NAME)
    if new in book.associations or new in book.people:
        raise OrderError(NAME_TAKEN, out=NOTHING)
    (old,) = names
    change = Change(
        no_people=(old,),
        people=(replace(book.people.get(old, Person(name=old)), name=new),),
        associations=tuple(replace(own, user=new) for own in book.associations[old]),
        accounts=tuple(
            replace(
                one,
                coordinators=tuple(new if name == old else name for name in one.coordinators),
            )
            for one in book.accounts.values()
            if old in one.coordinators
        ),
    )
    return _proposal(said, change, out=f" Modified users...\n  {old}\n", names=[str(old)])


def _must_have_default(chosen: Sequence[Association], said: Said, known: Known) -> None:
    """Raises OrderError where somebody may not use the QOS that is to be the default one."""
    for one in said.settings:
        if one.what.field == "default_qos" and one.value is not None:
            after = [put(own, said.settings) for own in chosen]
            bad = [own for own in after if one.value not in allowed_qos(known.book, own)]
            if bad:
                head = f"  DefQOS = {one.value:<10.10}"
                lines = [head + user_line(own, known.cluster) for own in reversed(bad)]
                raise OrderError(NO_ACCESS + "".join(lines))


def _wants_association(own: Association, said: Said, known: Known) -> bool:
    level = known.book.level(own.user)
    return (
        said.wants("user", own.user)
        and said.wants("account", own.account)
        and said.wants("partition", own.partition or "")
        and said.wants("adminlevel", level)
    )


def _defaults(account: str, names: Sequence[UserName], known: Known) -> list[Association]:
    """Every association of these users, the new default marked. Raises OrderError."""
    wanted = lower(account)
    missing = [
        name
        for name in names
        if wanted not in {own.account for own in known.book.associations[name]}
    ]
    if missing:
        lines = "".join(f"  U = {name} C = {known.cluster}\n" for name in missing)
        raise OrderError(out=NOT_DEFAULT.format(account) + lines)
    return [
        replace(own, default_account=own.account == wanted)
        for name in names
        for own in known.book.associations[name]
    ]


def _people(said: Said, names: Sequence[UserName], known: Known) -> list[Person]:
    if not said.texts.keys() & {"adminlevel", "defaultwckey"}:
        return []
    text = said.texts.get("adminlevel")
    level = level_of(text or "")
    if text is not None and not level:
        raise OrderError(UNKNOWN_OPTION.format(f"adminlevel={text}") + USE_WHERE)
    key = said.texts.get("defaultwckey")
    found = []
    for name in names:
        person = known.book.people.get(name, Person(name=name))
        wckeys = person.wckeys if key is None else tuple(dict.fromkeys((*person.wckeys, key)))
        default = person.default_wckey if key is None else key
        made = replace(person, admin=level or person.admin, wckeys=wckeys, default_wckey=default)
        found.append(made)
    return found


# ---------------------------------------------------------------- QOS and the cluster


def _qos(said: Said, known: Known) -> Proposal:
    chosen = chosen_qos(said, known)
    if not chosen:
        raise OrderError(out=NOTHING)
    out = " Modified qos...\n" + "".join(f"  {one.name}\n" for one in chosen)
    change = Change(qos=tuple(put(one, said.settings) for one in chosen))
    return _proposal(said, change, out=out, names=[one.name for one in chosen])


def chosen_qos(said: Said, known: Known) -> list[Qos]:
    """Those of the names and numbers. Raises OrderError for what is no number."""
    bad = next((text for text in said.where.get("id", ()) if not text.isdecimal()), None)
    if bad is not None:
        raise OrderError(BAD_QOS_ID.format(bad))
    ids = known.book.qos_ids
    every = known.book.qos.items()
    return [
        one for name, one in every if said.wants("qos", name) and said.wants("id", str(ids[name]))
    ]


def _cluster(said: Said, known: Known) -> Proposal:
    if not said.wants("cluster", known.cluster):
        raise OrderError(out=NOTHING)
    root = known.book.accounts[ROOT]
    out = " Setting\n  Default Limits:\n"
    out += "".join(f"  {one.what.label:<13} = {shown(one)}\n" for one in said.settings)
    out += " Modified cluster defaults for associations...\n" + _line(root, known)
    out += "".join(user_line(own, known.cluster) for own in _heirs([root], said, known))
    change = Change(accounts=(put(root, said.settings),))
    return _proposal(said, change, out=out, names=[known.cluster])


def _proposal(said: Said, change: Change, *, out: str, names: Sequence[str]) -> Proposal:
    info = [f"{one.what.label}={shown(one)}" for one in said.settings]
    kinds = [
        (bool(change.qos), "Modify QOS"),
        (bool(change.associations), "Modify Associations"),
        (bool(change.people), "Modify Users"),
        (bool(said.texts), "Modify Accounts"),
    ]
    return Proposal(
        change=change,
        out=out,
        action=next((name for is_so, name in kinds if is_so), "Modify Associations"),
        where=",".join(names),
        info=", ".join([*info, *(f"{key}={text}" for key, text in said.texts.items())]),
    )


Make = Callable[[Said, Known], Proposal]


def _no(what: str) -> Make:
    def refuse(_: Said, __: Known) -> Proposal:
        raise OrderError(NOT_HERE.format(what))

    return refuse


ENTITIES: tuple[tuple[str, int, Grammar, Make], ...] = (
    ("account", 1, Grammar("account", ACCOUNT_KEYS, ACCOUNT_TEXTS, (*ASSOC, RAW_USAGE)), _account),
    ("cluster", 1, Grammar("cluster", CLUSTER_KEYS, (), ASSOC), _cluster),
    ("federation", 1, Grammar("name", CLUSTER_KEYS, (), ASSOC), _no("federation")),
    ("job", 1, Grammar("name", CLUSTER_KEYS, (), ASSOC), _no("job")),
    ("qos", 1, Grammar("qos", QOS_KEYS, (), (*QOS, RAW_USAGE)), _qos),
    ("resource", 1, Grammar("name", CLUSTER_KEYS, (), ASSOC), _no("resource")),
    ("user", 1, Grammar("user", USER_KEYS, USER_TEXTS, (*ASSOC, RAW_USAGE)), _user),
)
