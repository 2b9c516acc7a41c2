"""Where a site has a Slurm of its own: whose a command is, by partition and by job id. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from broker.model.site import MAX_JOB_ID
from gateway.passthrough import controlled
from sbatch_shim.grammar import pbs, script
from sbatch_shim.grammar.errors import OPTION_ERROR, GrammarError
from sbatch_shim.grammar.getopt import Reader, Said
from sbatch_shim.grammar.options import lookup
from sbatch_shim.grammar.parse import Query, look, parse_query


class SiteSlurm(Protocol):
    """The site's own Slurm, as far as commands are handed on to it."""

    def command(self, program: str) -> str | None:
        """Absolute path of its command of this name; None where it has none."""
        ...


ALL_CLUSTERS = "all"


class Whose(StrEnum):
    """Who answers a command."""

    OURS = "ours"
    SITE = "site"
    BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class Border:
    """What is ours: partitions, and job ids from the first on."""

    ours: frozenset[str]
    site: frozenset[str] = frozenset()
    """The site's partitions; empty: every one that is not ours."""
    first_job: int = 1
    last_job: int = MAX_JOB_ID
    default: bool = True
    """Whether a job that names no partition is ours."""
    cluster: str = ""
    """Our own."""
    theirs: str | None = None
    """The site's cluster; None while it is not known."""

    def of_partition(self, name: str) -> Whose:
        """A partition that nobody has is ours: we say that there is none."""
        theirs = name not in self.ours and (not self.site or name in self.site)
        return Whose.SITE if theirs else Whose.OURS

    def of_job(self, text: str) -> Whose | None:
        """By the number that the text begins with; None where it begins with none."""
        number = re.match(r"\d+", text)
        if number is None:
            return None
        ours = self.first_job <= int(number[0]) <= self.last_job
        return Whose.OURS if ours else Whose.SITE

    def of_clusters(self, names: str | None) -> Whose | None:
        """By the names of `-M`; None where there is none, or one that both have."""
        asked = set(filter(None, (names or "").split(",")))
        if not asked or self.theirs in {None, self.cluster}:
            return None
        if asked == {self.theirs}:
            return Whose.SITE
        return Whose.BOTH if asked & {self.theirs, ALL_CLUSTERS} else Whose.OURS


def of_all(parts: Iterable[Whose | None]) -> Whose | None:
    """One answer for several; None where there is none at all."""
    found = {part for part in parts if part is not None}
    return Whose.BOTH if len(found) > 1 else next(iter(found), None)


# ---------------------------------------------------------------- submitting

INSIDE = {"srun": "SLURM_JOB_ID"}
"""Programs that run within a job, and what names it."""


def submission(
    program: str,
    argv: Sequence[str],
    environ: Mapping[str, str],
    *,
    border: Border,
    batch: str | None = None,
) -> Whose:
    """Whose job it is; `batch` is the script's text. A line that cannot be read is ours.

    A list of partitions of both is ours, too: one job cannot be in two clusters.
    """
    try:
        clusters = border.of_clusters(_told(program, argv, environ, long="clusters", batch=batch))
        told = _told(program, argv, environ, long="partition", batch=batch)
        job = _job(program, argv, environ)
    except GrammarError:
        return Whose.OURS
    if job is not None:
        return border.of_job(job) or Whose.OURS
    if clusters is not None:
        return Whose.SITE if clusters is Whose.SITE else Whose.OURS
    if told is None:
        return Whose.OURS if border.default else Whose.SITE
    found = of_all(map(border.of_partition, filter(None, told.split(","))))
    return Whose.SITE if found is Whose.SITE else Whose.OURS


def depends_on(
    program: str,
    argv: Sequence[str],
    environ: Mapping[str, str],
    *,
    border: Border,
    batch: str | None = None,
) -> str | None:
    """A job of ours that a submission to the site would wait for: its Slurm takes it for over.

    (22.05: a job that is not known counts as done.)
    """
    try:
        told = _told(program, argv, environ, long="dependency", batch=batch)
    except GrammarError:
        return None
    named = re.findall(r":(\d+)", told or "")
    return next((job for job in named if border.of_job(job) is Whose.OURS), None)


