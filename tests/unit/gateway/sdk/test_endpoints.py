"""`spz status --endpoints` and `--endpoint`: where the open ports of a cluster are reached."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from broker.model.errors import Refused
from gateway.sdk.clusters import endpoints
from gateway.sdk.verbs.listing import status

UP = {"addresses": ["10.0.0.7", "10.0.0.8"], "ports": ["80", "90-91"], "status": "UP"}


@dataclass
class Counter:
    """The side of a command line that asks, with one cluster behind it."""

    home: Path
    told: dict[str, Any]

    @property
    def service(self) -> "Counter":
        return self

    @property
    def environ(self) -> dict[str, str]:
        return {"HOME": str(self.home)}

    @staticmethod
    def say(_text: str) -> None:
        """Nothing is told here."""

    def get(self, _route: str) -> dict[str, Any]:
        return {"clusters": [{"name": "dev", "uid": os.getuid() + 1, **self.told}]}

    def commands(self, _folder: Path) -> None:
        """Nothing is put there: the cluster is somebody else's, and ssh knows none."""


def ask(home: Path, told: dict[str, Any], port: int | None = None) -> int:
    given = {"words": ["dev"], "all_users": None, "endpoints": port is None, "endpoint": port}
    return status(given, Counter(home, told))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("port", "lines"),
    [
        (None, ["80: 10.0.0.7:80", "90: 10.0.0.7:90", "91: 10.0.0.7:91"]),
        (91, ["10.0.0.7:91"]),
    ],
)
def test_an_open_port_is_told_with_the_head_nodes_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], port: int | None, lines: list[str]
) -> None:
    assert ask(tmp_path, UP, port) == 0
    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (UP, "cluster dev has not opened port 22; open: 80, 90-91"),
        ({**UP, "ports": []}, "cluster dev has not opened port 22; open: none"),
        ({**UP, "ports": ["22"], "addresses": []}, "cluster dev has no address yet"),
    ],
)
def test_one_that_is_not_reached_is_refused_by_name(
    tmp_path: Path, told: dict[str, Any], why: str
) -> None:
    with pytest.raises(Refused, match=why):
        ask(tmp_path, told, 22)


def test_a_cluster_that_opened_none_tells_so(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cluster dev has opened no ports"):
        ask(tmp_path, {**UP, "ports": []})


@pytest.mark.parametrize(
    ("port", "found"),
    [
        (None, {80: "10.0.0.7:80", 90: "10.0.0.7:90", 91: "10.0.0.7:91"}),
        (90, {90: "10.0.0.7:90"}),
    ],
)
def test_programs_get_them_by_port(port: int | None, found: dict[int, str]) -> None:
    assert endpoints({"name": "dev", **UP}, port) == found
