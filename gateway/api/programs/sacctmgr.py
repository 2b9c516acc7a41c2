"""sacctmgr: shows and changes accounts, associations, users and QOS."""

from collections.abc import Sequence
from dataclasses import replace

from gateway.api.desk import Desk
from gateway.api.programs import structured
from gateway.api.programs.early import help_of
from gateway.api.programs.reading import fail, finishing, read_options, reader
from gateway.api.programs.sacctmgr_archive import SURE, archive
from gateway.api.programs.sacctmgr_orders import FILES, ORDERS, Order, Talk
from gateway.api.programs.sacctmgr_rows import RECORDS, Asked
from gateway.api.programs.sacctmgr_show import (
    DENIED,
    conditions_of,
    entity_of,
    must_be_shown,
)
from gateway.api.programs.scontrol_words import is_short_for
from gateway.api.wire import LINE, Answer, Call, Given
from gateway.config.settings import Config
from gateway.query.documents import values
from gateway.query.restbook import CONTENT
from gateway.query.tresnames import numbers

BAD_KEYWORD = "invalid keyword: {}\n"
NOT_HERE = "sacctmgr: error: {} is not supported by SkyPurza\n"
NO_PROMPT = (
    "sacctmgr: error: the prompt (sacctmgr without a command) is not supported by SkyPurza\n"
)
READ_ONLY = "Can't run this command in readonly mode.\n"
ARCHIVE = "archive"
CONTINUE = "Are you sure you want to continue?"
SHOWS = ("show", "list")
SILENT = frozenset({"exit", "quiet", "quit", "verbose"})
"""Words of the prompt that do nothing for a command that is all there is."""
NOT_OURS = ("clear", "reconfigure", "shutdown")
"""Commands to slurmdbd itself, which there is none of."""


class Sacctmgr:
    """The command; the names of TRES are the configuration's."""

    def __init__(self, config: Config) -> None:
        self.tres = numbers(config.accounting.tres)
        self.config = config

    @finishing
    async def __call__(self, desk: Desk, call: Call) -> Answer:
        options = read_options(desk, call)
        if not options.words:
            raise fail(NO_PROMPT)
        snap = desk.snapshot()
        admin = snap.site.is_run_by(call.peer.uid)
        ctx = reader(desk, call, snap, options=options)
        asked = Asked(snap, ctx, options, admin, self.tres, self.config, desk.host)
        word = options.words[0].lower()
        if any(name.startswith(word) for name in SHOWS) and len(word) >= 2:
            return await _shown(desk, call, asked)
        name = _command(word)
        if name in {*ORDERS, *FILES}:
            if options.has("readonly"):
                raise fail(READ_ONLY)
            order = Order(desk, call, name, options.words[1:], self.tres, options.has("immediate"))
            return await order.answer()
        if name == ARCHIVE:
            return await _archive(desk, call, asked)
        return _other(word, name, asked)


def _command(word: str) -> str:
    """The full name of a command that changes something; empty for others."""
    known = (*ORDERS, *FILES, ARCHIVE, *NOT_OURS)
    return next((name for name in known if len(word) >= 3 and name.startswith(word)), "")


def _other(word: str, name: str, asked: Asked) -> Answer:
    if name:
        raise fail(NOT_HERE.format(name) if asked.admin else DENIED)
    if word in SILENT:
        return Answer()
    if word == "ping":
        return Answer(out=f"slurmdbd(primary) at {asked.host} is UP\n")
    if is_short_for(word, "help", 2):
        return help_of("sacctmgr", asked.options.words)
    if word in {"version", "ver"}:
        return Answer(out=f"slurm {asked.ctx.site.version}\n")
    raise fail(BAD_KEYWORD.format(word))


async def _archive(desk: Desk, call: Call, asked: Asked) -> Answer:
    """For administrators, after a question."""
    if not asked.admin:
        raise fail(DENIED)
    words = asked.options.words[1:]
    said = Talk(call.files.get(LINE, Given()), asked.options.has("immediate"))
    said.print(SURE if words and "dump".startswith(words[0].lower()) else "")
    if said.text and not said.yes(CONTINUE):
        return said.ended("\nAborted\n")
    return await archive(desk, words)


async def _shown(desk: Desk, call: Call, asked: Asked) -> Answer:
    words: Sequence[str] = asked.options.words
    admin = asked.admin or desk.site.operates(call.peer.uid)
    asked = replace(asked, admin=admin, viewer=await desk.viewer(call.peer.uid))
    entity = entity_of(words[1:2])
    must_be_shown(entity.name, asked.viewer)
    asked = conditions_of(asked, words[2:], entity)
    if entity.name == "problem" and admin:
        asked = replace(asked, strangers=await _strangers(desk))
    if entity.past:
        asked = asked.with_changes(await desk.read(desk.history.book_changes))
    by = await structured.asker(desk, call, asked.options)
    if by is None:
        return entity.view(asked)
    if entity.name not in CONTENT:
        raise fail(f"sacctmgr: error: --json of {entity.name} is not supported by SkyPurza\n")
    content = CONTENT[entity.name](RECORDS[entity.name](asked), asked.ctx, asked.tres)
    return Answer(out=values(content, asked.ctx, asker=by))


async def _strangers(desk: Desk) -> list[str]:
    """Users whom the host does not know; all of them in one visit to the readers' threads."""
    book = desk.site.book
    names = sorted({*book.people, *book.associations})
    return await desk.read(lambda: [name for name in names if desk.uids(name) is None])
