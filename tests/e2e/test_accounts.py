"""Accounts changed by sacctmgr as a process, against a running service that is started again."""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.e2e.agents import until
from tests.e2e.service import CONFIG, Preloaded, Ran, Service, service

LIMITED = CONFIG + "accounting: {enforce: [associations, limits, qos]}\n"


@pytest.fixture
def limited(preloaded: Preloaded) -> Service:
    with service(preloaded, config=LIMITED) as made:
        yield made


def spz(served: Service, *words: str) -> Ran:
    environ = {"SKYPURZA_SOCKET": str(served.socket), "HOME": str(served.work)}
    return served.run(str(Path(sys.executable).parent / "spz"), *words, env=environ)


def said(served: Service, *words: str, **how: object) -> str:
    done = served.run("sacctmgr", *words, **how)
    assert (done.code, done.err) == (0, ""), done
    return done.out


def test_what_sacctmgr_changed_is_enforced_and_stands_after_a_restart(limited: Service) -> None:
    user = limited.user.name
    refused = limited.run("sbatch", "--wrap", "true")
    assert "Invalid account" in refused.err
    said(limited, "-i", "add", "account", "lab", "maxjobs=1")
    said(limited, "-i", "add", "user", user, "account=lab")
    first = limited.wrap("sleep 60")
    limited.wait(first, "RUNNING")
    second = limited.wrap("true")
    limited.restart()
    limited.wait(first, "RUNNING")
    assert (
        said(limited, "-nP", "show", "assoc", f"user={user}", "format=account,user")
        == f"lab|{user}\n"
    )
    reason = limited.run("squeue", "-h", "-o", "%r", "-j", str(second)).out
    assert reason == "AssocMaxJobsLimit\n"
    said(limited, "-i", "modify", "account", "lab", "set", "maxjobs=-1")
    limited.wait(second, "COMPLETED")
    actions = said(limited, "-nP", "show", "transaction", "format=action,actor,where")
    assert actions.splitlines()[0].split("|") == ["Add Accounts", user, "lab"]
    limited.run("scancel", str(first))


def test_a_question_is_asked_and_no_changes_nothing(limited: Service) -> None:
    asked = limited.run("sacctmgr", "add", "account", "lab", stdin=b"n\n")
    assert " A = lab        C = tests     \nWould you like to commit changes?" in asked.out
    assert asked.out.endswith("(You have 30 seconds to decide)\n(N/y): \n Changes Discarded\n")
    assert said(limited, "-nP", "show", "account", "format=account") == "root\n"
    limited.run("sacctmgr", "add", "account", "lab", stdin=b"what\ny\n")
    assert said(limited, "-nP", "show", "account", "format=account") == "lab\nroot\n"


def test_a_dump_is_written_and_loaded_again(limited: Service) -> None:
    said(limited, "-i", "add", "account", "lab", "grptres=cpu=4", "qos=normal")
    path = Path(limited.work) / "accounts.cfg"
    assert limited.run("sacctmgr", "dump", "tests", f"file={path}").code == 0
    assert "Account - 'lab':" in path.read_text()
    said(limited, "-i", "delete", "account", "lab")
    said(limited, "-i", "load", f"file={path}")
    shown = said(limited, "-nP", "show", "assoc", "account=lab", "format=account,grptres")
    assert shown == "lab|cpu=4\n"


def test_what_a_job_used_and_cost_is_in_sreport_and_spz_cost(limited: Service) -> None:
    user = limited.user.name
    said(limited, "-i", "add", "account", "lab")
    said(limited, "-i", "add", "user", user, "account=lab")
    job = limited.wrap("sleep 2", "-p", "ec2", "--wckey=proj")
    limited.wait(job, "COMPLETED")
    until(lambda: "\nlab,0.0" in spz(limited, "cost", "--csv").out, "what it cost")
    report = limited.run(
        "sreport", "-nP", "-t", "seconds", "cluster", "UserUtilizationByAccount",
        "start=now-2hours", "end=now+2hours", "format=login,account,used",
    ).out  # fmt: skip
    login, account, used = report.strip().split("|")
    assert (login, account) == (user, "lab")
    assert int(used) >= 2
    by_key = limited.run(
        "sreport", "-nP", "-t", "seconds", "job", "SizesByWckey",
        "start=now-2hours", "end=now+2hours", "format=wckey",
    ).out  # fmt: skip
    assert by_key == f"proj|{used}|0|0|0|0|100.00%\n"
    kept = json.loads(spz(limited, "ledger", str(job), "--json").out)
    (step,) = [one for one in kept if one["kind"] == "step"]
    assert (step["step"], step["sampled"]["energy"]) == ("batch", 0)
    assert {"cpu", "mem", "energy"} <= step["sampled"].keys()
    (whole,) = [one["tres_seconds"] for one in kept if one["kind"] == "usage"]
    assert whole["cpu"] == int(used)
    assert f"{job}/1.batch" in spz(limited, "ledger", str(job)).out
    assert spz(limited, "ledger", "--csv").out.startswith("key,kind,why,job,attempt,step,")
    assert spz(limited, "plugins", "ls").out.startswith("PLUGIN ")
    assert "installed: none" in spz(limited, "plugins", "set", "books", "0").err
    bill = spz(limited, "cost", "--focus").out.splitlines()
    assert any(f'""job"": ""{job}""' in line for line in bill[1:])


