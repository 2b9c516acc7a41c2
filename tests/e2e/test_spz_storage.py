"""`spz storage` as a process: buckets that tasks have by name, in an S3 of the box's."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.agents import until
from tests.e2e.service import Service
from tests.e2e.terminal import Terminal
from tests.lab.running import CREDENTIALS, Ways, here

pytestmark = pytest.mark.e2e
AWS = """\
#!/bin/sh
# Stands for AWS's command: the bucket is there already, and empty.
echo "$*" >> "$HOME/asked"
case "$*" in *get-bucket-tagging*of-a-task*) echo skypurza ;; esac
"""
TASK = """\
resources: {{cpus: 2+}}
file_mounts:
  ~/out: {{name: {kept}, mode: COPY}}
  ~/tmp: {{name: {passing}, mode: COPY, persistent: false}}
  ~/old: {{name: {passing}-before, mode: COPY, persistent: false}}
run: echo ran
"""


@pytest.fixture
def cloud() -> Iterator[Ways]:
    with here(lambda: 1_800_000_000.0) as made:
        yield made


@pytest.fixture
def spz(clusters: Service, cloud: Ways, short_tmp: Path) -> Terminal:
    made = Terminal(clusters, short_tmp)
    made.environ |= {**CREDENTIALS, "AWS_ENDPOINT_URL": cloud.endpoint}
    aws = short_tmp / "bin" / "aws"
    aws.parent.mkdir()
    aws.write_text(AWS)
    aws.chmod(0o755)
    return made


def test_named_buckets_are_listed_deleted_and_go_with_their_cluster(
    spz: Terminal, cloud: Ways
) -> None:
    s3 = cloud.client("s3")
    for name in ("kept-here", "passing-here", "passing-here-before", "not-ours"):
        s3.create_bucket(Bucket=name)
        s3.put_object(Bucket=name, Key="a/b", Body=b"x")
    made_for_it = {"TagSet": [{"Key": "ManagedBy", "Value": "skypurza"}]}
    s3.put_bucket_tagging(Bucket="passing-here", Tagging=made_for_it)
    task = spz.file("t.yaml", TASK.format(kept="kept-here", passing="passing-here"))
    made = spz("launch", "-y", "-c", "st", task)
    assert (made.code, made.out.splitlines()[-1]) == (0, "ran"), made
    found = spz.json("storage", "ls")
    assert [(one["name"], one["status"], one["open"]) for one in found] == [
        ("kept-here", "READY", True),
        ("passing-here", "READY", True),
        ("passing-here-before", "READY", True),
    ]
    down = spz("down", "-y", "st")
    assert down.code == 0
    assert "Deleted storage passing-here\nStorage passing-here-before stays" in down.out
    listed = spz("storage", "ls").out
    assert "kept-here" in listed
    assert "spz launch -c st" in listed
    assert "passing-here " not in listed

    assert spz("storage", "delete", "not-ours", "-y").code == 1
    assert spz("storage", "delete", "kept-here", text="n\n").code == 1
    gone = spz("storage", "delete", "kept-here", "-y")
    assert (gone.code, gone.out) == (0, "Deleted storage kept-here\n"), gone
    request = spz("storage", "delete", "passing-here-before", "-y", "--async").out.strip()
    told = spz("api", "logs", request)
    assert (told.code, told.out.splitlines()[-1]) == (0, "Deleted storage passing-here-before")
    assert spz("storage", "ls").out == "No existing storage.\n"
    assert [one["Name"] for one in s3.list_buckets()["Buckets"]] == ["not-ours"]


def test_without_an_s3_that_answers_what_tasks_named_is_listed(spz: Terminal) -> None:
    task = spz.file("u.yaml", TASK.format(kept="dark-one", passing="dark-two"))
    assert spz("launch", "-y", "-c", "dark", task).code == 0
    spz.environ["AWS_ENDPOINT_URL"] = "http://127.0.0.1:9"
    spz.environ["AWS_MAX_ATTEMPTS"] = "1"
    told = spz("storage", "ls")
    assert (told.code, "UNKNOWN" in told.out, "is not known" in told.err) == (0, True, True), told
    assert os.environ.get("AWS_ENDPOINT_URL") is None
    assert spz("down", "-y", "dark").code == 1, "what was to go with it could not be deleted"


def test_a_passing_bucket_goes_with_its_machine_also_where_nobody_says_down(spz: Terminal) -> None:
    task = spz.file("v.yaml", TASK.format(kept="stays", passing="of-a-task"))
    made = spz("launch", "-y", "-c", "idle", "-i", "0", "--down", task)
    assert made.code == 0, made
    asked = spz.home / "asked"
    gone = ["s3 rb --force s3://of-a-task", "s3 rb --force s3://of-a-task-before"]
    removed = lambda: [one for one in asked.read_text().splitlines() if " rb " in one]  # noqa: E731
    until(lambda: removed() == gone, "the buckets to be deleted")
