"""Files of variables, read as python-dotenv 1.2 reads them."""

from pathlib import Path

import pytest

from broker.model.errors import Refused
from gateway.sdk.envfile import read
from gateway.sdk.sending import variables

SHELL = {"HOME": "/home/ann", "TOKEN": "hush"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A=1", {"A": "1"}),
        ("export A=1\nB=2\r\n", {"A": "1", "B": "2"}),
        ("\ufeff# what\n\n  A = 1  \n  # more\n", {"A": "1"}),
        ('A="two words"', {"A": "two words"}),
        ("A='one $HOME'", {"A": "one $HOME"}),
        ("A=\nB=2", {"A": "", "B": "2"}),
        ('KEY="--BEGIN\na\n# d\n--END"\nB=1', {"KEY": "--BEGIN\na\n# d\n--END", "B": "1"}),
        ("A=a#b", {"A": "a#b"}),
        ("A=a # said", {"A": "a"}),
        ("A= # said", {"A": ""}),
        ("A=#b", {"A": "#b"}),
        ('A="a"#said', {"A": "a"}),
        ("A=1\nB=${A}-${HOME}-${NONE}-${NONE:-x}", {"A": "1", "B": "1-/home/ann--x"}),
        ("A=$HOME", {"A": "$HOME"}),
        (r'A="q\"u\\o\nte"', {"A": 'q"u\\o\nte'}),
        (r"A='it\'s \n'", {"A": r"it's \n"}),
        ('A={"a": 1}', {"A": '{"a": 1}'}),
        ("A=a=b=c", {"A": "a=b=c"}),
        ("TOKEN", {"TOKEN": "hush"}),
        ("HOME=/x\nB=${HOME}", {"HOME": "/x", "B": "/x"}),
        ("", {}),
    ],
)  # fmt: skip
def test_a_file_of_variables_is_read(text: str, found: dict[str, str]) -> None:
    assert read(text, SHELL) == found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("A=1\n\n=2", "env: line 3 is no variable"),
        ("A B=1", "env: line 1 is no variable"),
        ("NONE", "env: NONE: not set in this shell"),
    ],
)
def test_a_line_that_is_none_is_told_with_its_file(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "env"
    file.write_text(text)
    with pytest.raises(Refused) as caught:
        variables((), [file], SHELL, option="--env")
    assert caught.value.message.endswith(told)
