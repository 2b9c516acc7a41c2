"""What nodes post is taken once, where the store stands; who posts is not asked."""

from dataclasses import replace

import pytest

from accounting.tres import Tres
from broker.model import effects as ef
from broker.model.errors import Busy
from broker.model.ids import NodeName
from broker.model.node import Node, NodeState
from broker.model.nodeevents import JournalRead, NodeGone
from broker.model.reports import Journal, NodeTrouble
from broker.ports import Place, Push
from broker.run import steps
from broker.run.pushed import FIRST_SECONDS, MOST_HELD, QUIET_SECONDS, Pushes

NODE = Node(NodeName("n1"), 3, NodeState.UP, Tres(cpu=1), ("ec2",), journal=100)
POSTED = Journal(node=NODE.name, launch=3, start=100, position=150, records=({"kind": "x"},))


class Clock:
    at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pushes(clock: Clock) -> Pushes:
    return Pushes(clock)


class Reach:
    """Whose journal has one line more; counts how often somebody looks."""

    looks = 0

    def place(self, node: Node) -> Place:
        return Place(self, "/n", push=Push("https://s", "", "", "t"))  # type: ignore[arg-type]

    def read(self, path: str, offset: int) -> bytes:
        self.looks += 1
        return b'{"kind":"x"}\n'


def follow(pushes: Pushes, reach: Reach, node: Node = NODE) -> object:
    return steps.follow(ef.Follow(node), reach, pushes)


def test_what_was_posted_is_the_report_until_it_is_committed(pushes: Pushes) -> None:
    committed, reach = pushes.put(NODE, POSTED, 50), Reach()
    pushes.hear(NODE)
    assert follow(pushes, reach) == follow(pushes, reach) == POSTED
    pushes.committed([JournalRead(node=NODE.name, launch=3, at=1, position=150)])
    assert committed.result(0) == 150
    assert follow(pushes, reach, replace(NODE, journal=150)) is None
    assert reach.looks == 0
    assert pushes.ways == {"push": 1}


@pytest.mark.parametrize(
    ("late", "told"),
    [
        (replace(POSTED, start=50, position=100), True),
        (replace(POSTED, start=150, position=200), True),
        (replace(POSTED, launch=2), False),
    ],
)
def test_what_does_not_go_on_where_the_store_stands_is_dropped_and_its_sender_told_so(
    pushes: Pushes, late: Journal, told: bool
) -> None:
    waits = pushes.put(NODE, late, 50)
    assert pushes.letter(NODE) is None
    assert (waits.done() and waits.result()) == (NODE.journal if told else False)
    pushes.put(NODE, POSTED, 50)
    assert pushes.letter(NODE) == POSTED


def test_the_same_letter_once_more_waits_for_the_same_commit(pushes: Pushes) -> None:
    first = pushes.put(NODE, POSTED, 50)
    assert pushes.put(NODE, POSTED, 50) is first


def test_an_earlier_commit_is_not_that_of_the_letter(pushes: Pushes) -> None:
    committed = pushes.put(NODE, POSTED, 50)
    pushes.committed([JournalRead(node=NODE.name, launch=3, at=1, position=120)])
    assert not committed.done()


@pytest.mark.parametrize(
    ("after", "looks"), [(0.0, 0), (QUIET_SECONDS - 1, 0), (QUIET_SECONDS + 1, 1)]
)
def test_who_posts_nothing_for_a_while_is_read(
    pushes: Pushes, clock: Clock, after: float, looks: int
) -> None:
    pushes.hear(NODE)
    clock.at += after
    reach = Reach()
    follow(pushes, reach)
    assert reach.looks == looks


def test_after_the_first_contact_it_is_waited_for_less_long(pushes: Pushes, clock: Clock) -> None:
    pushes.expect(NODE)
    assert pushes.lately(NODE)
    clock.at += FIRST_SECONDS + 1
    assert not pushes.lately(NODE)


def test_another_launch_of_the_node_has_not_posted(pushes: Pushes) -> None:
    pushes.hear(NODE)
    assert not pushes.lately(replace(NODE, launch=4))


def test_one_in_doubt_is_looked_at(pushes: Pushes) -> None:
    pushes.hear(NODE)
    assert [pushes.doubt(NODE), pushes.doubt(NODE)] == [True, False]
    assert not pushes.lately(NODE)
    assert [pushes.doubted(NODE), pushes.doubted(NODE)] == [True, False]
    pushes.hear(NODE)
    pushes.doubt(NODE)
    pushes.committed([NodeGone(node=NODE.name, launch=3, at=1)])
    assert not pushes.doubted(NODE)


def test_a_node_that_should_post_and_is_read_is_told_of_once_and_when_it_posts_again(
    clock: Clock,
) -> None:
    told: list[tuple[str, NodeName]] = []
    pushes, reach = Pushes(clock, lambda event, node: told.append((event, node))), Reach()
    follow(pushes, reach)
    assert not told, "so soon after a start nobody can have posted"
    clock.at += QUIET_SECONDS
    follow(pushes, reach)
    follow(pushes, reach)
    assert pushes.fallen_back(NODE)
    pushes.hear(NODE)
    assert not pushes.fallen_back(NODE)
    assert told == [("reports.swept", NODE.name), ("reports.pushed", NODE.name)]


def test_no_more_is_held_than_there_is_room_for(pushes: Pushes) -> None:
    pushes.put(NODE, POSTED, MOST_HELD)
    other = replace(NODE, name=NodeName("n2"))
    with pytest.raises(Busy):
        pushes.put(other, replace(POSTED, node=other.name), 1)
    pushes.put(NODE, replace(POSTED, position=151), MOST_HELD)  # in the place of its own


def test_of_a_machine_that_is_gone_nothing_is_kept(pushes: Pushes) -> None:
    pushes.put(NODE, POSTED, 50)
    pushes.hear(NODE)
    pushes.committed([NodeGone(node=NODE.name, launch=3, at=1)])
    assert pushes.letter(NODE) is None
    assert not pushes.lately(NODE)


def test_trouble_is_told_once(pushes: Pushes) -> None:
    pushes.put(NODE, NodeTrouble(node=NODE.name, launch=3, text="clock"), 0)
    assert pushes.letter(NODE) is not None
    assert pushes.letter(NODE) is None
