"""What steps over several components of a heterogeneous job are told of each other."""

from collections.abc import Sequence
from dataclasses import replace

from accounting.ids import JobId
from accounting.tres import Tres
from broker.model.ids import NodeName
from broker.model.job import HetPlace, Job, Share
from broker.model.spec import Resources, StepSpec
from broker.schedule.parts import alone
from gateway.translate.gangenv import gang_allocation, gang_parts, gang_variables
from tests.unit.gateway.query.records import SITE, running


def component(offset: int, *nodes: str, tasks: int) -> Job:
    found = running(
        nodes=nodes,
        het=HetPlace(base=JobId(700001), offset=offset, size=2),
        spec={"batch": None, "resources": {"tasks": tasks}},
        shares=tuple(Share(NodeName(node), 0, Tres(cpu=4, node=1)) for node in nodes),
    )
    return replace(found, id=JobId(700001 + offset))


def placed(job: Job, **spec: int) -> tuple[Job, Sequence[Share]]:
    return job, alone(job, StepSpec.model_validate({"name": "a", **spec}))


FIRST, SECOND = component(0, "ec2-3", tasks=1), component(1, "ec2-1", "ec2-2", tasks=3)


def test_ranks_nodes_and_counts_run_through_the_components_in_their_order() -> None:
    steps = [
        placed(SECOND, tasks=3, nodes=2),
        placed(FIRST, tasks=1, nodes=1),
    ]
    parts = gang_parts(steps)
    assert (parts[FIRST.id].first_rank, parts[SECOND.id].first_rank) == (0, 1)
    told = gang_variables(parts[SECOND.id], 1)
    assert {name: told[name] for name in ("SLURM_JOB_ID", "SLURM_NTASKS", "SLURM_NODEID")} == {
        "SLURM_JOB_ID": "700001",
        "SLURM_NTASKS": "4",
        "SLURM_NODEID": "2",
    }
    assert told["SLURM_STEP_NODELIST"] == "ec2-[1-3]"
    assert told["SLURM_TASKS_PER_NODE"] == "1,2,1"


def test_one_component_alone_counts_itself_and_has_the_leaders_id() -> None:
    (part,) = gang_parts([placed(SECOND, tasks=2, nodes=1)]).values()
    told = gang_variables(part, 0)
    assert (told["SLURM_JOB_ID"], told["SLURM_NTASKS"], told["SLURM_NODEID"]) == (
        "700001",
        "2",
        "0",
    )


def test_a_component_counts_its_tasks_on_the_nodes_that_they_will_run_on() -> None:
    lean = replace(
        SECOND,
        shares=tuple(
            replace(share, tres=Tres(cpu=cpu, node=1))
            for share, cpu in zip(SECOND.shares, (1, 3), strict=True)
        ),
    )
    (part,) = gang_parts([placed(lean, tasks=4, nodes=2)]).values()
    assert (part.nodes, part.tasks_per_node) == (("ec2-1", "ec2-2"), (1, 3))
    (part,) = gang_parts([placed(SECOND, tasks=1, nodes=1, relative=1)]).values()
    assert part.nodes == ("ec2-2",)


def test_an_allocation_tells_of_each_component_under_both_words() -> None:
    told = gang_allocation([FIRST, SECOND], SITE, "login")
    for word in ("HET", "PACK"):
        assert told[f"SLURM_{word}_SIZE"] == "2"
        assert told[f"SLURM_JOB_ID_{word}_GROUP_1"] == "700002"
        assert told[f"SLURM_JOB_NODELIST_{word}_GROUP_1"] == "ec2-[1-2]"
    assert (told["SLURM_JOB_ID"], told["SLURM_NTASKS"]) == ("700001", "4")
    assert told["SLURM_SUBMIT_HOST"] == "login"
    assert "SLURM_JOB_NODELIST" not in told


def test_tasks_of_all_are_told_where_each_component_asked_for_them() -> None:
    plain = replace(SECOND, spec=FIRST.spec.model_copy(update={"resources": Resources()}))
    for jobs, tasks in (([FIRST, SECOND], "4"), ([FIRST, plain], None), ([plain, FIRST], None)):
        told = gang_allocation(jobs, SITE, "login")
        assert (told.get("SLURM_NTASKS"), told.get("SLURM_NPROCS")) == (tasks, tasks)
