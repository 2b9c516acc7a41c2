"""Whole texts of the nodes of a run that is over."""

import io
from pathlib import Path

import pytest

from gateway.sdk.texts import copied


@pytest.mark.parametrize(
    ("only", "shown"),
    [
        (None, b"(head, rank=0) a\n(worker1, rank=1) b\n"),
        (0, b"a\n"),
        (1, b"b\n"),
        (2, None),
        (-1, None),
    ],
)
def test_a_node_that_the_run_was_not_on_has_no_text(
    tmp_path: Path, only: int | None, shown: bytes | None
) -> None:
    paths = []
    for text in ("a", "b"):
        (tmp_path / text).write_text(f"{text}\n")
        paths.append(str(tmp_path / text))
    out = io.BytesIO()
    assert copied(paths, out.write, only=only) == (shown is not None)
    assert out.getvalue() == (shown or b"")


def test_a_text_that_is_gone_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("b")
    out = io.BytesIO()
    assert copied([str(tmp_path / "gone"), str(tmp_path / "b")], out.write, only=None)
    assert out.getvalue() == b"(worker1, rank=1) b\n"
