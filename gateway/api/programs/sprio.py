"""sprio: what the priority of waiting jobs is made of."""

from collections.abc import Iterable

from broker.schedule.priority import Ranks, scale_of
from gateway.api.desk import Desk
from gateway.api.programs.reading import (
    Options,
    cluster_line,
    fail,
    finishing,
    read_options,
    reader,
)
from gateway.api.programs.shares import standing, used
from gateway.api.wire import Answer, Call
from gateway.config.accounts import PrioritySettings
from gateway.query.context import Context
from gateway.query.factors import (
    KEYS,
    Ranked,
    is_ranked,
    ranked,
    sprio_letters,
    usual,
    weight_letters,
)
from gateway.query.layout import Layout
from gateway.query.refs import read_refs
from gateway.query.select import SortError, sort_letters

BAD_COLUMN = "sprio: error: Invalid job format specification: {}\n"
BAD_JOB = "sprio: error: Invalid job id: {}\n"
BAD_SORT = "sprio: error: Invalid sort specification: {}\n"
BAD_USER = "sprio: error: Invalid user: {}\n\n"
BAD_WORD = "sprio: error: Unrecognized option: {}\n"
LONG_AND_FORMAT = (
    "sprio: fatal: Options -o(--format) and -l(--long) are mutually exclusive."
    " Please remove one and retry.\n"
)
FATAL = "sprio: fatal: Could not get cluster information\n"


class Sprio:
    """The command; `settings` are the weights of the site."""

    def __init__(self, settings: PrioritySettings) -> None:
        self.settings = settings

    @finishing
    async def __call__(self, desk: Desk, call: Call) -> Answer:
        options = read_options(desk, call)
        if options.has("format") and options.has("long"):
            raise fail(LONG_AND_FORMAT)
        snap = await desk.seen(call.peer.uid)
        ctx = reader(desk, call, snap, options=options)
        cluster_line(options, call, snap, fatal=FATAL)
        shape = options.text("format") or self._usual(options)
        if options.has("weights"):
            return _written(weight_letters(shape), [self.settings], ctx, options=options, err="")
        jobs = _jobs(options)
        users, err = await _users(desk, options)
        stand = standing(snap.site.book, used(snap, ctx))
        shares = {key: one.factor or 0.0 for key, one in stand.items()}
        ranks = Ranks(snap.site, ctx.now, shares, scale_of(snap.site))
        parts = options.words_of("partition")
        rows = [
            ranked(job, part, ranks=ranks, settings=self.settings, ctx=ctx)
            for job in sorted(snap.jobs.values(), key=lambda one: one.id)
            if is_ranked(job) and (users is None or job.owner.uid in users)
            for part in job.partitions
            if (jobs is None or job.id in jobs or (job.array and job.array.base in jobs))
            and (parts is None or part in parts)
        ]
        layout = sprio_letters(shape)
        try:
            rows = _in_order(rows, options.text("sort") or "", ctx)
        except SortError as error:
            head = _head(layout.header, options)
            raise fail(err + BAD_SORT.format(error), out=head) from None
        return _written(layout, rows, ctx, options=options, err=err)

    def _usual(self, options: Options) -> str:
        return usual(
            self.settings,
            users=options.has("user"),
            long=options.has("long"),
            norm=options.has("norm"),
        )


def _written(
    layout: Layout[Ranked] | Layout[PrioritySettings],
    rows: Iterable[object],
    ctx: Context,
    *,
    options: Options,
    err: str,
) -> Answer:
    head = _head(layout.header, options)
    lines = layout.lines(rows, ctx)  # type: ignore[arg-type]
    errors = err + "".join(BAD_COLUMN.format(name) for name in layout.unknown)
    return Answer(out=head + "".join(f"{line}\n" for line in lines), err=errors)


def _head(header: str, options: Options) -> str:
    return "" if options.has("noheader") else f"{header}\n"


def _jobs(options: Options) -> frozenset[int] | None:
    """Ids from -j, which may stand behind it too."""
    texts = [text for text in (options.text("jobs"),) if text]
    if options.has("jobs"):
        texts += options.words
    elif options.words:
        raise fail(BAD_WORD.format(options.words[0]))
    if not texts:
        return None
    found = set()
    for word, refs in read_refs(texts):
        if refs is None:
            raise fail(BAD_JOB.format(word))
        found |= {int(ref.job) for ref in refs}
    return frozenset(found)


async def _users(desk: Desk, options: Options) -> tuple[frozenset[int] | None, str]:
    """Their numbers, and what is said of names that nobody has."""
    names = options.words_of("user")
    if names is None:
        return None, ""
    uids = {name: await desk.uid(name) for name in sorted(names)}
    unknown = (name for name, uid in uids.items() if uid is None)
    known = frozenset(uid for uid in uids.values() if uid is not None)
    return known, "".join(BAD_USER.format(name) for name in unknown)


def _in_order(rows: list[Ranked], text: str, ctx: Context) -> list[Ranked]:
    """By letters with signs, as squeue sorts, read from the end too. Raises SortError."""
    for letter, down in reversed(sort_letters(text)):
        value = KEYS.get(letter)
        if value is None:
            raise SortError(letter)
        rows = sorted(rows, key=lambda row: _key(value(row, ctx)), reverse=down)
    return rows


def _key(text: str) -> tuple[float, str]:
    try:
        return float(text), ""
    except ValueError:
        return 0.0, text
