"""What every provider promises, tried on each of them; time passes when the test says so."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import pytest

from broker.model.errors import ProviderError, Refusal, Width
from broker.model.ids import NodeName
from broker.model.offer import Machine, MachineState, Market, Offer
from broker.ports import Provider
from broker.providers.ec2.clients import BotoApi
from broker.providers.fake import Delays, FakeCloud
from broker.providers.local import BEHAVIOUR, KEPT_SECONDS, Behaviour, LocalProvider, Processes
from broker.providers.refusals import Rule
from tests.contract.cloud import StubEc2
from tests.contract.made import ec2_provider
from tests.lab.running import CREDENTIALS, here

BOOT = 30
START = 1_800_000_000
OFFER = Offer(
    provider="local",
    region="us-east-1",
    zones=("use1-az1", "use1-az2"),
    instance_type="m7i.large",
    market=Market.ON_DEMAND,
    micro_usd_per_hour=100_800,
    cpus=2,
    mem_mib=8192,
)
A, B, C = ((NodeName(f"ec2-{n}"), 1) for n in (1, 2, 3))


class Clock:
    def __init__(self) -> None:
        self.time = START

    def now(self) -> int:
        return self.time


class Cloud(Protocol):
    """A provider, and what a test does to it."""

    @property
    def provider(self) -> Provider: ...
    def restart(self) -> None:
        """As after a kill of the service: what is held is what was written down."""
        ...

    def refuse(self, rule: Rule) -> None: ...
    def room(self, instance_type: str, machines: int) -> None: ...


@dataclass
class Fake:
    provider: FakeCloud

    @classmethod
    def make(cls, clock: Clock, _folder: Path) -> "Fake":
        return cls(FakeCloud(clock, [OFFER], delays=Delays(boot=BOOT)))

    def restart(self) -> None:
        """The cloud goes on whatever becomes of the service."""

    def refuse(self, rule: Rule) -> None:
        self.provider.refuse(rule)

    def room(self, instance_type: str, machines: int) -> None:
        self.provider.capacity[instance_type] = machines


class Local:
    def __init__(self, clock: Clock, root: Path) -> None:
        self.clock = clock
        self.root = root
        self.ended: list[Path] = []
        self.script: dict[str, list[dict[str, object]]] = {"refusals": []}
        self.restart()

    def restart(self) -> None:
        self.provider = LocalProvider(
            self.root,
            catalog=lambda: [OFFER],
            processes=Processes(end=self.ended.append, reopen=self.ended.remove),
            clock=lambda: self.clock.time,
            behaviour=Behaviour(boot_seconds=BOOT),
        )

    def refuse(self, rule: Rule) -> None:
        names = ("instance_type", "region", "zone", "market", "refusal", "width", "times")
        self.script["refusals"].append({name: getattr(rule, name) for name in names})
        self._write(self.script)

    def room(self, instance_type: str, machines: int) -> None:
        self._write({**self.script, "capacity": {instance_type: machines}})

    def _write(self, value: dict[str, object] | dict[str, list[dict[str, object]]]) -> None:
        (self.root / BEHAVIOUR).write_text(json.dumps(value))


class Ec2:
    """The real provider on a small EC2 that keeps the test's time."""

    def __init__(self, clock: Clock, folder: Path) -> None:
        self.clock = clock
        self.folder = folder
        self.ec2 = StubEc2(clock.now, boot=BOOT)
        self.restart()

    def restart(self) -> None:
        self.provider = ec2_provider(self.folder, self.ec2, self.clock.now, [OFFER])

    def refuse(self, rule: Rule) -> None:
        self.ec2.refuse(rule)

    def room(self, instance_type: str, machines: int) -> None:
        self.ec2.rooms[instance_type] = machines


CODES = {
    Refusal.CAPACITY: "InsufficientInstanceCapacity",
    Refusal.QUOTA: "VcpuLimitExceeded",
    Refusal.AUTH: "UnauthorizedOperation",
}


