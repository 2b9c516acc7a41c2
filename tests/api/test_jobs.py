"""Our own routes, on a real engine and a cloud in memory, in virtual time."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from accounting.ids import JobId
from broker.model.boots import BootsSet, FailedBoots
from broker.model.commands import ASKED, ENDED, Command
from broker.model.errors import Denied, SpzError
from broker.model.events import SignalAsked
from broker.model.facts import JobFact
from broker.model.job import Job, Owner
from broker.model.offer import Machine, Market
from broker.optimize.cooldown import Cooldown
from broker.ports import HistoryQuery
from broker.quotes import Quotes
from broker.schedule.accrued import accrued
from gateway.api.app import build_app
from gateway.api.desk import Desk
from gateway.api.jobs import router
from gateway.api.keeper import Keeper
from tests.api.asking import ask
from tests.sim.harness import CATALOG, Simulation
from tests.sim.site import SITE
from tests.unit.gateway.api.test_text import Log

ANN = Owner(os.getuid(), os.getgid(), "ann", "ann", home="/home/ann")
BOB = Owner(ANN.uid + 1, 2, "bob", "bob", home="/home/bob")
BOSS = Owner(ANN.uid + 2, 3, "boss", "boss")
PEOPLE = {one.uid: one for one in (ANN, BOB, BOSS)}
RUN_SECONDS = 30


class Past:
    """What the simulation's store kept, as history."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim

    def jobs(self, query: HistoryQuery) -> Iterator[Job]:
        return (job for job in self.sim.store.jobs.values() if job.id in query.jobs)

    def events(self, job: JobId) -> Sequence[object]:
        kept = (event for _, event in self.sim.store.events)
        return [event for event in kept if isinstance(event, JobFact) and event.job == job]

    def reply(self, request: str) -> str | None:
        return self.sim.store.requests.get(request)

    def open_requests(self) -> Sequence[str]:
        kept = self.sim.store.requests
        asked = [name for name in kept if name.startswith(ASKED)]
        return [kept[one] for one in asked if ENDED + one.removeprefix(ASKED) not in kept]

    def costs(self, jobs: Sequence[JobId]) -> Mapping[JobId, int]:
        found: dict[JobId, int] = {}
        for entry in self.sim.store.entries.values():
            if entry.job in jobs and entry.job is not None:
                found[entry.job] = found.get(entry.job, 0) + entry.cost
        return found


class House:
    """The application over a simulation; `call` speaks as somebody."""

    def __init__(self, *private: str) -> None:
        site = replace(SITE, admins=frozenset({BOSS.uid}), private=frozenset(private))
        self.sim = Simulation(site=site, fates=lambda key, order: (RUN_SECONDS, 0, 0))
        self.desk = Desk(
            engine=self,
            snapshot=lambda: self.sim.engine.snapshot,
            history=Past(self.sim),  # type: ignore[arg-type]
            clock=self.sim.clock,
            names=_owner,
        )
        self.log = Log()
        self.keeper = Keeper(self.desk, self.log)
        self.backups: list[Path] = []
        routes = router(
            market=Quotes({"fake": CATALOG}, Cooldown()),
            providers={"fake": self.sim.cloud},
            backup=self._back_up,
            keeper=self.keeper,
        )
        self.app = build_app(self.desk, {}, log=self.log, routers=[routes])
        self.requests = 0

    def _back_up(self, path: Path) -> None:
        path.write_bytes(b"copy")

    def ask(self, command: Command) -> "Future[Any]":
        self.sim.ask(command)
        self.sim.step()
        reply = next(reply for asked, reply in self.sim.replies if asked is command)
        answer: Future[Any] = Future()
        if isinstance(reply, SpzError):
            answer.set_exception(reply)
        else:
            answer.set_result(reply)
        return answer

    def call(
        self, method: str, route: str, body: object = None, *, by: Owner = ANN
    ) -> tuple[int, Any]:
        """Status and body."""
        content = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json"}
        answer = ask(self.app, method, route, uid=by.uid, content=content, headers=headers)
        kind = answer.headers["content-type"]
        return answer.status_code, answer.json() if "json" in kind else answer.content

    def launch(self, task: str = "run: x", *, by: Owner = ANN, **more: object) -> tuple[int, Any]:
        return self.call("POST", "/v1/launch", self.body(task, **more), by=by)

    def body(self, task: str, **more: object) -> dict[str, object]:
        self.requests += 1
        usual = {
            "request": f"{self.requests:032d}",
            "task": task,
            "cluster": "dev",
            "cwd": "/home/ann",
            "home": "/home/ann",
            "logs": "/home/ann/sky_logs",
        }
        return {**usual, **more}

    def wait(self, seconds: int) -> None:
        self.sim.run(seconds, until_quiet=False)


