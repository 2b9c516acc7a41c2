"""`spz` as a process against a running service: clusters, runs, managed jobs, pools, files."""

import json
import os
import subprocess
import sys

import pytest

from tests.e2e.agents import alive, until
from tests.e2e.service import ROOT
from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.e2e
SUCCEEDED, FAILED, UNFINISHED, NOT_FOUND, CANCELLED = 0, 100, 101, 102, 103
USAGE = 2


def test_a_cluster_from_launch_to_down(spz: Terminal) -> None:
    task = spz.file(
        "t.yaml",
        "name: hi\nresources: {cpus: 2+}\nenvs: {WHO: null}\nsecrets: {KEY: null}\n"
        "setup: echo ready\nrun: echo hello $WHO $KEY rank $SKYPURZA_NODE_RANK\n",
    )
    assert "needs a value" in spz("launch", "-y", "-c", "one", task).err
    dry = spz("launch", "--dryrun", "-c", "one", "--env", "WHO=you", "--secret", "KEY=k", task)
    assert (dry.code, "CHOSEN" in dry.out) == (0, True)
    assert spz("status").out == "No clusters.\n"

    done = spz("launch", "-y", "-c", "one", "--env", "WHO=you", "--secret", "KEY=k", task)
    assert (done.code, done.out.splitlines()[-2:]) == (0, ["ready", "hello you k rank 0"])
    (cluster,) = spz.json("status")
    assert (cluster["name"], cluster["status"]) == ("one", "UP")
    for words in (("status",), ("api", "status"), ("cost-report",), ("why", str(cluster["job"]))):
        assert "days old: `spz catalog refresh`" in spz(*words).out, words

    again = spz("launch", "-y", "-c", "one", "--env", "WHO=you", "--secret", "KEY=k", task)
    assert (again.code, "setup is as it was" in again.out) == (0, True)

    assert spz("exec", "one", "exit 3").code == FAILED
    assert spz("exec", "one", "--env", "NOT_SET_HERE", "true").code == USAGE
    assert "no such directory" in spz("exec", "one", "--workdir", "/nowhere", "true").err
    assert spz("logs", "one", "1", "--status").code == SUCCEEDED
    assert spz("logs", "one", "3", "--no-follow").code == FAILED
    assert spz("logs", "one", "9").code == NOT_FOUND
    assert spz("logs", "none").code == NOT_FOUND
    assert [run["status"] for run in spz.json("queue", "one")["one"]] == [
        *("SUCCEEDED", "SUCCEEDED", "FAILED"),
    ]

    request = spz("exec", "one", "--async", "echo begun; sleep 60").out.strip()
    until(lambda: "begun" in spz("logs", "one", "4", "--no-follow").out, "the run", 30)
    assert spz("logs", "one", "4", "--no-follow", "--tail", "1").code == UNFINISHED
    assert "cluster one" in spz("api", "status", request).out
    assert spz("api", "cancel", request).code == 0
    until(lambda: spz("logs", "one", "4", "--status").code == CANCELLED, "the end", 30)

    assert (
        spz("launch", "-y", "-c", "one", "--fast", task, "--env=WHO=x", "--secret=KEY=y").code == 0
    )
    assert spz("down", "one", "-y").out.startswith("Terminating cluster one")
    assert "no cluster 'one'" in spz("status", "one").err
    past = spz("logs", "one", "1", "--no-follow")
    assert (past.code, "hello you k rank 0" in past.out) == (SUCCEEDED, True)
    assert "cluster one (job 1) is gone: CANCELLED" in past.err
    assert spz("logs", "one", "99").code == NOT_FOUND
    assert "one" in [row["cluster"] for row in spz.json("cost-report")]


def test_several_nodes_run_together_and_know_their_rank(spz: Terminal) -> None:
    task = spz.file(
        "m.yaml",
        "num_nodes: 2\nresources: {cpus: 2+}\nsetup: echo setup $SKYPILOT_SETUP_NODE_RANK\n"
        "run: echo rank $SKYPILOT_NODE_RANK of $SKYPURZA_NUM_NODES\n",
    )
    done = spz("launch", "-y", "-c", "two", task)
    assert done.code == 0, done
    said = set(done.out.splitlines())
    for node in ("(head, rank=0) {} 0", "(worker1, rank=1) {} 1"):
        assert said >= {node.format("setup"), f"{node.format('rank')} of 2"}
    assert spz("logs", "two", "--worker", "1").out.splitlines()[-1] == "rank 1 of 2"
    assert "no node 2" in spz("logs", "two", "--worker", "2").err
    one = spz("exec", "two", "--num-nodes", "1", "echo $SKYPILOT_NODE_RANK of $SKYPURZA_NUM_NODES")
    assert one.out == "0 of 1\n"
    (cluster,) = spz.json("status", "two")
    assert (cluster["nodes"], cluster["resources"][:2]) == (2, "2x")
    more = spz("launch", "-y", "-c", "two", "--num-nodes", "3", "--cpus", "2+", "echo x")
    assert "too small: asked for 3 nodes, has 2" in more.err
    assert spz("exec", "two", "--num-nodes", "2", "exit $SKYPILOT_NODE_RANK").code == FAILED
    assert spz("down", "-y", "two").code == 0


