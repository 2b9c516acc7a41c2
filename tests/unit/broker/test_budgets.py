"""Budgets in a running engine: who waits, who goes on, who is ended."""

from dataclasses import replace

import pytest

from accounting.assoc import Book, book
from accounting.budget import Action, Budget, Running, Scope, Window, ends
from accounting.change import Change, changed
from accounting.ids import JobId
from broker.model import commands as cmd
from broker.model.offer import BuyPolicy
from broker.model.site import Elastic, Site
from broker.model.spec import Resources, StepSpec, TaskSpec
from broker.schedule.budgets import REASON, Ahead
from tests.unit.broker.test_engine import ALICE, BOB, DECLARED, ELASTIC, ROOT, Bench

PRICE = 36_000_000  # a node an hour


def priced(*budgets: Budget) -> Site:
    nodes = tuple(replace(node, micro_usd_per_hour=PRICE) for node in DECLARED.nodes)
    known: Book = changed(book(), Change(budgets=budgets))
    return replace(DECLARED, nodes=nodes, book=known)


def dollars(usd: float, **more: object) -> Budget:
    how = {"scope": Scope.USER, "name": "alice", "window": Window.TOTAL, **more}
    return Budget(micro_usd=int(usd * 1_000_000), **how)  # type: ignore[arg-type]


def test_a_job_that_would_break_a_budget_waits_and_others_go_on() -> None:
    bench = Bench(priced(dollars(11)))
    short = bench.submit(time_limit=900)  # at worst 10.50 dollars
    long = bench.submit(time_limit=1800)
    other = bench.submit(BOB, time_limit=1800)
    assert [bench.state(job) for job in (short, long, other)] == [
        "CONFIGURING",
        "PENDING",
        "CONFIGURING",
    ]
    assert bench.world.jobs[long].reason == REASON


def test_what_running_jobs_may_still_cost_is_promised_and_comes_back() -> None:
    bench = Bench(priced(dollars(11)))
    first = bench.submit(time_limit=900)  # may come to pay for all of a node
    second = bench.submit(time_limit=900)
    assert (bench.state(first), bench.world.jobs[second].reason) == ("CONFIGURING", REASON)
    bench.run(first)
    bench.step(full=True, seconds=1)
    assert bench.state(second) == "CONFIGURING"


def test_a_warning_keeps_nobody_waiting() -> None:
    bench = Bench(priced(dollars(1, action=Action.WARN)))
    assert bench.state(bench.submit(time_limit=3600)) == "CONFIGURING"


def test_a_budget_is_raised_while_a_job_waits_for_it() -> None:
    bench = Bench(priced(dollars(1)))
    job = bench.submit(time_limit=900)
    assert bench.world.jobs[job].reason == REASON
    more = Change(budgets=(dollars(100),))
    bench.step(
        cmd.ChangeBook(change=more, basis=bench.world.site.book, by=ROOT, action="Set Budget")
    )
    bench.step(full=True, seconds=1)
    assert bench.state(job) == "CONFIGURING"


def suspend(bench: Bench, job: JobId, *, resume: bool = False) -> None:
    bench.step(cmd.Suspend(target=cmd.Target(job), by=ROOT, resume=resume))


@pytest.mark.parametrize(("window", "days"), [(Window.TOTAL, 30), (Window.DAY, 1)])
def test_a_suspended_job_is_promised_its_machine_for_the_window(window: Window, days: int) -> None:
    limit, seconds = PRICE * 990 // 3600, days * 86400
    bench = Bench(priced(dollars(30, window=window)))
    budget, job = dollars(30, window=window), bench.submit(time_limit=900)
    key = f"{bench.world.jobs[job].key}/batch"
    bench.journal(bench.world.jobs[job].shares[0].node, {"kind": "started", "key": key})

    def promised() -> int:
        jobs = [bench.world.jobs[job]]
        return Ahead.of(bench.world.site, jobs, bench.world.nodes, now=bench.now).promised(budget)

    assert promised() == limit
    suspend(bench, job)
    until = ends(budget, bench.now)
    assert promised() == PRICE * (seconds if until is None else until - bench.now) // 3600
    waits = bench.submit(time_limit=60)
    assert bench.world.jobs[waits].reason == REASON
    suspend(bench, job, resume=True)
    assert promised() == limit
    bench.step(full=True, seconds=1)
    assert bench.state(waits) == "CONFIGURING"


def test_a_used_up_budget_ends_suspended_jobs_too() -> None:
    bench = Bench(priced(dollars(100, action=Action.STOP, running=Running.NOW)))
    job = bench.submit(time_limit=900)
    key = f"{bench.world.jobs[job].key}/batch"
    bench.journal(bench.world.jobs[job].shares[0].node, {"kind": "started", "key": key})
    suspend(bench, job)
    bench.step(seconds=3600)
    assert bench.state(job) == "SUSPENDED"
    lower = Change(budgets=(dollars(0.5, action=Action.STOP, running=Running.NOW),))
    basis = bench.world.site.book
    bench.step(cmd.ChangeBook(change=lower, basis=basis, by=ROOT, action="Set Budget"))
    bench.step(seconds=600)
    bench.step(seconds=1)
    assert bench.state(job) == "COMPLETING"