def _owner(uid: int) -> Owner:
    if uid not in PEOPLE:
        raise Denied("Invalid user id")
    return PEOPLE[uid]


@pytest.fixture
def house() -> House:
    return House()


def refusal(answer: tuple[int, Any]) -> tuple[int, str, str]:
    status, body = answer
    return status, body["error"]["message"], body["error"]["hint"]


# --- launch


def test_a_launch_makes_a_cluster_and_runs_the_task_in_it(house: House) -> None:
    status, told = house.launch("resources: {accelerators: 'A10G:1'}\nrun: x")
    assert (status, told["cluster"], told["job"], told["run"]) == (200, "dev", 1, 1)
    house.wait(60)
    _, seen = house.call("GET", "/v1/clusters")
    (cluster,) = seen["clusters"]
    assert (cluster["name"], cluster["status"], cluster["user"]) == ("dev", "UP", "ann")
    assert cluster["resources"] == "1x(g5.xlarge, a10g:1)"
    assert cluster["runs"][0]["status"] == "RUNNING"
    house.wait(60)
    _, queue = house.call("GET", "/v1/clusters/dev/queue")
    assert [(run["id"], run["step"], run["status"]) for run in queue["runs"]] == [
        (1, "1.0", "SUCCEEDED")
    ]


def test_a_dry_run_tells_what_could_be_bought_and_keeps_nothing(house: House) -> None:
    status, told = house.launch("resources: {accelerators: 'A10G:1'}", dry_run=True)
    assert (status, told["job"], told["run"]) == (200, None, None)
    first = told["candidates"][0]
    assert (first["instance_type"], first["gpus"], first["cpus"]) == ("g5.xlarge", "a10g:1", 4)
    assert first["micro_usd_per_hour"] == min(
        offer["micro_usd_per_hour"] for offer in told["candidates"]
    )
    assert house.call("GET", "/v1/jobs")[1]["jobs"] == []


def test_the_same_request_twice_makes_one_cluster(house: House) -> None:
    body = house.body("run: x", cluster=None)
    first, second = (house.call("POST", "/v1/launch", body) for _ in range(2))
    house.wait(60)
    third = house.call("POST", "/v1/launch", body)
    assert first == second == third
    first = first[1]
    assert first["cluster"].startswith("sky-")
    assert first["cluster"].endswith("-ann")
    assert len(house.call("GET", "/v1/jobs")[1]["jobs"]) == 1


def test_a_task_that_no_node_could_run_is_refused_with_what_it_asked_for(house: House) -> None:
    status, told = house.launch("resources: {cpus: 999+, memory: 64+}\nrun: x")
    assert (status, told["error"]["message"]) == (
        400,
        "Requested node configuration is not available",
    )
    assert "999" in told["error"]["hint"]


def test_a_second_launch_of_that_name_goes_to_the_cluster_that_is_there(house: House) -> None:
    house.launch("run: one")
    house.wait(60)
    status, told = house.launch("setup: again\nrun: two")
    assert (status, told["reused"], told["job"], told["run"]) == (200, True, 1, 2)
    house.wait(60)
    _, queue = house.call("GET", "/v1/clusters/dev/queue")
    assert [run["status"] for run in queue["runs"]] == ["SUCCEEDED", "SUCCEEDED"]


