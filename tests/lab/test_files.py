"""Files of jobs on machines that share nothing with the login node: brought, passed on, fetched."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.model.job import JobState
from tests.e2e.agents import until
from tests.e2e.service import Preloaded, Service, User
from tests.e2e.terminal import Terminal
from tests.lab.boxed import ONE_TYPE, PATIENCE, SPZ, boxed, saved
from tests.lab.running import Running

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.timeout(300)]
THROUGH = """\
  - name: through
    def_mem_per_cpu: 100
    elastic:
      {provider: ec2, name_prefix: thr-, max_nodes: 2, idle_seconds: 2, files: s3,
       instance_types: [m7i.large]}
objects: s3://site/kept
buckets: [site/data]
"""
NOTICE = 30 * 30
"""Seconds of the box, thirty of which are one of ours: it hears of it long before."""


@pytest.fixture(scope="module")
def options(share: Path) -> tuple[str, ...]:
    return ("--private", str(share))


@pytest.fixture(scope="module")
def gateway(preloaded: Preloaded, lab: Running) -> Iterator[Service]:
    lab.client("s3").create_bucket(Bucket="site")
    buy = f"{ONE_TYPE}, spot: true, fetch_seconds: 1"
    with boxed(preloaded, lab, buy, more=THROUGH) as made:
        yield made


def folder(share: Path, name: str) -> Path:
    made = share / name
    made.mkdir()
    return made


def test_input_is_there_output_comes_while_it_runs_and_results_at_the_end(
    gateway: Service, share: Path
) -> None:
    work = folder(share, "whole")
    (work / "data").mkdir()
    (work / "data" / "in.txt").write_text("from the login node")
    (work / "run.sh").write_text(
        "#!/bin/sh\necho begun\ncat data/in.txt\nmkdir out\n"
        "sleep 8\necho result > out/result.txt\necho ended\n"
    )
    job = gateway.submit("run.sh", cwd=work)
    out = work / f"slurm-{job}.out"
    until(lambda: out.exists() and "login node" in out.read_text(), "its first lines", PATIENCE)
    assert "ended" not in out.read_text()
    gateway.wait(job, "COMPLETED")
    assert out.read_text() == "begun\nfrom the login nodeended\n"
    assert (work / "out" / "result.txt").read_text() == "result\n"


def test_results_are_here_before_the_job_is_said_to_be_over(gateway: Service, share: Path) -> None:
    work = folder(share, "before")
    job = gateway.wrap("seq 1000 > numbers; exit 7", cwd=work)
    gateway.wait(job, "FAILED")
    assert (work / "numbers").read_text().split()[-1] == "1000"
    assert gateway.exit(job) == (7, 0)


def test_what_the_user_changes_meanwhile_stays(gateway: Service, share: Path) -> None:
    work = folder(share, "both")
    (work / "notes").write_text("first")
    job = gateway.wrap("echo begun; sleep 3; echo theirs > notes", cwd=work)
    out = work / f"slurm-{job}.out"
    until(lambda: out.exists() and out.read_text() == "begun\n", "its begin", PATIENCE)
    (work / "notes").write_text("mine")
    gateway.wait(job, "COMPLETED")
    assert (work / "notes").read_text() == "mine"
    assert (work / f"notes.spz-{job}").read_text() == "theirs\n"


def test_output_is_added_where_that_was_asked_for(gateway: Service, share: Path) -> None:
    work = folder(share, "added")
    (work / "log").write_text("of before\n")
    job = gateway.wrap("echo new; echo >&2 wrong", "-o", "log", "--open-mode=append", cwd=work)
    gateway.wait(job, "COMPLETED")
    assert sorted((work / "log").read_text().splitlines()) == ["new", "of before", "wrong"]


def test_output_outside_of_the_submit_directory_arrives_too(gateway: Service, share: Path) -> None:
    work, logs = folder(share, "submit"), folder(share, "logs")
    job = gateway.wrap(
        "echo out; echo err >&2", "-o", f"{logs}/%j.o", "-e", f"{logs}/%j.e", cwd=work
    )
    gateway.wait(job, "COMPLETED")
    assert (logs / f"{job}.o").read_text() == "out\n"
    assert (logs / f"{job}.e").read_text() == "err\n"


def test_too_large_a_folder_is_refused_with_the_way_out(gateway: Service, share: Path) -> None:
    work = folder(share, "large")
    with (work / "huge").open("wb") as file:
        file.truncate(11 << 30)
    job = gateway.wrap("true", cwd=work)
    gateway.wait(job, "FAILED")
    until(lambda: ".spzignore" in gateway.words(), "the reason in its log", PATIENCE)


def test_a_job_whose_gateway_was_killed_has_all_of_its_output(
    gateway: Service, share: Path
) -> None:
    work = folder(share, "killed")
    job = gateway.wrap("for n in $(seq 40); do echo $n; sleep 0.1; done; echo x > last", cwd=work)
    out = work / f"slurm-{job}.out"
    until(lambda: out.exists() and out.read_text(), "its begin", PATIENCE)
    for _ in range(3):
        gateway.restart()
    gateway.wait(job, "COMPLETED")
    assert out.read_text().split() == [str(n) for n in range(1, 41)]
    assert (work / "last").exists()


def test_files_are_their_users_on_both_sides(gateway: Service, share: Path) -> None:
    try:
        user = User.named("nobody")
    except KeyError:
        pytest.skip("this host has no user nobody")
    work = folder(share, "others")
    os.chown(work, user.uid, user.gid)
    job = gateway.wrap("id -u > who; umask 077; echo secret > mine", cwd=work, user=user)
    gateway.wait(job, "COMPLETED")
    assert (work / "who").read_text() == f"{user.uid}\n"
    assert (work / "mine").stat().st_uid == user.uid
    assert (work / "mine").stat().st_mode & 0o777 == 0o600


CHECKPOINTED = """\
#!/bin/bash
#SBATCH --requeue -C spot
#SPZ checkpoint=ckpt every=0:01
n=$(cat ckpt/n 2>/dev/null || echo 0)
echo "$n" > "begun-$SPZ_RESTART_COUNT"
echo $((n + 1)) > ckpt/n
if [ "$SPZ_RESTART_COUNT" = 0 ]; then sleep 600; fi
cp ckpt/n result
"""


def machine_of(gateway: Service, job: int) -> str:
    """The machine that it runs on."""

    def there() -> str | None:
        record = gateway.job(job)
        if record.state is not JobState.RUNNING or record.configuring:
            return None
        found = gateway.rows(
            "select doc from nodes where gone = 0 and name = ?", record.shares[0].node
        )
        return str(json.loads(found[0][0])["machine"]["id"]) if found else None

    return str(until(there, "it to run", PATIENCE))


def interrupt(gateway: Service, lab: Running, job: int) -> None:
    """Takes its machine back once what it saved there is copied."""
    machine = machine_of(gateway, job)
    until(lambda: saved(gateway, job) > 0, "a checkpoint of it", PATIENCE)
    assert lab.set("interrupt", id=machine, notice=NOTICE) == [machine]


def test_a_spot_job_that_is_interrupted_goes_on_from_its_checkpoint(
    gateway: Service, share: Path, lab: Running
) -> None:
    work = folder(share, "again")
    (work / "run.sh").write_text(CHECKPOINTED)
    job = gateway.submit("run.sh", cwd=work)
    interrupt(gateway, lab, job)
    gateway.wait(job, "COMPLETED")
    assert [(work / f"begun-{n}").read_text() for n in range(2)] == ["0\n", "1\n"]
    assert (work / "result").read_text() == "2\n"
    told = gateway.run(SPZ, "why", str(job), env=gateway.variables()).out
    assert told.count("decided: preemption: replace the node") == 1
    assert told.count("restored - of attempt") == 1
    shown = gateway.run("sacct", "-D", "-n", "-X", "-P", "-o", "State", "-j", str(job))
    assert shown.out.split() == ["PREEMPTED", "COMPLETED"]


def test_input_comes_from_a_bucket_and_results_go_into_one(
    gateway: Service, share: Path, lab: Running
) -> None:
    work = folder(share, "objects")
    store = lab.client("s3")
    store.put_object(Bucket="site", Key="data/set/in.txt", Body=b"from the bucket")
    (work / "run.sh").write_text(
        "#!/bin/sh\n#SPZ stage-in=s3://site/data/set stage-out=out:s3://site/data/run\n"
        "mkdir out\ncat set/in.txt > out/result.txt\n"
    )
    job = gateway.submit("run.sh", cwd=work)
    gateway.wait(job, "COMPLETED")
    stored = store.get_object(Bucket="site", Key="data/run/result.txt")
    assert stored["Body"].read() == b"from the bucket"
    assert (work / "out" / "result.txt").read_text() == "from the bucket"
    assert not (work / "set").exists()
    told = gateway.run(SPZ, "why", str(job), env=gateway.variables()).out
    assert "stored 1 files, 15 bytes, such as s3://site/data/run/result.txt" in told


def test_buckets_that_are_not_configured_are_refused(gateway: Service, share: Path) -> None:
    work = folder(share, "foreign")
    (work / "run.sh").write_text("#!/bin/sh\n#SPZ stage-in=s3://site/kept\ntrue\n")
    job = gateway.submit("run.sh", cwd=work)
    gateway.wait(job, "FAILED")
    why = "s3://site/kept: not of a bucket that is configured"
    until(lambda: why in gateway.words(), "the reason in its log", PATIENCE)


def test_files_go_through_a_bucket_where_the_partition_says_so(
    gateway: Service, share: Path, lab: Running
) -> None:
    work = folder(share, "through")
    (work / "large").write_bytes(os.urandom(2 << 20))
    job = gateway.wrap("cp large copy", "-p", "through", cwd=work)
    gateway.wait(job, "COMPLETED")
    assert (work / "copy").read_bytes() == (work / "large").read_bytes()
    listed = lab.client("s3").list_objects_v2(Bucket="site", Prefix="kept/way/")
    assert listed["KeyCount"] == 0


def test_a_tasks_folder_and_mounts_reach_a_cluster_but_for_what_is_ignored(
    gateway: Service, share: Path
) -> None:
    work, other = folder(share, "task"), folder(share, "elsewhere")
    for name, text in (("main.txt", "m"), ("big.bin", "b"), (".skyignore", "*.bin\n")):
        (work / name).write_text(text)
    (other / "data").mkdir()
    (other / "data" / "one").write_text("1")
    (other / "late").write_text("late")
    spz = Terminal(gateway, folder(share, "home"))
    task = f"""\
resources: {{cpus: 2, use_spot: true}}
workdir: {work}
file_mounts: {{~/in: {other}/data}}
run: ls; cat ~/in/one
"""
    made = spz("launch", "-y", "-c", "far", spz.file("t.yaml", task))
    assert (made.code, "not brought" in made.err) == (0, True), made
    assert "big.bin" in made.err
    assert made.out.splitlines()[-2:] == ["main.txt", "1"], made.out
    more = task.replace("~/in:", "~/more:").replace("/data}", "/late}").replace("in/one", "more")
    again = spz("launch", "-y", "-c", "far", spz.file("u.yaml", more))
    assert (again.code, again.out.splitlines()[-1]) == (0, "late"), again
    assert spz("down", "-y", "far").code == 0