def used_up(running: Running, *more: Budget) -> tuple[Bench, JobId]:
    """A job whose budget is spent while it runs, and those of `more`."""
    bench = Bench(priced(dollars(10.5, action=Action.STOP, running=running)))
    job = bench.submit(ALICE, time_limit=900)
    key = f"{bench.world.jobs[job].key}/batch"
    bench.journal(bench.world.jobs[job].shares[0].node, {"kind": "started", "key": key})
    others = (replace(one, action=Action.STOP) for one in more)
    lower = Change(budgets=(dollars(0.5, action=Action.STOP, running=running), *others))
    bench.step(
        cmd.ChangeBook(change=lower, basis=bench.world.site.book, by=ROOT, action="Set Budget")
    )
    bench.step(seconds=600)
    bench.step(seconds=1)
    return bench, job


def test_a_used_up_budget_ends_running_jobs_only_where_it_says_so() -> None:
    bench, job = used_up(Running.NEVER)
    assert bench.state(job) == "RUNNING"
    bench, job = used_up(Running.NOW)
    assert bench.state(job) == "COMPLETING"


def test_with_notice_the_job_is_told_first_and_ended_two_minutes_later() -> None:
    bench, job = used_up(Running.NOTICE)
    assert bench.state(job) == "RUNNING"
    assert "budget of user:alice is used up" in bench.world.jobs[job].notices[0].text
    bench.step(seconds=60)
    assert bench.state(job) == "RUNNING"
    bench.step(seconds=61)
    assert bench.state(job) == "COMPLETING"


@pytest.mark.parametrize(
    ("running", "notices", "state"),
    [(Running.NOTICE, 1, "RUNNING"), (Running.NOW, 0, "COMPLETING")],
)
def test_of_several_used_up_budgets_one_gives_notice_and_the_strictest_ends_the_job(
    running: Running, notices: int, state: str
) -> None:
    bench, job = used_up(
        Running.NOTICE, dollars(0.4, scope=Scope.QOS, name="normal", running=running)
    )
    assert (bench.state(job), len(bench.world.jobs[job].notices)) == (state, notices)
    for _ in range(4):
        bench.step(seconds=31)
    assert bench.state(job) == "COMPLETING"


def test_who_was_told_is_ended_at_once_where_the_budget_says_so_by_now() -> None:
    bench, job = used_up(Running.NOTICE)
    at_once = Change(budgets=(dollars(0.5, action=Action.STOP, running=Running.NOW),))
    basis = bench.world.site.book
    bench.step(cmd.ChangeBook(change=at_once, basis=basis, by=ROOT, action="Set Budget"))
    bench.step(seconds=1)
    assert bench.state(job) == "COMPLETING"


def test_what_was_spent_is_read_again_after_a_restart() -> None:
    bench, _ = used_up(Running.NEVER)
    again = Bench(priced(dollars(0.5, action=Action.HOLD)), bench.store)
    again.requests = bench.requests
    job = again.submit(time_limit=60)
    again.step(full=True, seconds=1)
    assert again.world.jobs[job].reason == REASON


def test_a_raised_budget_is_looked_at_at_once_and_what_is_not_posted_yet_is_promised() -> None:
    bench = Bench(priced(dollars(10)))
    running, waiting = bench.submit(time_limit=600), bench.submit(time_limit=900)
    key = f"{bench.world.jobs[running].key}/batch"
    bench.journal(bench.world.jobs[running].shares[0].node, {"kind": "started", "key": key})
    bench.step(seconds=200)
    book_, nodes = bench.world.site.book, bench.world.nodes
    (budget,) = book_.budgets.values()
    jobs = [bench.world.jobs[running]]
    spent = PRICE * 200 // 3600  # alone there it pays for all of the machine
    ahead = PRICE * (400 + 90) // 3600  # to the limit, and until it is killed
    site = bench.world.site
    assert Ahead.of(site, jobs, nodes, now=bench.now).promised(budget) == spent + ahead
    assert bench.state(waiting) == "PENDING"
    more = Change(budgets=(dollars(100),))
    bench.step(cmd.ChangeBook(change=more, basis=book_, by=ROOT, action="Set Budget"), full=False)
    assert bench.engine.room_made


