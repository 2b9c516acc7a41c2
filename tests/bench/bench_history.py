"""sacct over a day of a year of 1,000,000 jobs: `name value unit budget ok|OVER`.

bench_history.py [--jobs N]

Days all over the year, each asked for once, so that nothing is at hand; and the last one again. On
SQLite, and on PostgreSQL where its programs are installed.
"""

import argparse
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).parents[2]))

from accounting.ids import JobId
from accounting.tres import Tres
from broker.model.ids import BATCH, NodeName
from broker.model.job import Job, JobState, Owner, Share, Step, StepState
from broker.model.spec import StepSpec, TaskSpec
from gateway.store import rows
from gateway.store.sql import open_store
from gateway.store.statements import Writes
from tests.bench.running import Running, report, service, whole_process_ms
from tests.contract.postgres import installed, server_of

BUDGET_MS = 300.0
DAY = 86_400
DAYS = 365
ASKED = (0, 1, 60, 120, 182, 240, 300, 350, 363)
"""Days of the year, and the one that is asked for again."""
LASTING = (20, 45, 90, 300, 1200, 1800, 3600, 4 * 3600, 20 * 3600, 3 * DAY)
"""Seconds that jobs take, in turn."""
MARKS = {"job": 1_234_567_891, "submitted": 1_234_567_892, "started": 1_234_567_893}
ENDED = 1_234_567_894
TOGETHER = 5000


class Now:
    def now(self) -> int:
        return int(time.time())


def template() -> Job:
    """A job that ran, with numbers that stand for nothing else."""
    whole = Tres(cpu=2, mem_mib=2048, node=1)
    spec = TaskSpec(name="train", batch=StepSpec(name="batch"))
    return Job(
        id=JobId(MARKS["job"]),
        spec=spec,
        owner=Owner(2001, 2001, "alice", "alice"),
        account="physics",
        qos="normal",
        partitions=("ec2",),
        submitted=MARKS["submitted"],
        eligible=MARKS["submitted"],
        started=MARKS["started"],
        ended=ENDED,
        time_limit=3600,
        want=whole,
        alloc=whole,
        state=JobState.COMPLETED,
        attempt=1,
        last_node_names=("ec2-1",),
        version=1,
        steps=(
            Step(
                id=BATCH,
                name="batch",
                state=StepState.COMPLETED,
                started=MARKS["started"],
                ended=ENDED,
                share=Share(NodeName("ec2-1"), 0, whole),
            ),
        ),
    )


def made(count: int, now: int) -> Iterator[dict[str, Any]]:
    """Rows of jobs submitted evenly over the year, some waiting a while before they run."""
    row = rows.job(template(), rows.Shared())
    first = now - DAYS * DAY
    for place in range(count):
        submitted = first + place * DAYS * DAY // count
        started = submitted + place % 600
        ended = min(started + LASTING[place % len(LASTING)], now - 1)
        doc = row["doc"]
        for mark, value in zip(
            (*MARKS.values(), ENDED), (place + 1, submitted, started, ended), strict=True
        ):
            doc = doc.replace(str(mark), str(value))
        numbers = {"job_id": place + 1, "submitted": submitted, "started": started}
        yield row | numbers | {"eligible": submitted, "ended": ended, "doc": doc}


def fill(url: str, count: int, connect: Callable[[], Any], *, dialect: str) -> None:
    """A store of so many jobs."""
    store = open_store(url, clock=Now())
    with store.transaction(epoch=1) as tx:
        tx.save_jobs([template()])  # so that the spec is there
    store.close()
    put = Writes(dialect).put_jobs
    with closing(connect()) as connection:
        cursor = connection.cursor()
        cursor.execute(f"DELETE FROM jobs WHERE job_id = {MARKS['job']}")
        some: list[dict[str, Any]] = []
        for row in made(count, Now().now()):
            some.append(row)
            if len(some) == TOGETHER:
                put.run(cursor, some)
                some = []
        put.run(cursor, some)
        connection.commit()


def on_sqlite(home: Path, count: int) -> Mapping[str, str]:
    path = home / "state.db"
    fill(str(path), count, lambda: sqlite3.connect(path), dialect="sqlite")
    return {}


def on_postgres(home: Path, count: int, url: str) -> Mapping[str, str]:
    plain = url.replace("+psycopg", "")
    fill(url, count, lambda: psycopg.connect(plain), dialect="postgresql")
    return {"SKYPURZA_STATE_DB": url}


def days(running: Running, kind: str) -> list[bool]:
    """Each day once, and the last again."""
    today = Now().now()

    def asked(day: int) -> list[str]:
        start = today - (DAYS - day) * DAY
        moments = [
            time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) for at in (start, start + DAY)
        ]
        return [
            "/usr/bin/env",
            "TZ=UTC0",
            str(running.bin / "sacct"),
            "-aX",
            "-S",
            moments[0],
            "-E",
            moments[1],
        ]

    took = [whole_process_ms(asked(day)) for day in ASKED]
    again = [whole_process_ms(asked(ASKED[-1])) for _ in range(7)]
    sys.stdout.write(f"# {kind}: {', '.join(f'{one:.0f}' for one in took)} ms\n")
    figures = {"median": median(took), "slowest": max(took), "again": median(again)}
    return [
        report(f"sacct-day-{kind}-{name}", value, unit="ms", budget=BUDGET_MS)
        for name, value in figures.items()
    ]


def main(argv: list[str]) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description="Measure sacct over a long history.")
    parser.add_argument("--jobs", type=int, default=1_000_000)
    count = parser.parse_args(argv).jobs
    with service(partial(on_sqlite, count=count)) as running:
        fine = days(running, "sqlite")
    programs = installed()
    if programs is None:
        sys.stdout.write("# PostgreSQL is not installed: SKIP\n")
        return 0 if all(fine) else 1
    with server_of(programs) as server:
        url = server.new_database()
        with service(partial(on_postgres, count=count, url=url)) as running:
            fine += days(running, "postgres")
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
