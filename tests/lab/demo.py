"""What `make demo-ec2` runs: the demo of `make demo` through boto3 and SSH, on the cloud in a box.

Exits 1 if anything did not do what it prints, or if the bill of the box is not what jobs cost.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from tests.lab.host import NO_SSHD, SSHD
from tests.lab.running import CREDENTIALS, Running, running

DEMO = Path(__file__).parents[2] / "docs" / "examples" / "demo.py"
CONFIG = """\
partitions:
  - name: ec2
    default: true
    def_mem_per_cpu: 1024
    elastic: {provider: ec2, idle_seconds: 3}
"""


def config(lab: Running) -> str:
    """A service's, whose EC2 is the box."""
    return CONFIG + lab.aws()


def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", DEMO)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> int:
    if not SSHD:
        print(NO_SSHD, file=sys.stderr)
        return 1
    with running("--speed", "10") as lab:
        code = int(demo().main(config(lab), CREDENTIALS))
        left = lab.living()
        bill = lab.get("bill")
    print(f"The box had {len(bill['lines'])} machines, and bills ${bill['micro_usd'] / 1e6:.6f}.")
    if left:
        print(f"WRONG: {len(left)} machines are left", file=sys.stderr)
    return code or int(bool(left))


if __name__ == "__main__":
    sys.exit(main())