def test_what_is_about_to_be_bought_is_promised_at_its_dearest_offer() -> None:
    spot = replace(ELASTIC.partitions[0], elastic=Elastic("ec2-", 8, buy=BuyPolicy(spot=True)))
    bench = Bench(replace(ELASTIC, partitions=(spot,)))
    job = bench.submit(time_limit=900)
    (node,) = [bench.world.nodes[share.node] for share in bench.world.jobs[job].shares]
    assert node.machine is None
    dearest_ = max(rung.dearest for rung in node.rungs)
    assert dearest_ > min(rung.offer.micro_usd_per_hour for rung in node.rungs)
    seconds = node.boot_deadline - bench.now + 60 + 900 + 90  # type: ignore[operator]
    ahead = Ahead.of(bench.world.site, [bench.world.jobs[job]], bench.world.nodes, now=bench.now)
    assert ahead.promised(dollars(1)) == -(-dearest_ * seconds // 3600)


def test_what_ends_in_a_step_is_spent_before_the_next_job_is_paid_for() -> None:
    bench = Bench(priced(dollars(10)))
    first, second = bench.submit(time_limit=600), bench.submit(time_limit=600)
    assert bench.world.jobs[second].reason == REASON
    key, node = bench.world.jobs[first].key, bench.world.jobs[first].shares[0].node
    bench.journal(node, {"kind": "started", "key": f"{key}/batch"})
    bench.step(seconds=400)  # 4 dollars: of what is left a job of ten minutes cannot be paid
    ended = {"kind": "exited", "key": f"{key}/batch", "code": 0}
    bench.journal(node, ended, {"kind": "gone", "attempt": key})
    assert bench.state(first) == "COMPLETED"
    assert bench.state(second) == "PENDING"


def test_a_second_job_waits_while_the_machine_of_the_first_is_bought() -> None:
    bench = Bench(replace(ELASTIC, book=changed(book(), Change(budgets=(dollars(0.06),)))))
    first, second = bench.submit(time_limit=600), bench.submit(time_limit=600)
    assert [bench.state(job) for job in (first, second)] == ["CONFIGURING", "PENDING"]
    assert bench.world.jobs[second].reason == REASON


def test_the_budget_that_keeps_a_job_waiting_is_named() -> None:
    bench = Bench(priced(dollars(100), dollars(1, scope=Scope.QOS, name="normal")))
    job = bench.world.jobs[bench.submit(time_limit=900)]
    assert (job.reason, job.detail) == (REASON, "the budget of qos:normal does not pay for it")


def test_who_has_money_does_not_wait_behind_who_asks_for_the_same_and_has_none() -> None:
    closed = replace(ELASTIC.partitions[0], state="DOWN")
    poor = changed(book(), Change(budgets=(dollars(0.001),)))
    bench = Bench(replace(ELASTIC, partitions=(closed,), book=poor))
    jobs = bench.submit(time_limit=600), bench.submit(BOB, time_limit=600)
    bench.step(cmd.Reconfigure(site=replace(ELASTIC, book=poor), by=ROOT), full=True, seconds=1)
    assert [bench.state(job) for job in jobs] == ["PENDING", "CONFIGURING"]
    assert bench.world.jobs[jobs[0]].reason == REASON


def test_a_budget_holds_from_the_step_in_which_it_is_set() -> None:
    bench = Bench(priced())
    change = Change(budgets=(dollars(1),))
    basis = bench.world.site.book
    asked = cmd.ChangeBook(change=change, basis=basis, by=ROOT, action="Set Budget")
    spec = TaskSpec(name="job", batch=StepSpec(name="batch"), time_limit=900)
    submitted = cmd.Submit(spec=spec, owner=ALICE, request="r1")
    _, job = bench.step(asked, submitted)
    assert bench.world.jobs[job].reason == REASON  # type: ignore[index]


MOVED = Resources(data_gib=10, data_region="eu-west-1")


@pytest.mark.parametrize("site", [ELASTIC, priced()])
@pytest.mark.parametrize("resources", [Resources(), Resources(exclusive=True), MOVED])
def test_what_a_test_tells_at_most_is_what_a_budget_promises(
    site: Site, resources: Resources
) -> None:
    bench = Bench(site)
    batch = StepSpec(name="batch")
    spec = TaskSpec(name="job", batch=batch, time_limit=900, resources=resources)
    (told,) = bench.step(cmd.TestSubmit(spec=spec, owner=ALICE))
    assert isinstance(told, cmd.StartEstimate)
    job = bench.world.jobs[bench.submit(time_limit=900, resources=resources)]
    ahead = Ahead.of(bench.world.site, [job], bench.world.nodes, now=bench.now)
    assert told.most_micro_usd == ahead.promised(dollars(1000)) > told.micro_usd > 0


def test_a_notice_counts_after_a_restart_and_is_given_anew_once_the_budget_was_raised() -> None:
    bench, job = used_up(Running.NOTICE)
    again = Bench(bench.world.site, bench.store)
    again.now = bench.now
    again.step(seconds=60)
    assert [one.text for one in again.world.jobs[job].notices] == [
        one.text for one in bench.world.jobs[job].notices
    ]
    raised = Change(budgets=(dollars(0.6, action=Action.STOP, running=Running.NOTICE),))
    basis = again.world.site.book
    again.step(cmd.ChangeBook(change=raised, basis=basis, by=ROOT, action="Set Budget"))
    again.step(seconds=61)
    assert again.state(job) == "RUNNING"
    assert len(again.world.jobs[job].notices) == 2
    later = Bench(again.world.site, again.store)
    later.now = again.now
    later.step(seconds=119)
    assert later.state(job) == "RUNNING"
    later.step(seconds=31)
    assert later.state(job) == "COMPLETING"
