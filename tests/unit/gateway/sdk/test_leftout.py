"""What is told of files that stay at home."""

from pathlib import Path

from gateway.sdk.leftout import left_out, left_out_text


def test_what_stays_at_home_is_listed_a_folder_as_one(tmp_path: Path) -> None:
    for name in ("build/a", "build/b", "src/x.log", "src/main.py", "keep.log"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    assert left_out(str(tmp_path)) == []
    assert left_out_text([]) == ""
    (tmp_path / ".gitignore").write_text("build/\n*.log\n!keep.log\n")
    found = left_out(str(tmp_path))
    assert found == ["build/", "src/x.log"]
    assert left_out_text(found).endswith(": build/, src/x.log")
    assert left_out_text(list("abcdefg")).endswith(": a, b, c, d, e, and 2 more")
