"""Each page in each state: nothing there, one thing, hostile names, more than fits on a page."""

import re
from html import escape, unescape
from typing import Any

import pytest

from broker.model.errors import Denied, Refused, SpzError, Unknown
from gateway.query.listed import Column
from gateway.query.managedlist import MANAGED
from gateway.query.skylists import BUDGETS, CLUSTERS, RUNS, STORAGES, VOLUMES
from gateway.web.app import PAGES
from gateway.web.blocks import PAGE_ROWS, TONES, paged, readable, state
from gateway.web.doors import rows
from gateway.web.jobs import COLUMNS
from gateway.web.past import COLUMNS as COLUMNS_PAST
from tests.unit.gateway.web.site import CEILING, HEALTH, HOSTILE, MARK, NOW, Browser, Doors, Said


def node(name: str = "ec2-1", **changed: object) -> dict[str, Any]:
    return {
        **{"name": name, "state": "ALLOCATED", "declared": False, "instance_type": "g5.xlarge"},
        **{"region": "us-east-1", "zone": "use1-az1", "micro_usd_per_hour": 1_006_000},
        **{"old_price": "price of 2025-04-04, 605 days old"},
        **changed,
    }


def job(name: str = "fit", **changed: object) -> dict[str, Any]:
    return {
        **{"id": 7, "slurm_id": "7", "name": name, "user": "ann", "uid": 1000, "account": "bio"},
        **{"partition": "ec2", "cluster": None, "state": "RUNNING", "reason": "None"},
        **{"detail": "", "over": False, "submitted": NOW - 60, "started": NOW - 50, "ended": None},
        **{"time_limit": None, "attempt": 1, "restarts": 0, "node_list": "ec2-1"},
        **{"tres": "cpu=4", "micro_usd_per_hour": 1_006_000, "old_price": None, "stopped": False},
        **{"cost_micro_usd": 2_000_000, "attempts": [], "runs": [], "log": None, "texts": []},
        **changed,
    }


def managed(number: int = 7, name: str = "fit", **changed: object) -> dict[str, Any]:
    return {
        **job(name, id=number, slurm_id=str(number)),
        **{"status": "RUNNING", "infra": "AWS (us-east-1/use1-az1)", "rank": None, "kind": "task"},
        **{"root": number, "whole": name, "task": 0, "tasks": 1, "primary": True},
        **changed,
    }


def cluster(name: str = "dev") -> dict[str, Any]:
    run = {
        **{"id": 1, "step": "7.0", "name": name, "user": "ann", "resources": "1x[CPU:1]"},
        **{"commit": None, "status": "SUCCEEDED", "over": True, "submitted": NOW - 9},
        **{"started": NOW - 8, "ended": NOW - 7, "log": "/home/ann/dev-1.log", "texts": []},
    }
    return {
        **{"name": name, "job": 7, "status": "UP", "infra": "AWS (us-east-1)", "nodes": ["ec2-1"]},
        **{"resources": "1x(g5.xlarge)", "addresses": ["10.0.0.1"], "ports": [], "user": "ann"},
        **{"idle_seconds": 600, "idle_stops": True, "submitted": NOW - 60, "detail": ""},
        **{"reason": "None", "micro_usd_per_hour": 1_006_000, "old_price": None, "uid": 1000},
        **{"cost_micro_usd": 1, "runs": [run], "started": NOW - 50},
    }


def budget(name: str = "bio", standing: str = "warn") -> dict[str, Any]:
    return {
        **{"scope": "account", "name": name, "micro_usd": 9_000_000, "spent_micro_usd": 8_000_000},
        **{"promised_micro_usd": 0, "window": "month", "zone": "UTC", "action": "hold"},
        **{"running": "never", "standing": standing},
    }


def volume(name: str = "data") -> dict[str, Any]:
    return {
        **{"name": name, "type": "ebs", "cloud": "aws", "region": "us-east-1", "zone": "use1-az1"},
        **{"size": 100, "user_name": "ann", "launched_at": NOW - 60, "status": "READY"},
        **{"last_attached_at": None, "usedby_clusters": [name], "micro_usd_per_hour": 11_000},
        **{"name_on_cloud": "vol-1", "error_message": None, "old_price": "rate of 2025-01-01"},
    }


