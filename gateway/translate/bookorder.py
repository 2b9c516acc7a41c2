"""What orders of sacctmgr have in common: the book they are for, and how their words are cut."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from accounting.assoc import Association, Book
from accounting.change import Change
from gateway.translate.bookwords import (
    BAD_WALL,
    QOS,
    BadSettingError,
    Name,
    Setting,
    Vocabulary,
    find,
    plain,
    read,
)

UNKNOWN_OPTION = " Unknown option: {}\n"
USE_WHERE = " Use keyword 'where' to modify condition\n"
UNKNOWN_CONDITION = " Unknown condition: {}\n Use keyword 'set' to modify value\n"
NOT_PLAIN = " No quotes, bars or control characters are taken in names and texts: {!r}\n"
NO_CLUSTER = (
    " This cluster '{}' doesn't exist.\n        Contact your admin to add it to accounting.\n"
)


class OrderError(Exception):
    """An order that cannot be carried out, with what is printed."""

    def __init__(self, err: str = "", *, out: str = "") -> None:
        super().__init__(err or out)
        self.err = err
        self.out = out


T = TypeVar("T")


@dataclass(slots=True)
class Complaints:
    """What is wrong with the words of one order: Slurm tells all of it."""

    err: str = ""
    out: str = ""

    def of(self, make: Callable[[], T]) -> T | None:
        """What is made; None where that complains."""
        try:
            return make()
        except OrderError as error:
            self.err += error.err
            self.out += error.out
            return None

    def must_be_none(self) -> None:
        """Raises OrderError with all of them."""
        if self.err or self.out:
            raise OrderError(self.err, out=self.out)


@dataclass(frozen=True, slots=True)
class Known:
    """The book as it is, with what words of an order may name."""

    book: Book
    cluster: str
    tres: Vocabulary
    now: int = 0

    @property
    def words(self) -> Vocabulary:
        return replace(self.tres, qos=tuple(self.book.qos))


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What an order comes to: the change, and what is shown before it is made."""

    change: Change
    out: str
    action: str
    where: str
    info: str = ""
    sure: str = ""
    """A question that comes first."""
    commit: str = "Would you like to commit changes?"
    """The one behind what is shown."""
    denied: str = ""
    """What is said to who may not; the usual words where it is empty."""
    err: str = ""
    """What could not be done beside it; the exit code is 1 then."""


@dataclass(frozen=True, slots=True)
class Words:
    """Words of one order: names that stand alone, `key=value` pairs by their full name."""

    names: tuple[str, ...] = ()
    given: dict[str, str] = field(default_factory=dict)
    settings: list[Setting] = field(default_factory=list)

    def listed(self, key: str) -> tuple[str, ...]:
        return names_of(self.given.get(key, ""))


def cut(word: str) -> tuple[str, str, str | None]:
    """Key, sign and value of `qos+=high`; no value for a word that stands alone."""
    key, equals, value = word.partition("=")
    sign = key[-1] if equals and key[-1:] in {"+", "-"} else ""
    return key.removesuffix(sign) if sign else key, sign, value if equals else None


def names_of(text: str) -> tuple[str, ...]:
    """Names between commas, each once, without quotes."""
    found = (name.strip().strip("\"'") for name in text.split(","))
    return tuple(dict.fromkeys(name for name in found if name))


def must_be_plain(texts: Iterable[str]) -> None:
    """Raises OrderError for what a line of a listing or of a dump could not hold."""
    for text in texts:
        if not plain(text.strip("\"'")):
            raise OrderError(NOT_PLAIN.format(text))


def key_of(word: str, keys: Iterable[tuple[str, int]]) -> str | None:
    """The key that a word stands for, of keys with the letters that are enough."""
    low = word.lower()
    return next((key for key, least in keys if means(low, key, least)), None)


def means(word: str, name: str, least: int) -> bool:
    """Whether a word, in lower case, is the name: from so many letters on, or with an s behind."""
    return len(word) >= least and (name.startswith(word) or word == f"{name}s")


def setting_of(word: str, known: Known, table: tuple[Name, ...], *, tail: str = "") -> Setting:
    """A setting. Raises OrderError for what is none, with `tail` behind the complaint.

    Of a QOS's settings what is unknown is an answer, and not told behind a bad value (22.05).
    """
    key, sign, value = cut(word)
    what, unknown = find(key, table), UNKNOWN_OPTION.format(word) + tail
    of_qos = table[: len(QOS)] == QOS
    if what is None or value is None:
        raise OrderError(out=unknown) if of_qos else OrderError(unknown)
    try:
        return read(what, sign, value, words=known.words)
    except BadSettingError as error:
        text = error.text or BAD_WALL.format(what.label, word)
        if error.out:
            raise OrderError(out=text) from None
        raise OrderError(text if error.whole or of_qos else text + unknown) from None


def must_be_here(clusters: Sequence[str], known: Known) -> None:
    """Raises OrderError for a cluster that is not ours."""
    for name in clusters:
        if name.lower() != known.cluster.lower():
            raise OrderError(NO_CLUSTER.format(name))


def must_be_there(accounts: Iterable[str], users: Iterable[str], known: Known) -> None:
    """Raises OrderError for accounts and users whom nobody knows."""
    book = known.book
    strange = [
        f" You specified a non-existent account '{one}'.\n"
        for one in accounts
        if one not in book.accounts
    ]
    people = {*book.people, *book.associations}
    strange += [
        f" You specified a non-existent user '{one}'.\n" for one in users if one not in people
    ]
    if strange:
        raise OrderError("".join(strange))


def associations(book: Book) -> list[Association]:
    """All of them, in the order in which they were made."""
    return [own for owned in book.associations.values() for own in owned]
