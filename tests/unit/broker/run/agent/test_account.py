"""A step's own control group: its cpus and what all in it used, as files and by this kernel."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from broker.run.agent import account, groups, usage
from broker.run.agent.groups import SECOND, SUBTREE, Group

KEY = "7/1/0"
SPIN = "import time\nwhile time.process_time() < 0.2: pass\n"
ESCAPE = f"""
import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for it, so rusage never has it
with open({{door!r}}, "w") as file:
    file.write("0")
if os.fork() == 0:
    os.setsid()
    os.environ.clear()
    exec({SPIN!r})
    os._exit(0)
try:
    os.wait()
except ChildProcessError:
    print("gone", flush=True)
"""
RECORD = {"user_us": 5, "sys_us": 5, "max_rss_kib": 5, "read": 5, "written": 5, "code": 3}
TEXTS = {
    "cpu.stat": "usage_usec 90\nuser_usec 70\nsystem_usec 20\nnice_usec 0\n",
    "memory.peak": f"{9 << 20}\n",
    "memory.stat": f"anon 0\nfile {1 << 20}\n",
    "io.stat": "259:0 rbytes=4096 wbytes=1 rios=1 wios=1 dbytes=0 dios=0\n8:0 rbytes=4 wbytes=2\n",
}
ALL = {"user_us": 70, "sys_us": 20, "rss_kib": 8 << 10, "read": 4100, "written": 3}


@pytest.mark.parametrize(
    ("without", "instead", "want"),
    [
        ([], {}, ALL),
        (["memory.peak"], {"memory.current": f"{3 << 20}\n"}, ALL | {"rss_kib": 2 << 10}),
        (["memory.peak", "memory.stat"], {}, ALL | {"rss_kib": 0}),
        (["io.stat"], {}, ALL | {"read": 0, "written": 0}),
        (list(TEXTS), {}, dict.fromkeys(ALL, 0)),
    ],
)
def test_what_the_kernel_tells_of_a_group_is_its_use(
    tmp_path: Path, without: list[str], instead: dict[str, str], want: dict[str, int]
) -> None:
    for name, text in (TEXTS | instead).items():
        if name not in without:
            (tmp_path / name).write_text(text)
    assert account.use(Group(str(tmp_path), SECOND)) == want


def test_a_group_asks_for_every_controller_and_does_without_what_it_cannot_have(
    tmp_path: Path,
) -> None:
    (tmp_path / SUBTREE).mkdir()  # nothing can be written there
    group = groups.make_plain(KEY, places=["/proc/no", str(tmp_path)])
    assert group is not None
    assert Path(group.path).is_dir()
    (tmp_path / SUBTREE).rmdir()
    assert groups.make_plain(KEY, places=[str(tmp_path)]) is not None
    job = Path(group.path).parent
    assert {(folder / SUBTREE).read_text() for folder in (tmp_path, job.parent, job)} == {"+io"}
    found = groups.find_plain(KEY, places=[str(tmp_path)])
    assert found is not None
    assert found.path == group.path
    assert groups.find_plain("8/1/0", places=[str(tmp_path)]) is None


@pytest.mark.parametrize("beyond", [set(), {4095}])
def test_a_group_has_those_of_the_steps_cpus_that_are_there(
    tmp_path: Path, beyond: set[int]
) -> None:
    here = min(os.sched_getaffinity(0))
    account.hold_to(Group(str(tmp_path), SECOND), {here} | beyond)
    assert (tmp_path / "cpuset.cpus").read_text() == str(here)


def test_a_group_is_left_its_hosts_cpus_where_it_may_not_or_there_are_none(tmp_path: Path) -> None:
    account.hold_to(Group(str(tmp_path), SECOND), {4095})
    assert not (tmp_path / "cpuset.cpus").exists()
    account.hold_to(Group(str(tmp_path / "no"), SECOND), os.sched_getaffinity(0))


def test_a_record_has_the_larger_of_what_was_waited_for_and_what_the_group_tells(
    tmp_path: Path,
) -> None:
    (tmp_path / "cpu.stat").write_text("user_usec 9\nsystem_usec 2\n")
    step: dict[str, object] = {}
    one = account.Account(step, KEY)
    one.close()
    one.group = Group(str(tmp_path), SECOND)
    assert one.settle(RECORD) == RECORD | {"user_us": 9}
    one.group = None
    assert one.settle(RECORD) == RECORD


def test_samples_have_steps_whose_processes_hid_their_environment(tmp_path: Path) -> None:
    grouped = {"0": {"cpu_us": 90, "rss_kib": 8, "read": 1, "written": 0}}
    found = usage.of_job(7, str(tmp_path), grouped=grouped)["steps"]
    want = {"cpu_us": 90, "rss_kib": 8, "size_kib": 0, "read": 1, "written": 0, "pids": []}
    assert json.loads(json.dumps(found)) == {"0": want}


def test_this_kernel_counts_who_left_session_and_parent() -> None:
    step: dict[str, object] = {"cpu_ids": sorted(os.sched_getaffinity(0))[:1]}
    one = account.Account(step, KEY)
    if one.group is None:
        pytest.skip("no control group of version 2 may be made here")
    try:
        program = ESCAPE.format(door=step["account"])
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
        record = one.settle(RECORD)
        assert record["user_us"] + record["sys_us"] >= 150_000
        assert account.of_job([KEY, "8/1/0"], 7)["0"]["cpu_us"] >= 150_000
    finally:
        one.close()
    assert not Path(one.group.path).exists()


def test_this_kernel_holds_a_group_to_its_cpus() -> None:
    cpus = sorted(os.sched_getaffinity(0))
    step: dict[str, object] = {"cpu_ids": cpus[:1]}
    one = account.Account(step, KEY)
    held = one.group is not None and one.group.lines("cpuset.cpus.effective")
    one.close()
    if not held:
        pytest.skip("the cpuset controller of version 2 is not ours to use here")
    assert held == [str(cpus[0])]
