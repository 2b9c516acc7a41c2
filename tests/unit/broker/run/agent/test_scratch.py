"""A machine's own disks, as the kernel shows them."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.run.agent import scratch

OWN, VOLUME = scratch.MODEL, "Amazon Elastic Block Store"


@pytest.fixture
def blocks(tmp_path: Path) -> Path:
    """One volume in use, as every machine has."""
    folder = tmp_path / "block"
    disk(folder, "nvme0n1", VOLUME, parts=1)
    return folder


def disk(blocks: Path, name: str, model: str = OWN, *, parts: int = 0, held: bool = False) -> None:
    (blocks / name / "device").mkdir(parents=True)
    (blocks / name / "device" / "model").write_text(f"{model}     \n")
    (blocks / name / "holders").mkdir()
    for number in range(parts):
        (blocks / name / f"{name}p{number + 1}").mkdir()
    if held:
        (blocks / name / "holders" / "md127").touch()


def placed(blocks: Path, *, mounted: str = "", without: str = "") -> tuple[str, list[str]]:
    """Where they are then, and the commands for it; one of `without` fails."""
    mounts = blocks.parent / "mounts"
    mounts.write_text(f"/dev/nvme0n1p1 / ext4 rw 0 0\n{mounted}")
    ran: list[str] = []

    def run(argv: list[str]) -> bool:
        ran.append(" ".join([argv[0], *(word for word in argv if word.startswith("/"))]))
        return argv[0] != without

    return scratch.place(run, blocks=str(blocks), mounts=str(mounts)), ran


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="spz-scratch-") as folder:
        monkeypatch.setattr(scratch, "PLACE", f"{folder}/mnt")
        yield


def test_one_disk_is_formatted_and_mounted(blocks: Path) -> None:
    disk(blocks, "nvme1n1")
    place, ran = placed(blocks)
    assert place == scratch.PLACE
    assert ran == ["mkfs.ext4 /dev/nvme1n1", f"mount /dev/nvme1n1 {place}"]


def test_a_job_has_a_folder_there_unless_its_site_names_one(blocks: Path) -> None:
    mounts = blocks.parent / "mounts"
    mounts.write_text("/dev/nvme0n1p1 / ext4 rw 0 0\n")

    def given(**step: object) -> dict[str, object]:
        scratch.give(step, "7/2", blocks=str(blocks), mounts=str(mounts))
        return step

    assert given() == {}, "there is no disk of the machine's own"
    disk(blocks, "nvme1n1")
    own = given()
    assert own == {"tmpdir": f"{scratch.PLACE}/7.2", "own_tmpdir": True}
    values: dict[bytes, bytes] = {}
    scratch.add(values, own)
    assert values == {b"SLURM_TMPDIR": f"{scratch.PLACE}/7.2".encode()}
    named = given(tmpdir="/local/7")
    assert named == {"tmpdir": "/local/7"}
    scratch.add(values, named)
    assert len(values) == 1


def test_several_are_joined_and_without_mdadm_the_first_is_used(blocks: Path) -> None:
    disk(blocks, "nvme1n1")
    disk(blocks, "nvme2n1")
    place, ran = placed(blocks)
    assert ran[0] == f"mdadm {scratch.ARRAY} /dev/nvme1n1 /dev/nvme2n1"
    assert ran[1:] == [f"mkfs.ext4 {scratch.ARRAY}", f"mount {scratch.ARRAY} {place}"]
    assert placed(blocks, without="mdadm")[1][1] == "mkfs.ext4 /dev/nvme1n1"


def test_what_is_mounted_is_not_formatted_again(blocks: Path) -> None:
    disk(blocks, "nvme1n1")
    mounted = f"/dev/nvme1n1 {scratch.PLACE} ext4 rw 0 0\n"
    assert placed(blocks, mounted=mounted) == (scratch.PLACE, [])


@pytest.mark.parametrize("case", ["none", "parts", "held", "mounted elsewhere", "mkfs", "mount"])
def test_disks_in_use_are_left_alone_and_failures_leave_a_plain_folder(
    blocks: Path, case: str
) -> None:
    if case != "none":
        disk(blocks, "nvme1n1", parts=case == "parts", held=case == "held")
    mounted = "/dev/nvme1n1 /data xfs rw 0 0\n" if case == "mounted elsewhere" else ""
    failing = {"mkfs": "mkfs.ext4", "mount": "mount"}.get(case, "")
    place, ran = placed(blocks, mounted=mounted, without=failing)
    assert place == ""
    assert bool(ran) is bool(failing)
