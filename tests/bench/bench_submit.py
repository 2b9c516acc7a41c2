"""Submissions through the raw socket and 10,000 pending jobs: `name value unit budget ok|OVER`.

Run alone with `.venv/bin/python tests/bench/bench_submit.py`.
"""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.bench_shim import ROUNDS
from tests.bench.running import BARE, Running, report, service, whole_process_ms

CLIENTS = 8
SUBMISSIONS = 1000
BATCHES = 10
PENDING = BATCHES * SUBMISSIONS
ENVIRONMENT_BYTES = 10 << 10
LEAST_RATE = 600
MOST_MEMORY_MIB = 250
LISTING_RATIO = 5.0
VARIABLES = [b"VARIABLE_%03d=%b" % (n, b"x" * 88) for n in range(ENVIRONMENT_BYTES // 101)]


def terminated(*fields: bytes) -> bytes:
    """Each with the NUL that ends it."""
    return b"".join(field + b"\0" for field in fields)


ARGV = (b"-H", b"--wrap", b"true")
TAIL = terminated(b"sbatch", b"/tmp", b"22", b"", b"", b"%d" % len(ARGV), *ARGV)
TAIL += terminated(b"%d" % len(VARIABLES), *VARIABLES, b"0")
HEAD = b"POST /x/sbatch HTTP/1.0\r\nContent-Length: %d\r\n\r\n"


def request(tail: bytes) -> bytes:
    """One submission as the shim sends it, with a request id of its own."""
    body = terminated(b"1", os.urandom(16).hex().encode()) + tail
    return HEAD % len(body) + body


def submit(address: str, tail: bytes = TAIL) -> bytes:
    """The whole reply to one submission; `tail` is its envelope behind the request id."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        connection.sendall(request(tail))
        return b"".join(iter(lambda: connection.recv(65536), b""))


def client(address: str, count: int) -> None:
    """Says it is ready, waits for a line, submits `count` jobs, says how many got an id."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    done = sum(b"Submitted batch job " in submit(address) for _ in range(count))
    sys.stdout.write(f"{done}\n")


def submit_all(running: Running, count: int) -> float:
    """Seconds that `count` submissions take, by processes that do not wait for each other."""
    argv = [sys.executable, __file__, str(running.socket), str(count // CLIENTS)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    clients = [subprocess.Popen(argv, text=True, bufsize=1, **pipes) for _ in range(CLIENTS)]
    for one in clients:
        one.stdout.readline()
    began = time.perf_counter()
    for one in clients:
        one.stdin.write("go\n")
    done = sum(int(one.stdout.readline()) for one in clients)
    took = time.perf_counter() - began
    for one in clients:
        one.communicate()
    if done != count // CLIENTS * CLIENTS:
        raise SystemExit(f"of {count} submissions {done} got an id")
    return took


def listings(running: Running) -> list[bool]:
    """squeue of all of them, right after a change, and once more; a bare interpreter in between."""
    squeue = [str(running.bin / "squeue")]
    listed = subprocess.run(squeue, env={}, capture_output=True, check=True).stdout.count(b"\n")
    if listed < PENDING:
        raise SystemExit(f"squeue lists {listed} lines")
    bare, changed, again = [], [], []
    for _ in range(ROUNDS):
        bare.append(whole_process_ms(BARE))
        submit(str(running.socket))
        changed.append(whole_process_ms(squeue))
        again.append(whole_process_ms(squeue))
    ratios = {
        "squeue-10000-to-bare": median(again) / median(bare),
        "squeue-10000-changed-to-bare": median(changed) / median(bare),
    }
    return [report(n, r, unit="ratio", budget=LISTING_RATIO) for n, r in ratios.items()]


def rates(running: Running) -> bool:
    """Submissions a second: the median of the batches that fill the queue."""
    submit_all(running, 80)
    took = median(submit_all(running, SUBMISSIONS) for _ in range(BATCHES))
    return report("submit-rate", SUBMISSIONS / took, unit="1/s", budget=LEAST_RATE, least=True)


def main() -> int:
    with service() as running:
        fine = [rates(running)]
        fine += listings(running)
        memory = running.rss_mib()
        fine.append(report("service-memory", memory, unit="MiB", budget=MOST_MEMORY_MIB))
    return 0 if all(fine) else 1


if __name__ == "__main__":
    if len(sys.argv) == 3:
        client(sys.argv[1], int(sys.argv[2]))
    else:
        sys.exit(main())
