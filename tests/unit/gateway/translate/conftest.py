"""The recorded site, its answers where they are there, and submitting without a service."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from broker.model.site import Site
from gateway.config.load import load
from gateway.config.site import site as make_site
from gateway.translate.sbatch import Early, NeedFile, Setting, Submission, translate

ROOT = Path(__file__).parents[4]
UIDS = {"root": 0, "alice": 2001, "bob": 2002}
NOW = 1_796_000_000
GONE = 2


@dataclass(frozen=True)
class GivenFile:
    content: bytes = b""
    error: int = 0


@dataclass(frozen=True)
class Typed:
    argv: tuple[str, ...]
    files: Mapping[str, GivenFile] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "/home/alice/work"
    umask: int = 0o022
    limits: tuple[tuple[str, int, int], ...] = (("NOFILE", 1024, 4096), ("STACK", 8, -1))


@pytest.fixture(scope="session")
def site() -> Site:
    text = (ROOT / "tests" / "conformance" / "site.yaml").read_text()
    return make_site(load(text), service_uid=0, uid_of=UIDS.get, price_of=lambda _: None)


Submit = Callable[..., Submission | Early]


@pytest.fixture
def sbatch(site: Site) -> Submit:
    """Translates a command; a file that is asked for and not given is not there."""

    def submit(
        *argv: str,
        files: Mapping[str, bytes] | None = None,
        environ: Mapping[str, str] | None = None,
        user: str = "alice",
        warn: bool = False,
        **setting: Any,
    ) -> Submission | Early:
        given = {name: GivenFile(content) for name, content in (files or {}).items()}
        asks = Setting(
            site=site,
            now=NOW,
            zone=lambda _: 0,
            uid=UIDS[user],
            submit_host="submithost",
            warn_ignored=warn,
            **setting,
        )
        while True:
            try:
                return translate(Typed(argv, given, environ or {}), asks)
            except NeedFile as need:
                assert need.path not in given
                given[need.path] = GivenFile(error=GONE)

    return submit


@pytest.fixture
def golden() -> Callable[[str], list[dict[str, Any]]]:
    """Recorded cases of an area; skips where there are none."""
    folder = Path(os.environ.get("SKYPURZA_SHARED", ROOT.parent / "shared"))

    def read(area: str) -> list[dict[str, Any]]:
        path = folder / "conformance" / "golden" / f"{area}.json"
        if not path.exists():
            pytest.skip(f"no recorded answers of Slurm at {folder}")
        return list(json.loads(path.read_text())["cases"])

    return read


@pytest.fixture
def wild() -> Callable[[str], list[dict[str, Any]]]:
    """Lines of the corpus of real scripts; skips where it is not there."""
    folder = Path(os.environ.get("SKYPURZA_SHARED", ROOT.parent / "shared")) / "wild"

    def read(name: str) -> list[dict[str, Any]]:
        if not (folder / name).exists():
            pytest.skip(f"no corpus of real scripts at {folder}")
        return [json.loads(line) for line in (folder / name).read_text().splitlines()]

    return read
