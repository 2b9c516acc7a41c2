"""Who descends from whom."""

import os

from broker.run.agent import procs
from broker.run.agent.procs import Process


def test_descendants_are_found_through_all_generations() -> None:
    parents = {2: 1, 3: 2, 4: 3, 5: 2, 6: 1, 7: 99}
    processes = {pid: Process(parent, pid, zombie=False, born=0) for pid, parent in parents.items()}
    assert procs.below(processes, [2]) == {3, 4, 5}
    assert procs.below(processes, [1]) == {2, 3, 4, 5, 6}
    assert procs.below(processes, [4]) == set()


def test_this_process_is_in_the_table_below_its_parent() -> None:
    processes = procs.table()
    assert processes[os.getpid()].parent == os.getppid()
    assert os.getpid() in procs.below(processes, [os.getppid()])


def test_a_mark_needs_all_of_its_names() -> None:
    assert not procs.Mark({"uid": os.getuid(), "env": ""}).is_on(os.getpid())
