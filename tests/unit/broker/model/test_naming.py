"""Where a job keeps its checkpoints."""

import pytest

from accounting.ids import JobId
from broker.model.job import ArrayPlace, HetPlace
from broker.model.naming import checkpoint_folder
from broker.model.spec import Checkpoint, TaskSpec
from tests.contract import records

FOLDERS = (
    ("/w/ckpt", "n", "/w/ckpt"),
    ("/w/%A_%a", "n", "/w/7_3"),
    ("/w/%j/%4a", "n", "/w/9/0003"),
    ("/w/%x", "n", "/w/n"),
    ("/w/%x", "../../etc", "/w/.._.._etc"),
    ("/w/%x", "..", "/w/_"),
    ("/w/50%%", "n", "/w/50%"),
)


@pytest.mark.parametrize(("pattern", "name", "folder"), FOLDERS)
def test_the_folder_is_the_jobs_own(pattern: str, name: str, folder: str) -> None:
    place = ArrayPlace(JobId(7), 3)
    job = records.job(9, spec=TaskSpec(name=name), array=place)
    assert checkpoint_folder(job, Checkpoint(folder=pattern)) == folder


@pytest.mark.parametrize("offset", [0, 1])
def test_components_of_a_heterogeneous_job_have_a_folder_each(offset: int) -> None:
    job = records.job(9 + offset, het=HetPlace(JobId(9), offset, 2))
    assert checkpoint_folder(job, Checkpoint(folder="/w/c/")) == f"/w/c/het-{offset}"
