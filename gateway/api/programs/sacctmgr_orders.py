"""sacctmgr's orders: what they come to is shown, asked about, and sent to the one writer."""

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from accounting.change import Change, may_make
from broker.model import octets
from broker.model.commands import ChangeBook
from broker.model.errors import Conflict, Denied
from gateway.api.desk import Desk
from gateway.api.programs.reading import fail
from gateway.api.programs.sacctmgr_show import REQUEST_DENIED
from gateway.api.wire import LINE, Answer, Call, Given
from gateway.translate import bookadd, bookdelete, bookfile, bookmodify
from gateway.translate.bookabove import must_be_shallow
from gateway.translate.bookjobs import active
from gateway.translate.bookorder import Known, OrderError, Proposal, must_be_here
from gateway.translate.bookwords import Vocabulary

SECONDS = " (You have 30 seconds to decide)\n(N/y): "
AGAIN = "\nY or N please\n(N/y): "
NO_FILE = ' Unable to read "{}": {}\n'
NO_DUMP = " Your user does not have sufficient privileges to dump clusters.\n"
TRIES = 5
"""How often an order is read anew because somebody else changed the book meanwhile."""
Make = Callable[[Sequence[str], Known], Proposal]
ORDERS: Mapping[str, Make] = {
    "add": bookadd.add,
    "create": bookadd.add,
    "modify": bookmodify.modify,
    "update": bookmodify.modify,
    "delete": bookdelete.delete,
    "remove": bookdelete.delete,
}
FILES = ("dump", "load")
TAKING_AWAY = frozenset({"delete", "remove", "load"})
"""What leaves no job without its association."""


