"""What tasks would be bought as, under SkyPilot's names: `optimize` and what it chooses."""

from dataclasses import dataclass
from enum import StrEnum

from accounting.rates import MICRO
from gateway.sdk.asked import RequestId
from gateway.sdk.client import Json
from gateway.sdk.dags import Dag
from gateway.sdk.sky import body_of, ignored, service
from gateway.sdk.tasks import Resources, Task

HOUR = 3600


class OptimizeTarget(StrEnum):
    """What is to be little; one hour is expected of every task, so both choose the same."""

    COST = "cost"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Chosen(Resources):
    """One type in one place, at what an hour of it costs."""

    dollars_an_hour: float = 0.0

    def get_cost(self, seconds: float) -> float:
        """Dollars, of one machine."""
        return self.dollars_an_hour * seconds / HOUR

    def to_yaml_config(self) -> Json:
        """As a task file has it."""
        told = Resources.to_yaml_config(self)
        del told["dollars_an_hour"]
        return told


def optimize(
    dag: Dag[Task] | Task, minimize: OptimizeTarget = OptimizeTarget.COST
) -> RequestId[Dag[Task]]:
    """The dag, of which each task has as `best_resources` what it would be bought as now.

    Nothing is bought. Raises BadSpec, and Told for a task that no offer serves.
    """
    ignored(minimize=minimize is OptimizeTarget.TIME)
    whole = dag if isinstance(dag, Dag) else Dag[Task]()
    if isinstance(dag, Task):
        whole.add(dag)
    for task in whole.tasks:
        task.best_resources = _best(task)
    return RequestId.done(whole)


def _best(task: Task) -> Chosen:
    body = body_of(task) | {"count": 1}
    (best,) = service().post("/v1/offers", body)["offers"]
    place = "/".join(["aws", best["region"], *best["zones"][:1]])
    return Chosen(
        infra=place,
        instance_type=best["instance_type"],
        cpus=best["cpus"],
        memory=best["mem_mib"] / 1024,
        accelerators=best["gpus"],
        use_spot=best["market"] == "spot",
        dollars_an_hour=best["micro_usd_per_hour"] / MICRO,
    )
