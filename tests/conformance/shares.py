"""Draws accounts, shares and use, and compares fair share and priorities with a real Slurm's.

shares.py --conf FILE [--scenes N] [--seed N]

As root, beside a Slurm 22.05 that answers and that may be restarted: its configuration is FILE.
What was used is written into slurmctld's own file of it (state/assoc_usage). Then columns of
`sshare` are put beside `accounting.fairshare`, and factors of `sprio` beside
`broker.schedule.priority`.
"""

import argparse
import os
import random
import re
import struct
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from side import real

from accounting.assoc import ROOT, USE_PARENT, Account, Association, Book, book
from accounting.fairshare import Key, Standing, fill, stand, tree
from accounting.ids import AccountName, JobId, UserName
from accounting.tres import Tres, gres_counts
from broker.model.job import Job, Owner
from broker.model.site import with_book
from broker.model.spec import Resources, TaskSpec
from broker.schedule.priority import Ranks, initial, scale_of
from gateway.config.load import load
from gateway.config.site import site

HERE = Path(__file__).resolve().parent
CLOSE = 1e-4
HUNDREDTHS = 0.005
"""sprio's factors of TRES have two places."""
ROUNDING = 1e-9
VERSION = 38 << 8
"""Of slurmctld's files in 22.05."""
SECONDS = 60
PEOPLE = {"alice": 2001, "bob": 2002}
"""Users whom the host knows, for jobs."""
STRANGERS = tuple(f"u{number}" for number in range(5))
COLUMNS = ("NormShares", "NormUsage", "EffectvUsage", "FairShare", "LevelFS")
FACTORS = ("age", "fairshare", "size", "partition", "qos", "assoc")
LETTERS = "%i|%a|%f|%j|%p|%q|%b|%N|%Y|%t"
GRADES = ("normal", "high")
WEIGHT = "PriorityWeightAssoc"
WEIGHED = 500
"""Slurm reckons a factor only if it has a weight, and a site of 22.05 has none for this one."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A drawn tree of accounts with its users, and what they used: billing-seconds."""

    accounts: tuple[Account, ...]
    associations: tuple[Association, ...]
    used: Mapping[Key, float]


def drawn(luck: random.Random) -> Scene:
    names = [AccountName(f"a{number}") for number in range(luck.randint(2, 7))]
    accounts = [
        Account(
            name=name,
            parent=luck.choice([ROOT, *names[:number]]),
            fairshare=_shares(luck),
            priority=_priority(luck),
        )
        for number, name in enumerate(names)
    ]
    people = [*PEOPLE, *STRANGERS]
    associations = [
        Association(
            user=UserName(user), account=name, fairshare=_shares(luck), priority=_priority(luck)
        )
        for user in people
        for name in luck.sample(names, luck.randint(1, min(3, len(names))))
    ]
    used = {(str(one.account), str(one.user)): _use(luck) for one in associations}
    return Scene(tuple(accounts), tuple(associations), used)


def _shares(luck: random.Random) -> int:
    return USE_PARENT if luck.random() < 0.15 else luck.choice((1, 1, 2, 5, 10, 77))


def _priority(luck: random.Random) -> int | None:
    return luck.choice((None, None, 0, 3, 100, 4000))


def _use(luck: random.Random) -> float:
    return luck.choice((0.0, 0.0, 1e3, 1e6, luck.uniform(1, 1e9)))


# ---------------------------------------------------------------- the real one


