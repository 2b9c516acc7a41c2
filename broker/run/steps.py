"""Steps on nodes: started, signalled, ended, followed; each call may be repeated."""

import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from broker.model import effects as ef
from broker.model.errors import Unknown
from broker.model.ids import EXTERN, StepId, attempt_key, step_key
from broker.model.job import Job, JobState, Step
from broker.model.left import TAKEN
from broker.model.node import Node
from broker.model.reports import (
    Journal,
    JournalLost,
    LimitDone,
    NodeTrouble,
    NoticeDone,
    SignalDone,
    StepRefused,
    StepTaken,
)
from broker.model.spec import UNLIMITED
from broker.ports import Place, Reach
from broker.run import launch
from broker.run.bootstrap import bring_up
from broker.run.health import is_ours, same, trouble
from broker.run.pushed import Pushes
from broker.run.records import records

ASK_SECONDS = 10.0
SIGKILL, SIGTERM = 9, 15
NOTICE_GRACE = 75
"""Seconds at least that a job has when its machine is taken back; EC2 gives two minutes, of which
the rest is for what is copied behind it."""


class Orders(Protocol):
    """What the agent is told about a step; built above the broker, where dialects are known."""

    def order(
        self, job: Job, step: StepId, node: Node, *, gang: Sequence[Job] = ()
    ) -> launch.StepOrder:
        """Raises Unknown if a blob is missing."""
        ...

    def door(self, job: Job, node: Node) -> launch.StepOrder:
        """The step by which other nodes of the job come in there."""
        ...


def start(effect: ef.StartStep, reach: Reach, orders: Orders) -> StepTaken | StepRefused:
    """Raises OSError if the node cannot be reached: the effect stays due."""
    key = step_key(effect.job.id, effect.job.attempt, effect.step)
    try:
        order = orders.order(effect.job, effect.step, effect.node, gang=effect.gang)
    except Unknown as error:
        return StepRefused(key=key, message=error.message, node=effect.node.name)
    node = effect.node
    for other in effect.kin:
        _let_in(effect.job, other, orders.door(effect.job, other), place=reach.place(other))
    request = launch.dated(launch.start(key, order), time.time())
    answer = _ask_living(node, reach.place(node), request)
    if answer.get("ok") is True:
        return StepTaken(key=key)
    message = str(answer.get("error") or answer)
    if answer.get("refused"):
        return StepRefused(key=key, message=message, node=node.name)
    raise OSError(f"{effect.node.name} cannot take {key} now: {message}")


def _let_in(job: Job, node: Node, order: launch.StepOrder, *, place: Place) -> None:
    """Repeatable. An attempt that has ended there is refused, as its batch step will be."""
    key = step_key(job.id, job.attempt, EXTERN)
    answer = _ask_living(node, place, launch.start(key, order))
    if answer.get("ok") is not True and not answer.get("refused"):
        raise OSError(f"{node.name} cannot take {key} now: {answer.get('error')}")


def kill(effect: ef.Kill, reach: Reach, *, grace: int) -> None:
    """Asked of every node of the job; the journals' `gone` tell when nothing is left."""
    job = effect.job
    grace = max(grace, NOTICE_GRACE if job.kill_cause == TAKEN else job.spec.hook_seconds)
    for node in effect.nodes:
        request = launch.kill(job.key, grace=grace, cause=job.kill_cause)
        _ask_living(node, reach.place(node), request)


def kill_step(effect: ef.KillStep, reach: Reach, *, grace: int) -> None:
    """By SIGKILL at once, as `scancel` of a step does; after SIGTERM where another task failed."""
    key = step_key(effect.job.id, effect.job.attempt, effect.step)
    found = effect.job.step(effect.step)
    cause = found.kill_cause if found else ""
    gently = cause == "task_failure"
    request = launch.kill_step(
        key, grace=grace if gently else 0, cause=cause, number=SIGTERM if gently else SIGKILL
    )
    _ask_living(effect.node, reach.place(effect.node), request)


