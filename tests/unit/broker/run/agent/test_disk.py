"""Disks on a machine: only a blank one is formatted, nothing is hidden, links are one's own."""

from pathlib import Path

import pytest

from broker.run.agent import disk


def asked(verb: str, path: Path, *devices: Path) -> int:
    """`agent disk VERB PATH ... DEVICE` for who runs the tests."""
    return disk.main([verb, str(path), "0", "0", *map(str, devices)])


def test_a_folder_is_linked_and_unlinked_as_often_as_asked(tmp_path: Path) -> None:
    kept, there = tmp_path / "vol ume", tmp_path / "home" / "da ta"
    kept.mkdir()
    for _ in range(2):
        assert asked("mount", there, tmp_path / "none", kept) == 0
        assert there.readlink() == kept
    for _ in range(2):
        assert asked("unmount", there, kept) == 0
    assert (there.is_symlink(), kept.is_dir()) == (False, True)


def test_what_is_there_already_is_not_hidden(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, there = tmp_path / "kept", tmp_path / "there"
    kept.mkdir()
    there.mkdir()
    (there / "work").touch()
    assert asked("mount", there, kept) == disk.REFUSED
    assert "a volume needs an empty folder" in capsys.readouterr().err
    assert (there / "work").exists()
    assert asked("unmount", there, kept) == 0
    assert (there / "work").exists()


def test_a_disk_that_is_not_to_be_seen_yet_is_asked_for_again(tmp_path: Path) -> None:
    assert asked("mount", tmp_path / "there", tmp_path / "none") == disk.NOT_YET
    assert asked("unmount", tmp_path / "there", tmp_path / "none") == 0


def test_what_is_no_disk_is_never_formatted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"work")
    assert asked("mount", tmp_path / "there", file) == disk.REFUSED
    assert "is no disk" in capsys.readouterr().err
    assert file.read_bytes() == b"work"


@pytest.mark.parametrize("argv", [[], ["mount"], ["eat", "/a", "0", "0", "/dev/x"]])
def test_a_line_that_is_none_is_told(argv: list[str]) -> None:
    assert disk.main(argv) == 2
