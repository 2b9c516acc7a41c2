"""Draws limits and jobs, and compares what a real Slurm and this service do with the jobs.

limits.py --conf FILE [--scenes N] [--orders N] [--seed N]

As root, beside a Slurm 22.05 that answers. In each scene some limits are set on a QOS, accounts
and a user of both, jobs are submitted one after the other, and what becomes of each is put
side by side: the refusal's limit, or its state and the reason why it waits. In other scenes one
job breaks many limits, which are taken away one by one: in which order they are named.
"""

import argparse
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import side as sides
from side import Side

USER, ACCOUNT, GRADE = "alice", "chem", "high"
SECONDS = 30
SETTLES = 3
"""Seconds after which reasons stand."""
WHERE: Mapping[str, tuple[str, ...]] = {
    "qos": ("qos", GRADE),
    "user": ("user", USER, f"account={ACCOUNT}"),
    "chem": ("account", ACCOUNT),
    "research": ("account", "research"),
}
TRES = ("cpu", "node", "gres/gpu", "billing", "mem")
FOR_BOTH = (
    "GrpJobs",
    "GrpSubmitJobs",
    "GrpWall",
    "GrpTRES",
    "GrpTRESMins",
    "GrpTRESRunMins",
    "MaxTRES",
    "MaxTRESPerNode",
    "MaxTRESMins",
    "MaxWall",
)
LIMITS: Mapping[str, tuple[str, ...]] = {
    "qos": (
        *FOR_BOTH,
        "MaxJobsPU",
        "MaxJobsPA",
        "MaxSubmitJobsPU",
        "MaxSubmitJobsPA",
        "MaxTRESPU",
        "MaxTRESPA",
        "MinTRES",
    ),
    "user": (*(name for name in FOR_BOTH if name != "GrpWall"), "MaxJobs", "MaxSubmitJobs"),
    "chem": (*FOR_BOTH, "MaxJobs", "MaxSubmitJobs"),
    "research": FOR_BOTH,
}
SHAPES = (
    ("-n1",),
    ("-N1", "-n2"),
    ("-N1", "-n3"),
    ("-N2",),
    ("-n1", "--gres=gpu:1"),
    ("-n1", "--exclusive"),
    ("-N2", "-n4"),
)
"""How many nodes each has is said: 22.05 fills nodes in their order and may take two where one has
room, which limits of nodes then count.
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """Limits by whom, and the jobs' options."""

    limits: tuple[tuple[str, str, str], ...]
    """Whose, which, how much."""
    denies: bool
    jobs: tuple[tuple[str, ...], ...]
    factor: str = ""
    """The QOS's UsageFactor, where it is not 1."""
    counts: bool = False
    """Whether time limits count times it (UsageFactorSafe)."""

    def __str__(self) -> str:
        told = [f"{whose}:{name}={value}" for whose, name, value in self.limits]
        told += [f"UsageFactor={self.factor}"] if self.factor else []
        return f"{' '.join([*told, *self.flags])} {[' '.join(j) for j in self.jobs]}"

    @property
    def flags(self) -> tuple[str, ...]:
        known = ("DenyOnLimit", self.denies), ("UsageFactorSafe", self.counts)
        return tuple(name for name, has in known if has)


def drawn(luck: random.Random) -> Scene:
    places = [luck.choice(tuple(WHERE)) for _ in range(luck.randint(1, 3))]
    limits = [(whose, luck.choice(LIMITS[whose])) for whose in places]
    jobs = [
        (*luck.choice(SHAPES), f"-t{luck.choice((1, 5, 10, 30))}")
        for _ in range(luck.randint(1, 4))
    ]
    return Scene(
        tuple((whose, name, _value(luck, name)) for whose, name in dict.fromkeys(limits)),
        luck.random() < 0.3,
        tuple(jobs),
        luck.choice(("", "", "2", "0.5")),
        luck.random() < 0.5,
    )


def _value(luck: random.Random, name: str) -> str:
    if "TRES" not in name:
        return str(luck.choice((1, 2, 10) if "Wall" in name else (1, 1, 2)))
    tres = luck.choice(TRES)
    most = luck.choice((10, 30, 60) if "Mins" in name else (1, 2, 4))
    return f"{tres}={most * (1024 if tres == 'mem' else 1)}"


def limit(side: Side, scene: Scene, *, taken_away: bool = False) -> None:
    for whose, name, value in scene.limits:
        tres = value.partition("=")[0]
        none = f"{tres}=-1" if "TRES" in name else "-1"
        kind, *which = WHERE[whose]
        setting = f"{name}={none if taken_away else value}"
        side.run("sacctmgr", "-i", "modify", kind, *which, "set", setting)
    words = [f"flags{'-=' if taken_away else '+='}{','.join(scene.flags)}"] if scene.flags else []
    words += [f"usagefactor={1 if taken_away else scene.factor}"] if scene.factor else []
    if words:
        side.run("sacctmgr", "-i", "modify", "qos", GRADE, "set", *words)


