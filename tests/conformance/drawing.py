"""Lines of sbatch options drawn from the option table, and what 22.05 cannot be asked of them."""

from dataclasses import dataclass

from hypothesis import strategies as st

from sbatch_shim.grammar.options import TABLES
from sbatch_shim.grammar.table import (
    ANY_COUNT,
    COUNT,
    CPU_FREQ,
    DIST,
    EXCLUSIVE,
    GEOMETRY,
    HINT,
    INSTANT,
    MAIL,
    MEM,
    MINUTES,
    NICE,
    NO,
    NODES,
    OLD,
    OPEN_MODE,
    PIECES,
    PRIORITY,
    REPEAT,
    REQUEUE,
    RLIMITS,
    SIGNAL,
    SPECIALIZE,
    SWITCHES,
    TIME,
    YES_NO,
    ZERO_ONE,
    Opt,
)

HELD, ARRAY = "@held", "@array"
AFTER = {HELD: ("--hold",), ARRAY: ("--hold", "--array=1-3")}
"""Jobs of each side whose ids the names stand for: dependencies name them."""

# fmt: off
NUMBERS = ("1", "2", "3", "4", "8", "0", "-1", "x", "2.5", "1k")
BY_KIND = {
    COUNT: NUMBERS, ANY_COUNT: NUMBERS, PIECES: ("1", "2", "4", "x", "0"),
    TIME: ("5", "1:30", "1:00:00", "1-0", "2-12:30", "3-1:2:3", "0", "INFINITE", "UNLIMITED", "-1",
           "x", "1:2:3:4", "90:90", "100:00:00", "8-0", "1-", "0:30", "", "5m"),
    MINUTES: ("1", "90", "1:30", "x"),
    MEM: ("100", "1G", "2048K", "1T", "x", "-5", "1.5G", "0", "16000", "4g", "300MB", "1023K",
          "20G"),
    NODES: ("1", "2", "4", "1-2", "2-4", "2-1", "9", "x", "1k", "0", "1-"),
    INSTANT: ("now+1hour", "now+3days", "now+90", "now+2weeks", "2035-01-02T03:04:05", "2035-01-02",
              "2035-01-02T03:04", "01/02/35", "0102", "x", "25:61", "tomorrow", "2030-13-01"),
    SIGNAL: ("USR1", "TERM@60", "B:10@120", "NOSUCH", "USR1@x", "SIGUSR2@90", "B:TERM", "70", "12@",
             "@60"),
    MAIL: ("NONE", "END", "BEGIN,FAIL", "ALL", "TIME_LIMIT_80", "nosuch", "ARRAY_TASKS,END",
           "REQUEUE", "STAGE_OUT", "TIME_LIMIT", "INVALID_DEPEND", "end", ""),
    OPEN_MODE: ("append", "truncate", "a", "x"),
    EXCLUSIVE: (None, "user", "mcs", "x"),
    DIST: ("block", "cyclic", "block:cyclic", "plane=2", "arbitrary", "x", "cyclic:block:fcyclic",
           "block,Pack", "cyclic,NoPack", "*:block", "plane"),
    GEOMETRY: ("1", "1:2", "1:4:1", "2:2:1", "*:2", "x", "1:2:3:4"),
    SPECIALIZE: ("1", "0", "4", "x"),
    SWITCHES: ("1", "2@10", "1@1:00:00", "x", "0"),
    NICE: (None, "5", "0", "-5", "100000", "x", "2147483646"),
    PRIORITY: ("5", "TOP", "x"),
    CPU_FREQ: ("low", "high", "2000", "Performance", "1000-2000:OnDemand", "x"),
    RLIMITS: ("ALL", "NONE", "CORE,NOFILE", "x"),
    YES_NO: ("yes", "no", "y", "x"),
    HINT: ("compute_bound", "memory_bound", "nomultithread", "multithread", "x"),
    ZERO_ONE: ("0", "1", "x"), REQUEUE: (None,), REPEAT: (None,),
}
BY_NAME = {
    "account": ("physics", "chem", "nosuch", ""),
    "acctg-freq": ("30", "task=60", "task=30,energy=10", "x"),
    "array": ("1-3", "0,5,7", "1-9:2%2", "3-1", "x", "1-1001", "1-5,9,12-20:4", "%2", "0-3%0", "7",
              "1,1,2", "1-2-3", "", "0-1000", "5-5", "1-3%100"),
    "bb": ("capacity=1G",),
    "chdir": ("/tmp", "sub/dir"),
    "comment": ("free text", "", "a=b c=d", "it's"),
    "constraint": ("spot", "spot&g5", "spot|ondemand", "[spot|ondemand]", "nosuch", "",
                   "(spot|ondemand)&g5", "spot,g5", "!spot"),
    "dependency": (
        f"after:{HELD}", f"afterok:{HELD}", f"afterany:{HELD}:{ARRAY}", f"after:{HELD}+5",
        f"afterok:{HELD},afterany:{ARRAY}", f"afternotok:{HELD}?afterany:{ARRAY}", "singleton",
        f"aftercorr:{ARRAY}", f"afterok:{ARRAY}_2", f"afterok:{ARRAY}_*",
        f"afterburstbuffer:{HELD}",
        "x", "afterok:", f"afterok:{HELD}?singleton", f"after:{HELD}+5:{ARRAY}+1", f"{HELD}", "",
        f"afterok:{HELD},", f"AfterOK:{HELD}", f"afterok:{HELD}:{HELD}", "expand:1",
        f"afterany:{HELD} afterok:{ARRAY}",
    ),
    "error": ("err", "e-%j.txt", "/dev/null"),
    "exclude": ("ec2-1", "ec2-[1-2]", "nosuch", "ec2-[1-4]", "ec2-1,ec2-3"),
    "extra-node-info": ("1", "1:2", "1:4:1", "2:2:1", "*:2", "x"),
    "gpu-bind": ("closest", "single:1", "none", "x", "map_gpu:0,1"),
    "gpu-freq": ("high", "medium,memory=low", "x"),
    "gpus": ("1", "2", "4", "a10g:2", "x", "0", "8", "a10g"),
    "gpus-per-node": ("1", "2", "3", "a10g:1", "a10g", "0"),
    "gpus-per-socket": ("1", "a10g:2"),
    "gpus-per-task": ("1", "2", "a10g:1", "0"),
    "gres": ("gpu:1", "gpu:a10g:2", "gpu:3", "nosuch:1", "gpu", "gpu:a10g", "gpu:2,gpu:a10g:1",
             "none", "gpu:0", "gpu:x", "gpu:1K"),
    "gres-flags": ("enforce-binding", "disable-binding", "x"),
    "input": ("in.txt", "/dev/null", "in-%j"),
    "job-name": ("name", "a b", "%j", "", "x" * 70),
    "licenses": ("nosuch:1",),
    "mail-user": ("a@b.c", "bob", ""),
    "mcs-label": ("x",),
    "mem-bind": ("local", "x"),
    "network": ("ib",),
    "no-kill": (None, "off"),
    "nodefile": ("nosuchfile",),
    "nodelist": ("ec2-2", "ec2-[3-4]", "nosuch", "ec2-1,ec2-1", "ec2-[1-4]", "ec2-2,ec2-1", ""),
    "ntasks-per-tres": ("1", "2"),
    "output": ("out", "o-%j-%x.txt", "/dev/null", "o-%A_%a", "o-%u"),
    "partition": ("ec2", "debug", "ec2,debug", "nosuch", "chemonly", "rootonly", "down",
                  "debug,ec2",
                  "", "ec2,nosuch"),
    "prefer": ("spot", "nosuch"),
    "profile": ("none", "all", "task,energy", "x"),
    "qos": ("normal", "high", "short", "nosuch", "gpu1", ""),
    "reservation": ("nosuch", ""),
    "resv-ports": (None, "2"),
    "tres-per-task": ("cpu=2", "gres/gpu=1"),
    "tres-bind": ("gres/gpu:closest", "x"),
    "wckey": ("key",),
}
"""What an option is given, by its name or else by its kind; None stands for no argument."""
FLAGS = ("contiguous", "hold", "no-requeue", "overcommit", "oversubscribe", "reboot", "requeue",
         "use-min-nodes")

