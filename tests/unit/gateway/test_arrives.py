"""How the agent comes to bought machines: from the service, from a bucket, or not by itself."""

from pathlib import Path

import pytest

from broker.model.ids import NodeName
from broker.model.offer import Market, Offer
from broker.model.purpose import Purpose
from broker.providers.ec2.naming import Purchase
from gateway.cloud import arrives
from gateway.config.load import load
from gateway.config.paths import Paths
from gateway.hearing import hearing

OFFER = Offer("ec2", "us-east-1", ("a",), "m7i.large", Market.SPOT, 0, 2, 8)
CONFIG = """\
partitions:
  - {{name: p, elastic: {{provider: ec2, name_prefix: p-}}, reports: push}}
  - {{name: s, elastic: {{provider: ec2, name_prefix: s-}}}}
push: {{url: "https://gateway:8443/"}}
{more}
"""


def coming(folder: Path, node: str, more: str = "", user: str = "ec2-user") -> list[str]:
    paths = Paths.from_environ({"SKYPURZA_HOME": str(folder)}, uid=1, user_home=folder)
    config = load(CONFIG.format(more=more))
    names = tuple((NodeName(f"{node}{number}"), 1) for number in (1, 2))
    bought = Purchase(offer=OFFER, nodes=names, token="t", purpose=Purpose(seconds=600), at=1000)
    return list(arrives(paths, config, hearing(paths, config))(bought, user))


def test_where_nodes_post_it_comes_from_the_service_and_nothing_secret_is_told(
    tmp_path: Path,
) -> None:
    words = coming(tmp_path, "p-")
    assert any(word.startswith("https://gateway:8443/agent/") for word in words)
    assert "p-1,p-2" in words
    assert "root" in words
    assert words[-2:] == ["--notices", "ec2"]
    assert words[words.index("--deadline") + 1] == "1600"
    seal = (tmp_path / "push" / "seal").read_text().strip()
    assert not any(seal in word or "BEGIN" in word for word in words)


@pytest.mark.parametrize(
    ("node", "more"), [("s-", ""), ("p-", "aws: {node_folder: ~/node}"), ("s-", "objects: /o")]
)
def test_it_comes_with_the_first_contact_otherwise(tmp_path: Path, node: str, more: str) -> None:
    assert coming(tmp_path, node, more) == []


@pytest.mark.parametrize(
    ("more", "user"),
    [
        ("aws: {sudo: false}", "ec2-user"),
        ("aws: {sudo: false, ssh_user: alice}", "alice"),
        ("aws: {ssh_user: alice}", "root"),
    ],
)
def test_it_runs_as_whom_the_first_contact_would_run_it(
    tmp_path: Path, more: str, user: str
) -> None:
    assert user in coming(tmp_path, "p-", more)
