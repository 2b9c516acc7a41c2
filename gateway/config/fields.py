"""How a value is written in the configuration: Slurm's own forms, read into plain types."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from accounting.age import read_age
from accounting.tres import GresCounts, gres_counts, parse_weights
from broker.model.spec import UNLIMITED, Limit
from sbatch_shim.grammar import hostlist, values

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
TRES = re.compile(
    r"cpu|mem|energy|node|billing|fs/disk|vmem|pages|(?:gres|license|bb)/[\w.:+-]+", re.I
)
KNOWN_TRES = "cpu, mem, node, billing, energy, fs/disk, vmem, pages, gres/NAME[:TYPE], license/NAME"


class BadValueError(ValueError):
    """A value that cannot be; `hint` says the way out."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class Settings(BaseModel):
    """A group of settings: frozen, and an unknown name is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def _text(value: object) -> str:
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value).strip()
    raise BadValueError("not a text or a whole number", "write it in quotes")


def _time(value: object) -> Limit:
    text = _text(value)
    seconds = None if text.startswith("-") and text != "-1" else values.read_seconds(text)
    if seconds is None:
        raise BadValueError(
            "not a time as Slurm writes it",
            "minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]] "
            "or UNLIMITED",
        )
    return UNLIMITED if isinstance(seconds, str) else seconds


def _age(value: object) -> int:
    found = read_age(str(value))
    if found is None:
        raise BadValueError("not an age", "as 12months, 30days or 48hours")
    return found


def _finite_time(value: object) -> int:
    seconds = _time(value)
    if not isinstance(seconds, int):
        raise BadValueError("must have an end", "a time such as 7-00:00:00")
    return seconds


def _memory(value: object) -> int:
    mib = values.read_mebibytes(_text(value))
    if mib is None:
        raise BadValueError(
            "not a memory size", "megabytes, or a number with K, M, G or T such as 16000M"
        )
    return mib


def _hostlist(value: object) -> tuple[str, ...]:
    try:
        names = tuple(hostlist.expand(_text(value)))
    except ValueError:
        names = ()
    if not names:
        raise BadValueError(
            "not a list of hosts", "names as Slurm writes them, such as ec2-[1-4,7]"
        )
    return names


def _gres(value: object) -> GresCounts:
    counts: dict[str, int] = {}
    for item in filter(None, _text(value).split(",")):
        match = re.fullmatch(r"(\w+(?::[A-Za-z][\w.-]*)?)(?::(\d+[KMGTPkmgtp]?))?", item)
        if match is None:
            raise BadValueError(
                f"{item!r} is not a generic resource", "NAME[:TYPE][:COUNT], as gpu:a10g:2"
            )
        name, count = match[1].lower(), values.read_scaled_count(match[2] or "1") or 0
        counts[name] = counts.get(name, 0) + count
    return gres_counts(counts)


def _tres_items(value: object) -> list[tuple[str, str]]:
    items = []
    for item in filter(None, _text(value).split(",")):
        name, equals, amount = item.partition("=")
        if not equals or not TRES.fullmatch(name):
            raise BadValueError(f"{item!r} names no TRES", f"NAME=NUMBER of: {KNOWN_TRES}")
        items.append((name, amount))
    return items


def _tres_names(value: object) -> tuple[str, ...]:
    listed = _names(value)
    names = tuple(map(str, listed)) if isinstance(listed, list | tuple) else (str(listed),)
    for name in names:
        if not TRES.fullmatch(name):
            raise BadValueError(f"{name!r} is no TRES", f"any of: {KNOWN_TRES}")
    return names


def _tres(value: object) -> dict[str, int]:
    return {name.lower(): _amount(name.lower(), amount) for name, amount in _tres_items(value)}


def _amount(name: str, text: str) -> int:
    number = values.read_mebibytes(text) if name in {"mem", "vmem"} else None
    if number is not None:
        return number
    if not text.isdigit():
        raise BadValueError(f"{name}={text} is not a count", f"{name}=NUMBER")
    return int(text)


def _weights(value: object) -> str:
    text = _text(value)
    for name, weight in _tres_items(text):
        try:
            parse_weights(f"{name}={weight}")
        except ValueError:
            hint = f"{name}=1.0, or Mem=0.25G per gigabyte"
            raise BadValueError(f"{name}={weight} is not a weight", hint) from None
    return text


def _names(value: object) -> object:
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


def _names_or_all(value: object) -> object:
    return None if value in {"ALL", "all"} else _names(value)


def _dollars(value: object) -> Decimal:
    try:
        amount = Decimal(str(value))
    except ArithmeticError:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount < 0 or amount.as_tuple().exponent < -6:  # type: ignore[operator]
        raise BadValueError(
            "not an amount of dollars", "a number with at most six decimals, such as 1.006"
        )
    return amount


def _name(value: str) -> str:
    if not NAME.fullmatch(value):
        raise BadValueError("not a name", "letters, digits and any of _ . + - (not first)")
    return value


@dataclass(frozen=True, slots=True)
class Form:
    """How the manual calls the form of a value."""

    text: str


MOUNT_WORDS = (3, 6)
"""Fewest and most of a line of fstab."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """Takes a word of a closed list, in any case."""

    words: tuple[str, ...]

    def __call__(self, value: object) -> str:
        upper = {word.upper(): word for word in self.words}
        if (word := upper.get(str(value).upper())) is None:
            raise BadValueError("not one of the words allowed", one_of_hint(value, self.words))
        return word


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Takes several words of a closed list, in any case, as a list or joined by commas."""

    words: tuple[str, ...]

    def __call__(self, value: object) -> tuple[str, ...]:
        listed = _names(value)
        if not isinstance(listed, list | tuple):
            raise BadValueError("not a list of words", f"any of: {', '.join(self.words)}")
        return tuple(OneOf(self.words)(word) for word in listed)


