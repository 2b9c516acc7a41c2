"""Writes jobs to a store and says each one's id once it is durable, until it is killed."""

import sys
from itertools import count

from accounting.ids import JobId
from broker.model.events import Queued
from broker.ports import Counters
from gateway.store.sql import open_store
from tests.contract.records import START, entry, job


class Standing:
    def now(self) -> int:
        return START


def main(path: str) -> None:
    store = open_store(path, clock=Standing())
    epoch = store.take_lease()
    for number in count(1):
        record = job(number, version=number)
        with store.transaction(epoch=epoch) as tx:
            tx.append([(number, Queued(job=JobId(number), at=START, record=record))])
            tx.save_jobs([record])
            tx.post([entry(f"{number}/1", number=number)])
            tx.remember_requests({f"request {number}": str(number)})
            tx.set_counters(Counters(next_job_id=number + 1, last_event=number))
        print(number, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
