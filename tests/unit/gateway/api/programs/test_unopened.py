"""What srun says of files that cannot be opened."""

# ruff: noqa: E501 - a row stays on one line

import errno

import pytest

from broker.model.spec import Output, StepSpec
from gateway.api.programs.unopened import first_unopened, told
from gateway.api.relay import Piece

DENIED = errno.EACCES.to_bytes(4, "big")


def piece(stream: int) -> Piece:
    return Piece(b"n", 1, stream.to_bytes(4, "big") + DENIED)


# fmt: off
TOLD: dict[str, tuple[Output | None, int, list[str]]] = {
    "one for all":       (Output(stdout="out.%j"), 1, ["Could not open stdout file: Permission denied"]),
    "errors":            (Output(stderr="/x"), 2, ["Could not open stderr file: Permission denied"]),
    "input":             (Output(stdin="/x"), 0, ["Could not open stdin file: Permission denied"]),
    "each its own":      (Output(stdout="o.%t"), 1, ["task 0 launch failed: Slurmd could not connect IO", "task 1 launch failed: Slurmd could not connect IO"]),
    "each node its own": (Output(stdin="i.%N"), 0, ["task 0 launch failed: Slurmd could not connect IO", "task 1 launch failed: Slurmd could not connect IO"]),
    "not known":         (None, 1, ["Could not open stdout file: Permission denied"]),
}
# fmt: on


@pytest.mark.parametrize("what", TOLD)
def test_why_is_told_once_or_that_it_failed_for_each_task(what: str) -> None:
    output, stream, lines = TOLD[what]
    assert told(piece(stream), StepSpec(name="a", tasks=2, output=output)) == lines


def test_the_first_word_counts() -> None:
    found = [Piece(b"e", 0, b"text"), piece(2), piece(1)]
    assert first_unopened(found) == piece(2)
    assert first_unopened(found[:1]) is None
