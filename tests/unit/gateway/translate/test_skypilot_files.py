"""The scripts that bring files, run by bash with stand-ins for the programs of buckets."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from gateway.translate.skypilot import read
from gateway.translate.skypilot_files import Files

STAND_IN = '#!/bin/sh\necho "$(basename "$0") $*" >> "$CALLS"\n[ "$2" != head-object ] || exit 1\n'


def script(text: str, *, mounts: bool = True) -> str | None:
    (task,) = read(text)
    return Files(task, "dev", lambda path: path).script(mounts=mounts)


def mounts(found: dict[Path, object]) -> str:
    return json.dumps({"file_mounts": {str(path): source for path, source in found.items()}})


def called(tmp_path: Path, text: str, *programs: str) -> tuple[int, list[str], str]:
    """Exit status, what was called, and standard error; only these programs are there."""
    bin_, calls = tmp_path / "bin", tmp_path / "calls"
    bin_.mkdir()
    for program in programs:
        (bin_ / program).write_text(STAND_IN)
        (bin_ / program).chmod(0o755)
    for program in (
        "mkdir",
        "dirname",
        "hostname",
        "sh",
        "basename",
        "mountpoint",
        "readlink",
        "cp",
    ):
        (bin_ / program).symlink_to(Path("/usr/bin") / program)
    done = subprocess.run(
        ["/bin/bash", "-c", script(text) or ""],
        env={"PATH": str(bin_), "CALLS": str(calls), "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = calls.read_text().splitlines() if calls.exists() else []
    return done.returncode, lines, done.stderr


def test_nothing_to_bring_is_no_script() -> None:
    assert script("run: x") is None
    assert script("file_mounts: {/a: s3://b}", mounts=False) is None
    assert script("file_mounts: {/a: /a}") is None


def test_local_files_are_copied_and_brought_up_to_date(tmp_path: Path) -> None:
    (tmp_path / "it's").mkdir()
    (tmp_path / "it's" / "a").write_text("1")
    (tmp_path / "one").write_text("2")
    text = mounts({tmp_path / "to": "it's", tmp_path / "deep" / "two": "one"})
    assert called(tmp_path, text)[0] == 0
    assert (tmp_path / "to" / "a").read_text() == "1"
    assert (tmp_path / "deep" / "two").read_text() == "2"


@pytest.mark.parametrize(
    ("mount", "programs", "calls"),
    [
        (
            "s3://b/k/",
            ("aws",),
            [
                "aws s3api head-object --bucket b --key k",
                "aws s3 sync --only-show-errors s3://b/k {to}",
            ],
        ),
        ("s3://b", ("aws",), ["aws s3 sync --only-show-errors s3://b/ {to}"]),
        ("s3://b/k", ("rclone",), ["rclone copy :s3,env_auth=true:b/k {to}"]),
        (
            "{source: s3://b/k}",
            ("mount-s3", "rclone"),
            ["mount-s3 b {to} --prefix k/ --allow-delete --allow-overwrite"],
        ),
        (
            "{source: s3://b/k, config: {mount: {read_only: true}}}",
            ("mount-s3",),
            ["mount-s3 b {to} --prefix k/ --read-only"],
        ),
        (
            "{source: s3://b, type: DATASET_RO}",
            ("rclone",),
            ["rclone mount --daemon --vfs-cache-mode writes --read-only :s3,env_auth=true:b/ {to}"],
        ),
        (
            "{name: new, mode: MOUNT}",
            ("aws", "mount-s3"),
            [
                "aws s3api head-bucket --bucket new",
                "mount-s3 new {to} --allow-delete --allow-overwrite",
            ],
        ),
        (
            "{name: new, source: one, mode: COPY}",
            ("aws",),
            [
                "aws s3api head-bucket --bucket new",
                "aws s3 cp --only-show-errors one s3://new/",
                "aws s3 sync --only-show-errors s3://new/ {to}",
            ],
        ),
    ],
)
def test_buckets_are_copied_and_mounted_by_what_is_there(
    tmp_path: Path, mount: str, programs: tuple[str, ...], calls: list[str]
) -> None:
    to = tmp_path / "to"
    code, said, err = called(tmp_path, mounts({to: yaml.safe_load(mount)}), *programs)
    assert code == 0, err
    assert "\n".join(said) == "\n".join(call.format(to=to) for call in calls)


def test_a_cached_mount_is_drained_after_the_run(tmp_path: Path) -> None:
    text = "file_mounts: {/c: {source: s3://b, mode: MOUNT_CACHED}}\nrun: x"
    (task,) = read(text)
    files = Files(task, "dev", lambda path: path)
    assert "--vfs-cache-mode full" in (files.script() or "")
    assert "to upload 0, uploading 0" in (files.drain() or "")
    (plain,) = read("run: x")
    assert Files(plain, "dev", lambda path: path).drain() is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, ""),
        (
            {"type": "dataset_rw"},
            "--vfs-read-chunk-streams=0 --vfs-read-chunk-size=8M --transfers=16",
        ),
        (
            {
                "type": "MODEL_CHECKPOINT_RO",
                "config": {"mount_cached": {"vfs_read_chunk_size": "64M", "read_only": False}},
            },
            "--vfs-read-chunk-streams=16 --vfs-read-chunk-size=64M --read-only=false",
        ),
        (
            {"config": {"mount_cached": {"vfs_write_back": "5s", "buffer_size": "16m"}}},
            "--vfs-write-back=5s --buffer-size=16m",
        ),
    ],
)
def test_a_cached_mount_has_the_settings_of_its_type_and_over_them_its_own(
    tmp_path: Path, settings: dict[str, object], words: str
) -> None:
    source = {"source": "s3://b", "mode": "MOUNT_CACHED", **settings}
    code, said, err = called(tmp_path, mounts({tmp_path / "to": source}), "rclone")
    assert code == 0, err
    told = "\n".join(said).partition("/dev.0.log ")[2]
    assert told == f"{words} :s3,env_auth=true:b/ {tmp_path}/to".lstrip()


def test_a_node_without_a_program_for_buckets_says_so(tmp_path: Path) -> None:
    code, _, err = called(tmp_path, mounts({tmp_path / "to": "s3://b/k"}))
    assert code == 127
    assert "neither aws nor rclone is on" in err


def test_a_repository_is_cloned_once_and_then_brought_to_the_ref(tmp_path: Path) -> None:
    source, work = tmp_path / "source", tmp_path / "work"
    work.mkdir()
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", str(source)]
    subprocess.run(["git", "init", "-q", "-b", "main", str(source)], check=True)
    for content in ("1", "2"):
        (source / "a").write_text(content)
        subprocess.run([*git, "add", "a"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", content], check=True)
        subprocess.run([*git, "tag", f"v{content}"], check=True)
    for ref, content in (("v1", "1"), ("main", "2"), ("", "2")):
        text = script(json.dumps({"workdir": {"url": f"file://{source}", "ref": ref}})) or ""
        done = subprocess.run(
            ["/bin/bash", "-c", text], cwd=work, capture_output=True, text=True, check=False
        )
        assert (done.returncode, (work / "a").read_text()) == (0, content), done.stderr


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    text = script("workdir: {url: 'file:///none'}") or ""
    done = subprocess.run(
        ["/bin/bash", "-c", text], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "holds other things" in done.stderr
