"""Machines of the local provider with real agents on them: their end is certain."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker.model.ids import NodeName
from broker.model.offer import Machine, MachineState, Market, Offer
from broker.providers.local import Behaviour, LocalProvider, Processes
from broker.run import launch
from broker.run.local import LocalChannel, end_node, is_quiet, reopen_node
from tests.e2e.agents import PYTHON, alive, order, until

OFFER = Offer("local", "us-east-1", ("z",), "m7i.large", Market.ON_DEMAND, 1, cpus=2, mem_mib=1)
NODE = (NodeName("ec2-1"), 1)


def provider(root: Path) -> LocalProvider:
    return LocalProvider(
        root,
        catalog=lambda: [OFFER],
        processes=Processes(
            end=lambda folder: end_node(folder, archive="agent.pyz", python=PYTHON),
            reopen=reopen_node,
        ),
        clock=time.time,
        behaviour=Behaviour(boot_seconds=0.2, max_machines=None),
    )


class Node:
    """A machine with an agent that runs a step which nobody ends by asking kindly."""

    def __init__(self, cloud: LocalProvider, work: Path) -> None:
        self.cloud = cloud
        self.machine = cloud.launch(OFFER, [NODE], token="t")[0]
        self.channel = LocalChannel(lambda: cloud.is_up(*NODE))
        self.folder = self.machine.address
        until(lambda: cloud.is_up(*NODE), "the machine's boot")
        self.serve()
        script = (
            "trap '' TERM; setsid sleep 300 & echo $! > two; echo $$ > one; sleep 300; sleep 300"
        )
        self.ask(launch.start("1/1/batch", order(work, script)))
        self.pids = [int(until(lambda f=f: _text(work / f), f"file {f}")) for f in ("one", "two")]

    def serve(self) -> None:
        archive = f"{self.folder}/agent.pyz"
        self.channel.put(launch.agent_zipapp(), archive, 0o755)
        argv = launch.serve_argv(PYTHON, archive, folder=self.folder, node="ec2-1")
        assert self.channel.run(argv, timeout=10).code == 0

    def ask(self, line: bytes) -> dict[str, object]:
        answer = self.channel.ask(f"{self.folder}/agent.sock", line, timeout=10)
        return dict(launch.reply(answer))

    def kill_agent(self) -> None:
        pid = int(str(self.ask(launch.ping())["pid"]))
        os.kill(pid, signal.SIGKILL)
        until(lambda: not alive(pid), "the agent's end")

    def kill_supervisor(self) -> None:
        stat = Path(f"/proc/{self.pids[0]}/stat").read_text()
        os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)

    def state(self) -> Machine:
        return self.cloud.machines()[0]


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    work = tmp_path / "work"
    work.mkdir()
    made = Node(provider(tmp_path / "machines"), work)
    yield made
    made.cloud.terminate([made.machine])


def test_a_machine_cannot_be_reached_before_its_boot(tmp_path: Path) -> None:
    cloud = provider(tmp_path / "machines")
    cloud.launch(OFFER, [NODE], token="t")
    with pytest.raises(OSError, match="not up"):
        LocalChannel(lambda: cloud.is_up(*NODE)).run(["true"], timeout=1)


KILLS: dict[str, Callable[[Node], None]] = {
    "nobody": lambda node: None,
    "agent": Node.kill_agent,
    "supervisor": Node.kill_supervisor,
    "both": lambda node: (node.kill_agent(), node.kill_supervisor())[1],
}


@pytest.mark.parametrize("killed", sorted(KILLS))
def test_when_a_machine_counts_as_terminated_none_of_its_processes_lives(
    node: Node, killed: str
) -> None:
    KILLS[killed](node)
    node.cloud.terminate([node.machine])
    assert node.state().state is MachineState.TERMINATED
    assert [alive(pid) for pid in node.pids] == [False, False]
    assert is_quiet(Path(node.folder))
    with pytest.raises(OSError, match="not up"):
        node.ask(launch.ping())


def test_an_agent_that_comes_up_on_a_terminated_machine_leaves_again(node: Node) -> None:
    node.cloud.terminate([node.machine])
    anyway = LocalChannel(lambda: True)
    archive = f"{node.folder}/agent.pyz"
    argv = launch.serve_argv(PYTHON, archive, folder=node.folder, node="ec2-1")
    assert anyway.run(argv, timeout=10).code == 0
    until(lambda: is_quiet(Path(node.folder)), "the agent's leave")


def test_a_restarted_service_finishes_what_was_being_terminated(node: Node) -> None:
    cloud = provider(Path(node.folder).parent)

    def cannot(_folder: Path) -> None:
        raise OSError("killed in the middle")

    cloud._end = cannot  # what is passed in at the start
    with pytest.raises(OSError, match="middle"):
        cloud.terminate([node.machine])
    assert alive(node.pids[0])
    again = provider(Path(node.folder).parent)
    again.sweep()
    assert again.machines()[0].state is MachineState.TERMINATED
    assert not any(alive(pid) for pid in node.pids)
    node.cloud = again


def _buy_for_ever(root: str) -> None:
    cloud = provider(Path(root))
    for number in range(10_000):
        nodes = [(NodeName(f"ec2-{number}"), n) for n in range(3)]
        cloud.launch(OFFER, nodes, token=str(number))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_purchase_is_whole_or_not_there_after_a_kill(tmp_path: Path, seed: int) -> None:
    root = tmp_path / "machines"
    buyer = multiprocessing.get_context("fork").Process(target=_buy_for_ever, args=(str(root),))
    buyer.start()
    until((root / "ec2-2.0").exists, "the third purchase")
    time.sleep(seed * 0.017)
    buyer.kill()
    buyer.join()
    cloud = provider(root)
    held = cloud.machines()
    tokens = {machine.token for machine in held}
    assert len(held) == 3 * len(tokens)
    for token in tokens:
        nodes = [(NodeName(f"ec2-{token}"), n) for n in range(3)]
        again = cloud.launch(OFFER, nodes, token=token)
        assert [m.id for m in again] == [m.id for m in held if m.token == token]
