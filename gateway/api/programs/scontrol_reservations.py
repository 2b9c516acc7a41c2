"""scontrol: create, update, delete and show reservations, in Slurm's words (22.05)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from broker.model.errors import SpzError
from broker.model.reservation import REPEATS, DropReservation, Edit, SetReservation
from gateway.api.programs.scontrol import Asked, Verb
from gateway.api.programs.scontrol_show import Asked as Showing
from gateway.api.programs.scontrol_words import BadValue, Word, read_word
from gateway.api.wire import Answer
from gateway.query.documents import values
from gateway.query.reservations import record, show_reservation
from sbatch_shim.grammar.errors import error_line, warning_line
from sbatch_shim.grammar.hostlist import HostlistError, expand
from sbatch_shim.grammar.instants import InstantError, read_instant
from sbatch_shim.grammar.values import UNLIMITED, read_digits, read_seconds

NONE_HERE = "No reservations in the system\n"
NOT_FOUND = "Reservation {} not found\n"
ENTITY = ("reservationname", "reservation")
DELETE_FORM = "Proper format is 'delete <ENTITY>=<ID>' or 'delete <ENTITY> <ID>'"
BUSY = "Requested nodes are busy"
BUSY_NOTE = (
    "Note, unless nodes are directly requested a reservation must exist in a single partition.\n"
    "If no partition is requested the default partition is assumed.\n"
)
NO_USER = "Invalid user id"
NO_ACCOUNT = "Invalid account or account/partition combination specified"
NO_LICENSE = "Invalid license specification"
NEEDS_START = "A start time must be given."
NEEDS_END = "An end time or duration must be given."
NEEDS_PEOPLE = "Either Users/Groups and/or Accounts must be specified."
NEEDS_NODES = "CoreCnt, Nodes, NodeCnt, BurstBuffer or Licenses must be specified."
BACKWARDS = "Start time cannot be after end time."
BOTH = "Users and Groups are mutually exclusive.  You can have one or the other, but not both."
FLAG_WORDS: Mapping[str, str] = {
    **{name: name for name in ("MAINT", "OVERLAP", "FLEX", "IGNORE_JOBS", *REPEATS)},
    **{name: name for name in ("WEEKDAY", "WEEKEND", "PART_NODES", "PURGE_COMP", "USER_DELETE")},
    **{name: name for name in ("ANY_NODES", "FIRST_CORES", "TIME_FLOAT", "REPLACE")},
    **{name: name for name in ("REPLACE_DOWN", "MAGNETIC", "NO_HOLD_JOBS_AFTER_END")},
    "STATIC_ALLOC": "STATIC",
    "SPEC_NODES": "SPEC_NODES",
    "ALL_NODES": "ALL_NODES",
}
"""Words of `flags=`, which may be shortened to three letters, and the flags that they set."""
WITHOUT_EFFECT = (
    "ANY_NODES", "FIRST_CORES", "MAGNETIC", "REPLACE", "REPLACE_DOWN", "STATIC", "TIME_FLOAT",
)  # fmt: skip
DEFAULT_PURGE = 300
"""Seconds of `purge_comp` without a time (25.11)."""
MINUTE = 60


class _Change:
    """The words of one command, read."""

    def __init__(self, asked: Asked, *, make: bool) -> None:
        self.asked = asked
        self.ending = "No reservation created." if make else "No reservation update."
        self.made = SetReservation(by=asked.by, make=make)
        self.notes = ""

    def fail(self, text: str) -> BadValue:
        return BadValue(error_line("scontrol", f"{text}  {self.ending}"))

    async def read(self, words: list[Word]) -> SetReservation:
        """Raises BadValue with what is printed, SpzError for names that are not known."""
        for word in words:
            self._set(word)
        if self.made.groups is not None:
            await self._groups(self.made.groups)
        return self.made

    def _set(self, word: Word) -> None:
        for key, least, setter in SETTERS:
            if word.names(key, least) and word.value is not None:
                setter(self, word)
                return
        raise self.fail(f"Unknown parameter {word.text}.")

    def put(self, **fields: object) -> None:
        self.made = replace(self.made, **fields)  # type: ignore[arg-type]

    async def _groups(self, edit: Edit) -> None:
        found = [await self.asked.desk.read(self.asked.desk.gids, name) for name in edit.names]
        self.put(gids=tuple(gid for gid in found if gid is not None))

    # --- values

    def moment(self, word: Word, field: str, *, what: str) -> None:
        desk = self.asked.desk
        try:
            at = read_instant(word.value or "", desk.now(), offset=desk.zone(self.asked.call))
        except InstantError as error:
            wrong = self.fail(f"Invalid {what} time {word.text}.")
            raise BadValue(error.complaint() + str(wrong)) from None
        self.put(**{field: at})

    def length(self, word: Word) -> None:
        seconds = read_seconds(word.value or "")
        if seconds is None:
            raise self.fail(f"Invalid duration {word.text}.")
        if seconds != UNLIMITED:
            self.put(duration=int(seconds))
        else:
            self.put(duration=ENDLESS)

    def nodes(self, word: Word) -> None:
        text = word.value or ""
        try:
            names = ("ALL",) if text.upper() == "ALL" else tuple(expand(text))
        except HostlistError:
            names = (text,)
        self.put(nodes=names)

    def count(self, word: Word, field: str, *, what: str) -> None:
        text = (word.value or "").lower()
        number = read_digits(text.removesuffix("k"))
        if number is None:
            raise BadValue(error_line("scontrol", f"Invalid {what} count {word.value}"))
        if number:
            self.put(**{field: number * (1024 if text.endswith("k") else 1)})

    def tres(self, word: Word) -> None:
        for part in (word.value or "").split(","):
            name, equals, text = part.partition("=")
            field = {"cpu": "core_count", "node": "node_count"}.get(name.lower())
            number = read_digits(text) if equals else None
            if field is None or number is None:
                raise self.fail(f"Invalid TRES {word.value}.")
            self.put(**{field: number})

    def names(self, word: Word, field: str) -> None:
        found = tuple(name for name in (word.value or "").split(",") if name)
        self.put(**{field: Edit(found, word.sign)})

    def flags(self, word: Word) -> None:
        found = []
        for text in (word.value or "").split(","):
            name, equals, time = text.partition("=")
            flag = flag_named(name)
            if flag is None or (equals and flag != "PURGE_COMP"):
                raise self.fail(f"Error parsing flags {word.value}.")
            if flag == "PURGE_COMP":
                self._purge(time if equals else None, word)
            if flag in WITHOUT_EFFECT and self.asked.desk.warn_ignored:
                self.notes += warning_line("scontrol", f"flag {flag} has no effect here")
            found.append(flag)
        self.put(
            flags=Edit(tuple(dict.fromkeys(found)), word.sign or ("+" if self._late() else ""))
        )

    def _late(self) -> bool:
        """In an update, flags are added (22.05)."""
        return not self.made.make

    def _purge(self, text: str | None, word: Word) -> None:
        seconds = DEFAULT_PURGE if text is None else read_seconds(text)
        if not isinstance(seconds, int):
            raise self.fail(f"Error parsing flags {word.value}.")
        self.put(purge=seconds)


ENDLESS = 365 * 86_400


def flag_named(word: str) -> str | None:
    """The flag that a word names by enough of its letters; the shortest one that begins so."""
    word = word.upper()
    if word in FLAG_WORDS:
        return FLAG_WORDS[word]
    found = sorted((name for name in FLAG_WORDS if name.startswith(word)), key=len)
    return FLAG_WORDS[found[0]] if len(word) >= 3 and found else None


Setter = Callable[[_Change, Word], None]


def _license(change: _Change, word: Word) -> None:
    if word.value:
        raise BadValue(f"{_failing(change.made.make)}{NO_LICENSE}\n")


def _delay(change: _Change, word: Word) -> None:
    seconds = read_seconds(word.value or "")
    if not isinstance(seconds, int):
        raise change.fail(f"Invalid duration {word.text}.")
    change.put(max_start_delay=seconds)


SETTERS: tuple[tuple[str, int, Setter], ...] = (
    ("accounts", 1, lambda change, word: change.names(word, "accounts")),
    ("burstbuffer", 2, lambda change, word: None),
    ("comment", 3, lambda change, word: change.put(comment=word.value)),
    ("corecnt", 1, lambda change, word: change.count(word, "core_count", what="core")),
    ("duration", 1, _Change.length),
    ("endtime", 1, lambda change, word: change.moment(word, "end", what="end")),
    ("features", 2, lambda change, word: change.put(features=word.value)),
    ("flags", 2, _Change.flags),
    ("groups", 1, lambda change, word: change.names(word, "groups")),
    ("licenses", 1, _license),
    ("maxstartdelay", 1, _delay),
    ("nodecnt", 5, lambda change, word: change.count(word, "node_count", what="node")),
    ("nodecount", 5, lambda change, word: change.count(word, "node_count", what="node")),
    ("nodes", 4, _Change.nodes),
    ("partitionname", 1, lambda change, word: change.put(partition=word.value)),
    ("reservationname", 3, lambda change, word: change.put(name=word.value)),
    ("starttime", 1, lambda change, word: change.moment(word, "start", what="start")),
    ("tres", 1, _Change.tres),
    ("users", 1, lambda change, word: change.names(word, "users")),
)
"""Keys of a reservation, the letters that are enough, and what they set."""


def _failing(make: bool) -> str:
    return f"Error {'creating' if make else 'updating'} the reservation: "


async def create(asked: Asked) -> Answer:
    """`create reservation KEY=VALUE...`; also `create reservation=NAME ...`."""
    if not asked.words:
        return Answer(err=NOTHING_TO_CREATE, code=1)
    words = [read_word(text) for text in asked.words]
    if not _is_one_of(words[0], ENTITY):
        return _other_creation(asked, words[0])
    return await _change(asked, words if words[0].value else words[1:], make=True)


def _is_one_of(word: Word, names: Iterable[str]) -> bool:
    return any(word.names(one, 3) for one in names)


def _other_creation(asked: Asked, word: Word) -> Answer:
    """Partitions and nodes are the configuration's (texts are 22.05's)."""
    kind = next((kind for kind, names in CONFIGURED.items() if _is_one_of(word, names)), None)
    if kind is None:
        err = error_line("scontrol", f"Invalid creation entity: {word.text}")
    elif not asked.admin:
        err = f"Error creating the {kind}: {FOREIGN}\n"
    else:
        err = error_line("scontrol", IN_THE_FILE.format(f"creating a {kind.removesuffix('(s)')}"))
    return Answer(err=err, code=1)


def _other_deletion(asked: Asked, word: Word) -> Answer:
    kind = next((kind for kind, names in CONFIGURED.items() if _is_one_of(word, names)), None)
    if kind is None:
        return Answer(err=f"Invalid deletion entity: {word.text}\n", code=1)
    kind = kind.removesuffix("(s)")
    if not asked.admin:
        return Answer(err=f"delete_{kind} {asked.words[0]}: {FOREIGN}\n", code=1)
    return Answer(err=error_line("scontrol", IN_THE_FILE.format(f"deleting a {kind}")), code=1)


FOREIGN = "Invalid user id"
NOTHING_TO_CREATE = "too few arguments for create keyword\n"
IN_THE_FILE = "{} is not supported by SkyPurza: change the configuration, then scontrol reconfigure"
CONFIGURED = {"partition": ("partitionname",), "node(s)": ("nodename",)}
"""What Slurm creates and deletes too, as it calls it, and the keys."""


async def change(asked: Asked, words: list[Word]) -> Answer:
    """`update reservationname=NAME KEY=VALUE...`."""
    return await _change(asked, words, make=False)


async def _change(asked: Asked, words: list[Word], *, make: bool) -> Answer:
    change, doing = _Change(asked, make=make), _failing(make)
    try:
        wish = await change.read(words)
        if make:
            _must_be_whole(change)
        wrong = await _unknown_names(asked, wish)
        if wrong:
            return _refused(doing, wrong, make=make)
        name = await asked.desk.ask_once(asked.call, wish)
    except BadValue as bad:
        return Answer(err=str(bad) + ("" if make else "slurm_update error: No error\n"), code=1)
    except SpzError as error:
        return _refused(doing, error.message, make=make)
    said = f"Reservation created: {name}\n" if make else "Reservation updated.\n"
    return Answer(out=said, err=change.notes)


def _refused(doing: str, text: str, *, make: bool) -> Answer:
    lines = f"{doing}{text}\n"
    if make and text == BUSY:
        lines += BUSY_NOTE
    if not make:
        lines += f"slurm_update error: {text}\n"
    return Answer(err=lines, code=1)


def _must_be_whole(change: _Change) -> None:
    """What a new one cannot be without. Raises BadValue."""
    made = change.made
    if made.start is None:
        raise change.fail(NEEDS_START)
    if made.end is None and made.duration is None:
        raise change.fail(NEEDS_END)
    if made.end is not None and made.end < made.start:
        raise change.fail(BACKWARDS)
    if made.nodes is None and made.node_count is None and made.core_count is None:
        raise change.fail(NEEDS_NODES)
    if made.users is not None and made.groups is not None:
        raise change.fail(BOTH)
    if not any((made.users, made.groups, made.accounts)):
        raise change.fail(NEEDS_PEOPLE)


async def _unknown_names(asked: Asked, wish: SetReservation) -> str:
    """What Slurm says of a user or an account that is not there; empty if all are."""
    for name in wish.users.names if wish.users else ():
        if await asked.desk.uid(name.removeprefix("-")) is None:
            return NO_USER
    known = asked.desk.site.book.accounts
    for name in wish.accounts.names if wish.accounts else ():
        if name.removeprefix("-") not in known:
            return NO_ACCOUNT
    return ""


async def delete(asked: Asked) -> Answer:
    """`delete reservation NAME`, `delete reservationname=NAME`."""
    if not asked.words:
        return Answer(err=f"too few arguments for {asked.keyword} keyword\n", code=1)
    word = read_word(asked.words[0])
    name = word.value if word.value is not None else "".join(asked.words[1:2])
    if not name:
        return Answer(err=error_line("scontrol", DELETE_FORM), code=1)
    if not _is_one_of(word, ENTITY):
        return _other_deletion(asked, word)
    try:
        await asked.desk.ask_once(asked.call, DropReservation(name=name, by=asked.by))
    except SpzError as error:
        return Answer(err=f"delete_reservation {asked.words[0]}: {error.message}\n", code=1)
    return Answer()


VERBS: Mapping[str, Verb] = {"create": create, "delete": delete}


async def show(asked: Showing) -> Answer:
    """`show reservation [NAME]`."""
    known = asked.seen.reservations
    if asked.words and asked.words[0] not in known:
        return Answer(out=NOT_FOUND.format(asked.words[0]), code=1)
    found = [one for one in known.values() if not asked.words or one.name == asked.words[0]]
    if asked.by is not None:
        content = {"reservations": [record(one, asked.ctx) for one in found]}
        return Answer(out=values(content, asked.ctx, asker=asked.by))
    if not found:
        return Answer(out=NONE_HERE)
    lines = (show_reservation(one, asked.ctx, oneliner=asked.oneliner) for one in found)
    return Answer(out="".join(lines))
