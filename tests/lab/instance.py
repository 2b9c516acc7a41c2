"""What moto holds as an instance, with the address and the state of a machine of the box."""

from collections.abc import Callable
from datetime import UTC, datetime

from moto.ec2.models import instances as moto_instances

from tests.lab.machines import CODES, REASONS, Machine


class LabInstance(moto_instances.Instance):
    """Moto's instance with the address and the state of a machine of the box."""

    machine: Machine | None = None
    spot_instance_request_id: str | None = None
    end: Callable[[], None] | None = None
    halt: Callable[[], None] | None = None
    wake: Callable[[], None] | None = None

    @property
    def _address(self) -> str | None:
        machine = self.machine
        return None if machine is None or machine.state == "terminated" else machine.address

    @property
    def private_ip(self) -> str | None:
        return self._address

    @property
    def private_ip_address(self) -> str | None:
        return self._address

    @property
    def private_dns_name(self) -> str:
        return super().private_dns_name if self._address else ""

    @property
    def public_ip(self) -> str | None:
        return self._address

    @property
    def public_ip_address(self) -> str | None:
        return self._address

    def terminate(self) -> moto_instances.InstanceState:
        """Begins its end; what is attached goes when it is terminated."""
        before = moto_instances.InstanceState(self._state.name, self._state.code)
        if self.end is not None:
            self.end()
        return before

    def stop(self) -> moto_instances.InstanceState:
        before = moto_instances.InstanceState(self._state.name, self._state.code)
        if self.halt is not None:
            self.halt()
        return before

    def start(self) -> moto_instances.InstanceState:
        """Raises Fault where there is no room."""
        before = moto_instances.InstanceState(self._state.name, self._state.code)
        if self.wake is not None:
            self.wake()
        return before

    def show(self, machine: Machine) -> None:
        """Takes over the machine's state."""
        if machine.state == "terminated":
            super().terminate()
        self._state.name, self._state.code = machine.state, CODES[machine.state]
        since = machine.launched_at if machine.running_at is None else machine.running_at
        self.launch_time = datetime.fromtimestamp(int(since), UTC).replace(tzinfo=None)
        self.state_reason = moto_instances.StateReason()
        if machine.reason:
            said = f"{machine.reason}: {REASONS.get(machine.reason, '')}"
            self.state_reason = moto_instances.StateReason(said, machine.reason)
        self._reason = machine.transition_reason()