class Boxed:
    """The real provider and boto3 on the cloud in a box, which keeps the test's time."""

    def __init__(self, clock: Clock, folder: Path) -> None:
        self.clock = clock
        self.folder = folder
        self.opened = ExitStack()
        self.box = self.opened.enter_context(here(clock.now, boot=BOOT, stop=0, visible=0))
        self.restart()

    def restart(self) -> None:
        api = BotoApi(endpoint_url=self.box.endpoint)
        self.provider = ec2_provider(self.folder, api, self.clock.now, [OFFER])

    def refuse(self, rule: Rule) -> None:
        named = {
            name: getattr(rule, name) for name in ("instance_type", "region", "zone", "market")
        }
        given = {name: value for name, value in named.items() if value is not None}
        self.box.set("rule", code=CODES[rule.refusal], times=rule.times, **given)

    def room(self, instance_type: str, machines: int) -> None:
        self.box.set("capacity", instance_type=instance_type, machines=machines)


MAKERS: dict[str, Callable[[Clock, Path], Cloud]] = {
    "fake": Fake.make,
    "local": Local,
    "ec2": Ec2,
    "ec2-box": Boxed,
}
SLOW = {"ec2-box": (pytest.mark.e2e,)}
"""They start servers."""


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=[pytest.param(name, marks=SLOW.get(name, ())) for name in sorted(MAKERS)])
def cloud(
    request: pytest.FixtureRequest,
    clock: Clock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Cloud]:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    made = MAKERS[request.param](clock, tmp_path / "machines")
    yield made
    if isinstance(made, Boxed):
        made.opened.close()


def one(cloud: Cloud, identity: tuple[NodeName, int] = A) -> Machine:
    return {m.identity: m for m in cloud.provider.machines()}[identity]


def test_offers_are_those_of_the_catalogue(cloud: Cloud) -> None:
    assert list(cloud.provider.offers()) == [OFFER]


def test_a_launch_gives_all_nodes_in_their_order(cloud: Cloud) -> None:
    machines = cloud.provider.launch(OFFER, [B, A], token="t")
    assert [m.identity for m in machines] == [B, A]
    assert len({m.id for m in machines}) == 2
    for machine in machines:
        assert machine.state is MachineState.PENDING
        assert (machine.token, machine.region, machine.zone) == ("t", "us-east-1", "use1-az1")
        assert (machine.instance_type, machine.market) == ("m7i.large", Market.ON_DEMAND)
        assert (machine.micro_usd_per_hour, machine.launched_at) == (100_800, START)
        assert machine.running_at is None
    assert sorted(cloud.provider.machines(), key=lambda m: m.node) == machines[::-1]


def test_the_same_token_never_buys_twice(cloud: Cloud, clock: Clock) -> None:
    first = cloud.provider.launch(OFFER, [A, B], token="t")
    clock.time += 1
    assert cloud.provider.launch(OFFER, [A, B], token="t") == first
    cloud.restart()
    assert cloud.provider.launch(OFFER, [A, B], token="t") == first
    assert len(cloud.provider.machines()) == 2


def test_a_token_whose_machines_are_gone_buys_nothing_new(cloud: Cloud) -> None:
    cloud.provider.terminate(cloud.provider.launch(OFFER, [A], token="t"))
    assert cloud.provider.launch(OFFER, [A], token="t")[0].state is MachineState.TERMINATED


def test_a_machine_comes_up_after_its_boot(cloud: Cloud, clock: Clock) -> None:
    cloud.provider.launch(OFFER, [A], token="t")
    clock.time += BOOT - 1
    assert one(cloud).state is MachineState.PENDING
    clock.time += 5
    assert one(cloud).state is MachineState.RUNNING
    assert one(cloud).running_at == START + BOOT
    cloud.restart()
    assert one(cloud).running_at == START + BOOT


def test_terminating_is_certain_and_may_be_repeated(cloud: Cloud, clock: Clock) -> None:
    machines = cloud.provider.launch(OFFER, [A, B], token="t")
    clock.time += 100
    for _ in range(2):
        cloud.provider.terminate(machines[:1])
        clock.time += 10
    gone = one(cloud)
    assert (gone.state, gone.terminated_at) == (MachineState.TERMINATED, START + 100)
    assert (gone.running_at, gone.ended_by_provider) == (START + BOOT, False)
    assert one(cloud, B).state is MachineState.RUNNING
    cloud.restart()
    assert one(cloud) == gone


