"""Several tasks as one for programs: SkyPilot's `Dag`, a pipeline or a group."""

import threading
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Generic, TypeVar

from broker.model.errors import Refused

T = TypeVar("T")
Json = dict[str, Any]
NO_CHAIN = "a dag is a chain of tasks, one after the other, or a group of which all begin together"


class DagExecution(StrEnum):
    """How the tasks of one run."""

    SERIAL = "serial"
    PARALLEL = "parallel"


class _Entered(threading.local):
    """The dags whose `with` a thread is in; the last one takes the tasks that are made."""

    def __init__(self) -> None:
        self.dags: list[Dag[Any]] = []


class Dag(Generic[T]):
    """Tasks one after the other, or with `DagExecution.PARALLEL` all at once.

    Within `with Dag() as dag:` each task that is made is its own, and `a >> b` their order.
    """

    def __init__(self) -> None:
        self.tasks: list[T] = []
        self.name: str | None = None
        self.execution: DagExecution | None = None
        self.primary_tasks: list[str] | None = None
        self.termination_delay: str | Mapping[str, str] | None = None
        self.inter_connection: bool | None = None
        self._edges: list[tuple[T, T]] = []

    def add(self, task: T) -> None:
        """One more, behind those there are."""
        self.tasks.append(task)

    def remove(self, task: T) -> None:
        """Without it. Raises Refused for a task that is not in it."""
        del self.tasks[self._place(task)]
        self._edges = [edge for edge in self._edges if not any(one is task for one in edge)]

    def add_edge(self, op1: T, op2: T) -> None:
        """The second waits for the first. Raises Refused for a task that is not in it."""
        for one in (op1, op2):
            self._place(one)
        self._edges.append((op1, op2))

    def _place(self, task: T) -> int:
        for number, one in enumerate(self.tasks):
            if one is task:
                return number
        raise Refused("this task is not in the dag", hint="dag.add(task)")

    def set_execution(self, execution: DagExecution) -> None:
        """One after the other, or all at once."""
        self.execution = DagExecution(execution)

    def is_job_group(self) -> bool:
        """Whether its tasks begin together."""
        return self.execution is DagExecution.PARALLEL

    def is_chain(self) -> bool:
        """Whether its tasks are one after the other; without edges they are as they were added."""
        return not self.is_job_group() and self._order() is not None

    def in_order(self) -> list[T]:
        """As they run. Raises Refused where that is neither a chain nor a group."""
        order = self._order()
        if order is None or (self._edges and self.is_job_group()):
            raise Refused(NO_CHAIN)
        return [self.tasks[number] for number in order]

    def _order(self) -> list[int] | None:
        """None where the edges make no chain of all."""
        if not self._edges:
            return list(range(len(self.tasks)))
        edges = {(self._place(one), self._place(other)) for one, other in self._edges}
        after = dict(edges)
        begins = set(after) - set(after.values())
        forked = len({*after.values()}) < len(edges) or len(after) < len(edges)
        if forked or len(begins) != 1:
            return None
        order = [*begins]
        while order[-1] in after:
            order.append(after[order[-1]])
        return order if len(order) == len(self.tasks) else None

    def header(self) -> Json:
        """What stands before several tasks of a file; empty for one task."""
        told = ("name", "execution", "primary_tasks", "termination_delay", "inter_connection")
        found = {key: value for key in told if (value := getattr(self, key)) is not None}
        return {key: str(v) if key == "execution" else v for key, v in found.items()}

    def __len__(self) -> int:
        return len(self.tasks)

    def __enter__(self) -> "Dag[T]":
        _ENTERED.dags.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _ENTERED.dags.pop()


_ENTERED = _Entered()


def current() -> Dag[Any] | None:
    """The innermost whose `with` this thread is in."""
    return _ENTERED.dags[-1] if _ENTERED.dags else None
