"""The jobs of the recorded `history` scene, as records."""

# ruff: noqa: E501 - a row stays on one line

from accounting.tres import Tres
from broker.model.job import ArrayPlace, ExitCode, Hold, Job, JobState, Step, StepState, Usage
from tests.unit.gateway.query.records import BOB, NOON, ended, pending, running

USED = Usage(user_us=12_000, system_us=9_000)


def step(
    name: str,
    state: StepState = StepState.COMPLETED,
    code: ExitCode = ExitCode(),
    number: str = "batch",
) -> Step:
    return Step(
        number,  # type: ignore[arg-type]
        name,
        state,
        started=NOON - 30,
        ended=NOON - 10,
        exit=code,
        usage=USED,
    )


def failed(code: int, signal: int = 0) -> dict[str, object]:
    """Keywords of a job that failed, with its batch step."""
    exit_code = ExitCode(code, signal)
    state = StepState.CANCELLED if signal else StepState.FAILED
    return {"exit": exit_code, "steps": (step("batch", state, exit_code),)}


def array(
    task: int | None, *, base: int = 700005, waiting: tuple[int, ...] = (), limit: int | None = None
) -> ArrayPlace:
    return ArrayPlace(base, task, waiting, limit=limit)  # type: ignore[arg-type]


def history() -> list[Job]:
    """J0 to J12."""
    gpus = Tres(1, 1024, 1, (("gpu", 2), ("gpu:a10g", 2)))
    return [
        ended(
            700001,
            want=Tres(2, 100, 1),
            steps=(step("batch"), step("hostname", number="0"), step("second", number="1")),
            spec={
                "name": "good",
                "comment": "cc",
                "resources": {"mem_per_node_mib": 100, "tasks": 2},
                "submit_line": "sbatch -J good -n 2 --mem=100 --comment=cc --wrap srun hostname; srun -J second sleep 1",
            },
        ),
        ended(
            700002,
            JobState.FAILED,
            **failed(3),
            spec={"name": "bad3", "submit_line": "sbatch -J bad3 --wrap exit 3"},
        ),
        ended(700003, JobState.FAILED, **failed(0, 9), spec={"name": "sig9"}),
        ended(
            700004,
            JobState.FAILED,
            owner=BOB,
            account="chem",
            exit=ExitCode(1),
            steps=(
                step("batch", StepState.FAILED, ExitCode(1)),
                step("false", StepState.FAILED, ExitCode(1), "0"),
            ),
            spec={"name": "bobs"},
        ),
        ended(700006, array=array(1), steps=(step("batch"),), spec={"name": "arr"}),
        ended(700007, JobState.FAILED, array=array(2), **failed(1), spec={"name": "arr"}),
        ended(700005, JobState.FAILED, array=array(3), **failed(2), spec={"name": "arr"}),
        ended(
            700008,
            account="chem",
            want=gpus,
            steps=(step("batch"), step("true", number="0")),
            spec={
                "name": "gpus",
                "submit_line": "sbatch -J gpus --gres=gpu:a10g:2 -A chem --wrap srun true",
            },
        ),
        ended(700009, qos="short", time_limit=60, steps=(step("batch"),), spec={"name": "short"}),
        pending(
            700010,
            state=JobState.CANCELLED,
            ended=NOON - 10,
            ended_by=2001,
            eligible=None,
            priority=0,
            hold=Hold.USER,
            spec={"name": "held", "submit_line": "sbatch -J held -H --wrap true; scancel"},
        ),
        pending(
            700011,
            eligible=None,
            hold=Hold.USER,
            priority=0,
            reason="JobHeldUser",
            time_limit=1200,
            array=array(None, base=700011, waiting=(1, 2, 3, 4), limit=2),
            spec={"name": "pend"},
        ),
        running(700012, started=NOON - 5, spec={"name": "running"}),
        ended(
            700013,
            JobState.CANCELLED,
            ended_by=2001,
            exit=ExitCode(0, 15),
            steps=(step("batch", StepState.CANCELLED, ExitCode(0, 15)),),
            spec={"name": "cancelled"},
        ),
    ]
