"""Launches: tasks become clusters, go to those that are there, or are refused."""

import pytest

from accounting.ids import JobId
from tests.api.house import BOB, House, refusal


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


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_no_declared_node_could_run_is_refused_with_what_it_asked_for_dry_or_not(
    house: House, dry_run: bool
) -> None:
    own = "config: {slurm: {sbatch_options: {partition: own}}}"
    task = f"resources: {{accelerators: {{A100: 4, L4: 1}}}}\n{own}\nrun: x"
    status, told = house.launch(task, dry_run=dry_run)
    message = "Requested node configuration is not available"
    assert (status, told["error"]["message"]) == (400, message)
    said = "1 cpus, 4 A100 or 1 L4 and all memory on each node, in partition own"
    assert said in told["error"]["hint"]
    fits = f"resources: {{accelerators: 'A10G:2'}}\n{own}\nrun: x"
    assert house.launch(fits, dry_run=dry_run)[0] == 200


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
