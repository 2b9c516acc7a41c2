"""Chromium without a window, spoken to by its own protocol over a pipe (fd 3 and 4).

Its protocol as told at chromedevtools.github.io/devtools-protocol; messages end with a NUL.
"""

import base64
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--hide-scrollbars"),
    *("--remote-debugging-pipe", "about:blank"),
)


@dataclass(frozen=True, slots=True)
class Visit:
    """What a browser has that was let in: the address of the pages, and the cookie."""

    root: str
    cookie: str


def fetched(url: str, **headers: str) -> tuple[int, str, str]:
    """Status, cookie and text, without a browser."""
    parts = urlsplit(url)
    with closing(HTTPConnection(parts.netloc, timeout=30)) as connection:
        connection.request("GET", f"{parts.path}?{parts.query}", headers=headers)
        answer = connection.getresponse()
        cookie = (answer.getheader("set-cookie") or "").partition(";")[0]
        return answer.status, cookie, answer.read().decode()


def entered(url: str) -> Visit:
    """By an address that lets in once."""
    status, cookie, text = fetched(url)
    folder = re.search(r"url=(/\w+/)", text)
    assert status == 200, text
    assert folder is not None
    return Visit(url.partition("/enter")[0] + folder[1], cookie)


def visited(visit: Visit, path: str) -> tuple[int, str]:
    """Status and text of a page."""
    status, _, text = fetched(visit.root + path, Cookie=visit.cookie)
    return status, text


def program() -> str | None:
    """Of this machine; None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page of it."""

    def __init__(self, said: int, heard: int) -> None:
        self.said, self.heard = said, heard
        self.rest = b""
        self.number = 0
        self.session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        found = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self.session = found["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a command. Raises AssertionError for an error."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.said, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self.number:
                assert "error" not in told, (method, told)
                return dict(told["result"])
            self.events.append(told)

    def open(self, url: str) -> None:
        """Returns when the page has loaded, and what it leads on to by itself."""
        self.events.clear()
        self.ask("Page.navigate", url=url)
        self._until_loaded()

    def click(self, selector: str) -> None:
        """Returns when the page to which that leads has loaded."""
        self.events.clear()
        self.run(f"document.querySelector({json.dumps(selector)}).click()")
        self._until_loaded()

    def _until_loaded(self) -> None:
        while not any(one.get("method") == "Page.loadEventFired" for one in self.events):
            self.events.append(self._next())

    def run(self, script: str) -> Any:
        """The value of an expression on the page."""
        told = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def look(self, width: int, *, dark: bool = False, touch: bool = False) -> None:
        """As a screen of this width."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=touch,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self) -> bytes:
        """The whole page, as PNG."""
        told = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        return base64.b64decode(told["data"])

    def complaints(self) -> list[str]:
        """What the console said since the page was opened: errors, refusals by the policy."""
        entries = [one["params"]["entry"] for one in self.events if one.get("method") == LOGGED]
        return [entry["text"] for entry in entries if entry["level"] == "error"]

    def asked_for(self) -> list[str]:
        """Every address that the browser asked for since the page was opened."""
        sent = [one for one in self.events if one.get("method") == "Network.requestWillBeSent"]
        return [one["params"]["request"]["url"] for one in sent]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            part = os.read(self.heard, 1 << 16)
            assert part, "the browser has ended"
            self.rest += part
        line, _, self.rest = self.rest.partition(b"\0")
        told: dict[str, Any] = json.loads(line)
        return told


LOGGED = "Log.entryAdded"


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Its profile is below the folder."""
    found = program()
    assert found is not None
    from_us, ours = os.pipe()
    theirs, to_us = os.pipe()

    def ends() -> None:
        os.dup2(os.dup(to_us), 94)
        os.dup2(from_us, 93)
        os.dup2(93, 3)
        os.dup2(94, 4)

    process = subprocess.Popen(
        [found, *FLAGS, f"--user-data-dir={folder / 'profile'}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=ends,  # noqa: PLW1509 - before any thread; pass_fds keeps numbers, these change
        close_fds=False,
        start_new_session=True,
    )
    os.close(from_us)
    os.close(to_us)
    try:
        yield Browser(ours, theirs)
    finally:
        os.close(ours)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(theirs)
