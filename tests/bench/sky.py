"""spz beside the real SkyPilot in one run: `name value unit budget ok|OVER`, ratios and seconds.

sky.py [--venv DIR] [--runs N]

SkyPilot (`skypilot[aws]`) goes into an environment of its own in a temporary folder; where it
cannot be installed one line says so and nothing is measured. It has its own API server up, our
prices as its catalog and a stand-in for AWS; ours has its service up. Whole processes, in turn,
medians. Before each figure a line that begins with `#` tells both times. It takes some minutes.
"""

import argparse
import csv
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import boto3

sys.path.insert(0, str(Path(__file__).parents[2]))

from broker.model.offer import Market, Offer
from broker.optimize.bundled import bundled
from tests.bench.running import report, service

PACKAGE = "skypilot[aws]"
MOST = 0.15
"""Of SkyPilot's time."""
MOST_SECONDS = 0.4
INSTALL_SECONDS = 900.0
PATIENCE = 180.0
TASK = "resources: {infra: aws, cpus: 4+}\nrun: echo x\n"
PAIRS = (
    ("help", ("--help",), ("--help",)),
    ("status", ("status",), ("status",)),
    ("queue", ("queue",), ("queue",)),
    ("gpus-list", ("gpus", "list", "--infra", "aws"), ("gpus", "list", "--infra", "aws")),
    (
        "launch-dryrun",
        ("launch", "--dryrun", "-y", "t.yaml"),
        ("launch", "--dryrun", "-y", "t.yaml"),
    ),
)
"""Name, what SkyPilot is asked, what ours is asked."""
COLUMNS = (
    *("InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "GpuInfo"),
    *("Price", "SpotPrice", "Region", "AvailabilityZone", "Arch"),
)


@dataclass(frozen=True, slots=True)
class Side:
    """A command in its own home."""

    program: Path
    environ: Mapping[str, str]
    home: Path

    def run(self, argv: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [self.program, *argv],
            env=dict(self.environ),
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=PATIENCE,
        )

    def seconds(self, argv: Sequence[str]) -> float:
        """Start to exit. Raises RuntimeError with its words if it fails."""
        began = time.perf_counter()
        done = self.run(argv)
        took = time.perf_counter() - began
        if done.returncode != 0:
            said = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
            raise RuntimeError(f"{self.program.name} {' '.join(argv)}: {said[-300:]}")
        return took


def installed(folder: Path) -> Path:
    """SkyPilot's command in an environment made there. Raises RuntimeError with pip's words."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    done = subprocess.run(
        [folder / "bin" / "pip", "install", "-q", "--disable-pip-version-check", PACKAGE],
        capture_output=True,
        text=True,
        check=False,
        timeout=INSTALL_SECONDS,
    )
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip() or "pip failed").splitlines()[-1])
    return folder / "bin" / "sky"


# --- SkyPilot's side


@contextmanager
def sky_side(program: Path, folder: Path) -> Iterator[Side]:
    """With its server up, in a home of its own."""
    home = folder / "sky"
    home.mkdir()
    (home / "t.yaml").write_text(TASK, encoding="ascii")
    with stand_in() as endpoint:
        side = Side(program, _environ(program, home, endpoint), home)
        catalogs = home / ".sky" / "catalogs" / "v8" / "aws"
        write_catalog(catalogs / "vms.csv")
        write_images(catalogs / "images.csv", some_image(endpoint))
        try:
            side.run(["api", "start"])
            side.run(["check", "aws"])
            yield side
        finally:
            side.run(["api", "stop"])


def _environ(program: Path, home: Path, endpoint: str) -> dict[str, str]:
    (home / ".aws").mkdir()
    (home / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id = bench\naws_secret_access_key = bench\n", encoding="ascii"
    )
    return {
        "HOME": str(home),
        "PATH": f"{program.parent}:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "SKYPILOT_DISABLE_USAGE_COLLECTION": "1",
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_DEFAULT_REGION": "us-east-1",
    }


@contextmanager
def stand_in() -> Iterator[str]:
    """A stand-in for AWS that answers who asks and which zones there are."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [Path(sys.executable).parent / "moto_server", "-p", str(port)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        with socket.socket() as knock:
            if knock.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError("the stand-in for AWS did not come up")


def write_catalog(path: Path) -> None:
    """Our prices in SkyPilot's form, so that both look for the same in the same."""
    path.parent.mkdir(parents=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for offer in bundled():
            if offer.market is Market.ON_DEMAND:
                writer.writerows(_rows(offer))


TAGS = ("cpu-ubuntu", "gpu-ubuntu", "gpu-ubuntu-2004", "custom-cpu-ubuntu", "custom-gpu-ubuntu")
IMAGE_COLUMNS = ("Tag", "Region", "OS", "OSVersion", "ImageId", "CreationDate")


def some_image(endpoint: str) -> str:
    """One that the stand-in knows."""
    ec2 = boto3.client(
        "ec2",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="bench",
        aws_secret_access_key="bench",
    )
    return str(ec2.describe_images()["Images"][0]["ImageId"])


def write_images(path: Path, image: str) -> None:
    """An image for every tag that SkyPilot may look for, in every region."""
    regions = sorted({offer.region for offer in bundled()})
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(IMAGE_COLUMNS)
        for region in regions:
            for tag in (*TAGS, *(f"{tag}-arm64" for tag in TAGS)):
                found = (f"skypilot:{tag}", region, "ubuntu", "22.04", image)
                writer.writerow((*found, "20250101"))


def _rows(offer: Offer) -> Iterator[tuple[object, ...]]:
    gpu = next(
        ((name[4:], count) for name, count in offer.gres if name.startswith("gpu:")), ("", "")
    )
    price = offer.micro_usd_per_hour / 1e6
    for zone in offer.zones:
        yield (
            *(offer.instance_type, gpu[0].upper(), gpu[1], offer.cpus, offer.mem_mib / 1024, ""),
            *(price, "", offer.region, zone, "x86_64"),
        )


# --- both


def compare(ours: Side, theirs: Side, asked: argparse.Namespace) -> bool:
    """Whether every figure is within its budget."""
    fine, runs = True, asked.runs
    for name, sky, spz in PAIRS:
        if asked.only and name not in asked.only:
            continue
        try:
            theirs.seconds(sky)
            ours.seconds(spz)
            pairs = [(theirs.seconds(sky), ours.seconds(spz)) for _ in range(runs)]
        except RuntimeError as error:
            sys.stdout.write(f"# SKIP {name}: {error}\n")
            continue
        real, own = (median(column) for column in zip(*pairs, strict=True))
        sys.stdout.write(f"# {name}: sky {real:.2f} s, spz {own:.3f} s\n")
        fine &= report(f"{name}-ratio", own / real, unit="ratio", budget=MOST)
        fine &= report(f"{name}-time", own, unit="s", budget=MOST_SECONDS)
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(description="spz beside the real SkyPilot")
    parser.add_argument("--venv", type=Path, help="an environment that has it already")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", nargs="*", help="figures by name; absent: all")
    asked = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spz-sky-")))
        try:
            program = asked.venv / "bin" / "sky" if asked.venv else installed(folder / "venv")
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            sys.stdout.write(f"SKIP: {PACKAGE} cannot be installed here: {error}\n")
            return 0
        running = stack.enter_context(service())
        ours = Side(Path(sys.executable).parent / "spz", _own(running.socket, folder), folder)
        (folder / "t.yaml").write_text(TASK, encoding="ascii")
        theirs = stack.enter_context(sky_side(program, folder))
        return 0 if compare(ours, theirs, asked) else 1


def _own(where: Path, home: Path) -> dict[str, str]:
    path = f"{os.defpath}:{Path(sys.executable).parent}"
    return {"HOME": str(home), "PATH": path, "SKYPURZA_SOCKET": str(where), "LANG": "C.UTF-8"}


if __name__ == "__main__":
    sys.exit(main())