@dataclass(frozen=True, slots=True)
class Slurm:
    """A running one, with what is known of it from its configuration."""

    conf: Path

    def run(self, *words: str, user: str | None = None) -> str:
        return real(self.conf).run(*words, user=user).stdout

    def setting(self, name: str) -> str:
        found = re.search(rf"^{name}=(\S+)", self.conf.read_text(), re.MULTILINE)
        assert found, f"{self.conf} has no {name}"
        return found[1]

    def put(self, scene: Scene) -> None:
        """Its accounts and use in the place of those of the scene before."""
        order = ("sacctmgr", "-i", "-Q")
        old = self.run("sacctmgr", "-nP", "show", "account", "format=account").split()
        gone = [name for name in old if re.fullmatch(r"a\d+", name)]
        if gone:
            self._emptied()
            where = "where", f"account={','.join(gone)}"
            self.run(*order, "delete", "user", ",".join(STRANGERS))
            self.run(*order, "delete", "user", ",".join(PEOPLE), *where)
            self.run(*order, "delete", "account", ",".join(gone))
        for one in scene.accounts:
            words = f"parent={one.parent}", f"fairshare={one.fairshare}", *_ranked(one.priority)
            self.run(*order, "add", "account", one.name, *words, f"qos={','.join(GRADES)}")
        for own in scene.associations:
            shares = "parent" if own.fairshare == USE_PARENT else own.fairshare
            words = f"account={own.account}", f"fairshare={shares}", *_ranked(own.priority)
            self.run(*order, "add", "user", own.user, *words)
        self._restart(scene.used)

    def book(self) -> Book:
        """All accounts and users that it has, those of no scene too."""
        columns = "format=account,user,parentname,fairshare,priority"
        shown = self.run("sacctmgr", "-nP", "show", "assoc", columns).splitlines()
        rows = [line.split("|") for line in shown]
        return book(
            (
                Account(
                    name=AccountName(a),
                    parent=AccountName(above or ROOT),
                    fairshare=_read(n),
                    priority=int(rank) if rank else None,
                )
                for a, user, above, n, rank in rows
                if not user
            ),
            (
                Association(
                    user=UserName(user),
                    account=AccountName(a),
                    fairshare=_read(n),
                    priority=int(rank) if rank else None,
                )
                for a, user, _, n, rank in rows
                if user
            ),
        )

    def _emptied(self) -> None:
        """Waits until no job is left: accounts that have some stay."""
        for _ in range(SECONDS * 5):
            if not self.run("squeue", "-h"):
                return
            time.sleep(0.2)

    def _restart(self, used: Mapping[Key, float]) -> None:
        shown = self.run("sacctmgr", "-nP", "show", "assoc", "format=id,account,user")
        ids = {(a, u): int(i) for i, a, u in (x.split("|") for x in shown.splitlines())}
        pid = Path(self.setting("SlurmctldPidFile"))
        self._stop(int(pid.read_text()))
        state = Path(self.setting("StateSaveLocation")) / "assoc_usage"
        records = b"".join(_record(ids[key], amount) for key, amount in used.items())
        if WEIGHT not in self.conf.read_text():
            self.conf.write_text(f"{self.conf.read_text()}\n{WEIGHT}={WEIGHED}\n")
        state.write_bytes(struct.pack(">HQ", VERSION, int(time.time())) + records)
        self.run("slurmctld")
        for _ in range(SECONDS * 5):
            if "UP" in self.run("scontrol", "ping"):
                return
            time.sleep(0.2)
        raise SystemExit("slurmctld does not come back")

    @staticmethod
    def _stop(pid: int) -> None:
        os.kill(pid, 15)
        for _ in range(SECONDS * 5):
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.2)
        raise SystemExit(f"slurmctld {pid} does not end")


def _ranked(priority: int | None) -> list[str]:
    return [] if priority is None else [f"priority={priority}"]


def _read(shares: str) -> int:
    return USE_PARENT if shares == "parent" else int(shares)


def _record(number: int, used: float) -> bytes:
    """An association's use: number, the use as text, nothing by TRES, no wall time."""
    text = f"{used:f}".encode() + b"\0"
    return struct.pack(">II", number, len(text)) + text + struct.pack(">II", 0, 0)


# ---------------------------------------------------------------- sshare


def standings(slurm: Slurm, scene: Scene) -> dict[Key, Standing]:
    """Ours."""
    root = tree(slurm.book())
    fill(root, scene.used)
    return stand(root)


@dataclass(frozen=True, slots=True)
class Figure:
    """One that both have; `close` is how far apart they may be: what is above 1 by that share."""

    what: str
    real: float
    ours: float
    close: float = CLOSE

    @property
    def apart(self) -> float:
        return (
            0.0 if self.real == self.ours else abs(self.real - self.ours) / max(1.0, abs(self.real))
        )

    @property
    def differs(self) -> bool:
        return self.apart > self.close + ROUNDING

    def __str__(self) -> str:
        return f"{self.what}: real {self.real}, ours {self.ours:.6f}"


def shares_of(slurm: Slurm, scene: Scene) -> Iterator[Figure]:
    """Columns of sshare."""
    ours = standings(slurm, scene)
    shown = slurm.run("sshare", "-nPalo", f"Account,User,{','.join(COLUMNS)}")
    for line in shown.splitlines():
        account, user, *real = line.split("|")
        one = ours.get((account.strip(), user))
        if one is None or account.strip() == ROOT:
            continue
        for name, text, value in zip(COLUMNS, real, _values(one), strict=True):
            if text:
                yield Figure(f"sshare {account.strip()} {user} {name}", float(text), value)


def _values(one: Standing) -> tuple[float, ...]:
    return one.norm_shares, one.norm_usage, one.effective, one.factor or 0.0, one.level


# ---------------------------------------------------------------- sprio


