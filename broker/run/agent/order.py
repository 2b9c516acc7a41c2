"""What an agent is started with, and what it gives the supervisor of a step."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Options:
    """How `serve` was started."""

    def __init__(self) -> None:
        self.dir = ""
        self.node = ""
        self.wake = ""
        self.slots = ""
        self.slot_count = 0
        self.idle_exit = None  # type: float | None
        self.lease = self.deadline = 0.0
        self.notices = ""


class Order:
    """What a supervisor is given by its agent."""

    __slots__ = (
        "agent_socket",
        "door",
        "folder",
        "key",
        "node",
        "slot_count",
        "slot_folder",
        "step",
        "wake",
    )

    def __init__(self, key: str, folder: str, *, step: "dict[str, Any]", node: str) -> None:
        self.key = key
        self.folder = folder
        self.step = step
        self.node = node
        self.agent_socket = ""
        self.door = -1
        """Descriptor of the FIFO on which the agent gives orders."""
        self.slot_folder = ""
        self.slot_count = 0
        self.wake = ""
        """The service's socket; empty where it cannot be woken."""

    def file(self, name: str) -> str:
        return os.path.join(self.folder, name)