def test_a_cluster_that_is_too_small_is_not_reused(house: House) -> None:
    house.launch("resources: {cpus: 2}")
    house.wait(60)
    status, message, hint = refusal(house.launch("resources: {cpus: 16+}\nrun: x"))
    assert status == 409
    assert message.startswith("cluster 'dev' is too small: asked for 16 cpus, has 2")
    assert "spz down" in hint


def test_a_task_that_says_no_size_goes_to_any_cluster_that_is_there(house: House) -> None:
    house.launch("resources: {cpus: 2}\nrun: x")
    house.wait(60)
    for task in ("run: x", "resources: {use_spot: false}\nrun: x"):
        assert house.launch(task)[1]["reused"] is True
    assert house.launch("resources: {memory: 64+}\nrun: x")[0] == 409


def test_a_task_is_compared_in_what_it_says_alone(house: House) -> None:
    house.launch("resources: {cpus: 2, memory: 1}\nrun: x")
    house.wait(60)
    assert house.launch("resources: {cpus: 2+}\nrun: x")[1]["reused"] is True
    assert house.launch("resources: {memory: 0.5+}\nrun: x")[1]["reused"] is True
    status, message, _ = refusal(house.launch("resources: {cpus: 4+, memory: 0.5+}\nrun: x"))
    assert (status, message) == (409, "cluster 'dev' is too small: asked for 4 cpus, has 2")


MADE = "{cpus: 2, disk_size: 300, disk_tier: medium, labels: {a: b}, ports: [80-90], %s}"


@pytest.mark.parametrize(
    ("asked", "lacks"),
    [
        ("disk_size: 200", None),
        ("disk_tier: low", None),
        ("labels: {c: d}", None),
        ("ports: 80-90", None),
        ("disk_size: 400", "a disk of 400 GB, has 300"),
        ("disk_tier: best", "disk tier best, has medium"),
        ("infra: aws/us-west-2, image_id: ami-2, disk_size: 9", "another image"),
    ],
)
def test_a_cluster_that_was_made_otherwise_is_not_reused(
    house: House, asked: str, lacks: str | None
) -> None:
    image = "infra: aws/us-east-1, image_id: ami-1" if "image" in asked else "use_spot: false"
    house.launch(f"resources: {MADE % image}")
    house.wait(60)
    status, told = house.launch(f"resources: {{cpus: 2, {asked}}}\nrun: x")
    assert status == (409 if lacks else 200)
    if lacks:
        assert told["error"]["message"].endswith(f"asked for {lacks}")
    (one,) = house.call("GET", "/v1/clusters")[1]["clusters"]
    assert one["ports"] == ["80-90"]


def test_a_cluster_that_is_there_opens_the_ports_that_it_lacks(house: House) -> None:
    house.launch("resources: {cpus: 2, ports: 80}\nrun: x")
    house.wait(60)
    for asked in ("[95, 80]", "95"):
        assert house.launch(f"resources: {{cpus: 2, ports: {asked}}}\nrun: x")[0] == 200
        (one,) = house.call("GET", "/v1/clusters")[1]["clusters"]
        assert one["ports"] == ["80", "95"]
    dry = house.launch("resources: {cpus: 2, ports: 99}\nrun: x", dry_run=True)
    assert dry[0] == 200
    assert house.call("GET", "/v1/clusters")[1]["clusters"][0]["ports"] == ["80", "95"]


def test_users_have_names_of_their_own(house: House) -> None:
    house.launch("run: x")
    _, told = house.launch("run: x", by=BOB)
    assert (told["reused"], told["job"]) == (False, 2)