@dataclass(frozen=True, slots=True)
class Wish:
    """A job to be compared: what it asks for, in words of sbatch and as we see it."""

    own: Association
    partition: str
    nodes: int
    cpus: int
    mem_mib: int
    gpus: int
    qos: str
    nice: int

    @property
    def words(self) -> list[str]:
        tres = [f"--gres=gpu:{self.gpus}"] if self.gpus else []
        return [
            f"-A{self.own.account}", f"-p{self.partition}", f"-N{self.nodes}",
            f"-n{self.nodes}", f"-c{self.cpus}", f"--mem={self.mem_mib}M", "-t5", *tres,
            f"-q{self.qos}", f"--nice={self.nice}",
        ]  # fmt: skip

    def job(self, number: int) -> Job:
        each = {"gpu": self.gpus * self.nodes}
        want = Tres(
            self.cpus * self.nodes, self.mem_mib * self.nodes, self.nodes, gres_counts(each)
        )
        uid, user = PEOPLE[self.own.user], str(self.own.user)
        return Job(
            id=JobId(number),
            spec=TaskSpec(name="j", resources=Resources(), nice=self.nice),
            owner=Owner(uid=uid, gid=uid, user=user, group=user),
            account=self.own.account,
            qos=self.qos,
            partitions=(self.partition,),
            submitted=0,
            time_limit=300,
            want=want,
            priority=initial(JobId(number), held=False),
        )


def wishes(scene: Scene, luck: random.Random, most: int) -> list[Wish]:
    own = [one for one in scene.associations if one.user in PEOPLE]
    return [
        Wish(
            own=luck.choice(own),
            partition=luck.choice(("ec2", "debug")),
            nodes=luck.randint(1, 2),
            cpus=luck.randint(1, 4),
            mem_mib=luck.choice((100, 1000, 4000, 16000)),
            gpus=luck.randint(0, 2),
            qos=luck.choice(GRADES),
            nice=luck.choice((0, 0, 7, 1000, 2_000_000_000)),
        )
        for _ in range(most)
    ]


def priorities_of(slurm: Slurm, scene: Scene, asked: Sequence[Wish]) -> Iterator[Figure]:
    """Columns of sprio, of jobs that wait because others hold all nodes."""
    shares = {key: one.factor or 0.0 for key, one in standings(slurm, scene).items()}
    config = load((HERE / "site.yaml").read_text())
    here = site(config, service_uid=0, uid_of=PEOPLE.get, price_of=lambda _: None)
    here = with_book(here, replace(slurm.book(), qos=here.book.qos))
    here = replace(here, ranking=replace(here.ranking, assoc=WEIGHED))
    ranks = Ranks(here, 0, shares, scale_of(here))
    holding = slurm.run("sbatch", "--parsable", "-N4", "--exclusive", "-t30", "--wrap", "sleep 99")
    numbers = {}
    for one in asked:
        words = ["sbatch", "--parsable", "-o/dev/null", *one.words, "--wrap", "true"]
        numbers[slurm.run(*words, user=one.own.user).strip()] = one
    submitted = [number for number in numbers if number]
    for line in _all_shown(slurm, frozenset(submitted)):
        number, *real, nice, whole, tres = line.split("|")
        if number in numbers:
            wish = numbers.pop(number)
            job, what = wish.job(int(number)), f"sprio {wish.words}"
            found = ranks.factors(job, wish.partition)
            for name, text in zip(FACTORS, real, strict=True):
                yield Figure(f"{what} {name}", float(text), getattr(found, name))
            for part in tres.split(","):
                name, equals, text = part.partition("=")
                if equals:
                    yield Figure(
                        f"{what} {name}", float(text), found.tres.get(name, 0.0), HUNDREDTHS
                    )
            yield Figure(f"{what} nice", float(nice), job.spec.nice, 0.0)
            unit = 1 / max(1.0, float(whole))
            yield Figure(f"{what} sum", float(whole), ranks.in_partition(job, wish.partition), unit)
    slurm.run("scancel", holding.strip(), *submitted)
    yield from (Figure(f"sprio does not show {one.words}", 1.0, 0.0) for one in numbers.values())


def _all_shown(slurm: Slurm, wanted: frozenset[str]) -> list[str]:
    """What sprio says once it has all of them; they are given priorities some time after."""
    shown: list[str] = []
    for _ in range(SECONDS):
        shown = slurm.run("sprio", "-h", "-o", LETTERS).splitlines()
        if wanted <= {line.split("|")[0] for line in shown}:
            break
        time.sleep(1)
    return shown


def figures(conf: Path, *, scenes: int, seed: int) -> list[Figure]:
    """All that is compared, of so many drawn scenes."""
    luck, slurm = random.Random(seed), Slurm(conf)
    found: list[Figure] = []
    for _ in range(scenes):
        scene = drawn(luck)
        slurm.put(scene)
        found += shares_of(slurm, scene)
        found += priorities_of(slurm, scene, wishes(scene, luck, 8))
    return found


def main(argv: Sequence[str]) -> int:
    """The exit status: 1 where something differs."""
    parser = argparse.ArgumentParser(description="Compare fair share with a real Slurm's.")
    parser.add_argument("--conf", type=Path, required=True)
    parser.add_argument("--scenes", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(argv)
    found = figures(asked.conf, scenes=asked.scenes, seed=asked.seed)
    different = [one for one in found if one.differs]
    for one in different:
        print(one)
    most = max((one.apart for one in found if one.close == CLOSE), default=0.0)
    print(
        f"shares: {asked.scenes} scenes, {len(found)} figures, the most apart by {most:.7f}, "
        f"{len(different)} differences"
    )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