def unlimited(side: Side) -> None:
    """What an earlier run may have left behind is taken away."""
    for whose, names in LIMITS.items():
        kind, *which = WHERE[whose]
        each = [(name, TRES if "TRES" in name else ("",)) for name in names]
        words = [f"{n}={f'{one}=' if one else ''}-1" for n, many in each for one in many]
        side.run("sacctmgr", "-i", "modify", kind, *which, "set", *words)
    words = ("flags-=DenyOnLimit,UsageFactorSafe", "usagefactor=1")
    side.run("sacctmgr", "-i", "modify", "qos", GRADE, "set", *words)


def submit(side: Side, scene: Scene) -> list[str]:
    """Ids, or what was refused."""
    usual = ("sbatch", "--parsable", "-A", ACCOUNT, f"--qos={GRADE}", "-o/dev/null")
    each = (side.run(*usual, *job, "--wrap", "sleep 99", user=USER) for job in scene.jobs)
    return [_id_or_refusal(done) for done in each]


def _id_or_refusal(done: "subprocess.CompletedProcess[str]") -> str:
    if done.returncode == 0:
        return done.stdout.strip()
    return " ".join(line.rpartition("error: ")[2] for line in done.stderr.splitlines()[:1])


def became(side: Side, submitted: Sequence[str]) -> list[str]:
    """State and reason of each, and refusals as they are."""
    listed = side.run("squeue", "-h", "-o", "%i %T %r").stdout.splitlines()
    known = dict(line.split(" ", 1) for line in listed if " " in line)
    found = [known.get(one, f"gone {one}") if one.isdecimal() else one for one in submitted]
    return [_even(one) for one in found]


def clear(side: Side, scene: Scene) -> None:
    side.run("scancel", "-u", USER)
    limit(side, scene, taken_away=True)
    for kind, *which in WHERE.values():  # what was used counts no more
        side.run("sacctmgr", "-i", "modify", kind, *which, "set", "RawUsage=0")
    end = time.monotonic() + SECONDS
    while side.run("squeue", "-h").stdout and time.monotonic() < end:
        time.sleep(0.2)


def _even(told: str) -> str:
    """Whether a job has come to run yet, and why it waits for room, is chance."""
    state, _, reason = told.partition(" ")
    if state in {"RUNNING", "CONFIGURING"} or reason in {"Resources", "Priority", "None"}:
        return "goes"
    return told


def differences(real: Side, ours: Side, *, scenes: int, seed: int) -> Iterator[str]:
    luck = random.Random(seed)
    unlimited(real)
    for _ in range(scenes):
        scene = drawn(luck)
        there, here = outcomes(real, ours, scene)
        if there != here:
            yield f"{scene}\n    real {there}\n    ours {here}"


def outcomes(real: Side, ours: Side, scene: Scene) -> tuple[list[str], list[str]]:
    """What becomes of its jobs there and here."""
    for side in (real, ours):
        limit(side, scene)
    time.sleep(1)
    submitted = [submit(side, scene) for side in (real, ours)]
    time.sleep(SETTLES)
    there, here = (became(s, ids) for s, ids in zip((real, ours), submitted, strict=True))
    for side in (real, ours):
        clear(side, scene)
    return there, here


MANY = 7


def many(luck: random.Random) -> Scene:
    """Limits that one job breaks all together."""
    places = [luck.choice(tuple(WHERE)) for _ in range(MANY)]
    limits = dict.fromkeys((whose, luck.choice(LIMITS[whose])) for whose in places)
    job = (*luck.choice(SHAPES[:5]), "-t10")
    return Scene(
        tuple((whose, name, _nothing(luck, name)) for whose, name in limits),
        luck.random() < 0.5,
        (job,),
    )


def _nothing(luck: random.Random, name: str) -> str:
    """No job is within it."""
    if "TRES" not in name:
        return "0"
    tres = luck.choice(("cpu", "node", "billing", "mem"))
    return f"{tres}={10**6 if name.startswith('Min') else 0}"


def orders(real: Side, ours: Side, *, scenes: int, seed: int) -> Iterator[str]:
    """Scenes in which another limit is named, at first or when others are taken away."""
    luck = random.Random(seed)
    for _ in range(scenes):
        scene = many(luck)
        while scene.limits:
            there, here = outcomes(real, ours, scene)
            if there != here:
                yield f"{scene}\n    real {there}\n    ours {here}"
            scene = replace(scene, limits=scene.limits[1:])


def main(argv: Sequence[str]) -> int:
    """The exit status: 1 where something differs."""
    parser = argparse.ArgumentParser(description="Compare limits with a real Slurm's.")
    parser.add_argument("--conf", type=Path, required=True)
    parser.add_argument("--scenes", type=int, default=10)
    parser.add_argument("--orders", type=int, default=2, help="scenes of many limits")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(argv)
    count = 0
    with sides.ours() as ours:
        real = sides.real(asked.conf)
        found = differences(real, ours, scenes=asked.scenes, seed=asked.seed)
        ordered = orders(real, ours, scenes=asked.orders, seed=asked.seed)
        for line in chain(found, ordered):
            print(line, flush=True)
            count += 1
    print(f"limits: {asked.scenes} scenes, {asked.orders} orders, {count} differences")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
