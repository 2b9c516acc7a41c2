"""The site's SSH key, and the host keys of machines: each purchase's is derived from the site's."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from broker.providers.durable import write

SEED_BYTES = 32
SITE_ID_BYTES = 6


@dataclass(frozen=True, slots=True)
class KeyPair:
    """An ed25519 key as OpenSSH writes it."""

    private: str
    public: str
    """`ssh-ed25519 AAAA...`, without a comment."""


@dataclass(frozen=True, slots=True)
class SiteKeys:
    """The id of a site and its secret, from which every key of it follows."""

    id: str
    seed: bytes

    def login(self) -> KeyPair:
        """The key with which the service logs in everywhere."""
        return _pair(self._derived("login"))

    def host(self, token: str) -> KeyPair:
        """The host key of the machines of one purchase; the same again after a restart."""
        return _pair(self._derived(f"host {token}"))

    def attempt(self, key: str) -> KeyPair:
        """By which the nodes of an attempt (`4711/1`) enter each other, and nothing else."""
        return _pair(self._derived(f"attempt {key}"))

    def seal(self) -> bytes:
        """What jobs' tokens are signed with."""
        return self._derived("tokens")

    def _derived(self, purpose: str) -> bytes:
        return hmac.digest(self.seed, purpose.encode(), hashlib.sha256)


def site_keys(folder: Path) -> SiteKeys:
    """Those of `folder`, made at first use; readable by its owner alone."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / "site.key"
    if not path.exists():
        write(path, secrets.token_hex(SITE_ID_BYTES) + " " + secrets.token_hex(SEED_BYTES) + "\n")
    site, _, seed = path.read_text(encoding="ascii").strip().partition(" ")
    return SiteKeys(site, bytes.fromhex(seed))


def site_id(folder: Path) -> str:
    """That of `folder`, nothing being made; empty where there is none yet."""
    path = folder / "site.key"
    return path.read_text(encoding="ascii").partition(" ")[0] if path.exists() else ""


def _pair(seed: bytes) -> KeyPair:
    key = Ed25519PrivateKey.from_private_bytes(seed)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return KeyPair(private.decode("ascii"), public.decode("ascii"))
