"""What nodes post joined: which of them do, what they are told, by what they know the service."""

import hashlib
import ipaddress
import secrets
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from broker.model.errors import Refused
from broker.model.node import Node
from broker.ports import Push
from broker.providers.durable import write
from gateway.config.checks import ALL_NODES
from gateway.config.paths import Paths
from gateway.config.settings import Config, Partition
from gateway.translate.token import sign_node

PUSH = "push"
SEAL_BYTES = 32
YEARS = 10
"""That a certificate of our own is good for; nodes know it by its hash, and look at no date."""


@dataclass(slots=True)
class Hearing:
    """What nodes are told, and what the listener shows."""

    url: str
    certificate: Path
    key: Path
    pin: str
    ca: str
    seal: bytes
    parts: Sequence[Partition]
    """Partitions whose nodes post."""

    def take(self, config: Config) -> None:
        """Who posts from now on. Machines that were told to go on, whatever is said now."""
        self.parts = _posting(config)

    def archive(self, name: str, digest: str) -> str | None:
        """Where the bought node of that name gets the agent; None where it does not post."""
        prefixes = tuple(part.elastic.name_prefix for part in self.parts if part.elastic)
        return f"{self.url.rstrip('/')}/agent/{digest}" if name.startswith(prefixes) else None

    def push(self, node: Node) -> Push | None:
        """What its agent is told; None where it does not post."""
        if not any(_is_of(node, part) for part in self.parts):
            return None
        return Push(self.url, self.pin, self.ca, sign_node(self.seal, node.name, node.launch))


def _is_of(node: Node, part: Partition) -> bool:
    if node.declared:
        return part.nodes is not None and (part.nodes == ALL_NODES or node.name in part.nodes)
    return part.elastic is not None and node.name.startswith(part.elastic.name_prefix)


def hearing(paths: Paths, config: Config) -> Hearing | None:
    """None where nothing says by which address nodes reach the service.

    Raises Refused for a certificate that cannot be used.
    """
    told = config.push
    if told.url is None:
        return None
    folder = paths.home / "push"
    folder.mkdir(mode=0o700, exist_ok=True)
    if told.certificate is not None and told.key is not None:
        certificate, key = Path(told.certificate), Path(told.key)
    else:
        certificate, key = _own(folder, urlsplit(told.url).hostname or "")
    pin = _pin(certificate, key)
    return Hearing(
        url=told.url,
        certificate=certificate,
        key=key,
        pin="" if told.ca else pin,
        ca=_authorities(Path(told.ca)) if told.ca else "",
        seal=_seal(folder / "seal"),
        parts=_posting(config),
    )


def _posting(config: Config) -> Sequence[Partition]:
    return [part for part in config.partitions if part.reports == PUSH]


def _seal(path: Path) -> bytes:
    """What nodes' tokens are signed with."""
    if not path.exists():
        write(path, secrets.token_hex(SEAL_BYTES) + "\n")
    return bytes.fromhex(path.read_text(encoding="ascii").strip())


def _own(folder: Path, host: str) -> tuple[Path, Path]:
    """A certificate of the service's own and its key, made where one of them is missing."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    if not (certificate.exists() and key.exists()):
        made = ec.generate_private_key(ec.SECP256R1())
        form = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        write(key, made.private_bytes(*form).decode("ascii"))
        write(certificate, _signed(made, host).public_bytes(Encoding.PEM).decode("ascii"))
    return certificate, key


def _signed(key: ec.EllipticCurvePrivateKey, host: str) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "skypurza")])
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=365 * YEARS))
        .add_extension(x509.SubjectAlternativeName([_host(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pin(certificate: Path, key: Path) -> str:
    """SHA-256 of the certificate that is shown. Raises Refused."""
    text = _text(certificate, "push.certificate")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, _locked)
        begin = text.index(ssl.PEM_HEADER)
        end = text.index(ssl.PEM_FOOTER, begin) + len(ssl.PEM_FOOTER)
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(text[begin:end])).hexdigest()
    except (OSError, ValueError) as error:
        raise Refused(
            f"push: certificate {certificate} and key {key} cannot be used: {error}",
            hint="PEM files that belong together, or none: then the service makes its own",
        ) from error


def _locked() -> str:
    """Asked for a passphrase, which else the terminal would be. Raises ValueError."""
    raise ValueError("the key is encrypted")


def _authorities(path: Path) -> str:
    """Raises Refused."""
    text = _text(path, "push.ca")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (OSError, ValueError) as error:
        hint = "certificates of authorities as PEM"
        raise Refused(f"push.ca: {path} cannot be used: {error}", hint=hint) from error
    return text


def _text(path: Path, setting: str) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{setting}: {path}: {error}", hint="a readable PEM file") from error
