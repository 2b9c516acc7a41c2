"""From a node to its place: over SSH for machines of a cloud, else as this host has it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from broker.model.errors import Unknown
from broker.model.node import Node
from broker.model.offer import Machine
from broker.ports import Place, Push, Reach
from broker.run.openssh import OpenSsh
from broker.run.ssh import Connections, Target


@dataclass(frozen=True, slots=True)
class SshReach:
    """`broker.ports.Reach` where every node is a machine with an sshd."""

    connections: Connections
    seen: Callable[[Machine], Machine]
    """A machine as its provider shows it; with an address as soon as it has one."""
    target: Callable[[Node, Machine], Target]
    folder: str
    python: str
    options: Callable[[Node], tuple[str, ...]]
    """Further words for the agent."""
    shares: Callable[[Node], bool] = lambda node: False
    """Whether the node has mounted the login node's files."""
    openssh: OpenSsh = field(default_factory=OpenSsh)

    def place(self, node: Node) -> Place:
        """Raises Unknown while its machine is not known, OSError while it has no address."""
        if node.machine is None:
            raise Unknown(f"node {node.name} has no machine yet")
        machine = self.seen(node.machine)
        if machine.address in {"", machine.id}:
            raise OSError(f"{machine.id} has no address yet")
        target = self.target(node, machine)
        channel = self.connections.channel(target)
        options, shared = self.options(node), self.shares(node)

        def stream(argv: Sequence[str]) -> list[str] | None:
            return self.openssh.command(target, self.connections.home(target), argv)

        return Place(channel, self.folder, self.python, options, shared=shared, stream=stream)


@dataclass(frozen=True, slots=True)
class AnyReach:
    """Local machines and declared nodes are folders of this host; all others are elsewhere."""

    here: Reach
    elsewhere: Reach

    def place(self, node: Node) -> Place:
        """Raises Unknown, OSError."""
        local = node.declared or (node.machine is not None and "/" in node.machine.address)
        return (self.here if local else self.elsewhere).place(node)


@dataclass(frozen=True, slots=True)
class PostingReach:
    """The same nodes, of which some post what happens there."""

    reach: Reach
    push: Callable[[Node], Push | None]

    def place(self, node: Node) -> Place:
        """Raises Unknown, OSError."""
        return replace(self.reach.place(node), push=self.push(node))
