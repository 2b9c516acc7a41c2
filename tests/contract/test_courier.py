"""A machine that answers nonsense, by its user's doing, is one that does not answer."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.model.ids import NodeName
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


@pytest.mark.parametrize("said", JUNK, ids=lambda said: repr(said[:9]))
def test_nonsense_is_told_as_no_answer(said: bytes, tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    old = records.job(1)
    me = replace(old.owner, uid=os.getuid(), gid=os.getgid())
    job = replace(old, owner=me, spec=old.spec.model_copy(update={"cwd": str(pair.here)}))
    node = cast(Any, SimpleNamespace(name=NodeName("n1"), launch=1))
    place = cast(
        Place, SimpleNamespace(channel=Nonsense(said), python="p", archive="a", shared=False)
    )
    courier = Courier(
        pair.sync, lambda: {job.id: job}, lambda *_: (f"{pair.here}/out",), cast(Any, None)
    )
    with pytest.raises(OSError, match="answers what cannot be read"):
        courier.bring(job, node, place)
    with pytest.raises(OSError, match="answers what cannot be read"):
        courier.fetch([EndSeen(job.id, job.attempt, True)], node, place)