def squeue(name: str = "fit", number: int = 7) -> list[str]:
    cells = [str(number), "ec2", name, "ann", "bio", "RUNNING", "0:50", "1:00:00", "1", "4"]
    return [*cells, "ec2-1", str(number)]


def of_a_job(name: str) -> dict[str, Any]:
    return {
        "/v1/jobs/7": job(name),
        "/v1/jobs/7/why": {"lines": [f"Job 7 ({name}): RUNNING"]},
        "/v1/jobs/7/events": {"events": [{"at": NOW, "event": "job.ended", "told": {"why": name}}]},
        "/v1/jobs/7/log": name.encode("utf-8", "replace"),
    }


def full(name: str) -> Doors:
    """A site on which there is one of each, all of the same name."""
    gpu = {
        **{"gpu": "A10G", "count": 1, "fraction": 1, "gpu_gb": 24, "instance_type": name},
        **{"cpus": 4, "mem_mib": 16384, "prices": []},
    }
    buys = {
        **{"name": name, "provider": "ec2", "regions": [], "types": [], "spot": True},
        **{"max_nodes": 4, "max_micro_usd_per_hour": 5_000_000},
    }
    storage = {"name": name, "updated": NOW, "store": "S3", "command": name}
    sinfo = [name, "ec2*", "drained", "0/4/0/4", "16000", "0", "(null)", "(null)", "(null)", name]
    return Doors(
        routes={
            **of_a_job(name),
            "/v1/health": {**HEALTH, "nodes": [node(name, region=name)]},
            "/v1/budgets": {"budgets": [budget(name)]},
            "/v1/cost": {
                **{"rows": [[name, 3_000_000]], "by": ["user"], "micro_usd": 3_000_000},
                "old_price": "price of 2025-04-04",
            },
            "/v1/clusters": {"clusters": [cluster(name)]},
            "/v1/managed": {"jobs": [managed(name=name)], "at": NOW},
            "/v1/volumes": {"volumes": [volume(name)], "at": NOW},
            "/v1/storage": {"storages": [storage], "at": NOW},
            "/v1/infra": {"partitions": [buys], "ceiling": CEILING},
            "/v1/gpus": {"gpus": [gpu]},
            "/v1/requests/abc": {
                **{"request": "abc", "job": 7, "cluster": name, "run": 1, "state": "RUNNING"},
                **{"over": False, "verb": "launch", "told": [name]},
            },
        },
        tables={"squeue": [squeue(name)], "sinfo": [sinfo]},
        said={
            "sinfo -R": Said(f"REASON USER\n{name} root\n"),
            "scontrol show": Said(f"JobId=7 JobName={name}\n"),
            "scontrol write": Said(f"#!/bin/sh\n# {name}\n"),
            "sacct --alloc": Said(
                "".join(f"{cell}{MARK}" for cell in (*COLUMNS_PAST, name, *"bcdefghijkl7"))
            ),
            "sacct": Said(
                "".join(cell + MARK for cell in ("JobID", *"bcdefghij", name, *"bcdefghij"))
            ),
        },
    )


PATHS = (
    *(one.path for one in PAGES),
    *("jobs/7", "clusters/7", "managed/7", "nodes/ec2-1", "requests?id=abc"),
)
EMPTY = {
    **{"": "No jobs.", "clusters": "No clusters.", "managed": "No managed jobs."},
    **{
        "history": "No jobs.",
        "jobs": "No jobs.",
        "nodes": "No nodes.",
        "costs": "Nothing was spent.",
    },
    **{"budgets": "No budgets.", "storage": "No volumes.", "infra": "None."},
}


@pytest.mark.parametrize("path", EMPTY)
def test_where_there_is_nothing_a_page_says_so(path: str) -> None:
    page = Browser().page(path)
    assert page.status_code == 200
    assert EMPTY[path] in page.text


@pytest.mark.parametrize("path", PATHS)
def test_what_there_is_stands_on_its_page(path: str) -> None:
    page = Browser(full("alpha")).page(path)
    assert page.status_code == 200
    assert "alpha" in page.text or path == "requests"


