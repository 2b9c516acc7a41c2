"""`scontrol show assoc_mgr [users=] [accounts=] [qos=] [flags=]`."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from accounting.assoc import ROOT, USE_PARENT, Book
from accounting.change import default_of
from accounting.fairshare import Key
from accounting.ids import UserName
from broker.model.job import Job
from broker.model.site import Site, units
from broker.model.tally import WALL, Used, party_of, used_by
from gateway.api.programs.reading import Finished, fail
from gateway.api.programs.scontrol_show import Asked
from gateway.api.programs.scontrol_words import is_short_for
from gateway.api.programs.shares import Used as Past
from gateway.api.programs.shares import standing, used, used_by_qos
from gateway.api.programs.sshare import minutes, run_minutes, upwards
from gateway.api.wire import Answer
from gateway.query.assocs import Row, tree
from gateway.query.showassoc import Held, Parties, Person, Use, Writer

K = TypeVar("K")
FLAGS = ("users", "assoc", "qos")
"""Sections, in their order."""
BAD_FLAG = "invalid flag '{}', valid options are 'Assoc, QOS, and/or Users'\n"
BAD_ENTITY = "invalid entity: {} for keyword:show assoc_mgr\n"
NO_VALUE = "No value given for option {}\n"


@dataclass(slots=True)
class _Wanted:
    """What was asked for; empty lists are everybody."""

    lists: dict[str, frozenset[str]] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)

    def takes(self, key: str, name: str) -> bool:
        names = self.lists.get(key)
        return not names or name.lower() in names

    def shows(self, flag: str) -> bool:
        return not self.flags or flag in self.flags


class AssocMgr:
    """The view; `tres` are the names that accounting counts."""

    def __init__(self, tres: tuple[str, ...]) -> None:
        self.tres = tres

    async def __call__(self, asked: Asked) -> Answer:
        wanted = _wanted(asked.words)
        write = Writer(self.tres, asked.oneliner)
        parts = []
        if wanted.shows("users"):
            parts.append(write.section("User", "users", _people(asked, wanted, write)))
        if wanted.shows("assoc"):
            found = self._associations(asked, wanted, write)
            parts.append(write.section("Association", "associations", found))
        if wanted.shows("qos"):
            parts.append(write.section("QOS", "QOS", self._qos(asked, wanted, write)))
        return Answer(out=write.state(*parts))

    def _associations(self, asked: Asked, wanted: _Wanted, write: Writer) -> list[str]:
        ctx, book = asked.ctx, asked.snap.site.book
        past, jobs = used(asked.snap, ctx), list(asked.snap.jobs.values())
        stands, rows = standing(book, past), tree(book)
        ahead, behind = run_minutes(jobs, ctx, self.tres), minutes(past, ctx, self.tres)
        live = _live(asked, jobs, lambda job: upwards(book, job.account, job.owner.user))
        level, wall = _levels(rows, book), _walls(past, book)
        return [
            write.association(
                Held(
                    row=row,
                    uid=_uid_of(book, key[1]),
                    standing=stands[key],
                    siblings=level[row.id],
                    use=Use(
                        live=live[key],
                        minutes=behind(key),
                        run_minutes=ahead(key),
                        wall=wall[key],
                    ),
                    default=row.user is not None
                    and default_of(book, row.user.user) == row.account.name,
                ),
                asked.snap.site.cluster,
            )
            for row in rows
            if asked.viewer.association(row.account.name, row.user.user if row.user else "")
            and wanted.takes("accounts", row.account.name)
            and (row.user is None or wanted.takes("users", row.user.user))
            for key in [(str(row.account.name), str(row.user.user) if row.user else "")]
        ]

    def _qos(self, asked: Asked, wanted: _Wanted, write: Writer) -> list[str]:
        book, jobs = asked.snap.site.book, list(asked.snap.jobs.values())
        past, numbers = used_by_qos(asked.snap, asked.ctx), book.qos_ids
        grades = _grades(asked.snap.site)
        live = _live(asked, jobs, grades)
        below = defaultdict[str, list[Job]](list)
        for job in jobs:
            for name in grades(job):
                below[name].append(job)
        lines = []
        for name, grade in book.qos.items():
            if wanted.takes("qos", name):
                own = below[name]
                counts = past.get(name, {})
                whole = {tres: int(count) // 60 for tres, count in counts.items()}
                ahead = run_minutes(own, asked.ctx, self.tres)
                use = Use(
                    live=live[name],
                    minutes=whole,
                    run_minutes=ahead((ROOT, "")),
                    wall=counts.get(WALL, 0.0),
                )
                parties = _parties(asked, own)
                usage = counts.get("billing", 0.0)
                lines.append(write.qos(grade, numbers[name], usage, use=use, parties=parties))
        return lines


def _wanted(words: Sequence[str]) -> _Wanted:
    """Raises Finished, without a failure where scontrol goes on as if nothing was asked (22.05)."""
    wanted = _Wanted()
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise Finished(Answer(err=NO_VALUE.format(key)))
        name = next((one for one in ("accounts", "flags", "qos", "users") if _is(key, one)), None)
        if name is None:
            raise fail(BAD_ENTITY.format(word))
        if name != "flags":
            wanted.lists[name] = frozenset(value.lower().split(","))
            continue
        flags = [next((one for one in FLAGS if _is(flag, one)), None) for flag in value.split(",")]
        wanted.flags |= {flag for flag in flags if flag}
        if not wanted.flags:
            raise Finished(Answer(err=BAD_FLAG.format(value)))
    return wanted


def _is(word: str, name: str) -> bool:
    return is_short_for(word, name, 1)


def _people(asked: Asked, wanted: _Wanted, write: Writer) -> list[str]:
    book = asked.snap.site.book
    lines = []
    for name in sorted({*book.associations, *book.people}):
        known = book.people.get(name)
        if wanted.takes("users", name) and asked.viewer.user(name):
            wckey = known.default_wckey if known else ""
            account = default_of(book, name) or ""
            person = Person(name, _uid_of(book, name), account, wckey, book.level(name))
            lines.append(write.person(person))
    return lines


def _uid_of(book: Book, name: str) -> int | None:
    known = book.people.get(UserName(name))
    return None if known is None else known.uid


def _live(
    asked: Asked, jobs: Iterable[Job], keys: Callable[[Job], Iterable[K]]
) -> Mapping[K, Used]:
    """What live jobs come to, by the keys of each."""
    site, found = asked.snap.site, defaultdict[K, Used](Used)
    for job in jobs:
        if not job.over:
            for key in keys(job):
                found[key].add(used_by(job, units(site, job.alloc, job.partition)))
    return found


def _grades(site: Site) -> Callable[[Job], set[str]]:
    """Under which QOS a job counts: its own, and that of its partition."""
    parts = {one.name: one.qos.lower() for one in site.partitions if one.qos}
    return lambda job: {job.qos, parts.get(party_of(job).partition, job.qos)}


def _walls(past: Past, book: Book) -> Mapping[Key, float]:
    """Seconds of jobs, by account and user, and by accounts above."""
    sums = defaultdict[Key, float](float)
    for (account, user), counts in past.items():
        for key in upwards(book, account, user):
            sums[key] += counts.get(WALL, 0.0)
    return sums


def _parties(asked: Asked, jobs: Sequence[Job]) -> Parties:
    """Accounts and users that hold something of a QOS, those that the caller may see."""
    viewer = asked.viewer
    charged = [job for job in jobs if viewer.association(job.account, "")]
    owned = [job for job in jobs if viewer.user(job.owner.user)]
    by_account = _live(asked, charged, lambda job: [str(job.account)])
    return Parties(by_account, _live(asked, owned, lambda job: [str(job.owner.uid)]))


def _levels(rows: Sequence[Row], book: Book) -> dict[int, int]:
    """By row: the shares of it and its siblings together."""
    sums: dict[str, int] = defaultdict(int)
    places = {row.id: _place(row, book) for row in rows}
    for row in rows:
        if row.shares != USE_PARENT:
            sums[places[row.id]] += row.shares
    return {number: sums[place] for number, place in places.items()}


def _place(row: Row, book: Book) -> str:
    """Of siblings the same: the account below which they share; who is below one that has its
    parent's shares stands beside it."""
    if row.user is None and not row.depth:
        return ""
    above = row.account.name if row.user else row.account.parent
    line = (one for one in book.lineage(above) if one.fairshare != USE_PARENT)
    return str(next(line, book.accounts[ROOT]).name)
