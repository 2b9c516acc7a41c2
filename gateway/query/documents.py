"""Whole answers in JSON and YAML: records, errors and warnings, and who asked what."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gateway.query import yaml
from gateway.query.context import Context
from gateway.query.kept import way
from gateway.query.keptjson import KeptBlocks, Moving
from gateway.query.shape import INDENT, Compiled, Tree, compiled, dump, plain

NEWEST = "v0.0.44"
LISTED = ("v0.0.43", "v0.0.42", "v0.0.41", "v0.0.44")
"""In the order of `--json=list` (25.11.7)."""
PIECE = 250
"""Records written in one go."""
VERSIONS = (*LISTED, "v0.0.40")
"""Clients still ask for the oldest; its keys are those of the next."""


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A sort of record: the key it is listed under, its tree, and the first and last version of
    keys that came or went."""

    name: str
    tree: Tree
    since: Mapping[str, int]
    until: Mapping[str, int]
    moving: Moving = ()

    def of(self, version: str) -> Tree:
        """The tree of a version."""
        number = int(version.rpartition(".")[2])
        return {
            key: node
            for key, node in self.tree.items()
            if self.since.get(key, 0) <= number <= self.until.get(key, number)
        }


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asked, with which words, and in which form the answer is wanted."""

    command: tuple[str, ...]
    user: str
    group: str
    version: str = NEWEST
    yaml: bool = False
    kept: KeptBlocks | None = None
    """Where parts of long answers stay for the next who asks."""


def meta(asker: Asker, ctx: Context) -> dict[str, Any]:
    """What every answer says of itself."""
    major, minor, micro = [*ctx.site.version.split("."), "0", "0"][:3]
    return {
        "plugin": {
            "type": "",
            "name": "",
            "data_parser": f"data_parser/{asker.version}",
            "accounting_storage": "accounting_storage/slurmdbd",
        },
        "client": {"source": "", "user": asker.user, "group": asker.group},
        "command": list(asker.command),
        "slurm": {
            "version": {"major": major, "micro": micro, "minor": minor},
            "release": ctx.site.version,
            "cluster": ctx.site.cluster,
        },
    }


def document(
    kind: Kind,
    records: Iterable[Any],
    ctx: Context,
    *,
    asker: Asker,
    more: Mapping[str, Any] | None = None,
) -> str:
    """The answer with the records, then `more`, then what is said of itself."""
    return b"".join(pieces(kind, list(records), ctx, asker=asker, more=more)).decode()


def pieces(
    kind: Kind,
    records: Sequence[Any],
    ctx: Context,
    *,
    asker: Asker,
    more: Mapping[str, Any] | None = None,
) -> Iterator[bytes]:
    """The same in parts of some hundred records each: ten thousand jobs are 90 MB of text.

    Of long listings the parts are kept for the next who asks, where the asker says where.
    """
    rest = {**(more or {}), "meta": meta(asker, ctx), "errors": [], "warnings": []}
    if asker.yaml:
        tree = kind.of(asker.version)
        whole = {kind.name: [plain(tree, one, ctx) for one in records], **rest}
        yield yaml.document(whole).encode()
        return
    write, gap = _compiled(kind, asker.version), ",\n" + INDENT * 2

    def body(some: Sequence[Any]) -> str:
        return "".join([gap + write.json(one, ctx) for one in some])

    parts: Iterator[bytes]
    if asker.kept is None or len(records) <= PIECE or ctx.forecasts:
        parts = (body(records[at : at + PIECE]).encode() for at in range(0, len(records), PIECE))
    else:
        layout = kind.name, asker.version, *way(ctx)
        parts = asker.kept.texts(layout, records, ctx, moving=kind.moving, make=body)
    yield f'{{\n{INDENT}"{kind.name}": ['.encode()
    yield next(parts, b"")[1:]  # nothing stands before the first record
    yield from parts
    yield f"\n{INDENT}],{dump(rest)[1:]}\n".encode()


def values(content: Mapping[str, Any], ctx: Context, *, asker: Asker) -> str:
    """An answer of plain values."""
    whole = {**content, "meta": meta(asker, ctx), "errors": [], "warnings": []}
    return yaml.document(whole) if asker.yaml else dump(whole) + "\n"


@lru_cache(maxsize=64)
def _compiled(kind: Kind, version: str) -> Compiled[Any]:
    return compiled(kind.of(version), 2)