@pytest.mark.parametrize("path", PATHS)
def test_nothing_that_a_user_named_is_ever_markup(path: str) -> None:
    page = Browser(full(HOSTILE)).page(path)
    assert page.status_code == 200
    assert "<script>alert" not in page.text
    assert "\x1b" not in page.text
    assert set(re.findall(r"<script[^>]*>", page.text)) == {
        '<script src="/static/page.js" defer>',
    }
    assert not re.search(r'href="[^"]*[<>]', page.text)


@pytest.mark.parametrize("path", PATHS)
def test_a_name_of_bytes_that_are_no_text_is_shown_all_the_same(path: str) -> None:
    assert Browser(full("caf\udce9")).page(path).status_code == 200


@pytest.mark.parametrize("path", PATHS)
def test_pages_can_be_used_without_seeing_them(path: str) -> None:
    text = Browser(full("alpha")).page(path).text
    assert '<html lang="en">' in text
    assert len(re.findall("<h1>", text)) == 1
    assert len(re.findall("<th[ >]", text)) == len(re.findall('<th scope="col"', text))
    assert text.count("<input") + text.count("<select") == text.count("<label>")
    assert len(re.findall("<table>", text)) == len(re.findall('role="region" aria-label=', text))
    assert 'aria-current="page"' in text


def test_no_page_asks_for_anything_elsewhere() -> None:
    for path in PATHS:
        text = Browser(full("alpha")).page(path).text
        addresses = re.findall(r'(?:src|href|action)="([^"]*)"', text)
        assert all(one == "data:," or not re.match(r"\w+:|//", one) for one in addresses), path


# --- jobs


def test_the_queue_is_squeues_with_its_filters_and_its_order() -> None:
    browser = Browser(full("alpha"))
    browser.page("jobs", user="ann", states="all", partition="ec2", account="bio", sort="-i")
    (asked,) = [one for one in browser.doors.asked if one.startswith("squeue")]
    assert asked.startswith(
        "squeue --user=ann --states=all --partition=ec2 --account=bio --sort=-i -O JobArrayID:"
    )


def test_what_was_asked_for_stands_in_the_form_and_what_squeue_says_beside_it() -> None:
    said = {"squeue": Said("", "squeue: error: Invalid user: <b>\n", 1)}
    page = Browser(Doors(said=said)).page("jobs", user='<b>"', states="FAILED")
    assert 'value="&lt;b&gt;&#34;"' in page.text
    assert '<option value="FAILED" selected>' in page.text
    assert "Invalid user: &lt;b&gt;" in page.text


def test_a_heading_sorts_one_way_and_then_the_other() -> None:
    browser = Browser(full("alpha"))
    assert 'href="?user=ann&amp;sort=i"' in browser.page("jobs", user="ann").text
    turned = browser.page("jobs", user="ann", sort="i", page="3").text
    assert 'aria-sort="ascending"><a href="?user=ann&amp;sort=-i"' in turned


def test_ten_thousand_jobs_are_paged() -> None:
    doors = Doors(tables={"squeue": [squeue(number=n) for n in range(1, 10_001)]})
    browser = Browser(doors)
    first, third = browser.page("jobs"), browser.page("jobs", page="3", user="ann")
    assert first.text.count("<tr>") == 1 + PAGE_ROWS
    assert "1 to 100 of 10000" in first.text
    assert "201 to 300 of 10000" in third.text
    assert 'rel="prev" href="?page=2&amp;user=ann"' in third.text
    assert 'rel="next" href="?page=4&amp;user=ann"' in third.text
    assert len(first.text) < 100_000


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        *(("", 1), ("0", 1), ("-1", 1), ("x", 1), ("²", 1), ("999", 901), ("2", 101)),
        pytest.param("9" * 5000, 1, id="more digits than a number may have"),
    ],
)
def test_a_page_that_is_none_is_the_nearest_one(asked: str, first: int) -> None:
    _, pager = paged([()] * 1000, {"page": asked})
    assert pager is not None
    assert pager.first == first


