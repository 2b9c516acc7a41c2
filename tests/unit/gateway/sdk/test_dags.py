"""Several tasks for programs: chains in their order, groups, and what is neither."""

import pytest

from broker.model.errors import Refused
from gateway.sdk.dags import Dag, DagExecution
from gateway.sdk.sky import body_of
from gateway.sdk.tasks import Task
from gateway.translate.skypilot import read_file


def dag_of(*edges: str, names: str = "abc") -> Dag[Task]:
    with Dag[Task]() as dag:
        tasks = {name: Task(name, run="x") for name in names}
        for edge in edges:
            tasks[edge[0]] >> tasks[edge[1]]
    Task("outside", run="x")
    return dag


@pytest.mark.parametrize(
    ("edges", "order"),
    [([], "abc"), (["ab", "bc"], "abc"), (["bc", "ca"], "bca"), (["cb", "ba", "cb"], "cba")],
)
def test_tasks_of_a_chain_run_in_its_order(edges: list[str], order: str) -> None:
    dag = dag_of(*edges)
    assert (len(dag), dag.is_chain(), dag.is_job_group()) == (3, True, False)
    assert "".join(str(one.name) for one in dag.in_order()) == order


@pytest.mark.parametrize(
    "edges",
    [["ab"], ["ab", "ac"], ["ac", "bc"], ["ab", "bc", "ca"], ["ab", "bc", "cb"], ["aa", "bc"]],
)
def test_what_is_no_chain_is_refused(edges: list[str]) -> None:
    dag = dag_of(*edges)
    assert not dag.is_chain()
    with pytest.raises(Refused, match="a chain of tasks"):
        dag.in_order()


def test_a_group_has_no_order() -> None:
    dag = dag_of("ab", "bc")
    dag.set_execution(DagExecution.PARALLEL)
    with pytest.raises(Refused):
        dag.in_order()


def test_tasks_that_are_taken_out_take_their_edges_along() -> None:
    dag = dag_of("ab", "bc")
    dag.remove(dag.tasks[2])
    assert [one.name for one in dag.in_order()] == ["a", "b"]
    with pytest.raises(Refused, match="not in the dag"):
        dag.remove(Task("d", run="x"))
    with pytest.raises(Refused, match=">> stands in a dag"):
        dag.tasks[0] >> dag.tasks[1]


def test_a_dag_is_the_file_of_its_tasks() -> None:
    dag = dag_of()
    dag.name, dag.primary_tasks = "rl", ["a"]
    dag.set_execution(DagExecution.PARALLEL)
    file = read_file(body_of(dag)["task"])
    assert [one.name for one in file.tasks] == ["a", "b", "c"]
    assert (file.kind, file.header.name, file.header.primary) == ("group", "rl", ("a",))
    assert read_file(body_of(dag_of(names="a"))["task"]).tasks[0].name == "a"
