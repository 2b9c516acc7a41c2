"""JSON of long listings in blocks of records, made once while those stay the same."""

import zlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import groupby
from typing import Any

from broker.model.job import Job
from broker.model.site import Site
from gateway.query.context import Context
from gateway.query.job import waits

BLOCK = 256
"""Jobs whose ids differ by less than this may stand in one block."""
MOST_BLOCKS = 160
"""Ten thousand jobs in two forms; a block is some tens of kilobytes, compressed to a fortieth."""

LEVEL = 3
"""Of zlib: for such texts as quick to make as 1, half as long, and a third quicker to read."""

Moving = tuple[Callable[[Job, Context], Any], ...]
"""Values that may change while the record of a job that waits, or is over, stays the same."""


class KeptBlocks:
    """Keeps the text of a block while it has the same records, and what may move has not.

    May be used by several threads: at worst a block is made twice.
    """

    def __init__(self) -> None:
        self.site: Site | None = None
        self.kept: OrderedDict[Hashable, tuple[list[Job], list[object], bytes, int]] = OrderedDict()

    def texts(
        self,
        layout: Hashable,
        records: Sequence[Job],
        ctx: Context,
        *,
        moving: Moving,
        make: Callable[[Sequence[Job]], str],
    ) -> Iterator[bytes]:
        """The text of each block, in the order of the records."""
        if ctx.site is not self.site:
            self.site, self.kept = ctx.site, OrderedDict()
        for number, group in groupby(records, key=_number):
            block = list(group)
            if not all(job.over or waits(job) for job in block):
                yield make(block).encode()
                continue
            moved = [get(job, ctx) for get in moving for job in block]
            yield self._text((layout, number), block, moved, make=make)

    def _text(
        self,
        key: Hashable,
        block: list[Job],
        moved: list[object],
        *,
        make: Callable[[Sequence[Job]], str],
    ) -> bytes:
        known = self.kept.pop(key, None)
        if known is not None and known[1] == moved and _same(known[0], block):
            self.kept[key] = known
            return zlib.decompress(known[2], bufsize=known[3])
        text = make(block).encode()
        self.kept[key] = block, moved, zlib.compress(text, LEVEL), len(text)
        while len(self.kept) > MOST_BLOCKS:
            self.kept.popitem(last=False)
        return text


def _number(job: Job) -> int:
    return job.id // BLOCK


def _same(one: list[Job], other: list[Job]) -> bool:
    """By identity: a changed job has another record."""
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