def test_runs_wait_for_gpus_and_smaller_ones_overtake(spz: Terminal) -> None:
    assert (
        spz("launch", "-y", "-c", "gpu", "--gpus", "A10G:4", "echo $CUDA_VISIBLE_DEVICES").code == 0
    )
    first = "echo $CUDA_VISIBLE_DEVICES $SKYPILOT_NUM_GPUS_PER_NODE; sleep 60"
    assert spz("exec", "gpu", "-d", "--gpus", "A10G:2", first).code == 0
    assert spz("exec", "gpu", "-d", "--gpus", "A10G:3", "true").code == 0
    small = spz("exec", "gpu", "--gpus", "A10G:1", "echo $CUDA_VISIBLE_DEVICES")
    assert (small.code, small.out) == (0, "2\n")
    assert spz("exec", "gpu", "echo none needed").code == 0
    states = [run["status"] for run in spz.json("queue", "gpu")["gpu"]]
    assert states == ["SUCCEEDED", "RUNNING", "PENDING", "SUCCEEDED", "SUCCEEDED"]
    assert spz("logs", "gpu", "2", "--no-follow").out == "0,1 2\n"
    assert spz("cancel", "-y", "gpu", "2").code == 0
    until(lambda: spz("logs", "gpu", "3", "--status").code == SUCCEEDED, "the third", 30)
    assert spz("down", "-y", "gpu").code == 0


def test_an_idle_cluster_is_let_go(spz: Terminal) -> None:
    assert spz("launch", "-y", "-d", "-c", "idle", "--down", "--cpus", "2+", "echo x").code == 0
    until(lambda: "no cluster" in spz("status", "idle").err, "the cluster's end", 40)


def test_a_cluster_that_is_to_go_waits_for_its_other_runs(spz: Terminal) -> None:
    kept = "sleep 2; echo over > other"
    assert spz("launch", "-y", "-d", "-c", "busy", "--cpus", "1+", kept).code == 0
    done = spz("launch", "-y", "-c", "busy", "--down", "--cpus", "1+", "echo mine")
    assert (done.code, done.out.splitlines()[-1]) == (0, "mine"), done
    until(lambda: "no cluster" in spz("status", "busy").err, "the cluster's end", 40)
    assert (spz.home / "sky_workdir" / "other").read_text() == "over\n"


def test_a_name_asked_for_and_refused_launches_nothing(spz: Terminal) -> None:
    done = spz("launch", "-c", "no", "--cpus", "2+", "echo x", text="n\n")
    assert (done.code, "nothing was launched" in done.err) == (1, True)
    assert "no cluster 'no'" in spz("status", "no").err


def test_a_managed_job_a_pipeline_and_an_array(spz: Terminal) -> None:
    one = spz(
        "jobs",
        "launch",
        "-y",
        "-n",
        "fit",
        "--cpus",
        "2+",
        "echo $SKYPILOT_TASK_ID $X",
        "--env=X=1",
    )
    assert one.code == 0, one
    assert "_fit_" in one.out and one.out.rstrip().endswith(" 1")
    again = spz.file(
        "again.yaml",
        "resources: {cpus: 2+, job_recovery: {max_restarts_on_errors: 1}}\n"
        "run: '[ -e tried ] || { touch tried; exit 9; }; echo second'\n",
    )
    retried = spz("jobs", "launch", "-y", again)
    assert (retried.code, "second" in retried.out) == (0, True), retried
    chain = spz.file(
        "chain.yaml",
        "name: chain\n---\nname: a\nresources: {cpus: 2+}\nrun: exit 4\n"
        "---\nname: b\nresources: {cpus: 2+}\nrun: echo never\n",
    )
    assert spz("jobs", "launch", "-y", "-d", chain).code == 0

    def ended() -> bool:
        jobs = {row["name"]: row["status"] for row in spz.json("jobs", "queue")}
        return jobs.get("a") == "FAILED" and jobs.get("b") == "CANCELLED"

    until(ended, "the pipeline's end", 40)
    assert spz("jobs", "logs", "-n", "a", "--no-follow").code == FAILED
    many = spz(
        "jobs",
        "launch",
        "-y",
        "--num-jobs",
        "2",
        "-n",
        "many",
        "--cpus",
        "2+",
        "echo $SKYPILOT_JOB_RANK",
    )
    assert many.code == 0

    def all_done() -> bool:
        rows = [row for row in spz.json("jobs", "queue") if row["name"] == "many"]
        return len(rows) == 2 and {row["status"] for row in rows} == {"SUCCEEDED"}

    until(all_done, "the array", 40)
    assert "managed job" in spz("jobs", "cancel", "-y", "--all").err


