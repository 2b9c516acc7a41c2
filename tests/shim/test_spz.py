"""`spz` as a process: quick help, words instead of tracebacks."""

import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ("pydantic", "fastapi", "sqlalchemy", "yaml", "structlog", "httpx", "uvicorn", "rich")


def spz(
    *argv: str, home: Path, cwd: Path | None = None, **environ: str
) -> "subprocess.CompletedProcess[str]":
    """The command as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "gateway.cli", *argv],
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), "SKYPURZA_HOME": f"{home}/s", **environ},
        cwd=cwd or ROOT,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )


@pytest.mark.parametrize(
    "argv",
    [("--help",), ("launch", "-h"), ("status", "-v", "-o", "json"), ("cost", "--by", "day")],
)
def test_reading_the_line_loads_nothing_heavy(short_tmp: Path, argv: Sequence[str]) -> None:
    assert _loaded(*argv, home=short_tmp).isdisjoint(HEAVY)


@pytest.mark.parametrize("argv", [("status",), ("queue",), ("gpus", "list")])
def test_a_verb_alone_needs_no_reader(short_tmp: Path, argv: Sequence[str]) -> None:
    assert _loaded(*argv, home=short_tmp).isdisjoint((*HEAVY, "typer", "secrets"))


def _loaded(*argv: str, home: Path) -> set[str]:
    """The packages that a command line loads."""
    done = spz(*argv, home=home, PYTHONPROFILEIMPORTTIME="1")
    assert "launch" in done.stdout or "no service answers" in done.stderr
    return set(re.findall(r"\| +(\w+)[\w.]*$", done.stderr, re.M))


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("status",), "no service answers on"),
        (("launch", "x.yaml"), "x.yaml: No such file or directory"),
        (("launch", "--clone-disk-from", "dev", "x"), "disks are not copied"),
        (("api", "stop"), "no service runs on"),
        (("api", "logs"), "No such file or directory"),
        (("db", "check"), "no such file"),
        (("shims", "install", "--prefix", "/proc/no"), "No such file or directory"),
    ],
)
def test_a_mistake_is_told_in_words(short_tmp: Path, argv: Sequence[str], told: str) -> None:
    done = spz(*argv, home=short_tmp)
    assert done.returncode == 1
    assert done.stderr.startswith("spz: error: ")
    assert told in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("down",), "no cluster named"),
        (("launch", "--num-nodes", "x"), "option --num-nodes: 'x' is no whole number"),
        (("exec",), "CLUSTER is missing"),
        (("launch", "--env", "NOT_SET", "x"), "--env NOT_SET: not set in this shell"),
        (("launch", "--secret", "NOT_SET", "x"), "--secret NOT_SET: not set in this shell"),
        (("launch", "--env-file", "none.env", "x"), "none.env: No such file or directory"),
    ],
)
def test_a_line_that_no_verb_takes_ends_with_2(
    short_tmp: Path, argv: Sequence[str], told: str
) -> None:
    done = spz(*argv, home=short_tmp)
    assert done.returncode == 2
    assert done.stderr.startswith(f"spz: error: {told}")


def test_ctrl_c_at_a_question_is_no() -> None:
    hears = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    asks = "from gateway.sdk.verbs.counter import Counter; print(Counter.confirm('Sure?'))"
    with subprocess.Popen(
        [sys.executable, "-c", f"{hears}; {asks}"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as asking:
        assert asking.stderr is not None and asking.stderr.read(13) == b"Sure? [Y/n]: "
        asking.send_signal(signal.SIGINT)
        out, err = asking.communicate(timeout=20)
    assert (out, err) == (b"False\n", b"\nspz: nothing is done\n")


def test_a_bad_configuration_is_told_with_all_that_is_wrong(short_tmp: Path) -> None:
    (short_tmp / "s").mkdir()
    (short_tmp / "s" / "config.yaml").write_text("clustr: x\nmin_job_age: soon\n")
    done = spz("serve", home=short_tmp)
    assert done.returncode == 1
    assert done.stderr.count("spz: error:") == 2
    assert "did you mean cluster?" in done.stderr


def test_check_tells_one_line_for_each_thing(short_tmp: Path) -> None:
    done = spz("check", home=short_tmp)
    names = [
        line[6:].split(":")[0] for line in done.stdout.splitlines() if line[:2] in ("ok", "FA")
    ]
    assert names[:3] == ["configuration", "state directory", "disk"]
    assert names[-2:] == ["database", "service"]
    assert done.returncode == 0, done.stdout


def test_the_commands_are_put_on_the_path(short_tmp: Path) -> None:
    line = spz("shims", "env", home=short_tmp).stdout
    done = subprocess.run(
        ["bash", "-c", f"{line}command -v squeue"], capture_output=True, text=True, check=True
    )
    assert done.stdout.rstrip("\n") == f"{short_tmp}/s/shims/bin/squeue"


def test_the_version_names_ours_and_slurms(short_tmp: Path) -> None:
    assert re.fullmatch(r"skypurza \S+, slurm 25\.11\.7\n", spz("version", home=short_tmp).stdout)


TASKS = ROOT / "tests" / "tables" / "skypilot"


def test_task_files_are_checked_without_a_service(short_tmp: Path) -> None:
    good = spz("task", "check", str(TASKS / "nodes.yaml"), home=short_tmp)
    assert good.returncode == 0, good
    assert good.stdout == f"{TASKS / 'nodes.yaml'}: ring: 4 nodes of H100:8; run\n"
    wrong = short_tmp / "wrong.yaml"
    wrong.write_text("resources: {accelerator: L4}\n")
    bad = spz("task", "check", str(wrong), str(TASKS / "hello.yaml"), home=short_tmp)
    assert bad.returncode == 1
    assert "resources.accelerator: no such key (did you mean accelerators?)" in bad.stderr
    assert bad.stdout.endswith("hello.yaml: 1 node of 8+ vCPUs; run\n")


@pytest.mark.parametrize(
    ("content", "told"),
    [(None, "No such file"), (b"\xff\xfe", "not UTF-8"), (b"a: [\n", "no YAML"), (b"\0", "")],
)
def test_what_is_no_task_file_is_told(short_tmp: Path, content: bytes | None, told: str) -> None:
    path = short_tmp / "x.yaml"
    if content is not None:
        path.write_bytes(content)
    done = spz("task", "check", str(path), home=short_tmp)
    assert (done.returncode, told in done.stderr) == (1, True), done
    assert "Traceback" not in done.stderr


def test_a_task_is_shown_as_a_batch_script_and_back(short_tmp: Path) -> None:
    script = spz("task", "show", str(TASKS / "named.yaml"), "--as", "sbatch", home=short_tmp).stdout
    assert script.startswith("#!/bin/bash\n#SBATCH --job-name=fit\n")
    path = short_tmp / "job.sh"
    path.write_text(script)
    task = spz("task", "show", str(path), home=short_tmp).stdout
    assert task.startswith("name: fit\nsetup: |\n  pip list\nrun: |\n  python fit.py\n")
    assert spz("task", "schema", home=short_tmp).stdout.startswith("{\n")


def test_what_is_not_carried_over_is_named_in_a_note(short_tmp: Path) -> None:
    task = short_tmp / "t.yaml"
    task.write_text("resources: {infra: aws, autostop: 5, cpus: 4+}\nrun: x\n")
    job = short_tmp / "job.sh"
    job.write_text("#!/bin/bash\n#SBATCH --array=0-3 --time=5\necho x\n")
    for path, keys in (
        (
            task,
            "sbatch does not act on these, they stay as #TASK comments: "
            "resources.infra, resources.autostop",
        ),
        (job, "a task does not act on these options of sbatch's: array"),
    ):
        done = spz("task", "show", str(path), home=short_tmp)
        assert (done.returncode, done.stderr) == (0, f"spz: note: {keys}\n")


def test_an_option_that_is_none_gets_the_nearest(short_tmp: Path) -> None:
    done = spz("launch", "--cluser", "x", home=short_tmp)
    assert done.returncode == 2
    assert done.stderr.startswith("spz: error: No such option: --cluser (Possible options: ")
    assert "--cluster" in done.stderr
    assert done.stderr.endswith("\n     `spz launch -h` lists what it takes\n")


def test_a_word_that_is_no_command_gets_the_nearest(short_tmp: Path) -> None:
    assert "did you mean launch?" in spz("lanch", home=short_tmp).stderr
    assert "did you mean queue?" in spz("jobs", "queu", home=short_tmp).stderr
    assert spz("jobs", "pool", home=short_tmp).stdout.startswith("Usage: spz jobs pool ")
    assert spz("launch", "-h", home=short_tmp).stdout.startswith("Usage: spz launch ")
