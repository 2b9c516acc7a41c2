"""What sacct's filters are given: names, numbers and lists, with Slurm's words for bad ones."""

from collections.abc import Callable
from dataclasses import replace

from broker.world import Snapshot
from gateway.api.programs.reading import Options, fail, limit_of, lower, states_in
from gateway.query.refs import cut_list, read_ref
from gateway.query.sacct import FIRST_STEPS
from gateway.query.select import JobRef
from sbatch_shim.grammar.hostlist import HostlistError, expand
from sbatch_shim.grammar.values import read_digits

BAD_ELEMENT = "sacct: fatal: Bad job array element specified: {}\n"
BAD_HET = "sacct: fatal: Bad hetjob offset specified: {}\n"
BAD_STEP = "sacct: fatal: Bad step specified: {}\n"
BAD_JOB = "sacct: fatal: Bad job/step specified: {}\n"
BAD_QOS = (
    "sacct: error: You gave a bad qos '{}'. Valid QOS's are {}\n"
    "sacct: fatal: problem processing qos list\n"
)
BAD_FLAG = "sacct: error: str_2_job_flags: Invalid job flag {}\n"
FLAGS = ("SchedSubmit", "SchedMain", "SchedBackfill", "StartReceived")
BAD_RANGE = 'sacct: error: Invalid numeric value "{}" for requested {} range.\n'
BAD_STATE = "sacct: fatal: unrecognized job state value '{}'\n"


def refs_of(options: Options) -> tuple[JobRef, ...] | None:
    """Jobs, elements and steps named. Raises Finished for what names none."""
    text = options.joined("jobs")
    if text is None:
        return None
    refs: list[JobRef] = []
    for word in cut_list(text):
        base, underscore, rest = word.partition("_")
        if underscore and not rest[:1].isdigit():
            raise fail(BAD_ELEMENT.format(base))
        found = read_ref(word)
        if found is None:
            offset = base.partition("+")[0]
            raise fail(BAD_JOB.format(word) if offset == base else BAD_HET.format(offset))
        if not all(
            ref.step is None or ref.step.isdigit() or ref.step in FIRST_STEPS for ref in found
        ):
            raise fail(BAD_STEP.format(base.partition(".")[0]))
        refs += found
    return tuple(map(_wholly(options.text("whole-hetjob")), refs)) or None


def names_jobs(options: Options) -> bool:
    """Whether -j names any: an empty list is as none at all (22.05)."""
    return bool(cut_list(options.joined("jobs") or ""))


def _wholly(whole: str | None) -> Callable[[JobRef], JobRef]:
    """What a word means with --whole-hetjob: all components, or the first where none is named."""
    if whole is None:
        return lambda ref: ref
    if whole.lower() == "no":
        return lambda ref: replace(ref, part=ref.part or 0)
    return lambda ref: replace(ref, job=ref.leader, part=None)


def states(options: Options) -> frozenset[str] | None:
    """Long words; None for all. Raises Finished for a word that is none."""
    text = options.joined("state")
    if text is None:
        return None
    return states_in(text, bad=BAD_STATE) or None


def flags(options: Options) -> frozenset[str] | None:
    """Flags of which a job must have one. Raises Finished for a word that is none."""
    text = options.text("flags")
    if text is None:
        return None
    known = {flag.lower(): flag for flag in FLAGS}
    for word in (words := [word for word in text.split(",") if word]):
        if word.lower() not in known:
            raise fail(BAD_FLAG.format(word))
    return frozenset(known[word.lower()] for word in words)


def qos(options: Options, snap: Snapshot) -> frozenset[str] | None:
    """Names of QOS. Raises Finished for one that is not known."""
    names, known = lower(options.joined_words("qos")), snap.site.book.qos
    for name in sorted(names or ()):
        if name not in known:
            raise fail(BAD_QOS.format(name, ",".join(known)))
    return names


def hosts(text: str | None) -> frozenset[str] | None:
    """Names of nodes. Raises Finished for a list that is none."""
    if text is None:
        return None
    try:
        return frozenset(expand(text))
    except HostlistError:
        raise fail(f"sacct: error: Invalid hostlist: {text}\n") from None


def numbers_between(options: Options, long: str, kind: str) -> tuple[int, int] | None:
    """`2` or `1-4`. Raises Finished for other texts."""
    text = options.text(long)
    if text is None:
        return None
    low, dash, high = text.partition("-")
    least, most = read_digits(low), read_digits(high if dash else low)
    if least is None or most is None:
        raise fail(BAD_RANGE.format(text, kind))
    return least, most


def limits(options: Options) -> tuple[int, int] | None:
    """Seconds: of -k alone that limit, with -K what lies between; -K alone says nothing (22.05)."""
    least, most = (limit_of(options, f"timelimit-{end}", program="sacct") for end in ("min", "max"))
    return None if least is None else (least, least if most is None else most)
