"""Which nodes post, what they are told, and what cannot be."""

import hashlib
import json
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from accounting.tres import Tres
from broker.model.errors import Denied, Refused
from broker.model.ids import NodeName
from broker.model.node import Node, NodeState
from gateway.config.load import check, load
from gateway.config.paths import Paths
from gateway.hearing import Hearing, hearing
from gateway.translate.token import read, read_node, sign, sign_node

CONFIG = """\
nodes: [{{names: "n[1-3]"}}]
partitions:
  - {{name: a, nodes: "n[1-2]", reports: push}}
  - {{name: b, nodes: n3}}
  - {{name: c, elastic: {{name_prefix: p-}}, reports: push}}
  - {{name: d, elastic: {{name_prefix: s-}}}}
push: {{url: "{url}"{more}}}
"""
URL = "https://gateway.example.org:8443"


def heard(folder: Path, *, url: str = URL, more: str = "") -> Hearing:
    paths = Paths.from_environ({"SKYPURZA_HOME": str(folder)}, uid=1, user_home=folder)
    found = hearing(paths, load(CONFIG.format(url=url, more=more)))
    assert found is not None
    return found


def named(**files: Path) -> str:
    """Settings of the listener."""
    return "".join(f", {name}: {json.dumps(str(path))}" for name, path in files.items())


def node(name: str, launch: int = 0) -> Node:
    made = Node(NodeName(name), launch, NodeState.UP, Tres(cpu=1), ("a",))
    return replace(made, declared=launch == 0)


@pytest.mark.parametrize(
    ("name", "launch", "posts"),
    [
        ("n1", 0, True),
        ("n2", 0, True),
        ("n3", 0, False),
        ("p-1", 1796038852002, True),
        ("s-1", 5, False),
        ("other", 5, False),
    ],
)
def test_nodes_of_partitions_that_say_so_post(
    tmp_path: Path, name: str, launch: int, posts: bool
) -> None:
    shown = heard(tmp_path)
    told = shown.push(node(name, launch))
    assert (told is not None) is posts
    if told is not None:
        assert (told.url, told.pin, told.ca) == (URL, shown.pin, "")
        assert read_node(shown.seal, told.token) == (name, launch)
        assert told.token not in repr(told)


def test_who_posts_is_as_the_configuration_that_was_read_last_says(tmp_path: Path) -> None:
    shown, text = heard(tmp_path), CONFIG.format(url=URL, more="")
    before = shown.push(node("n1"))
    shown.take(load(text.replace("push}", "ssh}").replace("nodes: n3", "nodes: n3, reports: push")))
    assert [shown.push(node(name)) is None for name in ("n1", "n3", "p-1")] == [True, False, True]
    shown.take(load(text))
    assert shown.push(node("n1")) == before


def test_certificate_and_seal_are_made_once_for_their_owner_alone(tmp_path: Path) -> None:
    first, again = heard(tmp_path), heard(tmp_path)
    assert (first.pin, first.seal) == (again.pin, again.seal)
    der = ssl.PEM_cert_to_DER_cert(first.certificate.read_text())
    assert first.pin == hashlib.sha256(der).hexdigest()
    names = x509.load_der_x509_certificate(der).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert names.value.get_values_for_type(x509.DNSName) == ["gateway.example.org"]
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "push").iterdir()}
    assert modes == {"certificate.pem": 0o600, "key.pem": 0o600, "seal": 0o600}
    assert (tmp_path / "push").stat().st_mode & 0o777 == 0o700


def test_without_its_file_there_is_another_certificate(tmp_path: Path) -> None:
    first = heard(tmp_path)
    first.certificate.unlink()
    assert heard(tmp_path).pin != first.pin
    assert heard(tmp_path).seal == first.seal