def test_a_budget_that_is_set_keeps_jobs_waiting_until_it_is_raised(limited: Service) -> None:
    user = limited.user.name
    said(limited, "-i", "add", "account", "lab")
    said(limited, "-i", "add", "user", user, "account=lab")
    assert "account:lab" in spz(limited, "budget", "set", "account:lab", "0.001").out
    estimate = limited.run("sbatch", "--test-only", "-p", "ec2", "-t", "60", "--wrap", "true").err
    assert re.search(r"sbatch: it costs \$0\.\d+ until its limit.*, \$0\.\d+ at most", estimate)
    job = limited.wrap("true", "-p", "ec2", "-t", "60")
    reason = ["squeue", "-h", "-o", "%r", "-j", str(job)]
    until(lambda: limited.run(*reason).out == "AssocBudgetLimit\n", "that it waits for the budget")
    limited.kill()
    limited.start()
    until(lambda: limited.run(*reason).out == "AssocBudgetLimit\n", "that it waits still")
    names_it = "the budget of account:lab does not pay for it"
    assert names_it in spz(limited, "why", str(job)).out
    assert names_it in limited.run("scontrol", "show", "job", str(job)).out
    spz(limited, "budget", "set", "account:lab", "100", "--window", "day", "--zone", "Asia/Tokyo")
    limited.wait(job, "COMPLETED")
    (shown,) = spz(limited, "budget", "show").out.splitlines()[1:]
    assert shown.split()[4:] == ["day", "Asia/Tokyo", "hold", "ok"]
    (told,) = json.loads(spz(limited, "budget", "show", "--json").out)
    named = ("scope", "name", "micro_usd", "window", "zone", "action", "standing")
    wanted = ["account", "lab", 100_000_000, "day", "Asia/Tokyo", "hold", "ok"]
    assert [told[key] for key in named] == wanted


def test_what_a_used_up_budget_does_to_running_jobs_is_done_after_a_kill_too(
    limited: Service,
) -> None:
    said(limited, "-i", "add", "account", "lab")
    said(limited, "-i", "add", "user", limited.user.name, "account=lab")
    job = limited.wrap("sleep 600", "-p", "ec2", "-t", "60")
    limited.wait(job, "RUNNING")
    stop = ("budget", "set", f"user:{limited.user.name}", "0", "--action", "stop", "--running")
    assert "stop" in spz(limited, *stop, "never").out
    limited.kill()
    limited.start()
    assert limited.state(job) == "RUNNING"
    assert "stop (notice)" in spz(limited, *stop, "notice").out
    told = limited.work / f"slurm-{job}.out"
    until(lambda: told.exists() and "is used up" in told.read_text(), "that the job is told")
    warned = limited.job(job).warned
    limited.kill()
    limited.start()
    assert "FULL" in spz(limited, "budget", "show").out.upper()
    assert (limited.state(job), limited.job(job).warned) == ("RUNNING", warned)
    assert told.read_text().count("is used up") == 1
    assert "stop (now)" in spz(limited, *stop, "now").out
    limited.kill()
    limited.start()
    limited.wait(job, "CANCELLED")


def test_what_is_young_stays_and_use_is_reset_by_commands_as_processes(
    limited: Service, tmp_path: Path
) -> None:
    user, folder = limited.user.name, tmp_path / "archive"
    folder.mkdir(mode=0o777)
    said(limited, "-i", "add", "account", "lab")
    said(limited, "-i", "add", "user", user, "account=lab")
    job = limited.wrap("true")
    limited.wait(job, "COMPLETED")
    dumped = limited.run("sacctmgr", "-i", "archive", "dump", f"directory={folder}", "jobs")
    assert (dumped.code, list(folder.iterdir())) == (0, []), "nothing is that old"
    used = limited.run("sacctmgr", "-i", "modify", "account", "lab", "set", "rawusage=0")
    assert (used.code, used.out) == (0, "No cluster specified, resetting on local cluster tests\n")
    refused = spz(limited, "reconcile")
    assert "whose Cost Explorer could be asked" in refused.err