def test_a_pool_of_workers_takes_jobs_and_what_setup_began_serves_them(spz: Terminal) -> None:
    pool = spz.file(
        "pool.yaml",
        "name: p\npool: {max_workers: 3}\nresources: {cpus: 2+}\n"
        "setup: echo up; nohup sleep 3000 >/dev/null 2>&1 & echo $! > ~/server\n",
    )
    done = spz("jobs", "pool", "apply", "-y", pool)
    assert (done.code, "pool.max_workers: ignored, pools do not grow" in done.err) == (0, True)
    up = lambda: "UP" in spz("jobs", "pool", "status").out  # noqa: E731
    until(up, "the worker", 40)
    ask = "kill -0 $(cat ~/server) && echo on $SKYPILOT_NUM_NODES"
    for _ in range(2):
        done = spz("jobs", "launch", "-y", "-p", "p", ask)
        assert (done.code, done.out.splitlines()[-1]) == (0, "on 1")
    assert "up" in spz("jobs", "pool", "logs", "p", "--no-follow").out
    assert spz("jobs", "pool", "down", "p", "-y").code == 0
    server = int((spz.home / "server").read_text())
    until(lambda: not alive(server), "the server's end", 40)


def test_hooks_run_when_a_cluster_goes(spz: Terminal) -> None:
    task = spz.file(
        "hook.yaml",
        "resources: {cpus: 2+}\nenvs: {WHO: ann}\nrun: 'true'\nconfig:\n  hooks:\n"
        "    - {run: echo $WHO $SKYPILOT_HOOK_EVENT > ~/hooked, events: [down]}\n"
        "    - {run: echo x > ~/never, events: [preemption, stop]}\n",
    )
    assert spz("launch", "-y", "-c", "hooked", task).code == 0
    assert spz("down", "-y", "hooked").code == 0
    until((spz.home / "hooked").exists, "the hook", 30)
    until(lambda: (spz.home / "hooked").read_text() == "ann down\n", "what it says", 30)
    assert not (spz.home / "never").exists()


def test_files_are_brought(spz: Terminal) -> None:
    (spz.home / "data" / "in").mkdir(parents=True)
    (spz.home / "data" / "in" / "a").write_text("local")
    calls = spz.home / "bin"
    calls.mkdir()
    aws = calls / "aws"
    aws.write_text(
        '#!/bin/sh\ncase "$1 $2" in "s3api head-object") exit 1;; esac\n'
        'for last; do :; done; mkdir -p "$last"; echo "$@" > "$last/called"\n'
    )
    aws.chmod(0o755)
    repository = spz.home / "repo"
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", str(repository)]
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    (repository / "code").write_text("cloned")
    subprocess.run([*git, "add", "code"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "x"], check=True)
    tree = {
        "resources": {"cpus": "2+"},
        "workdir": {"url": f"file://{repository}"},
        "file_mounts": {f"{spz.home}/to": "./data", f"{spz.home}/s3": "s3://box/part"},
        "envs": {"AT": str(spz.home)},
        "run": 'cat code "$AT/to/in/a" "$AT/s3/called"',
    }
    task = spz.file("f.yaml", json.dumps(tree))
    done = spz("launch", "-y", "-c", "files", "--down", task)
    assert done.code == 0, done
    assert "clonedlocals3 sync --only-show-errors s3://box/part" in done.out


