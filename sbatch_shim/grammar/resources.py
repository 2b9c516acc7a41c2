"""Generic resources as options name them: `gpu:a10g:2,shard:4` and `a10g:1`, to counts and back."""

from __future__ import annotations

from collections import namedtuple

from sbatch_shim.grammar.values import read_scaled_count

Item = namedtuple("Item", "name type count")
"""One resource; `type` None where any will do."""


class GresError(ValueError):
    """Text that is no list of generic resources.

    `kind`: SHAPE (Slurm: Invalid Trackable RESource (TRES) specification), NAME (the same, from the
    controller) or COUNT (Requested node configuration is not available).
    """

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(text)
        self.kind = kind


NAME, SHAPE, COUNT = "name", "shape", "count"


def read_gres(text: str) -> tuple[Item, ...]:
    """`--gres`: `[gres/]name[:type][:count]`, `name=count`. Raises GresError. `none` is nothing.

    As in 25.11 an empty item is left out and a count of 0 stays.
    """
    if text.lower() == "none":
        return ()
    return tuple(_item(token, text) for token in text.split(",") if token)


def _item(token: str, text: str) -> Item:
    body = token[5:] if token.startswith("gres/") else token
    name, *rest = body.replace("=", ":").split(":")
    if not name:
        raise GresError(text, NAME)
    if len(rest) > 2 or "" in rest or (len(rest) == 2 and _is_count(rest[0])):
        raise GresError(text, SHAPE)
    return Item(name, *_type_and_count(rest, text))


def read_gpus(text: str) -> tuple[Item, ...]:
    """`--gpus` and kin: `[type:]count` in a list. Raises GresError."""
    return tuple(_gpu(token, text) for token in text.split(",") if token)


def _gpu(token: str, text: str) -> Item:
    rest = token.split(":")
    if len(rest) > 2:
        raise GresError(text, SHAPE if rest[0] != "gpu" else COUNT)
    kind, count = _type_and_count(rest, text)
    if len(rest) == 1 and kind is not None:
        raise GresError(text, COUNT)
    return Item("gpu", kind, count)


def _type_and_count(rest: list[str], text: str) -> tuple[str | None, int]:
    if not rest:
        return None, 1
    count = read_scaled_count(rest[-1])
    if count is not None:
        return (rest[0] if len(rest) == 2 else None), count
    if len(rest) == 2:
        raise GresError(text, COUNT)
    return rest[0], 1


def _is_count(text: str) -> bool:
    return read_scaled_count(text) is not None
