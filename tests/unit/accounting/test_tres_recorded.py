"""TRES texts and billing against everything that a real Slurm 25.11.7 printed."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from accounting.tres import Tres, billing, by_id, by_name, parse_weights

SCONTROL = re.compile(r"(?:Req|Alloc|Cfg)TRES=((?:cpu|mem)=[^\s\\]+)")
SACCT = re.compile(r"billing=\d+,cpu=\d+,[^\s\\|\"]*mem=[\d.]+[MGT],node=\d+")
MIB = {"M": 1, "G": 1024, "T": 1024**2}
SITE = parse_weights("CPU=1.0,Mem=0.25G,GRES/gpu=4.0")


def recorded(shared: Path, pattern: re.Pattern[str]) -> set[str]:
    files = sorted((shared / "conformance" / "golden").glob("*.json"))
    return {text for file in files for text in texts(file, pattern)}


def texts(file: Path, pattern: re.Pattern[str]) -> Iterator[str]:
    for line in json.dumps(json.loads(file.read_text())).split('"'):
        yield from pattern.findall(line)


def read(text: str) -> tuple[Tres, int | None]:
    counts = dict(part.split("=") for part in text.split(","))
    memory = counts.get("mem", "0M")
    gres = ((name[5:], int(count)) for name, count in counts.items() if name.startswith("gres/"))
    tres = Tres(
        cpu=int(counts.get("cpu", 0)),
        mem_mib=int(float(memory[:-1]) * MIB[memory[-1]]),
        node=int(counts.get("node", 0)),
        gres=tuple(sorted(gres)),
    )
    return tres, int(counts["billing"]) if "billing" in counts else None


def test_scontrol_and_sacct_texts_are_printed_as_recorded(shared):
    for pattern, form in ((SCONTROL, by_id), (SACCT, by_name)):
        found = recorded(shared, pattern)
        assert len(found) > 5
        assert {text: form(*read(text)) for text in found} == {text: text for text in found}


def test_billing_is_as_recorded_with_the_sites_weights_or_without_any(shared):
    for text in recorded(shared, SCONTROL):
        tres, units = read(text)
        if units is not None:
            assert units in {billing(tres, SITE), billing(tres, None)}, text
