"""What the commands that only read share: options, cluster, cache, the reader's context."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec

from broker.schedule.priority import Ranks, scale_of
from broker.world import Snapshot
from gateway.api.desk import Desk
from gateway.api.programs.early import early
from gateway.api.wire import Answer, Call
from gateway.query.context import Context
from gateway.query.reports import Style
from sbatch_shim.grammar.arrays import BITSTR_LEN
from sbatch_shim.grammar.errors import GrammarError
from sbatch_shim.grammar.parse import EARLY, Query, parse_query
from sbatch_shim.grammar.states import read_job_state
from sbatch_shim.grammar.values import UNLIMITED, read_digits, read_seconds

KEPT_LISTINGS = 64
NO_CLUSTER = (
    "{0}: error: No cluster '{1}' known by database.\n"
    "{0}: error: '{1}' can't be reached now, or it is an invalid entry for --cluster.  "
    "Use 'sacctmgr list clusters' to see available clusters.\n"
)
P = ParamSpec("P")
BAD_LIMIT = "{}: fatal: Invalid time limit specification\n"
NOT_YET = "{}: error: --{} is not supported by this service yet\n"


class Finished(Exception):
    """Ends a command early with its answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.err)
        self.answer = answer


def fail(err: str, *, out: str = "", code: int = 1) -> Finished:
    """An end with a text for standard error."""
    return Finished(Answer(out=out, err=err, code=code))


def finishing(
    command: Callable[P, Awaitable[Answer]],
) -> Callable[P, Coroutine[Any, Any, Answer]]:
    """The command, whose answer is also what a `Finished` that is raised inside brings."""

    @wraps(command)
    async def answer(*words: P.args, **named: P.kwargs) -> Answer:
        try:
            return await command(*words, **named)
        except Finished as end:
            return end.answer

    return answer


@dataclass(frozen=True, slots=True)
class Options:
    """A command's options by long name, and its other words."""

    query: Query

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.query.operands)

    def has(self, long: str) -> bool:
        return long in self.query.given

    def text(self, long: str) -> str | None:
        """The option's text; None where it was not given or has none."""
        given = self.query.given.get(long)
        return None if given is None else given.text

    def words_of(self, long: str) -> frozenset[str] | None:
        """A list between commas as a set; None where the option was not given."""
        text = self.text(long)
        return None if text is None else frozenset(word for word in text.split(",") if word)

    def joined(self, long: str) -> str | None:
        """Every text that was typed for an option between commas, else that of the environment."""
        return ",".join(self.repeated(long)) or self.text(long)

    def joined_words(self, long: str) -> frozenset[str] | None:
        """Like `words_of`, of an option whose repetitions add up."""
        text = self.joined(long)
        return None if text is None else frozenset(word for word in text.split(",") if word)

    def repeated(self, long: str) -> list[str]:
        """Every text that was typed for an option, in order."""
        said = self.query.said
        return [one.text for one in said if one.opt.long == long and one.text is not None]


PARSABLE = ("parsable", "parsable2")


def parsable_of(options: Options) -> str | None:
    """Of -p and -P the one that was typed last, by its long name."""
    said = [one.opt.long for one in options.query.said if one.opt.long in PARSABLE]
    return said[-1] if said else None


def style_of(options: Options) -> Style:
    """What -p, -P and -n make of a table."""
    parsable, header = parsable_of(options), not options.has("noheader")
    return Style(parsable and "|", ended=parsable == PARSABLE[0], header=header)


def read_options(desk: Desk, call: Call, *, usage: str = "") -> Options:
    """The call's options. Raises Finished for what cannot be read, and for --version."""
    try:
        query = parse_query(call.program, call.argv, call.environ)
    except GrammarError as error:
        raise Finished(Answer(err=error.stderr, code=error.code)) from None
    first = next((one.opt.long for one in query.said if one.opt.long in EARLY), None)
    if first == "usage" and usage:
        raise Finished(Answer(out=usage))
    if first:
        raise Finished(early(call.program, first, version=desk.site.version))
    return Options(query)