def test_a_sites_own_certificate_is_shown_and_known_by_its_authority(tmp_path: Path) -> None:
    made = heard(tmp_path, url="https://127.0.0.1:8443")
    files = named(certificate=made.certificate, key=made.key)
    assert heard(tmp_path, more=files).pin == made.pin
    told = heard(tmp_path, more=files + named(ca=made.certificate)).push(node("n1"))
    assert told is not None
    assert (told.pin, told.ca) == ("", made.certificate.read_text())


@pytest.mark.parametrize("bad", ["certificate", "key", "ca"])
@pytest.mark.parametrize("content", [None, b"", b"garbage", b"\xff"])
def test_files_that_cannot_be_used_are_refused_by_name(
    tmp_path: Path, bad: str, content: bytes | None
) -> None:
    made = heard(tmp_path)
    other = tmp_path / "bad.pem"
    if content is not None:
        other.write_bytes(content)
    files = {"certificate": made.certificate, "key": made.key, "ca": made.certificate, bad: other}
    with pytest.raises(Refused, match=r"bad\.pem"):
        heard(tmp_path, more=named(**files))


def test_an_encrypted_key_is_refused_and_nobody_is_asked_for_its_passphrase(tmp_path: Path) -> None:
    made = heard(tmp_path)
    key = load_pem_private_key(made.key.read_bytes(), None)
    form = (Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    locked = tmp_path / "locked.pem"
    locked.write_bytes(key.private_bytes(*form))
    with pytest.raises(Refused, match=r"locked\.pem cannot be used: the key is encrypted"):
        heard(tmp_path, more=named(certificate=made.certificate, key=locked))


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("partitions: [{name: a, reports: push}]", "partitions[a].reports"),
        ("push: {url: 'http://host'}", "push.url"),
        ("push: {url: 'https://user@host'}", "push.url"),
        ("push: {url: 'https://host', certificate: /c}", "push.key"),
        ("push: {url: 'https://host', key: /k}", "push.certificate"),
        ("push: {url: 'https://host', port: 0}", "push.port"),
        ("partitions: [{name: a, reports: pull}]", "partitions[a].reports"),
        (
            "nodes: [{names: n1}]\npush: {url: 'https://h'}\npartitions:\n"
            " - {name: a, nodes: n1, reports: push}\n - {name: b, nodes: ALL}",
            "partitions[b].reports",
        ),
        (
            "push: {url: 'https://h'}\npartitions:\n"
            " - {name: a, elastic: {}, reports: push}\n - {name: b, elastic: {}}",
            "partitions[b].reports",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(text: str, where: str) -> None:
    assert where in [problem.path for problem in check(text)]


def test_nobody_posts_where_no_address_is_given(tmp_path: Path) -> None:
    paths = Paths.from_environ({"SKYPURZA_HOME": str(tmp_path)}, uid=1, user_home=tmp_path)
    assert hearing(paths, load("{}")) is None


SEAL = b"seal"


@pytest.mark.parametrize(
    "token",
    [
        "",
        "n1",
        "n1/1/",
        sign_node(b"another", NodeName("n1"), 1),
        sign_node(SEAL, NodeName("n1"), 1).replace("n1/1", "n1/2"),
        sign_node(SEAL, NodeName("n1"), 1).replace("n1/1", "n2/1"),
        sign_node(SEAL, NodeName("n1"), 1).upper(),
        sign_node(SEAL, NodeName("n1"), 1) + "0",
        sign_node(SEAL, NodeName("n1"), 1).replace("n1/1/", "n1/\u0661/"),
        sign(SEAL, "4711/1"),
    ],
)
def test_only_what_was_signed_for_a_node_is_a_nodes_token(token: str) -> None:
    with pytest.raises(Denied):
        read_node(SEAL, token)


def test_a_nodes_token_is_no_jobs_token() -> None:
    with pytest.raises(Denied):
        read(SEAL, sign_node(SEAL, NodeName("4711"), 1))
    assert read_node(SEAL, sign_node(SEAL, NodeName("n-1.x"), 12)) == ("n-1.x", 12)
