"""The lines of sinfo: nodes of a partition that look alike in the columns shown (25.11.7)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from broker.model.site import Partition
from gateway.query.context import Context
from gateway.query.layout import Layout
from gateway.query.nodes import NodeView
from gateway.query.sinfo import BY_LETTER, BY_TEXT, PART_LETTERS, Group, Value, part_name

LEAST_NAME = 9


def formats(groups: Iterable[Group]) -> dict[str, str]:
    """The formats of sinfo's options, as wide as the longest partition and node name."""
    found = list(groups)
    stars = [len(g.part.name) + g.part.default for g in found]
    names = [len(node.name) for g in found for node in g.nodes]
    part, node = max([LEAST_NAME, *stars]), max([LEAST_NAME, *names])
    return {
        "default": f"%{part}P %.5a %.10l %.6D %.6t %N",
        "summarize": f"%{part}P %.5a %.10l %.16F %N",
        "long": f"%{part}P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %.11i %N",
        "Node": f"%{node}N %.6D %.{part}P %6t",
        "Node long": f"%{node}N %.6D %.{part}P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E",
        "list-reasons": "%20E %9u %19H %N",
        "list-reasons long": "%20E %12U %19H %6t %N",
    }


# ---------------------------------------------------------------- grouping


@dataclass(frozen=True, slots=True)
class Keys:
    """What keeps lines apart: values of partitions and of nodes that are shown."""

    parts: tuple[Value, ...]
    nodes: tuple[Value, ...]


def keys_of(layout: Layout[Group], *, exact: bool = False) -> Keys:
    """The keys of a format; `exact` adds sizes and counts (sinfo --exact)."""
    columns = [BY_TEXT[get] for get in layout.values if get in BY_TEXT]
    keys = [column.apart or (column.exact if exact else None) for column in columns]
    return Keys(
        tuple(column.text for column in columns if column.letter in PART_LETTERS),
        tuple(key for key in keys if key is not None),
    )


def grouped(
    parts: Iterable[Partition], views: Iterable[NodeView], *, keys: Keys, ctx: Context, each: bool
) -> list[Group]:
    """Lines in order of the partitions; one without nodes where none was chosen.

    Where the format says nothing of partitions, a node stands in one line only; `each` gives
    every node a line for each of its partitions (sinfo -N).
    """
    found = list(views)
    kinds: dict[object, dict[str, NodeView]] = {}
    homes: dict[object, Partition] = {}
    for part in parts:
        place = part.name if each else tuple(get(Group(part, ()), ctx) for get in keys.parts)
        own = [view for view in found if part.name in view.partitions]
        for view in own:
            alone = Group(part, (view,))
            key = (place, view.name if each else tuple(get(alone, ctx) for get in keys.nodes))
            homes.setdefault(key, part)
            kinds.setdefault(key, {}).setdefault(view.name, view)
        if not own and not each:
            homes.setdefault((place, None), part)
            kinds.setdefault((place, None), {})
    return [Group(homes[key], tuple(kind.values())) for key, kind in kinds.items()]


SORT_VALUES: dict[str, Callable[[Group, Context], Any]] = {
    "t": lambda group, _: group.first.number if group.first else 0,
    "T": lambda group, _: group.first.number if group.first else 0,
    "D": lambda group, _: len(group.nodes),
    "P": part_name,
    "N": lambda group, _: group.first.name if group.first else "",
}
DEFAULT_SORT = "#P,-t"


def ordered(groups: list[Group], text: str, ctx: Context) -> list[Group]:
    """Sorted by letters, `#P` in the order of the configuration. Raises KeyError for a letter."""
    places = {part.name: place for place, part in enumerate(ctx.site.partitions)}
    found = list(groups)
    for word in reversed([word for word in text.split(",") if word]):
        letter = word[-1]
        if "#" in word and letter == "P":
            found.sort(key=lambda group: places.get(group.part.name, 0), reverse="-" in word)
            continue
        value = SORT_VALUES.get(letter) or BY_LETTER[letter].text
        found.sort(key=lambda group, value=value: value(group, ctx), reverse="-" in word)  # type: ignore[misc]
    return found
