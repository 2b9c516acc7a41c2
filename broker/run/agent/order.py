"""What an agent is started with, and what it gives the supervisor of a step."""

import base64
import os

from . import kit, profile, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .spool import Place


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
        self.commands = ""
        """What commands for jobs say of their version; empty: jobs find them elsewhere."""
        self.ours = False
        """Whether the machine is ours alone, and its /etc to be written."""


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

    def add_sessions(self, pids: "list[int]") -> None:
        with open(self.file("sessions"), "a", encoding="ascii") as file:
            file.write("".join("{}\n".format(pid) for pid in pids))

    def arguments(self, phase: "dict[str, Any]") -> "list[bytes]":
        """A phase's words; its script is a file from now on."""
        path = self.write_script(phase.pop("script")) if phase.get("script") else b""
        return [wire.text(item) if isinstance(item, str) else path for item in phase["argv"]]

    def write_script(self, script: str) -> bytes:
        """The script as a file of the user's that only the user may read and run."""
        path = os.fsencode(self.file("slurm_script"))
        if os.path.lexists(path):
            os.unlink(path)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700)
        with open(fd, "wb") as file:
            file.write(base64.b64decode(script))
            if os.geteuid() == 0:
                os.fchown(file.fileno(), self.step["uid"], self.step["gid"])
            os.fchmod(file.fileno(), 0o700)
        return path


def order_for(place: "Place", step: "dict[str, Any]", options: Options) -> Order:
    """What the supervisor of that place is given."""
    kit.complete(step, place.attempt, ours=options.ours)
    step["key"], step["node"] = place.key, options.node
    if profile.wanted(step, place.key, ours=options.ours):
        step["profile"] = profile.prepare()
    order = Order(place.key, os.path.abspath(place.folder), step=step, node=options.node)
    order.door = place.door
    order.wake = options.wake
    order.slot_folder = options.slots
    order.slot_count = options.slot_count
    return order
