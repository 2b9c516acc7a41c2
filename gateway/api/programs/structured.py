"""`--json` and `--yaml`: which form is asked for, and answers in it."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from gateway.api.desk import Desk
from gateway.api.programs.reading import Finished, Options, fail
from gateway.api.wire import Answer, Call
from gateway.query.documents import LISTED, NEWEST, PIECE, VERSIONS, Asker

PREFIX = "data_parser/"
POSSIBLE = "Possible data_parser plugins:\n"
UNKNOWN = (
    "{0}: error: load_plugins: unable to find plugin: data_parser/{1}\n"
    "{0}: error: data_parser_g_new: failure loading plugins: "
    "Plugin has invalid format or unable to be loaded\n"
    "{0}: error: application/{2} output not supported by data_parser/{3}\n"
)
FORMS = ("json", "yaml")
LIST = "list"
"""In place of a version: which there are."""


async def asker(
    desk: Desk, call: Call, options: Options, *, taken: Iterable[str] = ()
) -> Asker | None:
    """Who asks in which form; None for plain text.

    `taken` are words that stood behind a bare option, which squeue takes out of its command.
    Raises Finished for a version that does not exist, and with the list of them.
    """
    form = next((form for form in FORMS if options.has(form)), None)
    if form is None:
        return None
    version = _version(call.program, form, options.text(form))
    owner = await desk.owner(call.peer.uid)
    gone = list(taken)
    words = [word for word in call.argv if not _gone(word, gone)]
    command = (call.program, *words)
    return Asker(command, owner.user, owner.group, version, yaml=form == "yaml")


def _gone(word: str, gone: list[str]) -> bool:
    if word not in gone:
        return False
    gone.remove(word)
    return True


def _version(program: str, form: str, text: str | None) -> str:
    if text is None:
        return NEWEST
    if text == LIST:
        raise Finished(Answer(out="".join(f"{PREFIX}{v}\n" for v in LISTED), err=POSSIBLE))
    version = text.partition("+")[0].removeprefix(PREFIX)
    if version not in VERSIONS:
        raise fail(UNKNOWN.format(program, version, form, NEWEST))
    return version


async def listing(
    desk: Desk, records: Sequence[object], make: Callable[[], Iterator[bytes]]
) -> Answer:
    """The answer that `make` writes: at once where it is short, else part by part."""
    if len(records) <= PIECE:
        return Answer(out=await desk.read(lambda: b"".join(make())))
    return await _next(desk, make())


async def _next(desk: Desk, parts: Iterator[bytes]) -> Answer:
    part = await desk.read(next, parts, None)
    return Answer() if part is None else Answer(out=part, rest=_next(desk, parts))