def _mount_line(value: object) -> str:
    """SOURCE TARGET TYPE [OPTIONS], as fstab has them."""
    words = value.split() if isinstance(value, str) else []
    if not MOUNT_WORDS[0] <= len(words) <= MOUNT_WORDS[1] or not words[1].startswith("/"):
        raise BadValueError("not a line of fstab", "SOURCE /TARGET TYPE OPTIONS")
    return " ".join(words)


def one_of_hint(value: object, words: Sequence[str]) -> str:
    """The nearest word, or all of them."""
    lower = {word.lower(): word for word in words}
    near = get_close_matches(str(value).lower(), lower, n=1, cutoff=0.7)
    return f"did you mean {lower[near[0]]}?" if near else f"one of: {', '.join(words)}"


def one_of(*words: str) -> BeforeValidator:
    """For a setting that takes one of these words."""
    return BeforeValidator(OneOf(words))


def any_of(*words: str) -> BeforeValidator:
    """For a setting that takes several of these words."""
    return BeforeValidator(AnyOf(words))


Time = Annotated[Limit, BeforeValidator(_time), Form("time or UNLIMITED")]
FiniteTime = Annotated[int, BeforeValidator(_finite_time), Form("time")]
Age = Annotated[int, BeforeValidator(_age), Form("age, as 12months, 30days, 48hours")]
Seconds = Annotated[int, Field(ge=0), Form("seconds")]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Memory = Annotated[int, BeforeValidator(_memory), Form("megabytes, or with K, M, G, T")]
MountLine = Annotated[str, BeforeValidator(_mount_line), Form("line of fstab")]
Hosts = Annotated[tuple[str, ...], BeforeValidator(_hostlist), Form("host list")]
GresAmounts = Annotated[GresCounts, BeforeValidator(_gres), Form("gres list, as gpu:a10g:2")]
TresAmounts = Annotated[
    dict[str, int], BeforeValidator(_tres), Form("TRES list, as cpu=8,gres/gpu=1")
]
TresNames = Annotated[tuple[str, ...], BeforeValidator(_tres_names), Form("TRES names")]
TresWeights = Annotated[str, BeforeValidator(_weights), Form("TRES weights, as CPU=1.0,Mem=0.25G")]
Name = Annotated[str, AfterValidator(_name), Form("name")]
Names = Annotated[tuple[Name, ...], BeforeValidator(_names), Form("names")]
NamesOrAll = Annotated[
    tuple[Name, ...] | None, BeforeValidator(_names_or_all), Form("names or ALL")
]
Dollars = Annotated[Decimal, BeforeValidator(_dollars), Form("dollars")]
