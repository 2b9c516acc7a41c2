"""Who may look at pages, and what a browser may do with them."""

import pytest

from gateway.web.app import HEADERS, PAGES
from gateway.web.sessions import SESSION_SECONDS
from tests.unit.gateway.web.site import NOW, Browser, Doors


def test_the_ticket_is_used_up_and_the_cookie_goes_to_one_folder_only() -> None:
    browser = Browser()
    ticket = browser.sessions.ticket(1000, "")
    first = browser.ask(f"/enter/{ticket}")
    assert first.status_code == 200
    pairs = {one.strip().lower() for one in first.headers["set-cookie"].split(";")[1:]}
    folder = browser.sessions.folder(1000)
    assert pairs == {
        *("httponly", "samesite=strict", f"path=/{folder}/", f"max-age={SESSION_SECONDS}"),
    }
    assert ticket not in first.text
    again = browser.ask(f"/enter/{ticket}")
    assert (again.status_code, "set-cookie" in again.headers) == (403, False)
    assert "`spz dashboard` makes a new one" in again.text


@pytest.mark.parametrize("page", ["", "jobs", "costs", "../evil", "//evil", "nothing"])
def test_it_leads_on_to_a_page_of_ours_only(page: str) -> None:
    browser = Browser()
    answer = browser.enter(page=page)
    known = page if page in {one.path for one in PAGES} else ""
    assert f"url=/{browser.folder}/{known}" in answer.text
    assert "evil" not in answer.text


def test_asking_for_the_head_alone_does_not_use_a_ticket() -> None:
    browser = Browser()
    ticket = browser.sessions.ticket(1000, "")
    assert browser.ask(f"/enter/{ticket}", method="HEAD").status_code == 405
    assert browser.ask(f"/enter/{ticket}").status_code == 200


@pytest.mark.parametrize("path", [one.path for one in PAGES] + ["jobs/1", "nodes/n1", "nothing"])
def test_without_a_session_nothing_is_shown_and_nothing_is_asked(path: str) -> None:
    browser = Browser()
    browser.enter(uid=1000)
    his = browser.cookie
    browser.enter(uid=1001)
    for headers in ({}, {"cookie": "spz=0.9999999999.n.abc"}, {"cookie": his}, {"cookie": "x"}):
        answer = browser.ask(f"/{browser.folder}/{path}", headers=headers)
        assert answer.status_code == (404 if path == "nothing" else 403)
        assert "<nav" not in answer.text
    assert browser.doors.asked == []


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *(("127.0.0.1:4711", 200), ("localhost:1", 200), ("LOCALHOST", 200), ("[::1]:80", 200)),
        *(("evil.example", 421), ("evil.example:4711", 421), ("127.0.0.1.evil.example", 421)),
        *(("", 421), ("localhost.evil:80", 421), ("10.0.0.1:4711", 421), ("[::2]:1", 421)),
    ],
)
def test_a_browser_that_was_sent_here_by_another_name_sees_nothing(host: str, status: int) -> None:
    browser = Browser()
    browser.enter()
    path, cookie = f"/{browser.folder}/budgets", {"cookie": browser.cookie}
    assert browser.ask(path, headers=cookie, host=host).status_code == status
    ticket = browser.sessions.ticket(1000, "")
    assert browser.ask(f"/enter/{ticket}", host=host).status_code == status


def test_every_answer_forbids_frames_strangers_scripts_and_referrers() -> None:
    browser = Browser()
    entered = browser.enter()
    answers = [
        *(entered, browser.page("jobs"), browser.page("nothing"), browser.page("jobs/1")),
        *(browser.ask("/"), browser.ask("/x", host="evil"), browser.ask("/enter/x")),
        browser.ask("/static/page.css"),
    ]
    for answer in answers:
        for name, value in HEADERS.items():
            if name != "Cache-Control":
                assert answer.headers[name] == value
        assert "access-control-allow-origin" not in answer.headers
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answers[1].headers["cache-control"] == "no-store"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_nothing_but_looking_is_answered(method: str) -> None:
    browser = Browser()
    browser.enter()
    asked = browser.ask(
        f"/{browser.folder}/jobs", method=method, headers={"cookie": browser.cookie}
    )
    assert asked.status_code == 405
    assert browser.doors.asked == []


def test_pages_are_made_in_the_name_of_who_looks_and_in_that_zone() -> None:
    browser = Browser(Doors(zone="Europe/Berlin"))
    browser.enter(uid=1234, zone="Europe/Berlin")
    page = browser.page("budgets")
    assert browser.doors.who == [(1234, "Europe/Berlin")]
    assert "2027-01-15 09:00:00" in page.text


def test_a_session_that_is_over_says_how_to_come_back() -> None:
    browser = Browser()
    browser.enter()
    browser.at = NOW + SESSION_SECONDS
    answer = browser.page("jobs")
    assert (answer.status_code, "`spz dashboard` lets you in" in answer.text) == (403, True)


def test_what_is_not_there_is_told_with_the_menu() -> None:
    answer = Browser().page("jobs/99")
    assert answer.status_code == 404
    assert "no /v1/jobs/99" in answer.text
    assert "<nav" in answer.text


@pytest.mark.parametrize("name", ["page.css", "page.js"])
def test_sheets_are_there_for_anybody_and_ask_for_nothing_elsewhere(name: str) -> None:
    answer = Browser().ask(f"/static/{name}")
    assert answer.status_code == 200
    assert "http" not in answer.text.replace("http-equiv", "")
    assert Browser().ask("/static/..%2fapp.py").status_code == 404
