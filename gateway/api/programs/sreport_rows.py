"""The lines of sreport's reports: whose use, by what, and what percentages are parts of."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from accounting import report
from accounting.report import Group, Line, Shown
from accounting.rollup import DOWN, JOBS, PLANNED
from gateway.api.programs.sreport_resv import Held
from gateway.api.programs.sreport_use import Use
from gateway.query.context import Context
from gateway.query.reportunits import Unit
from sbatch_shim.grammar.values import read_digits

TOP = 10
INDIVIDUAL = "individual"
ORDER = "cpu"
"""The TRES whose use puts lines in order and makes them be there."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a report, of one TRES; amounts in TRES-seconds."""

    line: Line
    tres: str
    amounts: Mapping[str, int]
    """By column: `Used`, `Allocated`, ..., or the number of a group of sizes."""
    whole: int
    """What percentages are parts of."""
    times: tuple[int, int] = (0, 0)
    """Of a reservation, from when to when."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One report: what was used, the conditions, the unit."""

    ctx: Context
    use: Use
    given: Mapping[str, str]
    tres: tuple[str, ...]
    unit: Unit
    names: Mapping[str, str]
    """Users' names in full."""
    held: Sequence[Held] = ()
    """Reservations of the window, where those are asked for."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """How much of each TRES the declared nodes have."""

    def wants(self, key: str, value: str) -> bool:
        chosen = self.given.get(key)
        return chosen is None or value.lower() in {one.lower() for one in chosen.split(",")}

    @property
    def here(self) -> bool:
        """Whether this cluster is among those that were named; there is no other."""
        return self.wants("clusters", self.ctx.site.cluster)

    def rows(self, lines: Sequence[Line]) -> list[Row]:
        """A row for each line and TRES, also of TRES of which nothing was used."""
        return [
            Row(line, name, {"Used": line.amounts.get(name, 0)}, self.use.whole.get(name, 0))
            for line in lines
            if self.wants("accounts", line.account) or not line.account
            if self.wants("users", line.user) or not line.user
            if self.wants("wckeys", line.wckey) or not line.wckey
            if self.wants("qos", line.qos) or not line.qos
            for name in self.tres
        ]


Rows = Callable[[Asked], list[Row]]


def accounts(asked: Asked) -> list[Row]:
    return _by_account(asked, "user")


def grades(asked: Asked) -> list[Row]:
    return _by_account(asked, "qos")


def _by_account(asked: Asked, by: str) -> list[Row]:
    """Accounts have all that is below them; where users are named, lines of those alone (22.05)."""
    used = asked.use.by("account", by, "tres")
    lines = report.by_account(asked.ctx.site.book, used, graded=by == "qos")
    if (text := asked.given.get("accounts")) is not None:
        lines = report.below(lines, {name.lower() for name in text.split(",")})
    if {"users", "qos"} & asked.given.keys():
        lines = [line for line in lines if line.user or line.qos]
    if "tree" in asked.given:
        lines = [replace(line, account=" " * line.depth + line.account) for line in lines]
    return replace(asked, given=_without(asked.given, "accounts")).rows(lines)


def _without(given: Mapping[str, str], *names: str) -> Mapping[str, str]:
    return {key: value for key, value in given.items() if key not in names}


def users(asked: Asked) -> list[Row]:
    return asked.rows(_by_user(asked))


def _by_user(asked: Asked) -> list[Line]:
    return report.by_user(asked.use.by("account", "user", "tres"), tres=ORDER)


def top_users(asked: Asked) -> list[Row]:
    lines = [
        line
        for line in sorted(_by_user(asked), key=lambda line: (line.user, line.account))
        if asked.wants("users", line.user) and asked.wants("accounts", line.account)
    ]
    merged = "group" in asked.given
    lines = report.top(lines, asked.tres[0], most=max(1, most_of(asked.given)), merged=merged)
    everybody = replace(asked, given={})
    return everybody.rows(lines)


def most_of(given: Mapping[str, str]) -> int:
    """How many users are the top; what was no number has been told.

    A negative one is taken as what its bits are without a sign (22.05).
    """
    text = given.get("topcount", "")
    read = read_digits(text.removeprefix("-"))
    if read is None:
        return TOP
    return -read % (report.MOST_CPUS + 1) if text.startswith("-") else read


def wckeys(asked: Asked) -> list[Row]:
    return asked.rows(_by_wckey(asked))


def users_of_wckeys(asked: Asked) -> list[Row]:
    lines = [line for line in _by_wckey(asked) if line.user]
    lines.sort(key=lambda line: (line.user, line.wckey))
    return asked.rows(sorted(lines, key=lambda line: -line.amounts.get(ORDER, 0)))


def _by_wckey(asked: Asked) -> list[Line]:
    """Of a job without a wckey nothing is told."""
    used = asked.use.by("wckey", "user", "tres")
    return report.by_wckey({key: amount for key, amount in used.items() if key[0]})


def cluster(asked: Asked) -> list[Row]:
    """Each TRES of which there is something, or was."""
    used = {name: amount for (name,), amount in asked.use.by("tres").items()}
    there = any(asked.use.whole.values()) or any(used.values())
    return [_state(asked, name, used) for name in asked.tres] if there else []


def _state(asked: Asked, name: str, used: Mapping[str, int]) -> Row:
    """Time down and planned is no more than what was not allocated (22.05)."""
    allocated = used.get(name, 0)
    whole = max(asked.use.whole.get(name, 0), allocated)
    kept = min(whole - allocated, sum(one.idle for one in asked.held if not one.maint))
    allocated += kept if name == ORDER else 0
    rest = whole - allocated
    down = min(rest, used.get(DOWN + name, 0))
    upkeep = sum(one.idle for one in asked.held if one.maint) if name == ORDER else 0
    upkeep = min(rest - down, upkeep)
    waited = used.get(PLANNED, 0) if name == ORDER else 0
    planned = min(rest - down - upkeep, waited)
    amounts = {
        "Allocated": allocated, "Down": down, "PLND Down": upkeep, "Planned": planned,
        "Over Comm": waited - planned, "Idle": rest - down - upkeep - planned, "Reported": whole,
        "TRES Count": asked.counts.get(name, 0),
    }  # fmt: skip
    return Row(Line(""), name, amounts, whole)


def reservations(asked: Asked) -> list[Row]:
    return [
        Row(
            Line(one.name),
            ORDER,
            {"Allocated": one.used, "Idle": one.idle},
            one.used + one.idle,
            (one.start, one.end),
        )
        for one in asked.held
        if ORDER in asked.tres and asked.wants("names", one.name)
    ]


def sizes(asked: Asked) -> list[Row]:
    return _sized(asked)


def sizes_of_both(asked: Asked) -> list[Row]:
    """Jobs without a wckey are told of where each account stands by itself (22.05)."""
    rows = _sized(asked, keyed=True, bare="flatview" in asked.given)
    return [replace(row, line=_joined(row.line)) for row in rows]


def _joined(line: Line) -> Line:
    return replace(line, account=f"{line.account}:{line.wckey}")


def sizes_of_wckeys(asked: Asked) -> list[Row]:
    given = _without(asked.given, "flatview", "acctasparent", "accounts")
    return _sized(replace(asked, given=given), keyed=True, bare=False)


def _sized(asked: Asked, *, keyed: bool = False, bare: bool = True) -> list[Row]:
    """`keyed` tells wckeys apart; `bare` counts jobs without one."""
    used = _by_size(asked)
    used = {key: amount for key, amount in used.items() if bare or key[1]}
    if not keyed:
        used = _without_keys(used)
    groups = [group for _, group in groups_of(asked)]
    found = report.sizes(asked.ctx.site.book, used, groups, shown=_shown(asked.given))
    whole = sum(sum(amounts) for amounts in found.values())
    return [
        Row(Line(account, wckey=key), asked.tres[0], _places(amounts), whole)
        for (account, key), amounts in found.items()
    ]


def _by_size(asked: Asked) -> dict[tuple[str, str, int], int]:
    name = JOBS if "printjobcount" in asked.given else asked.tres[0]
    found: dict[tuple[str, str, int], int] = {}
    used = asked.use.by("account", "user", "wckey", "size", "tres")
    for (account, user, key, size, tres), amount in used.items():
        if asked.wants("users", user) and asked.wants("wckeys", key):
            counted = amount if tres == name else 0
            found[account, key, size] = found.get((account, key, size), 0) + counted
    return found


def _without_keys(used: Mapping[tuple[str, str, int], int]) -> dict[tuple[str, str, int], int]:
    found: dict[tuple[str, str, int], int] = {}
    for (account, _, size), amount in used.items():
        found[account, "", size] = found.get((account, "", size), 0) + amount
    return found


def _places(amounts: Sequence[int]) -> dict[str, int]:
    return {str(place): amount for place, amount in enumerate(amounts)} | {"Share": sum(amounts)}


def _shown(given: Mapping[str, str]) -> Shown:
    named = tuple(word for word in given.get("accounts", "").lower().split(",") if word)
    return Shown(named, children="acctasparent" in given, flat="flatview" in given)


def groups_of(asked: Asked) -> list[tuple[str, Group]]:
    """Headlines and sizes of the groups of a report on sizes."""
    what = "CPUs" if asked.tres[0] == "cpu" else "TRES"
    text = asked.given.get("grouping")
    if text is not None and text.lower() == INDIVIDUAL:
        sizes = sorted({size for _, _, size in _by_size(asked)})
        return [(f"{size} {what}", (size, size)) for size in sizes]
    bounds = report.SIZES if text is None else [*map(_number, text.split(","))]
    groups = report.groups_of(bounds)
    heads = [f"{low}-{high} {what}" for low, high in groups[:-1]]
    last = [f">= {bounds[-1]} {what}"] if bounds[-1] else []
    return [*zip([*heads, *last], groups, strict=False)]


def _number(text: str) -> int:
    """What a word begins with; 0 where that is none (22.05)."""
    found = re.match("[0-9]+", text)
    return int(found[0]) if found else 0
