"""The commands as whole processes beside the bare interpreter: `name value unit budget ok|OVER`.

Medians of 50, interleaved. Run alone with `.venv/bin/python tests/bench/bench_shim.py`.
"""

import getpass
import sys
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.running import BARE, Running, report, service, whole_process_ms

ROUNDS = 50
WARM = 5
RATIO_BUDGET = 1.7


def measured(commands: dict[str, list[str]], rounds: int = ROUNDS) -> dict[str, float]:
    """Median milliseconds of each, one round of all after the other."""
    took: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(WARM + rounds):
        for name, argv in commands.items():
            value = whole_process_ms(argv)
            if number >= WARM:
                took[name].append(value)
    return {name: median(values) for name, values in took.items()}


def compared(running: Running) -> bool:
    """Prints the ratios; whether all are within their budgets."""
    user = getpass.getuser()
    times = measured(
        {
            "bare": BARE,
            "sbatch": [str(running.bin / "sbatch"), "--wrap", "true", "-H"],
            "squeue": [str(running.bin / "squeue"), "-u", user],
        }
    )
    bare = times.pop("bare")
    sys.stdout.write(f"# bare interpreter {bare:.2f} ms\n")
    ratios = {name: value / bare for name, value in times.items()}
    fine = [
        report(f"{name}-to-bare", ratio, unit="ratio", budget=RATIO_BUDGET)
        for name, ratio in ratios.items()
    ]
    return all(fine)


def main() -> int:
    with service() as running:
        return 0 if compared(running) else 1


if __name__ == "__main__":
    sys.exit(main())
