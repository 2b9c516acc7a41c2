"""Steps in containers, on a service whose node has a runtime that only tells what it was asked."""

import pytest

from tests.e2e.service import CONFIG, Service, script

pytestmark = pytest.mark.e2e
RUNTIME = """#!/bin/sh
[ "$1" = run ] || exit 0
printf '<%s>\\n' "$@"
"""
INSIDE = """#!/bin/sh
[ "$1" = run ] || exit 0
while [ "$1" != --entrypoint ]; do shift; done
shift 3
exec "$@"
"""


@pytest.fixture(scope="module")
def config() -> str:
    return CONFIG + "containers: true\n"


def test_a_batch_script_runs_by_the_nodes_runtime_and_no_shell_reads_its_words(
    served: Service,
) -> None:
    script(served.work, "podman", RUNTIME)
    path = {"PATH": f"{served.work}:/usr/bin:/bin"}
    words = ["--container-image=x#a/b:1", "--container-mounts=/a b:/$(touch y)"]
    job = served.wrap("true", *words, env=path)
    served.wait(job, "COMPLETED")
    said = served.file(f"slurm-{job}.out").splitlines()
    assert said[0] == "<run>"
    assert "</a b:/$(touch y)>" in said
    assert f"{job}.1.batch/slurm_script>" in said[-1], "the script is the last word"
    assert "<x/a/b:1>" in said
    assert not (served.work / "y").exists()


def test_exit_codes_and_output_pass_through(served: Service) -> None:
    script(served.work, "podman", INSIDE)
    path = {"PATH": f"{served.work}:/usr/bin:/bin"}
    argv = ("srun", "-n2", "-l", "--container-image=x", "sh", "-c", "echo in; exit 3")
    ran = served.run(*argv, env=path)
    assert sorted(ran.out.splitlines()) == ["0: in", "1: in"]
    assert ran.code == 3


def test_a_node_without_a_runtime_says_which_it_could_use(served: Service) -> None:
    (served.work / "podman").unlink(missing_ok=True)
    ran = served.run("srun", "--container-image=./x.sqsh", "true", env={"PATH": "/usr/bin:/bin"})
    assert ran.code == 1
    assert "container: ./x.sqsh" in ran.err
