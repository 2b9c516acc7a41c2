"""How long reports over a year of 10,000,000 jobs take: sums by hour and day of a drawn year.

bench_report.py [--users N] [--jobs N] [--days N]

The year is written as the sums that so many jobs leave (each user's use of every hour of a working
day, every day), and as many jobs' entries lie beside it as are not summed up yet at most times. On
SQLite, and on PostgreSQL where its programs are installed.
Exit status 1 if a report of cpu time, which is the usual one, takes more than two seconds.
"""

import argparse
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).parents[2]))

from accounting.ids import AccountName, JobId, UserName
from accounting.ledger import Payer, usage
from accounting.rollup import DAY, HOUR
from accounting.tres import Tres
from gateway.store.sql import SqlStore, open_store
from tests.contract.postgres import installed, server_of

BUDGET = 2.0
USUAL = ("a year, cpu", "a month that begins at noon", "a day")
START = 1_735_689_600
TRES = ("cpu", "mem", "node", "billing", "charged", "gres/gpu", "jobs", "wall")
FRESH = 2000
"""Entries that are not summed up yet."""
INSERT = "INSERT INTO usage VALUES (?,?,?,?,?,?,?,?,?,?,?)"


class Clock:
    def now(self) -> int:
        return START


def main(argv: Sequence[str]) -> int:
    """The exit status."""
    asked = arguments(argv)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "state.db")
        fine = measured(path, asked, into_sqlite)
    programs = installed()
    if programs is None:
        print("# PostgreSQL is not installed: SKIP")
        return 0 if fine else 1
    with server_of(programs) as server:
        fine &= measured(server.new_database(), asked, into_postgres)
    return 0 if fine else 1


def measured(url: str, asked: argparse.Namespace, fill: "Fill") -> bool:
    """Whether the usual reports keep to the budget on that store."""
    store = open_store(url, clock=Clock())
    fill(url, rows(asked))
    post_fresh(store)
    print(f"{asked.jobs:,} jobs of {asked.users} users, {store.where.dialect}")
    took = {name: timed((name, ask)) for name, ask in reports(store, asked)}
    store.close()
    return all(took[name] <= BUDGET for name in USUAL)


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=10_000_000)
    parser.add_argument("--days", type=int, default=365)
    return parser.parse_args(argv)


Rows = Iterator[tuple[object, ...]]
Fill = Callable[[str, Rows], None]


def into_sqlite(path: str, sums: Rows) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.executemany(INSERT, sums)
        connection.commit()


def into_postgres(url: str, sums: Rows) -> None:
    plain = url.replace("+psycopg", "")
    with (
        psycopg.connect(plain) as connection,
        connection.cursor().copy("COPY usage FROM STDIN") as copy,
    ):
        for one in sums:
            copy.write_row(one)
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE usage")  # as its own cleaning does within the year


def rows(asked: argparse.Namespace) -> Rows:
    """By TRES and time, as the key has it; a tenth of the users in any hour, all in a day."""
    draw = random.Random(1)
    each = asked.jobs // (asked.users * asked.days) or 1
    for name in TRES:
        for day in range(asked.days):
            start = START + day * DAY
            for user in range(asked.users):
                yield row(DAY, start, user, (name, each if name == "jobs" else 3600 * each))
            for hour in range(24):
                for user in draw.sample(range(asked.users), asked.users // 10):
                    yield row(HOUR, start + hour * HOUR, user, (name, each))


def row(span: int, start: int, user: int, what: tuple[str, int]) -> tuple[object, ...]:
    name, amount = what
    return span, name, start, f"a{user % 20}", f"u{user}", "normal", "ec2", "", "", 4, amount


def post_fresh(store: SqlStore) -> None:
    """Entries beside the sums."""
    payer = Payer(AccountName("a1"), UserName("u1"), JobId(1), 1, qos="normal", partition="ec2")
    with store.transaction(epoch=1) as tx:
        for number in range(FRESH):
            since = START + 300 * DAY + number
            tx.post(usage(payer, Tres(4, 100, 1), billing=4, started=since, ended=since + 60))


Report = tuple[str, Callable[[], object]]


def reports(store: SqlStore, asked: argparse.Namespace) -> Iterator[Report]:
    """What sreport and spz cost ask."""
    history, until = store.history, START + asked.days * DAY

    def used(since: int, end: int, tres: tuple[str, ...]) -> Callable[[], object]:
        by = ("account", "user", "tres", "partition")
        return lambda: history.used(since=since, until=end, by=by, tres=tres)

    yield "a year, cpu", used(START, until, ("cpu",))
    yield "a year, every TRES", used(START, until, TRES)
    yield "a month that begins at noon", used(START + DAY // 2, START + 30 * DAY, ("cpu",))
    yield "a day", used(START + DAY, START + 2 * DAY, ("cpu",))
    yield (
        "what the first start of this version reads for limits",
        lambda: store.charges(until - 70 * DAY),
    )


def timed(report: Report) -> float:
    name, ask = report
    begin = time.perf_counter()
    ask()
    took = time.perf_counter() - begin
    print(f"  {name:36} {took:6.2f} s  {'ok' if took <= BUDGET else 'over the budget'}")
    return took


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
