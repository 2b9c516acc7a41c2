"""Where the service keeps its things: from the environment, without looking at the disk."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from broker.model.errors import Refused

ROOT_HOME = Path("/var/lib/skypurza")
SITE_CONFIG = Path("/etc/skypurza/config.yaml")
MAX_SOCKET_PATH = 107
"""Bytes; what Linux's sockaddr_un holds beside its final NUL."""


@dataclass(frozen=True, slots=True)
class Paths:
    """The places of one service; all absolute."""

    home: Path
    configs: tuple[Path, ...]
    """Where the configuration may be: the first that exists counts."""
    config_named: bool
    """Whether SKYPURZA_CONFIG names it: then it has to exist."""
    socket: Path
    state_db: str
    """SKYPURZA_STATE_DB: a path or SQLAlchemy's URL; empty leaves it to the configuration."""

    @property
    def pid(self) -> Path:
        return self.home / "gateway.pid"

    @property
    def lock(self) -> Path:
        return self.home / "lock"

    @property
    def log(self) -> Path:
        return self.home / "log" / "gateway.log"

    @property
    def nodes(self) -> Path:
        """Below it the local provider's machines live."""
        return self.home / "nodes"

    def database(self, configured: str | None) -> str:
        """A path or URL: the environment's, else the configuration's, else state.db in `home`."""
        return self.state_db or configured or str(self.home / "state.db")

    @classmethod
    def from_environ(cls, environ: Mapping[str, str], *, uid: int, user_home: Path) -> "Paths":
        """Raises Refused for a relative path and for a socket path that is too long."""
        usual = ROOT_HOME if uid == 0 else user_home / ".skypurza"
        home = _absolute(environ, "SKYPURZA_HOME", usual)
        named = bool(environ.get("SKYPURZA_CONFIG"))
        config = _absolute(environ, "SKYPURZA_CONFIG", home / "config.yaml")
        return cls(
            home=home,
            configs=(config,) if named else (config, SITE_CONFIG),
            config_named=named,
            socket=_socket(_absolute(environ, "SKYPURZA_SOCKET", home / "gateway.sock")),
            state_db=_database(environ.get("SKYPURZA_STATE_DB", "")),
        )


def _absolute(environ: Mapping[str, str], name: str, usual: Path) -> Path:
    text = environ.get(name, "")
    if text and not text.startswith("/"):
        raise Refused(f"{name}={text}: not an absolute path", hint=f'{name}="$PWD/{text}"')
    return Path(text) if text else usual


def _socket(path: Path) -> Path:
    size = len(str(path).encode("utf-8", "surrogateescape"))
    if size > MAX_SOCKET_PATH:
        raise Refused(
            f"socket path {path} has {size} bytes, Linux takes {MAX_SOCKET_PATH}",
            hint="set SKYPURZA_SOCKET to a shorter path, such as /run/skypurza/gateway.sock",
        )
    return path


def _database(text: str) -> str:
    if text and "://" not in text and not text.startswith("/"):
        raise Refused(
            f"SKYPURZA_STATE_DB={text}: neither a URL nor an absolute path",
            hint=f'SKYPURZA_STATE_DB="$PWD/{text}" or postgresql+psycopg://user@host/database',
        )
    return text