def test_exec_runs_without_setup_where_a_cluster_is(house: House) -> None:
    house.launch("run: x")
    house.wait(60)
    body = house.body("setup: s\nrun: y\nworkdir: there")
    _, plan = house.call("POST", "/v1/clusters/dev/exec", {**body, "dry_run": True})
    assert (plan["run"], plan["cwd"].endswith("/there")) == (None, True)
    status, told = house.call("POST", "/v1/clusters/dev/exec", house.body("setup: s\nrun: y"))
    assert (status, told["run"]) == (200, 2)
    (_, step) = (step for step in house.sim.store.jobs[JobId(1)].steps if step.id.isdigit())
    assert step.spec is not None
    assert [phase.name for phase in step.spec.phases] == ["run"]


@pytest.mark.parametrize(
    ("task", "status", "message"),
    [
        ("resources: {accelerator: L4}", 400, "resources.accelerator: no such key"),
        ("volumes: {/a: b}", 400, "volumes./a: you have no volume 'b'"),
        ("name: a\nrun: x\n---\nname: b\nrun: y", 400, "a pipeline or group of 2 tasks"),
        (
            "resources: {accelerators: 'Z9:1'}",
            400,
            "Requested node configuration is not available",
        ),
    ],
)
def test_a_refused_task_leaves_nothing(house: House, task: str, status: int, message: str) -> None:
    assert refusal(house.launch(task))[:2] == (status, message)
    assert house.sim.store.jobs == {}
    assert house.sim.store.blobs == {}


def test_a_bad_name_and_an_unknown_cluster_are_told(house: House) -> None:
    assert refusal(house.launch(cluster="1x"))[0] == 400
    answer = house.call("POST", "/v1/clusters/none/exec", house.body("run: x"))
    assert refusal(answer)[:2] == (404, "you have no cluster 'none'")


def test_bytes_of_paths_that_are_no_text_survive(house: House) -> None:
    _, told = house.launch(cwd="/home/\udcff", home="/home/\udcff")
    assert told["cwd"] == "/home/\udcff/sky_workdir"


# --- ending


def test_down_ends_a_cluster(house: House) -> None:
    house.launch("run: x")
    house.wait(50)
    assert house.call("POST", "/v1/clusters/dev/down")[0] == 200
    house.wait(60)
    assert house.call("GET", "/v1/clusters")[1] == {"clusters": []}
    assert house.call("GET", "/v1/jobs/1")[1]["state"] == "CANCELLED"


def test_a_run_is_cancelled_and_its_cluster_stays(house: House) -> None:
    house.launch("run: x")
    house.wait(50)
    assert house.call("POST", "/v1/clusters/dev/cancel")[1]["runs"] == [1]
    (asked,) = (e for _, e in house.sim.store.events if isinstance(e, SignalAsked))
    assert (asked.signal.number, asked.signal.step) == (15, "0")
    house.wait(RUN_SECONDS)
    (cluster,) = house.call("GET", "/v1/clusters")[1]["clusters"]
    assert cluster["status"] == "UP"
    assert refusal(house.call("POST", "/v1/clusters/dev/cancel"))[0] == 409
    assert refusal(house.call("POST", "/v1/clusters/dev/cancel?run=7"))[0] == 404


def test_one_of_several_runs_is_cancelled_alone(house: House) -> None:
    house.launch("run: x")
    house.wait(50)
    house.launch("run: y")
    house.wait(5)
    assert house.call("POST", "/v1/clusters/dev/cancel?run=2")[1]["runs"] == [2]
    (asked,) = (e for _, e in house.sim.store.events if isinstance(e, SignalAsked))
    assert asked.signal.step == "1"


def test_autostop_is_set_on_a_cluster_that_is_up(house: House) -> None:
    house.launch("run: x")
    house.wait(50)
    told = house.call("POST", "/v1/clusters/dev/autostop", {"idle_seconds": 60})[1]
    assert told == {"cluster": "dev", "job": 1, "idle_seconds": 60}
    (cluster,) = house.call("GET", "/v1/clusters")[1]["clusters"]
    assert cluster["idle_seconds"] == 60
    house.wait(RUN_SECONDS + 130)
    assert house.call("GET", "/v1/clusters")[1] == {"clusters": []}
    assert house.call("GET", "/v1/jobs/1")[1]["state"] == "COMPLETED"


