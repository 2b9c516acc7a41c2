"""The way into the pages: what is printed, and which browser is opened with what."""

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from broker.model.errors import Refused
from gateway.sdk.pages import enter

URL = "http://127.0.0.1:4711/enter/1000.1.n.abc"


class Service:
    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []

    def post(self, route: str, body: Any) -> dict[str, Any]:
        self.asked.append((route, body))
        return {"url": URL, "port": 4711, "host": "login1"}


class Seen:
    """A browser, and what is said beside it."""

    def __init__(self, opens: bool = True) -> None:
        self.opens = opens
        self.opened: list[str] = []
        self.said: list[str] = []
        self.service = Service()

    def browse(self, address: str) -> bool:
        self.opened.append(address)
        return self.opens

    def enter(self, page: str, environ: Mapping[str, str], *, browser: bool = True) -> str:
        browse = self.browse if browser else None
        return enter(self.service, page, environ, say=self.said.append, browser=browse)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("page", "asked"),
    [("", ""), ("jobs", "managed"), ("queue", "jobs"), ("volumes", "storage"), ("infra", "infra")],
)
def test_a_page_is_asked_for_by_skypilots_word_in_the_users_zone(page: str, asked: str) -> None:
    seen = Seen()
    assert seen.enter(page, {"TZ": "Europe/Berlin"}) == URL
    assert seen.service.asked == [("/v1/dashboard", {"page": asked, "zone": "Europe/Berlin"})]


def test_a_page_that_is_none_is_refused_before_anything_is_asked() -> None:
    seen = Seen()
    with pytest.raises(Refused, match="there is no page 'workspaces'") as refused:
        seen.enter("workspaces", {})
    assert "clusters" in refused.value.hint
    assert seen.service.asked == []


@pytest.mark.parametrize(
    "environ",
    [{}, {"DISPLAY": ""}, {"DISPLAY": ":0", "SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}],
)
def test_where_nobody_would_see_a_browser_the_tunnel_is_told(environ: dict[str, str]) -> None:
    seen = Seen()
    assert seen.enter("", environ) == URL
    assert seen.opened == []
    assert "ssh -L 4711:127.0.0.1:4711 login1" in seen.said[-1]


@pytest.mark.parametrize("display", ["DISPLAY", "WAYLAND_DISPLAY"])
def test_the_ticket_is_in_a_file_of_the_user_and_on_no_command_line(
    tmp_path: Path, display: str
) -> None:
    for _ in range(2):
        seen = Seen()
        seen.enter("", {display: ":0", "XDG_CACHE_HOME": str(tmp_path / "a cache")})
        (address,) = seen.opened
        assert "4711" not in address
        path = Path(unquote(urlsplit(address).path))
        assert URL in path.read_text()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_link_that_somebody_put_in_its_place_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "skypurza"
    folder.mkdir()
    (tmp_path / "target").write_text("mine")
    (folder / "dashboard.html").symlink_to(tmp_path / "target")
    Seen().enter("", {"DISPLAY": ":0", "XDG_CACHE_HOME": str(tmp_path)})
    assert (tmp_path / "target").read_text() == "mine"


def test_a_home_that_cannot_be_written_to_leaves_the_address() -> None:
    seen = Seen()
    assert seen.enter("", {"DISPLAY": ":0", "XDG_CACHE_HOME": "/dev/null/cache"}) == URL
    assert (seen.opened, "ssh -L" in seen.said[-1]) == ([], True)


def test_no_browser_opens_none(tmp_path: Path) -> None:
    seen = Seen()
    seen.enter("", {"DISPLAY": ":0", "XDG_CACHE_HOME": str(tmp_path)}, browser=False)
    assert (seen.opened, [*tmp_path.iterdir()]) == ([], [])


def test_a_browser_that_does_not_start_leaves_the_address(tmp_path: Path) -> None:
    seen = Seen(opens=False)
    seen.enter("", {"DISPLAY": ":0", "XDG_CACHE_HOME": str(tmp_path)})
    assert "ssh -L" in seen.said[-1]
