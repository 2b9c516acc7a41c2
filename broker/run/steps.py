"""Steps on nodes: started, signalled, ended, followed; each call may be repeated."""

from collections.abc import Sequence
from typing import Protocol

from broker.model import effects as ef
from broker.model.commands import Journal, SignalDone, StepRefused, StepTaken
from broker.model.errors import Unknown
from broker.model.ids import StepId, attempt_key, step_key
from broker.model.job import Job
from broker.model.node import Node
from broker.ports import Place, Reach
from broker.run import launch
from broker.run.bootstrap import bring_up

ASK_SECONDS = 10.0
SIGKILL = 9


class Orders(Protocol):
    """What the agent is told about a step; built above the broker, where dialects are known."""

    def order(
        self, job: Job, step: StepId, node: Node, *, gang: Sequence[Job] = ()
    ) -> launch.StepOrder:
        """Raises Unknown if a blob is missing."""
        ...


def start(effect: ef.StartStep, reach: Reach, orders: Orders) -> StepTaken | StepRefused:
    """Raises OSError if the node cannot be reached: the effect stays due."""
    key = step_key(effect.job.id, effect.job.attempt, effect.step)
    try:
        order = orders.order(effect.job, effect.step, effect.node, gang=effect.gang)
    except Unknown as error:
        return StepRefused(key=key, message=error.message)
    node = effect.node
    answer = _ask_living(node, reach.place(node), launch.start(key, order))
    if answer.get("ok") is True:
        return StepTaken(key=key)
    message = str(answer.get("error") or answer)
    if answer.get("refused"):
        return StepRefused(key=key, message=message)
    raise OSError(f"{effect.node.name} cannot take {key} now: {message}")


def kill(effect: ef.Kill, reach: Reach, *, grace: int) -> None:
    """Asked of every node of the job; the journals' `gone` tell when nothing is left."""
    job = effect.job
    for node in effect.nodes:
        request = launch.kill(job.key, grace=grace, cause=job.kill_cause)
        _ask_living(node, reach.place(node), request)


def kill_step(effect: ef.KillStep, reach: Reach) -> None:
    """By SIGKILL at once, as `scancel` of a step does."""
    key = step_key(effect.job.id, effect.job.attempt, effect.step)
    found = effect.job.step(effect.step)
    cause = found.kill_cause if found else ""
    request = launch.kill_step(key, grace=0, cause=cause, number=SIGKILL)
    _ask_living(effect.node, reach.place(effect.node), request)


def signal(effect: ef.SendSignal, reach: Reach) -> SignalDone:
    """To one step, or to every step of the attempt that lives on the node."""
    sent = effect.signal
    attempt = attempt_key(effect.job, effect.attempt)
    wanted = attempt if sent.step is None else step_key(effect.job, effect.attempt, sent.step)
    request = launch.signal(wanted, sent.number, sent.scope)
    _ask(reach.place(effect.node), request)
    return SignalDone(job=effect.job, attempt=effect.attempt, serial=sent.serial)


def follow(effect: ef.Follow, reach: Reach) -> Journal | None:
    """What the node's journal says beyond what the store has; None if nothing new."""
    node = effect.node
    place = reach.place(node)
    if effect.check:
        bring_up(node, place)
    data = place.channel.read(f"{place.folder}/journal", node.journal)
    found, length = launch.records(data)
    if not found:
        return None
    return Journal(
        node=node.name,
        launch=node.launch,
        start=node.journal,
        position=node.journal + length,
        records=found,
    )


def _ask_living(node: Node, place: Place, request: bytes) -> dict[str, object]:
    """An agent that left for want of work, or died, is started and asked again."""
    try:
        return _ask(place, request)
    except OSError:
        bring_up(node, place)
        return _ask(place, request)


def _ask(place: Place, request: bytes) -> "dict[str, object]":
    return dict(
        launch.reply(place.channel.ask(f"{place.folder}/agent.sock", request, timeout=ASK_SECONDS))
    )
