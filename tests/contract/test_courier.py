"""What the courier takes from machines: no nonsense, and nothing of attempts that are over."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.model.job import Job
from broker.ports import EndSeen, Place
from broker.stage.courier import Courier
from tests.contract import records
from tests.contract.test_stage import Pair

JUNK = (b"", b"\xff\x00", b"{}", b"[]", b"null", b"x\x9c", b'{"": 1}', b"9" * 5000)


@dataclass
class Nonsense:
    """A channel on which every command succeeds and says the same."""

    said: bytes

    def run(self, *_: object, **__: object) -> Any:
        return SimpleNamespace(code=0, out=self.said, err=b"")


def made(tmp_path: Path, said: bytes) -> tuple[Courier, Job, Any, Place]:
    """A courier of one job on a machine that says the same to everything."""
    pair = Pair(tmp_path)
    old = records.job(1, attempt=2)
    me = replace(old.owner, uid=os.getuid(), gid=os.getgid())
    job = replace(old, owner=me, spec=old.spec.model_copy(update={"cwd": str(pair.here)}))
    node = records.node("n1")
    place = SimpleNamespace(
        channel=Nonsense(said), python="p", archive="a", shared=False, stream=lambda _: None
    )
    outputs = (f"{pair.here}/out",)
    courier = Courier(pair.sync, lambda: {job.id: job}, lambda *_: outputs, cast(Any, None))
    return courier, job, node, cast(Place, place)


@pytest.mark.parametrize("said", JUNK, ids=lambda said: repr(said[:9]))
def test_nonsense_is_told_as_no_answer(said: bytes, tmp_path: Path) -> None:
    courier, job, node, place = made(tmp_path, said)
    with pytest.raises(OSError, match="answers what cannot be read"):
        courier.bring(job, node, place)
    with pytest.raises(OSError, match="answers what cannot be read"):
        courier.fetch([EndSeen(job.id, job.attempt, True)], node, place)


def test_late_words_of_an_older_attempt_bring_nothing(tmp_path: Path) -> None:
    courier, job, node, place = made(tmp_path, b"nothing that could be read")
    courier.fetch([EndSeen(job.id, job.attempt - 1, True)], node, place)
