"""`spz dashboard` as a process, its pages over a running service, and in Chromium."""

import re
import shlex
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.agents import until
from tests.e2e.browser import Browser, browser, entered, fetched, program, visited
from tests.e2e.service import Service
from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.e2e
HOSTILE = "<script>alert(1)</script> \"'"


@pytest.fixture
def spz(served: Service, short_tmp: Path) -> Terminal:
    return Terminal(served, short_tmp)


@pytest.fixture
def chromium(short_tmp: Path) -> Iterator[Browser]:
    if program() is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with browser(short_tmp) as made:
        yield made


def test_the_address_lets_one_browser_in_and_shows_what_squeue_shows(
    served: Service, spz: Terminal
) -> None:
    job = served.submit("--job-name", HOSTILE, "--wrap", "echo seen by nobody else; sleep 60")
    out = served.work / f"slurm-{job}.out"
    until(lambda: out.exists() and out.read_text(), "what the job says", 30)
    done = spz("dashboard", "--no-browser")
    url = done.out.strip()
    assert done.code == 0, done
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/enter/\S+", url)
    assert "ssh -L" in done.err
    visit = entered(url)
    assert fetched(url)[0] == 403
    assert fetched(f"{visit.root}jobs")[0] == 403
    assert fetched(f"{visit.root}jobs", Cookie=visit.cookie, Host="evil.example")[0] == 421
    shows = (("jobs", f"jobs/{job}"), (f"jobs/{job}", "seen by nobody else"), ("", "own"))
    for path, shown in shows:
        status, text = visited(visit, path)
        assert (status, shown in text, "<script>alert" in text) == (200, True, False), path
    assert url.rpartition(".")[2] not in served.out.read_text()
    served.run("scancel", str(job))


def test_chromium_shows_the_pages_on_any_screen(
    served: Service, spz: Terminal, chromium: Browser
) -> None:
    job = served.submit("--job-name", HOSTILE, "--wrap", "sleep 60")
    script = spz.home / "browser"
    script.write_text(f'#!/bin/sh\nprintf %s "$1" > {shlex.quote(str(spz.home))}/opened\n')
    script.chmod(0o755)
    spz.environ |= {"DISPLAY": ":0", "BROWSER": str(script)}
    done = spz("jobs", "dashboard")
    assert (done.code, "opened in your browser" in done.err) == (0, True), done
    opened = (spz.home / "opened").read_text()
    assert opened.startswith("file:///")  # no ticket on a command line
    chromium.look(1280)
    chromium.open(opened)
    until(lambda: chromium.run("document.title") == "Managed jobs - SkyPurza", "the page", 20)
    root = chromium.run("location.href").removesuffix("managed")
    seen: list[bytes] = []
    for path in ("", "jobs", f"jobs/{job}", "nodes", "costs", "infra"):
        for width, dark in ((1280, False), (390, True)):
            chromium.look(width, dark=dark, touch=width < 500)
            chromium.open(root + path)
            assert chromium.complaints() == [], path
            assert all(one.startswith((origin(root), "data:")) for one in chromium.asked_for())
            assert chromium.run("document.documentElement.scrollWidth") == width, path
            seen.append(chromium.picture())
    assert all(map(has_marks, seen))
    chromium.open(f"{root}jobs")
    assert HOSTILE in chromium.run("document.querySelector('tbody').textContent")
    chromium.click("tbody a")
    assert chromium.run("document.querySelector('h1').textContent") == f"Job {job}"
    chromium.open(f"{root}nodes")
    chromium.run("document.querySelector('th button').click()")
    assert chromium.run("document.querySelector('th').getAttribute('aria-sort')") == "ascending"
    served.run("scancel", str(job))


def origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/"


def has_marks(png: bytes) -> bool:
    """Whether a picture has more than one colour: its lines differ once unpacked."""
    at, data = 8, b""
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at : at + 8])
        data += png[at + 8 : at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    return len(set(zlib.decompress(data))) > 50
