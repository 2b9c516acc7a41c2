"""`sacctmgr archive` in slurmdbd's words: what is asked of the store, what is refused."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from accounting.age import read_age
from gateway.api.programs.sacctmgr import Sacctmgr
from gateway.api.wire import Answer, Call, Peer
from tests.unit.gateway.api.programs.test_sacctmgr import CONFIG, OWNERS, SITE
from tests.unit.gateway.query.desk import Past, desk_of, snapshot

DAY = 86_400
DONE = "sacctmgr: accounting_storage/slurmdbd: jobacct_storage_p_archive: SUCCESS\n"
DENIED = "sacctmgr: error: Your user doesn't have privilege to perform this action\n"


@dataclass
class Kept:
    """An archive that remembers what it was asked."""

    ages: Mapping[str, int] = field(default_factory=lambda: {"job": 9 * DAY})
    asked: list[object] = field(default_factory=list)

    def dump(self, ages: Mapping[str, int], folder: Path | None) -> Mapping[str, int]:
        self.asked.append((dict(ages), folder))
        return {}

    def load(self, path: Path) -> int:
        self.asked.append(path)
        if path.name == "nosuch":
            raise FileNotFoundError(2, "No such file or directory")
        return 1


def said(kept: Kept, *words: str, uid: int = 0) -> Answer:
    desk = desk_of(snapshot([], site=SITE), Past())
    desk.names = lambda number: OWNERS[number]
    desk.archive = kept
    call = Call(program="sacctmgr", argv=words, peer=Peer(uid, uid), request="r")
    return asyncio.run(Sacctmgr(CONFIG)(desk, call))


ORDERS = (
    (("dump",), ({"job": 9 * DAY}, None)),
    (("dump", "jobs", "PurgeJobAfter=2days"), ({"job": 2 * DAY}, None)),
    (("dump", "directory=/tmp", "purgeeventafter=1"), ({"event": 30 * DAY}, Path("/tmp"))),
    (("dump", "purgeusageafter=24months"), ({"usage": 720 * DAY}, None)),
    (("dump", "purgeresvafter=48hours"), ({"resv": 2 * DAY}, None)),
    (("dump", "steps", "txn", "PurgeStepAfter=2d", "ArchiveSteps=yes"), ({"step": 2 * DAY}, None)),
    (("dump", "PurgeTXNAfter=1"), ({"txn": 30 * DAY}, None)),
    (("load", "file=/a/b"), Path("/a/b")),
)


@pytest.mark.parametrize(("words", "asked"), ORDERS)
def test_an_order_is_carried_out(words: tuple[str, ...], asked: object) -> None:
    kept = Kept()
    answer = said(kept, "-i", "archive", *words)
    assert (answer.err, answer.code, kept.asked) == (DONE, 0, [asked])


REFUSED = (
    ((), 'No valid entity in archive command\nInput line must include, "Dump", or "load"\n'),
    (("dump", "foo=bar"), " Unknown condition: foo=bar\n"),
    (("dump", "purgejobafter=x"), "sacctmgr: error: Invalid purge string 'x'\n"),
    (
        ("dump", "directory=/nosuch"),
        " dump: Failed to stat /nosuch: No such file or directory\n"
        " Note: For archive dump, the directory must be on the calling host.\n",
    ),
    (
        ("load", "file=/nosuch"),
        "sacctmgr: error: No archive file given to recover.\n"
        " Problem loading archive file: No such file or directory\n"
        " Note: For archive load, the file must be accessible on the slurmdbd host.\n",
    ),
    (
        ("load",),
        "sacctmgr: error: Error with request.\n Problem loading archive file: Unspecified error\n",
    ),
)


@pytest.mark.parametrize(("words", "err"), REFUSED)
def test_what_cannot_be_is_refused_in_slurms_words(words: tuple[str, ...], err: str) -> None:
    answer = said(Kept(), "-i", "archive", *words)
    assert (answer.err, answer.code) == (err, 1)


def test_only_administrators_archive_and_only_after_a_yes() -> None:
    kept = Kept()
    assert said(kept, "-i", "archive", "dump", uid=2001).err == DENIED
    asks = said(kept, "archive", "dump")
    assert asks.ask
    assert kept.asked == []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("48hours", 2 * DAY), ("30days", 30 * DAY), ("12months", 360 * DAY), ("1", 30 * DAY),
     ("2d", 2 * DAY), ("0", None), ("x", None), ("", None)],
)  # fmt: skip
def test_ages_are_read_as_slurmdbd_writes_them(text: str, seconds: int | None) -> None:
    assert read_age(text) == seconds


def test_what_has_no_age_of_its_own_says_why() -> None:
    answer = said(Kept(), "-i", "archive", "dump", "purgesuspendafter=2days")
    told = "sacctmgr: purgesuspendafter=2days: suspensions go with their jobs\n"
    assert (answer.err, answer.code) == (told + DONE, 0)