def test_programs_have_the_same(spz: Terminal) -> None:
    program = (
        "from gateway import sdk\n"
        "task = sdk.Task(name='p', run='echo from $WHERE', envs={'WHERE': 'here'})\n"
        "task.set_resources(sdk.Resources(cpus='2+'))\n"
        "asked = sdk.launch(task, 'api', idle_minutes_to_autostop=9)\n"
        "run, cluster = sdk.get(asked)\n"
        "code = sdk.tail_logs('api', run)\n"
        "print(code, cluster.get_cluster_name(), sdk.get(sdk.job_status('api', [run]))[run])\n"
        "print(*[(one['name'], one['status'].value) for one in sdk.get(sdk.status('api'))])\n"
        "print(*sdk.tail_logs('api', run, preload_content=False))\n"
        "bad = sdk.Task(run=['echo x', 'exit 2'], resources={sdk.Resources(cpus='2+')})\n"
        "jobs, _ = sdk.get(sdk.jobs.launch(bad, 'bad'))\n"
        "print(sdk.jobs.tail_logs(job_id=jobs[0]))\n"
        "print(sdk.get(sdk.jobs.queue(False, job_ids=jobs))[0]['status'].is_terminal())\n"
        "page = sdk.get(sdk.jobs.queue_v2(False, statuses=['FAILED'], name_match='bad', limit=1))\n"
        "print(page[0][0]['job_id'] == jobs[0], page[1:3], page[3] >= 1)\n"
        "folder = sdk.download_logs('api', [run])[str(run)]\n"
        "print(open(f'{folder}/run.log').read(), sdk.get(sdk.storage_ls()))\n"
        "with sdk.Dag() as dag:\n"
        "    sdk.Task('a', run='echo a') >> sdk.Task('b', run='echo b')\n"
        "steps, _ = sdk.get(sdk.jobs.launch(dag, 'ab'))\n"
        "print(len(steps), sdk.get(sdk.jobs.wait(job_id=steps[0], timeout=60)))\n"
        "sdk.get(sdk.down('api'))\n"
        "best = sdk.get(sdk.optimize(task)).tasks[0].best_resources\n"
        "print(best.infra.split('/')[0], best.use_spot, 0 < best.get_cost(3600) < 1)\n"
        "task.set_resources(best)\n"
        "print(sdk.get(sdk.optimize(dag)) is dag, sdk.get(sdk.optimize(task)).tasks == [task])\n"
        "print(sdk.api_info()['status'], sdk.api_status([asked])[0]['cluster'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**spz.environ, "PYTHONPATH": str(ROOT)},
        cwd=spz.home,
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said == [
        *("from here", "0 api SUCCEEDED", "('api', 'UP')", "from here", "", "x", "100", "True"),
        "True (1, {'FAILED': 1}) True",
        *("from here", " []", "2 0"),
        *("aws False True", "True True", "ok api"),
    ]


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("lunch", 2, "error: no such command: lunch"),
        ("jobs que", 2, "error: no such command: jobs que"),
        ("launch --nosuch x", 2, "error: No such option: --nosuch"),
        ("exec", 2, "error: CLUSTER is missing"),
        ("status -o xml", 2, "error: option --output: 'xml' is none of table, json"),
        ("stop -y", 2, "error: no cluster named"),
        ("autostop none --wait-for ever", 2, "error: option --wait-for: 'ever' is none of"),
        ("jobs cancel -y", 2, "error: no job named"),
        ("jobs queue -s LOST", 2, "error: option -s: 'LOST' is no status"),
        ("launch -y missing.yaml", 1, "error: missing.yaml: No such file or directory"),
        ("launch -y -c task.yaml", 2, "error: -c task.yaml: a file, no name"),
        ("exec none true", 1, "error: you have no cluster 'none'"),
        ("cancel -y none", 1, "error: no cluster 'none'"),
        ("status none", 0, "no cluster 'none'"),
        ("queue none", 0, "no cluster 'none'"),
        ("down -y none", 0, "no cluster 'none'"),
        ("stop -y none", 0, "no cluster 'none'"),
        ("start -y none", 0, "no cluster 'none'"),
        ("autostop -y none", 0, "no cluster 'none'"),
        ("logs none", 102, "error: no cluster 'none'"),
        ("jobs logs 4711", 102, "error: no managed job 4711"),
    ],
)
def test_mistakes_end_as_sky_pilots_do(spz: Terminal, line: str, code: int, told: str) -> None:
    done = spz(*line.split())
    assert done.code == code
    assert done.err.startswith(f"spz: {told}")


def test_a_cluster_that_is_not_there_keeps_no_other_one(spz: Terminal) -> None:
    assert spz("launch", "-y", "-d", "-c", "there", "--cpus", "1+", "true").code == 0
    done = spz("down", "-y", "none", "there")
    assert (done.code, done.out.split(" (")[0]) == (0, "Terminating cluster there")
    assert done.err == "spz: no cluster 'none'\n"


def test_what_is_not_offered_says_why(spz: Terminal) -> None:
    done = spz("serve", "up")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("spz: error: serve: services are not kept up here\n")


def test_who_asks_and_where_is_told(spz: Terminal) -> None:
    told = spz.json("api", "info")
    assert (told["status"], told["cluster"]) == ("ok", "tests")
    assert spz("api", "login").code == 0
    assert os.path.basename(told["socket"]) == "gateway.sock"  # noqa: PTH119
