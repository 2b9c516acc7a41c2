"""Machines stopped and started again: the provider is asked until it says that it is so."""

from collections.abc import Mapping

from broker.model.effects import StartMachine, StopMachine
from broker.model.errors import ProviderError, Refusal
from broker.model.node import Node
from broker.model.offer import MachineState
from broker.model.reports import Vanished
from broker.model.stopping import MachineNotStarted, MachineStarted, MachineStopped
from broker.ports import Provider
from broker.provision.reconcile import Held, held

AGAIN = frozenset({Refusal.THROTTLED, Refusal.TRANSIENT})
"""Refusals that say nothing of the machine: it is asked for again."""


def stop(
    effect: StopMachine, providers: Mapping[str, Provider]
) -> MachineStopped | Vanished | None:
    """None while it is on the way."""
    node = effect.node
    found = held(node.identity, providers, node.machine)
    if found is not None and found[1].state in (MachineState.PENDING, MachineState.RUNNING):
        found[0].stop([found[1]])
        found = held(node.identity, providers, node.machine)
    if found is None or found[1].state is MachineState.TERMINATED:
        return _gone(node, found)
    if found[1].state is not MachineState.STOPPED:
        return None
    return MachineStopped(node=node.name, launch=node.launch, machine=found[1])


def start(
    effect: StartMachine, providers: Mapping[str, Provider]
) -> MachineStarted | MachineNotStarted | Vanished | None:
    """None while it is on the way. Raises OSError where the provider is too busy to say."""
    node = effect.node
    found = held(node.identity, providers, node.machine)
    if found is not None and found[1].state is MachineState.STOPPED:
        try:
            found[0].start([found[1]])
        except ProviderError as error:
            if error.refusal in AGAIN:
                raise OSError(error.message) from error
            return MachineNotStarted(
                node=node.name,
                launch=node.launch,
                machine=found[1],
                refusal=error.refusal,
                width=error.width,
                message=error.message,
            )
        found = held(node.identity, providers, node.machine)
    if found is None or found[1].state is MachineState.TERMINATED:
        return _gone(node, found)
    if found[1].state is not MachineState.RUNNING:
        return None
    return MachineStarted(node=node.name, launch=node.launch, machine=found[1])


def _gone(node: Node, found: Held | None) -> Vanished:
    machine = None if found is None else found[1]
    return Vanished(node=node.name, launch=node.launch, machine=machine)