def test_a_machine_terminated_before_it_was_up_never_ran(cloud: Cloud, clock: Clock) -> None:
    cloud.provider.terminate(cloud.provider.launch(OFFER, [A], token="t"))
    clock.time += 2 * BOOT
    gone = one(cloud)
    assert (gone.state, gone.running_at) == (MachineState.TERMINATED, None)


def test_terminating_what_is_not_there_does_nothing(cloud: Cloud) -> None:
    machine = cloud.provider.launch(OFFER, [A], token="t")[0]
    cloud.provider.terminate([replace(machine, node=NodeName("ec2-99"))])
    assert one(cloud).state is MachineState.PENDING


def test_a_stopped_machine_is_kept_and_starts_again(cloud: Cloud, clock: Clock) -> None:
    machines = cloud.provider.launch(OFFER, [A, B], token="t")
    clock.time += 100
    for _ in range(2):
        cloud.provider.stop(machines[:1])
        clock.time += 10
    kept = one(cloud)
    assert (kept.state, kept.stopped_at) == (MachineState.STOPPED, START + 100)
    assert (kept.terminated_at, one(cloud, B).state) == (None, MachineState.RUNNING)
    cloud.restart()
    assert one(cloud).state is MachineState.STOPPED
    for _ in range(2):
        cloud.provider.start([kept])
        clock.time += 1
    assert one(cloud).state is MachineState.PENDING
    clock.time += BOOT + 5
    again = one(cloud)
    assert (again.state, again.stopped_at) == (MachineState.RUNNING, None)
    assert (again.id, again.running_at) == (kept.id, START + 120 + BOOT)


def test_a_start_needs_room_that_a_stop_gave_up(cloud: Cloud, clock: Clock) -> None:
    cloud.room("m7i.large", 1)
    (kept,) = cloud.provider.launch(OFFER, [A], token="t")
    clock.time += 100
    cloud.provider.stop([kept])
    clock.time += 10
    cloud.provider.launch(OFFER, [B], token="u")
    with pytest.raises(ProviderError) as caught:
        cloud.provider.start([kept])
    assert caught.value.refusal is Refusal.CAPACITY
    assert one(cloud).state is MachineState.STOPPED


def test_a_stopped_machine_is_terminated_like_any_other(cloud: Cloud, clock: Clock) -> None:
    machines = cloud.provider.launch(OFFER, [A], token="t")
    clock.time += 100
    cloud.provider.stop(machines)
    clock.time += 10
    cloud.provider.terminate(machines)
    clock.time += 10
    assert one(cloud).state is MachineState.TERMINATED


def test_all_nodes_or_none(cloud: Cloud) -> None:
    cloud.room("m7i.large", 2)
    with pytest.raises(ProviderError) as caught:
        cloud.provider.launch(OFFER, [A, B, C], token="t")
    assert caught.value.refusal is Refusal.CAPACITY
    assert cloud.provider.machines() == []
    assert len(cloud.provider.launch(OFFER, [A, B], token="u")) == 2


def test_room_comes_back_when_a_machine_is_gone(cloud: Cloud) -> None:
    cloud.room("m7i.large", 1)
    machines = cloud.provider.launch(OFFER, [A], token="t")
    with pytest.raises(ProviderError):
        cloud.provider.launch(OFFER, [B], token="u")
    cloud.provider.terminate(machines)
    assert cloud.provider.launch(OFFER, [B], token="u")[0].node == "ec2-2"


