"""Jobs as typed: `123`, `123_4`, `123_[1-3]`, `123.0`, `123+1`."""

import re
from typing import NamedTuple

from accounting.ids import JobId
from broker.model.commands import Target
from sbatch_shim.grammar.arrays import read_array
from sbatch_shim.grammar.values import read_digits

FORM = re.compile(
    r"(?P<job>\d+)(?:_(?P<tasks>\d+|\*|\[[^\]]*\])|\+(?P<part>\d+))?(?:\.(?P<step>\w+))?", re.A
)
MOST = 2**32 - 3
"""Slurm's ids have 32 bits, the highest of which mean something else."""


class Named(NamedTuple):
    """One job word; `text` as typed."""

    text: str
    target: Target
    part: int | None = None
    """Component of a heterogeneous job."""
    step: str | None = None

    @property
    def own(self) -> Target:
        """The record meant: of `123+1` the component's own."""
        return self.target if self.part is None else Target(JobId(self.target.job + self.part))

    @property
    def alone(self) -> Target:
        """What is changed: of `123+0` the first component without the others."""
        return self.target._replace(alone=self.part is not None)

    @property
    def plain(self) -> bool:
        """A job's id and nothing more."""
        return self.part is None and self.step is None and self.target.tasks is None


def read_job(text: str, max_array_size: int) -> Named | None:
    """The job that a word names; None if it names none."""
    found = FORM.fullmatch(text)
    job = read_digits(found["job"]) if found else None
    if found is None or not job or job > MOST:
        return None
    tasks = None
    if found["tasks"] not in (None, "*"):
        array = read_array(found["tasks"], max_array_size)
        if array is None or array.limit is not None:
            return None
        tasks = array.tasks
    part = read_digits(found["part"]) if found["part"] else None
    return Named(text, Target(JobId(job), tasks), part, found["step"])


def read_jobs(words: tuple[str, ...], max_array_size: int) -> tuple[list[Named], str | None]:
    """Every job of words that may be lists, and the first word that is none."""
    named: list[Named] = []
    for word in words:
        for text in _split(word):
            one = read_job(text, max_array_size)
            if one is None:
                return named, text
            named.append(one)
    return named, None


def _split(word: str) -> list[str]:
    """At commas outside of brackets."""
    return [part for part in re.split(r",(?![^\[]*\])", word) if part]
