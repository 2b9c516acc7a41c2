"""`sacctmgr archive`: old records into files, and back (slurmdbd's words, 22.05)."""

import os
from collections.abc import Sequence
from pathlib import Path

from accounting.age import read_age
from broker.model.errors import Busy
from gateway.api.desk import Desk
from gateway.api.programs.reading import fail
from gateway.api.wire import Answer

NO_ENTITY = 'No valid entity in archive command\nInput line must include, "Dump", or "load"\n'
UNKNOWN = " Unknown condition: {}\n"
BAD_AGE = "sacctmgr: error: Invalid purge string '{}'\n"
NO_FOLDER = (
    " dump: Failed to stat {}: {}\n"
    " Note: For archive dump, the directory must be on the calling host.\n"
)
DONE = "sacctmgr: accounting_storage/slurmdbd: jobacct_storage_p_archive: SUCCESS\n"
NO_FILE = (
    "sacctmgr: error: No archive file given to recover.\n"
    " Problem loading archive file: {}\n"
    " Note: For archive load, the file must be accessible on the slurmdbd host.\n"
)
PROBLEM = "sacctmgr: error: Error with request.\n Problem {} archive file: {}\n"
SURE = "This may result in loss of accounting database records (if Purge* options enabled).\n"
AGES = {
    "purgejobafter": "job", "purgestepafter": "step", "purgeeventafter": "event",
    "purgeledgerafter": "ledger", "purgeusageafter": "usage", "purgeresvafter": "resv",
    "purgetxnafter": "txn",
}  # fmt: skip
"""What is purged here by an age of its own."""
ELSEWHERE = {
    "purgesuspendafter": "suspensions go with their jobs",
}
"""What is not, and why."""
IGNORED = "sacctmgr: {}: {}\n"
QUIET = (
    "clusters", "accounts", "users", "start", "end", "script", "events", "jobs", "steps",
    "suspend", "txn", "usage", "reservations", "where", "archiveevents", "archivejobs",
    "archivesteps", "archivesuspend", "archivetxn", "archiveusage", "archiveresvs",
)  # fmt: skip


async def archive(desk: Desk, words: Sequence[str]) -> Answer:
    """`dump` and `load`. Raises Finished."""
    order = words[0].lower() if words else ""
    if order and "dump".startswith(order):
        return await _dump(desk, words[1:])
    if order and "load".startswith(order):
        return await _load(desk, words[1:])
    raise fail(NO_ENTITY)


async def _dump(desk: Desk, words: Sequence[str]) -> Answer:
    folder, ages, told = None, {}, ""
    for word in words:
        key, equals, value = word.partition("=")
        low = key.lower()
        if equals and "directory".startswith(low):
            folder = _folder(value)
        elif low in AGES and equals:
            ages[AGES[low]] = _age(value)
        elif low in ELSEWHERE and equals:
            told += IGNORED.format(word, ELSEWHERE[low])
        elif equals and not any(name.startswith(low) for name in QUIET):
            raise fail(UNKNOWN.format(word))
    assert desk.archive is not None
    try:
        await desk.read(desk.archive.dump, ages or desk.archive.ages, folder)
    except (OSError, Busy) as error:
        raise fail(PROBLEM.format("dumping", error)) from None
    return Answer(err=told + DONE)


def _folder(text: str) -> Path:
    path = Path(text)
    try:
        path.stat()
    except OSError as error:
        raise fail(NO_FOLDER.format(text, os.strerror(error.errno or 0))) from None
    return path


def _age(text: str) -> int:
    found = read_age(text)
    if found is None:
        raise fail(BAD_AGE.format(text))
    return found


async def _load(desk: Desk, words: Sequence[str]) -> Answer:
    pairs = [word.partition("=") for word in words]
    path = next((value or key for key, _, value in pairs if "file".startswith(key.lower())), "")
    if not path:
        raise fail(PROBLEM.format("loading", "Unspecified error"))
    assert desk.archive is not None
    try:
        await desk.read(desk.archive.load, Path(path))
    except OSError as error:
        raise fail(NO_FILE.format(os.strerror(error.errno or 0))) from None
    except (ValueError, Busy) as error:
        raise fail(PROBLEM.format("loading", error)) from None
    return Answer(err=DONE)
