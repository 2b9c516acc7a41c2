"""Processes of this host, told by their environment; listings that repeat."""

import asyncio
from dataclasses import replace
from pathlib import Path

from accounting.ids import JobId
from broker.run.agent.usage import of_job
from gateway.api.desk import Desk
from gateway.api.programs.hostload import host_free
from gateway.api.programs.hostprocs import Use, clock, processes, uses
from gateway.api.programs.nodeuse import together, told
from gateway.api.programs.scontrol_list import pid_line
from gateway.api.programs.squeue import Squeue
from gateway.api.wire import Call, Peer
from tests.unit.gateway.query.desk import desk_of, snapshot, text
from tests.unit.gateway.query.scene import queue

STAT = "7 (a (b) c) S 1 1 1 0 -1 0 0 0 0 0 150 50 0 0 20 0 1 0 1 1 1"
STATUS = "Name:\tsleep\nVmPeak:\t    2920 kB\nVmHWM:\t    1888 kB\n"
IO = "rchar: 6976\nwchar: 12\n"


def process(root: Path, pid: int, **environ: str) -> None:
    folder = root / str(pid)
    folder.mkdir()
    pairs = [f"{name}={value}" for name, value in environ.items()]
    (folder / "environ").write_bytes("\0".join(["A=\xff", *pairs, ""]).encode("latin-1"))
    for name, content in (("stat", STAT), ("status", STATUS), ("io", IO)):
        (folder / name).write_text(content)


def proc(root: Path) -> Path:
    process(root, 11, SLURM_JOB_ID="5")
    process(root, 12, SLURM_JOB_ID="5", SLURM_STEP_ID="0", SLURM_LOCALID="1", SLURM_PROCID="3")
    process(root, 13, SLURM_JOB_ID="6")
    process(root, 14)
    (root / "15").mkdir()
    (root / "cpuinfo").write_text("cpu MHz\t: 2600.000\ncpu MHz\t: 2400.000\nflags: x\n")
    return root


def test_processes_are_told_by_job_step_and_task(tmp_path: Path) -> None:
    found = processes(frozenset({5}), proc(tmp_path))
    assert [(one.pid, one.step, one.local, one.rank) for one in found] == [
        (11, "batch", None, None),
        (12, "0", 1, 3),
    ]
    assert pid_line(found[0]) == "11       5        batch    -       -\n"
    assert pid_line(found[1]) == "12       5        0        1       3\n"


def test_what_a_step_uses_is_the_sum_of_its_processes(tmp_path: Path) -> None:
    root = proc(tmp_path)
    process(root, 16, SLURM_JOB_ID="5", SLURM_STEP_ID="0")
    found = uses(frozenset({5}), root)
    assert found[5, "0"] == Use((12, 16), 4_000_000, 3776, 5840, 13952, 24, 2_500_000)
    assert clock(tmp_path / "nowhere") == 0


def test_an_agent_counts_as_the_service_does(tmp_path: Path) -> None:
    root = proc(tmp_path)
    process(root, 16, SLURM_JOB_ID="5", SLURM_STEP_ID="0")
    job = replace(queue()[0], id=JobId(5))
    assert told(job, of_job(5, str(root))) == uses(frozenset({5}), root)
    assert told(job, {"ok": False, "error": "bad request"}) == {}


def test_what_a_step_uses_on_two_nodes_is_added_up() -> None:
    one, other = Use((1,), 1, 2, 3, 4, 5, 0), Use((1, 2), 10, 20, 30, 40, 50, 9)
    assert together(one, other) == Use((1, 1, 2), 11, 22, 33, 44, 55, 9)


def test_free_memory_is_what_the_kernel_calls_free(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 99 kB\nMemFree: 2048 kB\n")
    assert host_free(tmp_path / "meminfo") == 2
    assert host_free(tmp_path / "nothing") is None


def test_a_listing_repeats_with_its_date_until_the_caller_leaves() -> None:
    desk: Desk = desk_of(snapshot(queue()))
    slept: list[float] = []

    async def pause(seconds: float) -> None:
        slept.append(seconds)

    desk.pause = pause
    call = Call(
        program="squeue",
        argv=("-i", "7", "-u", "bob"),
        peer=Peer(2001, 2001),
        request="0" * 16,
        environ={"TZ": "UTC"},
    )

    async def twice() -> list[str]:
        first = await Squeue()(desk, call)
        assert first.rest is not None
        second = await first.rest
        assert second.rest is not None
        second.rest.close()  # type: ignore[attr-defined]
        return [text(first.out), text(second.out)]

    first, second = asyncio.run(twice())
    assert first == second
    assert first.splitlines()[0] == "Mon Nov 30 12:00:00 2026"
    assert first.endswith("\n\n")
    assert slept == [7]
