"""Jobs as command lines name them: `12`, `12+1`, `12_3`, `12_[1-3]`, `12.0`, `12_3.batch`."""

from collections.abc import Iterable, Iterator

from accounting.ids import JobId
from gateway.query.select import JobRef
from sbatch_shim.grammar.arrays import read_array
from sbatch_shim.grammar.values import read_digits

NO_BOUND = 2**32
MOST_NAMED = 65536
"""Elements that one command line names: a longer list is a slip of the keyboard, as of hosts."""


def read_ref(text: str) -> tuple[JobRef, ...] | None:
    """The jobs or elements named; None for text that names none."""
    name, dot, step = text.partition(".")
    base, underscore, tasks = name.partition("_")
    leader, plus, offset = base.partition("+")
    number, further = read_digits(leader), read_digits(offset) if plus else 0
    if number is None or further is None or (dot and not step):
        return None
    found = _elements(tasks) if underscore else (None,)
    if found is None:
        return None
    part = further if plus else None
    return tuple(JobRef(JobId(number + further), task, step or None, part) for task in found)


def _elements(text: str) -> tuple[int | None, ...] | None:
    if text == "*":
        return (None,)
    listed = text.startswith("[") and text.endswith("]")
    if not listed and not text.isdigit():
        return None
    array = read_array(text, NO_BOUND, most=MOST_NAMED)
    return array.tasks if array else None


def read_refs(texts: Iterable[str]) -> Iterator[tuple[str, tuple[JobRef, ...] | None]]:
    """Each word of lists, with what it names; None for what names nothing, or too much at last."""
    left = MOST_NAMED
    for word in [word for text in texts for word in cut_list(text)]:
        found = read_ref(word)
        left -= len(found or ())
        yield word, found if left >= 0 else None


def cut_list(text: str) -> list[str]:
    """Words between commas, commas within brackets aside; empty ones are left out."""
    words, depth, start = [], 0, 0
    for place, char in enumerate(text):
        depth += (char == "[") - (char == "]")
        if char == "," and depth <= 0:
            words.append(text[start:place].strip())
            start = place + 1
    return [word for word in [*words, text[start:].strip()] if word]
