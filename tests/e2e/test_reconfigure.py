"""The configuration file is read anew by scontrol reconfigure and by SIGHUP."""

import os
import signal
from pathlib import Path

import pytest

from tests.e2e.service import CONFIG, Preloaded, Service, service, until

pytestmark = pytest.mark.e2e
MORE = """
partitions:
  - {name: fresh, default: true, elastic: {max_nodes: 2}}
  - {name: other, elastic: {max_nodes: 2, name_prefix: other-}}
"""


def written(served: Service, text: str) -> Path:
    file = served.root / "config.yaml"
    file.write_text(text)
    return file


def partitions(served: Service) -> list[str]:
    return served.run("sinfo", "-h", "-o", "%R").out.split()


def with_partitions(more: str) -> str:
    """The usual configuration with other partitions."""
    head, _, rest = CONFIG.partition("partitions:")
    return head + more + "providers:" + rest.partition("providers:")[2]


def test_another_file_is_taken_without_a_restart_and_a_broken_one_is_not(
    preloaded: Preloaded,
) -> None:
    with service(preloaded) as served:
        before, pid = partitions(served), served.pid
        written(served, "partitions: [{name: 7\n")
        broken = served.run("scontrol", "reconfigure")
        assert broken.code == 1
        assert broken.err.startswith("slurm_reconfigure error:")
        file = written(served, "")
        emptied = served.run("scontrol", "reconfigure")
        assert emptied.err.startswith(f"slurm_reconfigure error:{file}: line 1: nothing is said")
        assert partitions(served) == before
        text = with_partitions("min_job_age: 200\nsubmit_host: elsewhere\n" + MORE)
        written(served, text)
        taken = served.run("scontrol", "reconfigure")
        assert (taken.code, taken.out) == (0, "")
        assert taken.err == (
            "scontrol: warning: submit_host is read at the start only: "
            "start the service again for it\n"
        )
        assert partitions(served) == ["fresh", "other"]
        assert "MinJobAge               = 200 sec" in served.run("scontrol", "show", "config").out
        written(served, text.replace("fresh", "third"))
        os.kill(served.pid, signal.SIGHUP)
        until(lambda: partitions(served) == ["third", "other"], "the new configuration")
        assert served.pid == pid
        drained = served.run("scontrol", "update", "partitionname=third", "state=drain")
        assert (drained.code, drained.err) == (0, "")
        refused = served.run("sbatch", "-p", "third", "--wrap", "true")
        assert refused.err.endswith("Required partition not available (inactive or drain)\n")
        served.restart()
        assert served.run("sinfo", "-h", "-o", "%R %a").out == "third drain\nother up\n"
        assert served.run("scontrol", "reconfigure").code == 0
        assert served.run("sinfo", "-h", "-o", "%R %a").out == "third up\nother up\n"
        job = served.wrap("true", "-p", "third", "-o", "out")
        served.wait(job, "COMPLETED")