def test_what_became_of_a_request_is_told(house: House) -> None:
    body = house.body("run: x")
    house.call("POST", "/v1/launch", body)
    told = house.call("GET", f"/v1/requests/{body['request']}")[1]
    assert (told["job"], told["cluster"], told["run"]) == (1, "dev", 1)
    assert refusal(house.call("GET", "/v1/requests/none"))[0] == 404


def managed(house: House, task: str, **more: Any) -> Any:
    body = house.body(task)
    del body["cluster"]
    return house.call("POST", "/v1/managed", {**body, **more})


def test_a_pipeline_is_a_chain_of_jobs_and_a_failure_skips_the_rest(house: House) -> None:
    told = managed(house, "name: chain\n---\nname: a\nrun: x\n---\nname: b\nrun: y")[1]
    assert (told["kind"], told["jobs"], told["tasks"]) == ("pipeline", [1, 2], ["a", "b"])
    jobs = {one["id"]: one for one in house.call("GET", "/v1/managed")[1]["jobs"]}
    assert (jobs[2]["status"], jobs[2]["reason"]) == ("PENDING", "Dependency")
    assert [(one["root"], one["task"], one["tasks"]) for one in jobs.values()] == [
        (1, 1, 2),
        (1, 0, 2),
    ]
    assert (jobs[1]["whole"], jobs[1]["name"]) == ("chain", "a")
    house.call("POST", "/v1/jobs/1/cancel")
    house.wait(200)
    jobs = {one["id"]: one for one in house.call("GET", "/v1/managed")[1]["jobs"]}
    assert [jobs[1]["status"], jobs[2]["status"]] == ["CANCELLED", "CANCELLED"]


def test_several_jobs_of_one_task_are_an_array(house: House) -> None:
    told = managed(house, "run: x", num_jobs=3)[1]
    assert len(told["jobs"]) == 1
    house.wait(100)
    ranks = {one["rank"] for one in house.call("GET", "/v1/managed")[1]["jobs"]}
    assert ranks >= {0, 1, 2}


def test_a_dry_run_of_a_managed_job_leaves_nothing(house: House) -> None:
    told = managed(house, "run: x", dry_run=True)[1]
    assert (told["jobs"], bool(told["candidates"])) == ([], True)
    assert house.call("GET", "/v1/managed")[1]["jobs"] == []
    assert refusal(managed(house, "setup: x\n---\nrun: x", num_jobs=2))[0] == 400
    assert refusal(managed(house, ""))[:2] == (400, "run: nothing to run")


def test_a_job_is_cancelled_by_its_id(house: House) -> None:
    house.launch("run: x")
    assert house.call("POST", "/v1/jobs/1/cancel") == (200, {"job": 1})
    assert refusal(house.call("POST", "/v1/jobs/9/cancel"))[0] == 404


@pytest.mark.parametrize("route", ["clusters/dev/down", "clusters/dev/cancel", "jobs/1/cancel"])
def test_nobody_touches_what_is_somebody_elses_but_administrators(house: House, route: str) -> None:
    house.launch("run: x")
    house.wait(50)
    assert refusal(house.call("POST", f"/v1/{route}", by=BOB))[0] == 403
    assert house.call("POST", f"/v1/{route}", by=BOSS)[0] == 200


# --- looking


def test_why_names_the_choice_and_the_runner_up(house: House) -> None:
    house.launch("resources: {accelerators: 'A10G:1'}\nrun: x")
    house.wait(60)
    _, told = house.call("GET", "/v1/jobs/1/why")
    first, second = told["choice"][:2]
    assert first["instance_type"] == "g5.xlarge"
    assert first["expected_micro_usd"] <= second["expected_micro_usd"]
    assert told["lines"][0] == "Job 1 (dev): RUNNING on ec2-1"
    assert told["lines"][1].startswith("  chosen: g5.xlarge in us-east-1 (any of ")
    assert told["lines"][2].startswith("  because: least expected cost (price of ")
    assert "), $1.0" in told["lines"][2]
    assert any(line.startswith("  runner-up: g5.xlarge in ") for line in told["lines"])


