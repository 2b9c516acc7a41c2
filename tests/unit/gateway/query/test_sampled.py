"""What was measured of a step, in sacct's columns and words (25.11 and 22.05)."""

from dataclasses import replace

import pytest

from broker.model.job import Job, Step, Usage
from gateway.api.programs.sacct import Sacct
from tests.unit.gateway.query.desk import ask, desk_of, snapshot, text
from tests.unit.gateway.query.records import NOON, ended

USED = Usage(
    user_us=3_000_000,
    max_rss_kib=4952,
    max_size_kib=7280,
    read=24_076_993,
    written=23_971_617,
    pages=2,
)


def job(usage: Usage) -> Job:
    made = ended(started=NOON - 60)
    return replace(made, steps=tuple(_measured(step, usage) for step in made.steps))


def _measured(step: Step, usage: Usage) -> Step:
    return replace(step, started=NOON - 60, ended=NOON - 10, usage=usage)


def shown(columns: str, usage: Usage) -> str:
    words = ("sacct", "-nP", "-j", "700001.batch", "-o", columns)
    return text(ask(Sacct(), desk_of(snapshot([job(usage)])), words).out)


COLUMNS = (
    ("AveDiskRead,MaxDiskRead,AveDiskWrite,MaxDiskWrite", "22.96M|22.96M|22.86M|22.86M"),
    ("MaxDiskReadNode,MaxDiskReadTask,MaxDiskWriteNode,MaxDiskWriteTask", "ec2-1|0|ec2-1|0"),
    ("AvePages,MaxPages,MaxPagesNode,MaxPagesTask", "2|2|ec2-1|0"),
    ("AveVMSize,MaxVMSize,MaxVMSizeNode,MaxVMSizeTask", "7280K|7280K|ec2-1|0"),
    ("TRESUsageInTot", "cpu=00:00:03,energy=0,fs/disk=24076993,mem=4952K,pages=2,vmem=7280K"),
    ("TRESUsageInMin", "cpu=00:00:03,energy=0,fs/disk=24076993,mem=4952K,pages=2,vmem=7280K"),
    (
        "TRESUsageInMaxNode",
        "cpu=ec2-1,energy=ec2-1,fs/disk=ec2-1,mem=ec2-1,pages=ec2-1,vmem=ec2-1",
    ),
    ("TRESUsageInMinTask", "cpu=0,fs/disk=0,mem=0,pages=0,vmem=0"),
    ("TRESUsageOutTot,TRESUsageOutMax", "energy=0,fs/disk=23971617|energy=0,fs/disk=23971617"),
    ("TRESUsageOutMinNode,TRESUsageOutMinTask", "energy=ec2-1,fs/disk=ec2-1|fs/disk=0"),
)


@pytest.mark.parametrize(("columns", "values"), COLUMNS)
def test_what_was_measured_is_told(columns: str, values: str) -> None:
    assert shown(columns, USED) == f"{values}\n"


@pytest.mark.parametrize(
    ("read", "told"),
    [(0, "0.00M"), (512 << 20, "512.00M"), (1536 << 20, "1.50G"), (3 << 40, "3.00T")],
)
def test_bytes_are_told_in_the_largest_unit_from_mebibytes_on(read: int, told: str) -> None:
    assert shown("AveDiskRead", replace(USED, read=read)) == f"{told}\n"


def test_of_a_step_at_whose_processes_nobody_looked_only_energy_and_memory_are_told() -> None:
    columns = "AveDiskRead,MaxPages,MaxVMSizeNode,TRESUsageInTot,TRESUsageOutTot,TRESUsageOutMax"
    found = shown(columns, Usage(user_us=3_000_000, max_rss_kib=4952))
    assert found == "|||cpu=00:00:03,energy=0,mem=4952K|energy=0|\n"
