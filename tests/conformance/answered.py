"""What a side made of a line, in words that both releases have, and where two of them differ."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from gateway.query.fields import BY_LONG

Pairs = Mapping[str, str]
WIDTH = 60
CLOSE = 5
"""Seconds that two sides may be apart."""

# fmt: off
NOT_COMPARED = {
    "AllocNode:Sid", "RunTime", "LastSchedEval", "Scheduler", "AccrueTime", "SchedNodeList",
    "Priority", "Power", "TresPerTask", "SpreadJob", "TRES", "ReqTRES",
    "AllocTRES", "LicensesAlloc", "SubmitLine", "StdErr",
    "SubmitTime", "UserId", "GroupId", "Command", "Governor",
}
"""Of scontrol: the moment, the machine, or what the newer release writes on lines of its own."""
COLUMNS_NOT_COMPARED = {
    "accruetime", "allocnodes", "allocsid", "lastschedeval", "priority", "prioritylong",
    "pendingtime", "stderr", "stdin", "stdout", "command", "sluid", "licensesalloc", "segmentsize",
    "containerid", "cronjob", "submittime", "timeleft", "cost", "costrate", "derivedec", "associd",
    "minmemory", "reason", "reasonlist", "exit_code", "maxcpus", "maxnodes", "mcslabel", "mintime",
    "wait4switch", "jobarrayid", "cluster", "tres-per-task", "tres-bind", "schednodes",
    "excnodes", "extra", "userid", "costrateage",
    "groupid", "packjobid", "packjobidset", "packjoboffset", "prefer",
}
NAMES = tuple(name for name in BY_LONG if name not in COLUMNS_NOT_COMPARED)
NEWER_WORDS = {
    "gres:": "gres/",
    "--gpus-per-task used": "--gpus-per-task or --tres-per-task used",
    "--gpu-bind argument: gpu:": "--gpu-bind argument: ",
    "Warning:": "warning:",
}
# fmt: on
UNSETTLED = ("None", "PartitionConfig", "PartitionDown", "Job's_")
"""Reasons of a job of later until the scheduler has looked at it."""
COLUMNS = ",".join(f"{name}:{WIDTH}" for name in NAMES)


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a line was taken, and what its job shows, component by component."""

    taken: bool
    shown: tuple[Pairs, ...]
    listed: tuple[Pairs, ...]
    said: str = ""
    code: int = 0


def records(shown: str, names: Pairs) -> tuple[Pairs, ...]:
    """The pairs of each record of `scontrol show job -o`."""
    found = (_record(named(line, names)) for line in shown.splitlines() if line)
    return tuple(sorted(found, key=lambda pairs: pairs.get("JobId", "")))


def _record(line: str) -> dict[str, str]:
    pairs = re.findall(r"(\S+?)=(.*?)(?= +[A-Za-z][\w/:-]*(?:/Task|:\w)*=|$)", line)
    found = {name.replace("KillOInInv", "KillOnInv"): value.strip() for name, value in pairs}
    if found.get("TresBind", "").startswith("gres/gpu:per_task"):
        found.pop("TresBind")
    if "MemPerTres" in found:
        found = {name: value for name, value in found.items() if not name.startswith("MinMemory")}
    if found.get("Reason", "").startswith(UNSETTLED):
        found.pop("Reason")
    return {name: alike(name, value) for name, value in found.items()} | {
        "tres": found.get("ReqTRES") or found.get("TRES") or ""
    }


def columns(listed: str, names: Pairs) -> tuple[Pairs, ...]:
    """The columns of each line of `squeue -O`."""
    return tuple(
        {
            name: alike(name, named(line[at * WIDTH : (at + 1) * WIDTH].strip(), names))
            for at, name in enumerate(NAMES)
        }
        for line in listed.splitlines()
    )


def named(text: str, names: Pairs) -> str:
    """With names in the place of ids; the components of a job count on from its id."""
    for number, name in names.items():
        text = re.sub(rf"(?<!\d){number}(?!\d)", name, text)
        for offset in (1, 2):
            text = re.sub(rf"(?<!\d){int(number) + offset}(?!\d)", f"{name}+{offset}", text)
    return text


def alike(name: str, value: str) -> str:
    """The older release's way of writing as the newer's."""
    value = re.sub(r"\bgres:(?=\w)", "gres/", value)
    if name in ("TresBind", "tres-bind") and value.startswith("gpu:"):
        return f"gres/{value}"
    if name == "NumNodes" and value.partition("-")[0] == value.partition("-")[2]:
        return value.partition("-")[0]
    return value


def newer(said: str) -> str:
    """An error of the older release as the newer words it."""
    for old, new in NEWER_WORDS.items():
        said = said.replace(old, new)
    return re.sub(r"error: \d: ", "error: ", said)


def differences(real: Answer, ours: Answer) -> Iterator[str]:
    """A line for each."""
    if real.taken != ours.taken:
        who, why = ("ours", ours.said) if real.taken else ("the real one", real.said)
        yield f"only {who} refuses: {why.strip()}"
    elif not _alike_but_for_moments(newer(real.said), ours.said):
        yield f"real says {real.said!r}, ours {ours.said!r}"
    if real.code != ours.code and real.taken == ours.taken:
        yield f"real exits with {real.code}, ours with {ours.code}"
    if real.taken and ours.taken:
        yield from _differ(real.shown, ours.shown, NOT_COMPARED)
        yield from _differ(real.listed, ours.listed, set())


MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def _alike_but_for_moments(one: str, other: str) -> bool:
    """Whether two texts are the same, moments in them being a few seconds apart at most."""
    pairs = zip(MOMENT.findall(one), MOMENT.findall(other), strict=False)
    same = MOMENT.sub("", one) == MOMENT.sub("", other)
    return same and all(_close(*pair) for pair in pairs)


def _differ(real: tuple[Pairs, ...], ours: tuple[Pairs, ...], but: set[str]) -> Iterator[str]:
    if len(real) != len(ours):
        yield f"real shows {len(real)} records, ours {len(ours)}"
    for one, other in zip(real, ours, strict=False):
        but = but if one.get("Reason") and other.get("Reason") else {*but, "Reason"}
        for name in sorted((one.keys() | other.keys()) - but):
            pair = one.get(name), other.get(name)
            if pair[0] != pair[1] and not _close(*pair):
                yield f"{name}: real {pair[0]}, ours {pair[1]}"


def _close(one: str | None, other: str | None) -> bool:
    """Whether both are moments, a few seconds apart."""
    try:
        apart = datetime.fromisoformat(one or "") - datetime.fromisoformat(other or "")
    except ValueError:
        return False
    return abs(apart.total_seconds()) <= CLOSE