@dataclass(frozen=True, slots=True)
class Order:
    """One command that changes something, or writes or reads the file of it."""

    desk: Desk
    call: Call
    name: str
    words: tuple[str, ...]
    tres: Mapping[str, int]
    immediate: bool

    async def answer(self) -> Answer:
        """Raises Finished where it is refused."""
        if self.name == "dump":
            return self._dumped() if self._runs() else Answer(err=NO_DUMP, code=1)
        if self.name == "load":
            return await self._loaded()
        for _ in range(TRIES):
            known = self._known()
            try:
                made = ORDERS[self.name](self.words, known)
                must_be_shallow(made.change, known.book)
            except OrderError as error:
                return Answer(out=error.out, err=error.err, code=1)
            try:
                return await self._carried_out(made, known)
            except Conflict:
                continue
        raise fail("sacctmgr: error: the accounts are changed by others all the time, try later\n")

    def _runs(self) -> bool:
        return self.desk.site.is_run_by(self.call.peer.uid)

    def _known(self) -> Known:
        site = self.desk.site
        return Known(site.book, site.cluster, Vocabulary((), self.tres), self.desk.now())

    async def _carried_out(self, made: Proposal, known: Known) -> Answer:
        """Raises Conflict where the book is another one meanwhile."""
        denied = Answer(
            out=made.out if made.denied else "",
            err=bookadd.DENIED.get(made.denied, REQUEST_DENIED),
            code=1,
        )
        if not await self._may(made.change, known):
            return denied
        if self.name in TAKING_AWAY:
            held = active(made.change, known, self.desk.snapshot().jobs.values())
            if held:
                return Answer(err=held, code=1)
        said = Talk(self.call.files.get(LINE, Given()), self.immediate)
        if made.sure and not said.yes(made.sure):
            return said.ended("\nAborted\n")
        said.print(made.out)
        if not said.yes(made.commit):
            return said.ended("\n Changes Discarded\n")
        try:
            await self._send(made, known)
        except Denied:
            return denied
        return Answer(out=said.text, err=made.err, code=1 if made.err else 0)

    async def _may(self, change: Change, known: Known) -> bool:
        uid = self.call.peer.uid
        if await self.desk.barred(uid) is not None:
            return False
        owner = await self.desk.owner(uid)
        return may_make(known.book, change, owner.user, admin=self._runs())

    async def _send(self, made: Proposal, known: Known) -> None:
        """Raises Denied, Conflict."""
        people = [
            replace(one, uid=await self.desk.uid(one.name)) if one.admin != "None" else one
            for one in made.change.people
        ]
        await self.desk.ask(
            ChangeBook(
                change=replace(made.change, people=tuple(people)),
                basis=known.book,
                by=await self.desk.owner(self.call.peer.uid),
                action=made.action,
                where=made.where,
                info=made.info,
            )
        )

    def _dumped(self) -> Answer:
        known = self._known()
        names, path = _file_words(self.words)
        try:
            must_be_here(names, known)
        except OrderError as error:
            return Answer(err=error.err, code=1)
        if not names:
            return Answer(err=" We need a cluster to dump.\n", code=1)
        out = "" if path else f" No filename given, using ./{known.cluster}.cfg.\n"
        lines = bookfile.dumped(known.book, known.cluster)
        content = bookfile.HEADER.format(cluster=known.cluster) + "\n".join([*lines, ""])
        return Answer(
            out=out,
            err="".join(f"sacctmgr: {line}\n" for line in lines),
            write=(path or f"{known.cluster}.cfg", octets.raw(content)),
        )

    async def _loaded(self) -> Answer:
        words = [word for word in self.words if word.lower() != "clean"]
        renamed = [word for word in words if word.lower().startswith("cluster=")]
        names, path = _file_words([word for word in words if word not in renamed])
        path = path or next(iter(names), "")
        if not path:
            return Answer(err=" No filename given, specify one with file=''\n", code=1)
        given = self.call.files.get(path)
        if given is None:
            return Answer(ask=path)
        if given.error:
            return Answer(err=NO_FILE.format(path, os.strerror(given.error)), code=1)
        known = self._known()
        clean = any(word.lower() == "clean" for word in self.words)
        text = octets.text(given.content)
        try:
            must_be_here(_file_words(renamed)[0], known)
            change, out = bookfile.loaded(text, known, clean=clean, any_cluster=bool(renamed))
        except OrderError as error:
            return Answer(err=error.err, code=1)
        if change.empty:
            return Answer(out=out)
        made = Proposal(change=change, out=out, action="Load File", where=known.cluster)
        try:
            return await self._carried_out(made, known)
        except Conflict as error:
            return Answer(err=f"sacctmgr: error: {error.message}\n", code=errno.EPERM)


def _file_words(words: Sequence[str]) -> tuple[list[str], str]:
    """Words that stand alone or name clusters, and the file's name."""
    names, path = [], ""
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            names.append(word)
        elif "file".startswith(key.lower()):
            path = value
        else:
            names += [name for name in value.split(",") if name]
    return names, path


class Talk:
    """What is printed, with questions and the answers that are there already."""

    def __init__(self, given: Given, immediate: bool) -> None:
        self.text = ""
        self.waits = False
        """Whether another answer is due before it can go on."""
        self._immediate = immediate
        self._ended = bool(given.error)
        self._answers = iter(given.content.decode("utf-8", "replace").splitlines())

    def print(self, text: str) -> None:
        self.text += text

    def yes(self, question: str) -> bool:
        """Whether the answer is yes; without one it waits, at the end of input it is no."""
        if self._immediate:
            return True
        self.text += f"{question}{SECONDS}"
        while True:
            line = next(self._answers, None)
            if line is None:
                self.waits = not self._ended
                return False
            letter = line[:1].lower()
            if letter in {"y", "n", ""}:
                self.text += "\n" if letter == "y" else ""
                return letter == "y"
            self.text += AGAIN

    def ended(self, text: str) -> Answer:
        """What is said to a no; a question if nothing was said to it yet."""
        return Answer(out=self.text, ask=LINE) if self.waits else Answer(out=self.text + text)