def test_cells_are_parted_by_the_mark_alone() -> None:
    text = "".join(cell + MARK for cell in ("a\nb", "c|d", "\ne", "f"))
    assert list(rows(text, 2, MARK)) == [["a\nb", "c|d"], ["e", "f"]]
    assert list(rows("", 3, MARK)) == []
    assert len(COLUMNS) == len(squeue())


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ({}, "sacct --allocations --starttime=now-1days --allusers --parsable"),
        ({"days": "7", "user": "ann"}, "sacct --allocations --starttime=now-7days --user=ann -"),
        ({"days": "x", "state": "F"}, "--starttime=now-1days --state=F --allusers"),
    ],
)
def test_the_history_is_saccts(query: dict[str, str], asked: str) -> None:
    browser = Browser(full("alpha"))
    page = browser.page("history", **query)
    assert any(asked in one for one in browser.doors.asked)
    assert f'href="/{browser.folder}/jobs/7">alpha</a>' in page.text


# --- one job


@pytest.mark.parametrize(
    ("part", "changed", "shown", "hidden"),
    [
        ("/v1/jobs/7/log", Denied("job 7 is ann's"), "Log: job 7 is ann&#39;s", "<h2>Log</h2>"),
        ("/v1/jobs/7/log", b"", "It has written nothing yet.", "job 7 is"),
        ("/v1/jobs/7/log", b"12%\r100%\r\ndone\n", "100%\ndone", "12%"),
        ("/v1/jobs/7/log", b"x" * (1 << 16), "Log, its last 64 KiB", "<h2>Log</h2>"),
        ("/v1/jobs/7", job(attempts=[["/a/1"], ["/a/2"]], restarts=1), "/a/2", "<none>"),
        ("/v1/jobs/7", job(attempts=[["/a/1"]]), "Steps", "<h2>Logs"),
    ],
)
def test_a_part_of_a_job(part: str, changed: Any, shown: str, hidden: str) -> None:
    doors = full("alpha")
    doors.routes = {**doors.routes, part: changed}
    page = Browser(doors).page("jobs/7")
    assert page.status_code == 200
    assert shown in page.text
    assert hidden not in page.text


@pytest.mark.parametrize(
    ("word", "said", "status"),
    [
        ("5_3", "JobId=7 ArrayJobId=5 ArrayTaskId=3 JobName=JobId=9 \n", 200),
        ("99_1", "", 404),
        ("x", "slurm_load_jobs error: Invalid job id specified\n", 404),
    ],
)
def test_a_job_is_found_as_squeue_names_it(word: str, said: str, status: int) -> None:
    doors = full("alpha")
    doors.said = {f"scontrol show job {word}": Said(said)}
    page = Browser(doors).page(f"jobs/{word}")
    assert page.status_code == status
    assert ("/v1/jobs/7?" in doors.asked) == (status == 200)


def test_a_script_that_slurm_does_not_write_to_this_user_is_not_shown() -> None:
    doors = full("alpha")
    doors.said = {"scontrol write": Said("", "job script retrieval failed: Access denied\n", 1)}
    page = Browser(doors).page("jobs/7")
    assert (page.status_code, "Script" in page.text) == (200, False)


def test_the_log_is_that_of_the_latest_run_of_a_cluster() -> None:
    doors = full("alpha")
    runs = [{"id": number, "texts": [f"/r/{number}"]} for number in (1, 2)]
    doors.routes = {**doors.routes, "/v1/jobs/7": job(runs=runs)}
    browser = Browser(doors)
    page = browser.page("jobs/7")
    assert "/v1/jobs/7/log?tail=65536&run=2" in doors.asked
    assert f'href="/{browser.folder}/jobs/7?run=1&amp;rank=0">/r/1</a>' in page.text


def test_each_attempt_and_node_of_a_managed_job_has_a_log_of_its_own() -> None:
    doors = full("alpha")
    doors.routes = {**doors.routes, "/v1/jobs/7": job(attempts=[["/a/1"], ["/a/2", "/a/2-1"]])}
    browser = Browser(doors)
    page = browser.page("jobs/7", attempt="2", rank="1")
    assert "/v1/jobs/7/log?tail=65536&attempt=2&rank=1" in doors.asked
    assert f'href="/{browser.folder}/jobs/7?attempt=2&amp;rank=1">/a/2-1</a>' in page.text