NEWER = {
    "batch": "25.11 words its refusal otherwise", "hint": "25.11 ends with another status",
    "consolidate-segments": "not in 22.05", "container-id": "not in 22.05",
    "external": "not in 22.05", "extra": "not in 22.05", "oom-kill-step": "not in 22.05",
    "prefer": "22.05 shows it otherwise", "resources": "not in 22.05", "segment": "not in 22.05",
    "spread-segments": "not in 22.05", "stepmgr": "not in 22.05",
    "cpus-per-gpu": "25.11 asks for GPUs beside it", "spread-job": "25.11 shows it otherwise",
    "deadline": "25.11 refuses one that cannot be kept",
    "resv-ports": "25.11 wants a step manager beside it",
    "tres-per-task": "22.05 does not know it", "tres-bind": "not alike",
}
"""Not drawn, since 22.05 takes them otherwise."""
NEWER_VALUES = {
    ("gres", "gpu"): "25.11 takes it as one", ("partition", ""): "25.11 takes it",
    ("signal", "R:TERM"): "25.11 refuses it here",
}
NOT_OF_ALL = frozenset({
    "autocomplete", "bbf", "clusters", "container", "context", "export", "export-file",
    "get-user-env", "gid", "help", "ignore-pbs", "parsable", "quiet", "test-only", "uid", "usage",
    "verbose", "version", "wait", "wait-all-nodes", "wrap", "cluster-constraint",
})
"""They change the answer, not the job, or need what the site does not have."""
# fmt: on