def signal(effect: ef.SendSignal, reach: Reach) -> SignalDone:
    """To one step, or to every step of the attempt that lives on the node."""
    sent = effect.signal
    attempt = attempt_key(effect.job, effect.attempt)
    wanted = attempt if sent.step is None else step_key(effect.job, effect.attempt, sent.step)
    request = launch.signal(wanted, sent.number, sent.scope)
    for node in (effect.node, *effect.more):
        _ask(reach.place(node), request)
    return SignalDone(job=effect.job, attempt=effect.attempt, serial=sent.serial)


def notify(effect: ef.SendNotice, reach: Reach) -> NoticeDone:
    """Raises OSError if the node cannot be reached: the effect stays due."""
    attempt, notice = attempt_key(effect.job, effect.attempt), effect.notice
    request = launch.notify(attempt, notice.text, serial=notice.serial)
    _ask_living(effect.node, reach.place(effect.node), request)
    return NoticeDone(job=effect.job, attempt=effect.attempt, serial=notice.serial)


def tell_limit(effect: ef.TellLimit, reach: Reach) -> LimitDone:
    """Raises OSError if the node cannot be reached: the effect stays due."""
    job, step = effect.job, effect.step
    request = _job_limit(effect) if step is None else _step_limit(effect, step)
    for node in (effect.node, *effect.more):
        _ask_living(node, reach.place(node), launch.dated(request, time.time()))
    of_step = None if step is None else step.id
    return LimitDone(job=job.id, attempt=job.attempt, serial=effect.serial, step=of_step)


def _job_limit(effect: ef.TellLimit) -> bytes:
    """Time suspended before is added, for it does not count; while suspended no limit runs."""
    job = effect.job
    given = None if job.time_limit == UNLIMITED else int(job.time_limit) + job.suspended_for
    return launch.job_limit(
        job.key,
        serial=effect.serial,
        seconds=given,
        ends=None if given is None or job.started is None else job.started + given,
        paused=job.state is JobState.SUSPENDED,
    )


def _step_limit(effect: ef.TellLimit, step: Step) -> bytes:
    key = step_key(effect.job.id, effect.job.attempt, step.id)
    seconds = step.spec.time_limit if step.spec is not None else None
    return launch.limit(key, serial=effect.serial, seconds=seconds)


def follow(
    effect: ef.Follow, reach: Reach, pushes: Pushes
) -> Journal | JournalLost | NodeTrouble | None:
    """What the node's journal says beyond what the store has; None if nothing new.

    In place of nothing new, what has come to be wrong with the node, or is not any more. What it
    posted is taken as it is; one that posts is not asked.
    """
    node = effect.node
    posted = pushes.letter(node)
    if posted is not None or pushes.lately(node):
        return posted
    place = reach.place(node)
    said = bring_up(node, place) if pushes.doubted(node) or effect.check else None
    if place.push is not None:
        pushes.swept(node)
    path = f"{place.folder}/journal"
    if said is not None and began_anew(said, node):
        lines, _ = records(place.channel.read(path, 0))
        return JournalLost(node=node.name, launch=node.launch, records=lines)
    found = news(node, place.channel.read(path, node.journal))
    if found is not None:
        pushes.ways["ssh"] += 1
        return found
    return None if said is None else trouble_of(node, said)


def news(node: Node, data: bytes) -> Journal | None:
    """Lines of its journal from where the store stands. Raises ValueError if they are none."""
    found, length = records(data)
    if not found:
        return None
    return Journal(
        node=node.name,
        launch=node.launch,
        start=node.journal,
        position=node.journal + length,
        records=found,
    )


def began_anew(said: Mapping[str, object], node: Node) -> bool:
    """A journal is only ever added to: of a shorter one the files were lost, or all of the host."""
    size = said.get("journal")
    return isinstance(size, int) and size < node.journal


def trouble_of(node: Node, said: Mapping[str, object]) -> NodeTrouble | None:
    """What is wrong with it by what its agent says, where that is news."""
    text = trouble(said, time.time())
    known = node.reason if node.drain and is_ours(node.reason) else ""
    drained = node.drain and not known
    if drained or same(known, text):
        return None
    return NodeTrouble(node=node.name, launch=node.launch, text=text)


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
