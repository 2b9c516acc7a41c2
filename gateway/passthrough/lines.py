"""The lines that ours and the site's command get where both answer. Pure."""

from collections.abc import Mapping, Sequence

from gateway.passthrough.base import HEADLESS, Border, Whose
from sbatch_shim.grammar.parse import Query, parse_query


def without(program: str, argv: Sequence[str], long: str) -> tuple[str, ...]:
    """The line without an option. Raises GrammarError."""
    query = parse_query(program, argv, {})
    return *options_of(query, long), *query.operands


def options_of(query: Query, *leave: str) -> list[str]:
    """Each in its long form, joined to its value; without those that are left out."""
    said = (one for one in query.said if one.opt.long not in leave)
    return [
        f"--{one.opt.long}" if one.text is None else f"--{one.opt.long}={one.text}" for one in said
    ]


def by_cluster(
    program: str, argv: Sequence[str], environ: Mapping[str, str], *, border: Border
) -> tuple[list[str], list[str]] | None:
    """The line for us and for the site where `-M` names clusters of both; None where it does not.

    Clusters that nobody knows are the site's to tell of. Raises GrammarError.
    """
    told = parse_query(program, argv, environ).given.get("clusters")
    names = told.text if told is not None else None
    if border.of_clusters(names) is not Whose.BOTH:
        return None
    others = [name for name in str(names).split(",") if name not in {"", border.cluster}]
    kept = without(program, argv, "clusters")
    bare = [HEADLESS[program]] if program == "sacct" else []
    return [f"--clusters={border.cluster}", *kept], [*bare, f"--clusters={','.join(others)}", *kept]


def shares(argv: Sequence[str], *, border: Border) -> tuple[Sequence[str], Sequence[str]]:
    """scancel's line for us and for the site: each gets its jobs, filters alone count on both.

    Raises GrammarError.
    """
    query = parse_query("scancel", argv, {})
    if not query.operands:
        return argv, argv
    options = options_of(query)
    theirs = [word for word in query.operands if border.of_job(word) is Whose.SITE]
    ours = [word for word in query.operands if word not in theirs]
    return [*options, *ours], [*options, *theirs]