def test_a_pipeline_stands_before_its_tasks_and_each_leads_to_its_job() -> None:
    tasks = [managed(7 + n, f"t{n}", root=7, whole="line", task=n, tasks=2) for n in range(2)]
    doors = Doors(routes={"/v1/managed": {"jobs": tasks, "at": NOW}})
    browser = Browser(doors)
    assert browser.page("managed").text.index("line") < browser.page("managed").text.index("t0")
    page = browser.page("managed/7")
    assert f'href="/{browser.folder}/jobs/8"' in page.text
    assert browser.page("managed/9").status_code == 404


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("managed", "/v1/managed?"),
        ("managed?which=all", "/v1/managed?all=True"),
        ("storage", "/v1/storage?all_users=False"),
        ("storage?whose=all", "/v1/storage?all_users=True"),
    ],
)
def test_all_that_ever_was_is_read_only_when_it_is_asked_for(path: str, asked: str) -> None:
    browser = Browser()
    browser.page(path)
    assert asked in browser.doors.asked


@pytest.mark.parametrize(
    ("path", "columns"),
    [
        *(("clusters", CLUSTERS), ("clusters/7", RUNS), ("managed", MANAGED)),
        *(("budgets", BUDGETS), ("storage", VOLUMES), ("storage", STORAGES)),
    ],
)
def test_every_column_of_the_commands_is_on_the_page(
    path: str, columns: tuple[Column, ...]
) -> None:
    text = Browser(full("alpha")).page(path).text
    for column in columns:
        assert f'<th scope="col">{escape(column.heading)}</th>' in text


# --- money and warnings


def test_today_is_the_users_day() -> None:
    doors = Doors(
        zone="Europe/Berlin",
        routes={
            "/v1/cost": {
                "rows": [["2027-01-14", 1_000_000], ["2027-01-15", 250_000]],
                **{"by": ["day"], "micro_usd": 1_250_000, "old_price": None},
            }
        },
    )
    assert "$0.250" in Browser(doors).page("").text
    assert any("by=day&zone=Europe/Berlin" in one for one in doors.asked)


def test_warnings_stand_first() -> None:
    text = Browser(full("alpha")).page("").text
    for warning in ("605 days old", "budget account:alpha is warn: $8.000 spent of $9.000"):
        assert text.index(warning) < text.index("Now</h2>")
    assert "Not used, and why" in text
    assert "$1.006" in text
    assert "Not used" not in Browser().page("").text


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ({}, "by=account"),
        ({"by": "user,day", "user": "ann"}, "by=user,day&zone=UTC&user=ann"),
        ({"days": "7"}, f"since={NOW // 3600 * 3600 + 3600 - 7 * 86400}"),
        ({"days": "abc"}, f"since={NOW // 3600 * 3600 + 3600 - 30 * 86400}"),
    ],
)
def test_costs_are_asked_for_as_the_form_says(query: dict[str, str], asked: str) -> None:
    browser = Browser(full("alpha"))
    page = browser.page("costs", **query)
    assert any(asked in one for one in browser.doors.asked)
    assert page.text.count("<svg ") == 1


@pytest.mark.parametrize(
    ("path", "route", "error"),
    [
        ("costs?user=zed", "/v1/cost", Refused("nothing was spent by user 'zed'", hint="ann")),
        ("requests?id=abc", "/v1/requests/abc", Unknown("no request abc", hint="a launch")),
    ],
)
def test_what_cannot_be_told_leaves_the_form(path: str, route: str, error: SpzError) -> None:
    page = Browser(Doors(routes={route: error})).page(path)
    assert page.status_code == 200
    assert "<form" in page.text
    assert error.message in unescape(page.text)
    assert error.hint in page.text


# --- states


@pytest.mark.parametrize(
    ("text", "tone"),
    [
        *(("RUNNING", "busy"), ("idle~", "good"), ("allocated#", "busy"), ("drained*", "bad")),
        *(("INIT (booting)", "wait"), ("CANCELLED by 0", "bad"), ("SOMETHING", ""), ("", "")),
    ],
)
def test_a_state_has_a_tone_beside_its_word(text: str, tone: str) -> None:
    assert state(text).tone == tone
    assert set(TONES.values()) == {"good", "busy", "wait", "bad"}


def test_a_log_shows_what_a_terminal_would_have_left() -> None:
    assert readable(b"a\x1b[1;31mred\x1b[0m\x07\x00\r\nb\xff\n") == "ared\nb\ufffd\n"
