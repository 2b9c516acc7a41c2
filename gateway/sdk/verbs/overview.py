"""The lists of verbs that help shows, and the way out for a word that is none."""

from collections.abc import Iterator
from difflib import get_close_matches

from gateway.sdk.verbs.table import VERBS
from gateway.sdk.verbs.table_operators import GROUPS

ABOUT = "Run tasks and Slurm jobs on the cheapest machines that will have them."


def groups() -> frozenset[str]:
    """Words that stand before others and are no verb themselves."""
    names = {verb.name for verb in VERBS}
    before = {name.rpartition(" ")[0] for name in names}
    outer = {name.rpartition(" ")[0] for name in before}
    return frozenset((before | outer) - names - {""})


def listing(group: str) -> str:
    """What -h prints for all of them, or for one group."""
    about = GROUPS.get(group, ABOUT)
    rows = dict(_rows(group))
    width = max(map(len, rows))
    lines = [f"  {name:{width}}  {text}" for name, text in rows.items()]
    name = f"spz {group} COMMAND" if group else "spz COMMAND"
    usage, tail = f"Usage: {name} [OPTIONS] [WORD...]", f"`{name} -h` tells the options of each."
    return "\n".join([usage, "", f"  {about}", "", "Commands:", *lines, "", tail])


def _rows(group: str) -> Iterator[tuple[str, str]]:
    """Verbs and groups right below, each once."""
    before = f"{group} " if group else ""
    seen: set[str] = set()
    for verb in VERBS:
        if not verb.name.startswith(before):
            continue
        name = verb.name.removeprefix(before).split(" ")[0]
        if name in seen:
            continue
        seen.add(name)
        yield name, _about(f"{before}{name}")


def _about(name: str) -> str:
    """The first sentence."""
    text = GROUPS.get(name) or next((verb.help for verb in VERBS if verb.name == name), "")
    below = (
        verb.name.removeprefix(f"{name} ") for verb in VERBS if verb.name.startswith(f"{name} ")
    )
    return text.split(". ")[0].rstrip(".") or ", ".join(below)


def suggestion(word: str, group: str) -> str:
    """Raises nothing: the nearest word, or where the list is."""
    near = get_close_matches(word, [name for name, _ in _rows(group)], n=1)
    helped = f"spz {group} -h".replace("  ", " ")
    return f"did you mean {near[0]}?" if near else f"`{helped}` lists them"
