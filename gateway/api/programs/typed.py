"""srun's and salloc's words read, with the files that they need from the user's own process."""

from dataclasses import replace

from broker.model.errors import Refused
from gateway.api.desk import Desk
from gateway.api.stream import Line
from gateway.api.wire import Call
from gateway.translate.sbatch import Early, NeedFile, Setting
from gateway.translate.srun import Allocator, Request, translate

MOST_FILES = 16


async def translated(program: Allocator, desk: Desk, *, call: Call, line: Line) -> Request | Early:
    """Raises GrammarError, Gone."""
    for _ in range(MOST_FILES):
        try:
            return translate(program, call, setting(desk, call))
        except NeedFile as need:
            found = await line.file(need.path)
            call = replace(call, files={**call.files, need.path: found})
    raise Refused(f"more than {MOST_FILES} files are needed")


def setting(desk: Desk, call: Call) -> Setting:
    """What reading the words of a command depends on."""
    return Setting(
        site=desk.site,
        now=desk.now(),
        zone=desk.zone(call),
        uid=call.peer.uid,
        submit_host=desk.host,
        gpu_types=desk.gpu_types,
        warn_ignored=desk.warn_ignored,
        mails=desk.mails,
    )