@dataclass(frozen=True, slots=True)
class Line:
    """What is typed: options of each component, as arguments or as lines of the script."""

    parts: tuple[tuple[str, ...], ...]
    directives: bool

    def arguments(self) -> list[str]:
        if self.directives:
            return []
        words = list(self.parts[0])
        for part in self.parts[1:]:
            words += [":", *part]
        return words

    def script(self) -> str:
        """The script that is submitted."""
        lines = ["#!/bin/sh"]
        for number, part in enumerate(self.parts if self.directives else ()):
            lines += ["#SBATCH hetjob"] * bool(number) + [f"#SBATCH {quoted(w)}" for w in part]
        return "\n".join([*lines, "true", ""])

    def __str__(self) -> str:
        text = " : ".join(" ".join(map(quoted, part)) for part in self.parts)
        return f"{'#SBATCH ' if self.directives else ''}{text}"


def quoted(word: str) -> str:
    """As a directive has it."""
    return '"' + word + '"' if set(word) & set(" '&|*()[]!?") else word


def drawn(opt: Opt) -> "st.SearchStrategy[str]":
    """The option as a word: long with `=` or, where it has one, its letter."""
    if opt.arg in (NO, OLD):
        return st.just(f"--{opt.long}")
    values = st.sampled_from([v for v in values_of(opt) if (opt.long, v) not in NEWER_VALUES])
    forms = [lambda text: f"--{opt.long}" if text is None else f"--{opt.long}={text}"]
    if opt.short and not any(text in (None, "") for text in values_of(opt)):
        forms.append(lambda text: f"-{opt.short}{text}")
    return st.builds(lambda form, text: form(text), st.sampled_from(forms), values)


def values_of(opt: Opt) -> tuple[str | None, ...]:
    """What it may be given here; none where that is not known."""
    return BY_NAME.get(opt.long) or BY_KIND.get(opt.kind, ())


def options(focus: frozenset[str] = frozenset()) -> list[Opt]:
    """Those of sbatch whose values are known how to draw; of `focus` alone, if there is any."""
    rows = [opt for opt in TABLES["sbatch"].by_long.values() if not opt.same]
    rows = [opt for opt in rows if opt.long not in NEWER and opt.long not in NOT_OF_ALL]
    known = [opt for opt in rows if (opt.long in FLAGS if opt.arg in (NO, OLD) else values_of(opt))]
    return [opt for opt in known if not focus or opt.long in focus]


def part(rows: list[Opt], most: int) -> "st.SearchStrategy[tuple[str, ...]]":
    """Up to so many options, each once, in any order."""
    some = st.lists(st.sampled_from(rows), min_size=1, max_size=most, unique_by=lambda o: o.long)
    return some.flatmap(lambda chosen: st.tuples(*map(drawn, chosen)))


def lines(focus: frozenset[str], most: int, components: int) -> "st.SearchStrategy[Line]":
    """Lines of so many components, of each up to so many options."""
    rows = options(focus)
    parts = st.tuples(*[part(rows, most)] * components)
    return st.builds(Line, parts, st.sampled_from((False, False, True)))
