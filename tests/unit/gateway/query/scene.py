"""The jobs of the recorded `queue` scene, as records (the heterogeneous job aside)."""

from accounting.tres import Tres
from broker.model.job import ArrayPlace, ExitCode, Hold, Job, JobState, Step, StepState
from broker.model.spec import Dependency, DependencyKind
from tests.unit.gateway.query.records import BOB, NOON, ended, pending, running

GPU = Tres(1, 1024, 1, (("gpu", 1), ("gpu:a10g", 1)))


def queue() -> list[Job]:
    """J0 to J10 and the element that was split off, J13."""
    held = {"hold": Hold.USER, "priority": 0, "reason": "JobHeldUser", "eligible": None}
    gpu_steps = (
        Step("batch", "batch", StepState.RUNNING, started=NOON - 12),  # type: ignore[arg-type]
        Step("0", "sleep", StepState.RUNNING, started=NOON - 12),  # type: ignore[arg-type]
    )
    return [
        running(
            700001,
            want=Tres(1, 200, 1),
            time_limit=1800,
            started=NOON - 12,
            spec={
                "name": "run1",
                "comment": "cmt",
                "resources": {"mem_per_node_mib": 200},
                "submit_line": "sbatch -J run1 -t 30 --mem=200 --comment=cmt --wrap sleep 600",
            },
        ),
        running(
            700002,
            owner=BOB,
            account="chem",
            want=Tres(2, 2048, 1),
            time_limit=86400,
            priority=10700,
            started=NOON - 12,
            spec={"name": "run2", "cwd": "/home/bob/work", "resources": {"tasks": 2}},
        ),
        running(
            700003,
            account="chem",
            want=GPU,
            time_limit=7200,
            priority=10690,
            started=NOON - 12,
            steps=gpu_steps,
            spec={"name": "gpujob", "options": (("gres", "gpu:a10g:1"),)},
        ),
        pending(
            700004,
            **held,
            want=Tres(1, 1024, 2),
            spec={
                "name": "a-very-long-job-name-indeed",
                "resources": {"min_nodes": 2, "max_nodes": 3},
                "submit_line": "sbatch -J a-very-long-job-name-indeed -H -N 2-3 --wrap true",
            },
        ),
        pending(
            700005,
            want=Tres(8, 8192, 1),
            priority=10680,
            reason="BeginTime",
            spec={
                "name": "later",
                "begin": NOON + 36000,
                "resources": {"tasks": 4, "cpus_per_task": 2},
                "options": (("cpus-per-task", "2"),),
            },
        ),
        pending(
            700006,
            owner=BOB,
            account="chem",
            priority=10600,
            reason="Dependency",
            after=(Dependency(kind=DependencyKind.AFTEROK, job=700001),),
            spec={
                "name": "dep",
                "cwd": "/home/bob/work",
                "resources": {"constraint": "spot"},
            },
        ),
        pending(
            700007,
            **held,
            array=ArrayPlace(700007, None, (1, 2, 5, 6, 7, 8, 9, 10), limit=2),  # type: ignore[arg-type]
            spec={"name": "arr", "submit_line": "sbatch -J arr -H -a 1-10%2 --wrap true"},
        ),
        pending(
            700008,
            priority=10664,
            reason="JobArrayTaskLimit",
            array=ArrayPlace(700008, None, (2, 3), limit=1),  # type: ignore[arg-type]
            spec={"name": "arr2"},
        ),
        pending(
            700009,
            partitions=("debug", "ec2"),
            want=Tres(4, 16000, 4),
            time_limit=900,
            reason="Resources",
            spec={"name": "big", "resources": {"min_nodes": 4, "max_nodes": 4, "exclusive": True}},
        ),
        ended(700010, spec={"name": "done"}, last_node_names=("ec2-2",)),
        ended(
            700011,
            JobState.FAILED,
            reason="NonZeroExitCode",
            exit=ExitCode(3, 0),
            spec={"name": "failed"},
        ),
        running(
            700014,
            nodes=("ec2-2",),
            priority=10664,
            started=NOON - 7,
            array=ArrayPlace(700008, 1, limit=1),  # type: ignore[arg-type]
            spec={"name": "arr2"},
        ),
    ]