def test_what_a_job_has_cost_so_far_is_told_from_the_first_second(house: House) -> None:
    house.launch("resources: {accelerators: 'A10G:1'}\nrun: x")
    house.wait(40)
    told = []
    for _ in range(30):
        house.wait(1)
        told.append(house.call("GET", "/v1/clusters")[1]["clusters"][0]["cost_micro_usd"])
    steps = {after - before for before, after in pairwise(told)}
    assert told[0] > 0 and min(steps) > 0 and max(steps) - min(steps) <= 2
    posted = Past(house.sim).costs([JobId(1)]).get(JobId(1), 0)
    seen = house.sim.engine.snapshot
    assert posted + accrued(seen.jobs.values(), seen.nodes, house.desk.now())[JobId(1)] == told[-1]


def test_a_launch_goes_by_the_partition_that_its_task_names(house: House) -> None:
    body = {"config": {"slurm": {"sbatch_options": {"partition": "nowhere"}}}}
    told = refusal(house.launch("run: x", overrides=body, dry_run=True))
    assert told[:2] == (400, "invalid partition specified: nowhere")


def test_why_tells_how_a_job_ended_and_what_it_cost(house: House) -> None:
    house.launch("run: x")
    house.wait(60)
    house.call("POST", "/v1/clusters/dev/down", by=BOSS)
    house.wait(400)
    _, told = house.call("GET", "/v1/jobs/1/why")
    assert f"  ended: CANCELLED, exit 0:0, asked by uid {BOSS.uid}" in told["lines"]
    assert told["cost_micro_usd"] > 0
    assert told["lines"][-1].startswith("  cost: $0.0")


def test_a_job_of_the_past_is_found_in_history(house: House) -> None:
    house.launch("run: x")
    house.call("POST", "/v1/jobs/1/cancel")
    house.wait(1000)
    assert house.call("GET", "/v1/jobs")[1]["jobs"] == []
    assert house.call("GET", "/v1/jobs/1")[1]["state"] == "CANCELLED"
    assert refusal(house.call("GET", "/v1/jobs/99"))[:2] == (404, "no job 99")


def test_the_log_of_a_run_is_read_by_its_owner(house: House, tmp_path: Path) -> None:
    house.launch("run: x", logs=str(tmp_path))
    assert house.call("GET", "/v1/jobs/1/log?run=1") == (200, b"")
    house.wait(60)
    path = house.call("GET", "/v1/clusters/dev/queue")[1]["runs"][0]["log"]
    assert path == f"{tmp_path}/dev-1.0.log"
    Path(path).write_bytes(b"first\n\xff")
    assert house.call("GET", "/v1/jobs/1/log?run=1") == (200, b"first\n\xff")
    assert refusal(house.call("GET", "/v1/jobs/1/log?run=1", by=BOB))[0] == 403
    assert refusal(house.call("GET", "/v1/jobs/1/log?run=5"))[0] == 404
    there_is_none = refusal(house.call("GET", "/v1/jobs/1/log?run=1&rank=2"))
    assert there_is_none[:2] == (404, "job 1 has no text of a node 2")


def test_the_service_opens_no_files_of_other_users(house: House) -> None:
    house.launch("run: x", by=BOB)
    house.wait(60)
    status, message, _ = refusal(house.call("GET", "/v1/jobs/1/log?run=1", by=BOB))
    assert (status, message) == (400, "the service does not open files of bob")


def test_a_log_is_followed_until_its_run_is_over(house: House, tmp_path: Path) -> None:
    house.launch("run: x", logs=str(tmp_path))
    house.wait(100)
    Path(tmp_path, "dev-1.0.log").write_bytes(b"all of it")
    assert house.call("GET", "/v1/jobs/1/log?run=1&follow=true") == (200, b"all of it")