@pytest.mark.parametrize(
    "rule",
    [
        Rule(),
        Rule(instance_type="m7i.large"),
        Rule(region="us-east-1", refusal=Refusal.QUOTA, width=Width.FAMILY_IN_REGION),
        Rule(market="on-demand", refusal=Refusal.AUTH, width=Width.REGION),
    ],
)
def test_a_refusal_has_its_kind_and_width(cloud: Cloud, rule: Rule) -> None:
    cloud.refuse(rule)
    for _ in range(3):
        with pytest.raises(ProviderError) as caught:
            cloud.provider.launch(OFFER, [A], token="t")
        assert (caught.value.refusal, caught.value.width) == (rule.refusal, rule.width)
    assert cloud.provider.machines() == []


@pytest.mark.parametrize(
    "rule", [Rule(instance_type="c7i.large"), Rule(region="eu-west-1"), Rule(market="spot")]
)
def test_what_a_rule_does_not_name_is_not_refused(cloud: Cloud, rule: Rule) -> None:
    cloud.refuse(rule)
    assert cloud.provider.launch(OFFER, [A], token="t")


def test_a_rule_may_apply_so_many_times(cloud: Cloud) -> None:
    cloud.refuse(Rule(times=2))
    for _ in range(2):
        with pytest.raises(ProviderError):
            cloud.provider.launch(OFFER, [A], token="t")
    assert cloud.provider.launch(OFFER, [A], token="t")


def test_another_zone_is_taken_when_one_is_refused(cloud: Cloud) -> None:
    cloud.refuse(Rule(zone="use1-az1"))
    assert cloud.provider.launch(OFFER, [A], token="t")[0].zone == "use1-az2"


# -------------------------------------------------------------------- the local one alone


@pytest.fixture
def local(clock: Clock, tmp_path: Path) -> Local:
    return Local(clock, tmp_path / "machines")


def test_a_half_bought_group_is_whole_after_a_restart(local: Local) -> None:
    machines = local.provider.launch(OFFER, [A, B], token="t")
    for machine in machines:
        (local.provider.folder(machine) / "machine.json").unlink()
    local.restart()
    assert local.provider.machines() == machines
    assert local.provider.launch(OFFER, [A, B], token="t") == machines


def test_a_machine_counts_as_gone_only_when_its_processes_are(local: Local, clock: Clock) -> None:
    machines = local.provider.launch(OFFER, [A], token="t")
    clock.time += BOOT

    def cannot(_folder: Path) -> None:
        raise OSError("processes do not end")

    local.provider._end = cannot  # what is passed in at the start
    with pytest.raises(OSError, match="do not end"):
        local.provider.terminate(machines)
    assert one(local).state is MachineState.STOPPING
    assert not local.provider.is_up(*A)
    local.restart()
    assert one(local).state is MachineState.STOPPING
    local.provider.sweep()
    assert one(local).state is MachineState.TERMINATED


def test_long_terminated_machines_are_forgotten_with_their_folders(
    local: Local, clock: Clock
) -> None:
    machines = local.provider.launch(OFFER, [A, B], token="t")
    local.provider.terminate(machines[:1])
    clock.time += KEPT_SECONDS + 1
    local.provider.sweep()
    assert len(local.provider.machines()) == 2  # the other half of the purchase still runs
    local.provider.terminate(machines[1:])
    clock.time += KEPT_SECONDS + 1
    local.provider.sweep()
    assert local.provider.machines() == []
    assert not local.provider.folder(machines[0]).exists()
    local.restart()
    assert local.provider.machines() == []


def test_a_bad_behaviour_file_is_a_refusal_that_names_it(local: Local) -> None:
    (local.root / BEHAVIOUR).write_text('{"boot_secs": 1}')
    with pytest.raises(ProviderError, match="boot_secs") as caught:
        local.provider.launch(OFFER, [A], token="t")
    assert caught.value.refusal is Refusal.TRANSIENT
    (local.root / BEHAVIOUR).unlink()
    assert local.provider.launch(OFFER, [A], token="t")


def test_users_pass_through_to_their_spool_and_list_nothing(local: Local) -> None:
    machine = local.provider.launch(OFFER, [A], token="t")[0]
    folder = local.provider.folder(machine)
    assert [path.stat().st_mode & 0o777 for path in (local.root, folder)] == [0o711, 0o711]
    assert (folder / "machine.json").stat().st_mode & 0o777 == 0o600
