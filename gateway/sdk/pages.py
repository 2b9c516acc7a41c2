"""The way into the pages: an address that is good once, and a browser for it where there is one."""

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from broker.model.errors import Refused
from gateway.sdk.client import Client

Say = Callable[[str], None]
PAGE_OF = {
    **{"": "", "overview": "", "clusters": "clusters", "jobs": "managed", "queue": "jobs"},
    **{"history": "history"},
    **{"nodes": "nodes", "costs": "costs", "budgets": "budgets", "volumes": "storage"},
    **{"infra": "infra", "requests": "requests"},
}
"""What a program may begin with, SkyPilot's words among them, and the page that it is."""
LEADS_ON = """\
<!doctype html>
<meta http-equiv="refresh" content="0; url={0}">
<a href="{0}">Go on</a>
"""


def in_browser(address: str) -> bool:
    """Whether one was started. What starts it takes long to load."""
    return bool(import_module("webbrowser").open(address))


def enter(
    service: Client,
    page: str,
    environ: Mapping[str, str],
    *,
    say: Say,
    browser: Callable[[str], bool] | None = in_browser,
) -> str:
    """The address, opened by `browser` where there is a display.

    Raises Refused, Told, NoService.
    """
    if page not in PAGE_OF:
        known = ", ".join(filter(None, PAGE_OF))
        raise Refused(f"there is no page {page!r}", hint=f"one of: {known}")
    asked = {"page": PAGE_OF[page], "zone": environ.get("TZ", "")}
    told = service.post("/v1/dashboard", asked)
    url, port = str(told["url"]), told["port"]
    if browser is not None and _has_display(environ) and _opened(url, environ, browser):
        say("opened in your browser; the address is good once, for a minute")
        return url
    say("open this address in a browser of this host; it is good once, for a minute")
    say(f"elsewhere: ssh -L {port}:127.0.0.1:{port} {told['host']} first, then the same address")
    return url


def _has_display(environ: Mapping[str, str]) -> bool:
    """Whether a browser that is started here would be seen by who asks for it."""
    shown = any(environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return shown and not environ.get("SSH_CONNECTION")


def _opened(url: str, environ: Mapping[str, str], browser: Callable[[str], bool]) -> bool:
    """Whether a browser was led on; not where nothing can be written in the user's home."""
    try:
        path = _file(url, environ)
    except OSError:
        return False
    return browser(path.absolute().as_uri())


def _file(url: str, environ: Mapping[str, str]) -> Path:
    """Leads the browser on: command lines are seen by every user of the host, this file is not."""
    folder = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "skypurza"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / "dashboard.html"
    path.unlink(missing_ok=True)
    made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(made, "w", encoding="ascii") as file:  # noqa: PTH123 - a descriptor
        file.write(LEADS_ON.format(url))
    return path