# --- operators


def test_health_counts(house: House) -> None:
    house.launch("run: x")
    house.wait(60)
    _, told = house.call("GET", "/v1/health")
    assert (told["status"], told["version"], told["pid"]) == ("ok", "25.11.7", os.getpid())
    assert (told["jobs_live"], told["jobs_running"]) == (1, 1)
    assert [n["name"] for n in told["nodes"] if not n["declared"]] == ["ec2-1"]


def _stray(house: House) -> Machine:
    offer = next(iter(CATALOG))
    assert offer.market in Market
    (machine,) = house.sim.cloud.launch(offer, [("ec2-9", 77)], token="lost")  # type: ignore[list-item]
    return machine


def test_a_sweep_finds_machines_that_nobody_knows_and_lets_them_go(house: House) -> None:
    machine = _stray(house)
    status, told = house.call("GET", "/v1/sweep", by=BOSS)
    (found,) = told["providers"]
    assert (status, [one["id"] for one in found["stray"]]) == (200, [machine.id])
    house.call("POST", "/v1/sweep", by=BOSS)
    house.wait(60)
    assert house.call("GET", "/v1/sweep", by=BOSS)[1]["providers"][0]["stray"] == []


def test_what_is_not_bought_because_it_never_comes_up_is_listed_and_ended(house: House) -> None:
    kept = FailedBoots(name="ec2:us-east-1,m7i.large", failed=2, since=1, why="late")
    house.sim.world.apply(BootsSet(at=1, record=kept))
    house.wait(1)
    assert house.call("GET", "/v1/protected", by=BOSS)[1] == {"kinds": [asdict(kept)]}
    unknown = house.call("POST", "/v1/protected/end?kind=x", by=BOSS)
    assert refusal(unknown)[0] == 404
    ended = house.call("POST", "/v1/protected/end", by=BOSS)
    assert ended == (200, {"kinds": [kept.name]})
    assert house.call("GET", "/v1/protected", by=BOSS)[1] == {"kinds": []}


def test_a_backup_is_a_new_file(house: House, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    ask = {"path": str(target)}
    assert house.call("POST", "/v1/db/backup", ask, by=BOSS)[1]["bytes"] == 4
    assert "is there already" in refusal(house.call("POST", "/v1/db/backup", ask, by=BOSS))[1]
    relative = house.call("POST", "/v1/db/backup", {"path": "x"}, by=BOSS)
    assert refusal(relative)[1] == "x: not an absolute path"


@pytest.mark.parametrize(
    ("method", "route"),
    [
        ("GET", "/v1/sweep"),
        ("POST", "/v1/sweep"),
        ("POST", "/v1/db/backup"),
        ("GET", "/v1/protected"),
        ("POST", "/v1/protected/end"),
    ],
)
def test_errands_are_for_administrators(house: House, method: str, route: str) -> None:
    body = {"path": "/tmp/x"} if "backup" in route else None
    assert refusal(house.call(method, route, body, by=BOB))[0] == 403


def test_a_users_own_service_launches_for_nobody_else(house: House) -> None:
    house.sim.world.site = replace(house.sim.world.site, service_uid=ANN.uid)
    house.wait(1)
    assert house.launch("run: x")[0] == 200
    if ANN.uid != 0:
        assert refusal(house.launch("run: x", by=BOB))[:2] == (403, "Access/permission denied")


@pytest.mark.parametrize("verb", ["down", "stop", "start", "autostop", "cancel"])
@pytest.mark.parametrize(("private", "status"), [((), 403), (("jobs",), 404)])
def test_a_cluster_that_is_not_shown_is_none_for_every_verb(
    verb: str, private: tuple[str, ...], status: int
) -> None:
    house = House(*private)
    house.launch(by=BOSS)
    assert house.call("POST", f"/v1/clusters/dev/{verb}", {}, by=BOB)[0] == status