def _job(program: str, argv: Sequence[str], environ: Mapping[str, str]) -> str | None:
    if program == "sattach":
        return next((word for word in argv if not word.startswith("-")), None)
    if program not in INSIDE:
        return None
    typed = _last(look(program, argv).parts[0], "jobid")
    return typed or environ.get(INSIDE[program])


def _told(
    program: str, argv: Sequence[str], environ: Mapping[str, str], *, long: str, batch: str | None
) -> str | None:
    """An option as sbatch weighs it: the line, the environment, the script. Raises GrammarError."""
    if program == "sattach":
        return None
    typed = _last(look(program, argv).parts[0], long)
    if typed is not None:
        return typed
    names = [name for name, opt in lookup(program).variables if opt.long == long]
    told = [environ[name] for name in names if name in environ]
    if told or batch is None:
        return told[-1] if told else None
    return _written(program, batch, long=long)


def _written(program: str, batch: str, *, long: str) -> str | None:
    for mark in pbs.TABLES:
        words = script.read_foreign(batch, mark, name="", program=program)
        told = [text for name, text in pbs.translate(mark, words) if name == long]
        if told:
            return told[-1]
    words = script.read_head(batch, "", program).parts[0]
    return _last(Reader(lookup(program), words, OPTION_ERROR, old=True).leading(), long)


def _last(said: Iterable[Said], long: str) -> str | None:
    return next(iter([one.text for one in said if one.opt.long == long][::-1]), None)


# ---------------------------------------------------------------- asking

HEADLESS = {"squeue": "-h", "sinfo": "-h", "sacct": "-n"}
"""Listings, and the option that takes the second's headline away."""
MERGED = frozenset((*HEADLESS, "scancel"))
"""Both sides answer unless the line is about one of them."""
WHOLE = frozenset(("help", "helpformat", "helpFormat", "helpstate", "usage", "version"))
"""Answers about the command itself: ours alone."""


def question(
    program: str, argv: Sequence[str], environ: Mapping[str, str], *, border: Border
) -> Whose:
    """Whose answer is wanted. A line that cannot be read is ours."""
    try:
        query = parse_query(program, argv, environ)
    except GrammarError:
        return Whose.OURS
    clusters = border.of_clusters(_text(query, "clusters"))
    if clusters is Whose.SITE:
        return clusters
    if WHOLE & query.given.keys():
        return Whose.OURS
    named = (
        clusters
        or of_all(map(border.of_job, jobs_of(program, query)))
        or of_all(map(border.of_partition, _partitions(program, query)))
    )
    asked = named or Whose.BOTH
    return Whose.OURS if asked is Whose.BOTH and program not in MERGED else asked


def _text(query: Query, long: str) -> str | None:
    return query.given[long].text if long in query.given else None


def jobs_of(program: str, query: Query) -> list[str]:
    """The jobs that a line names."""
    named: list[str] = []
    if "jobs" in query.given:  # a value behind a blank is an operand, if it may be left out
        given = query.given["jobs"].text or next(iter(query.operands), "")
        named = str(given).split(",")
    if program == "sbcast" and "jobid" in query.given:
        named.append(str(query.given["jobid"].text).partition(".")[0])
    if program in ("scancel", "seff"):
        named += query.operands
    return named + list(controlled.jobs(query.operands) if program == "scontrol" else ())


def _partitions(program: str, query: Query) -> list[str]:
    """The names after `-p`; where that takes none (sshare) there are none."""
    if program == "scontrol":
        return list(controlled.partitions(query.operands))
    texts = (query.given[long].text for long in ("partition", "partitions") if long in query.given)
    return [name for text in texts if text for name in str(text).split(",") if name]