def limit_of(options: Options, long: str, *, program: str) -> int | None:
    """Seconds; None where it was not given. Raises Finished for UNLIMITED and for other texts."""
    text = options.text(long)
    if text is None:
        return None
    seconds = read_seconds(text)
    if seconds is None or seconds == UNLIMITED:
        raise fail(BAD_LIMIT.format(program))
    return int(seconds)


def lower(words: frozenset[str] | None) -> frozenset[str] | None:
    """Accounts, QOS, and names of jobs and of sacct's partitions ignore case."""
    return None if words is None else frozenset(word.lower() for word in words)


def states_in(text: str, *, bad: str) -> frozenset[str]:
    """Long words of a list of states. Raises Finished, saying `bad` of a word that is none."""
    states = set()
    for word in [word for word in text.split(",") if word]:
        state = read_job_state(word)
        if state is None:
            raise fail(bad.format(word))
        states.add(state)
    return frozenset(states)


def cluster_line(options: Options, call: Call, snap: Snapshot, *, fatal: str = "") -> str:
    """`CLUSTER: name` when clusters were named. Raises Finished for one that is not ours."""
    asked = options.text("clusters")
    if asked is None:
        return ""
    cluster = snap.site.cluster
    for name in asked.split(","):
        if name not in {cluster, "all"}:
            raise fail(NO_CLUSTER.format(call.program, name) + fatal)
    return f"CLUSTER: {cluster}\n"


def refuse(options: Options, call: Call, *longs: str) -> None:
    """Raises Finished, naming the first of these options that was given."""
    for long in longs:
        if options.has(long):
            raise fail(NOT_YET.format(call.program, long))


def reader(desk: Desk, call: Call, snap: Snapshot, *, options: Options) -> Context:
    """How this caller wants values written."""
    environ = call.environ
    return Context(
        now=desk.now(),
        site=snap.site,
        zone=desk.zone(call),
        jobs=snap.jobs,
        nodes=snap.nodes,
        ranks=ranks_of(snap, desk.now()),
        time_format=environ.get("SLURM_TIME_FORMAT", ""),
        array_width=_array_width(environ),
        noconvert=options.has("noconvert"),
        expand_patterns=options.has("expand-patterns"),
    )


def ranks_of(snap: Snapshot, now: int) -> Ranks | None:
    """By what waiting jobs are ranked, where anything but submission matters."""
    if not snap.site.ranking.counts:
        return None
    return Ranks(snap.site, now, snap.shares, scale_of(snap.site))


def _array_width(environ: Mapping[str, str]) -> int:
    text = environ.get("SLURM_BITSTR_LEN", "")
    number = read_digits(text)
    return BITSTR_LEN if number is None else number


class Listings:
    """Answers of one version of the world, kept for those who ask the same again."""

    def __init__(self, most: int = KEPT_LISTINGS) -> None:
        self.most = most
        self.version: Hashable = None
        self.answers: OrderedDict[Hashable, Answer] = OrderedDict()

    def find(self, version: Hashable, *keys: Hashable) -> Answer | None:
        """The answer kept under one of these keys, if the world is still the same."""
        if version != self.version:
            self.version = version
            self.answers.clear()
        return next((self.answers[key] for key in keys if key in self.answers), None)

    def keep(self, version: Hashable, key: Hashable, answer: Answer) -> None:
        """Keeps an answer made from that version; nothing if a later one has come."""
        if version != self.version:
            return
        self.answers[key] = answer
        while len(self.answers) > self.most:
            self.answers.popitem(last=False)


def asked_by(call: Call) -> Hashable:
    """What a listing may depend on beside the world and the time."""
    return call.argv, call.peer.uid, tuple(sorted(call.environ.items()))
