"""What srun says of a step that could not begin, since a file of it cannot be opened (22.05)."""

import os
from collections.abc import Iterable

from broker.model.spec import StepSpec
from broker.schedule.ranks import is_of_one
from gateway.api.relay import UNOPENED, Piece

STREAMS = ("stdin", "stdout", "stderr")
NOT_OPENED = "Could not open {} file: {}"
NOT_LAUNCHED = "task {} launch failed: Slurmd could not connect IO"


def first_unopened(found: Iterable[Piece]) -> Piece | None:
    """The first task's word that it lacks a file."""
    return next((piece for piece in found if piece.stream == UNOPENED), None)


def told(piece: Piece, spec: StepSpec | None) -> list[str]:
    """One line for a file that is all tasks'; for one of a task or a node a line for each task.

    Of those Slurm tells the reason in the log of the node alone.
    """
    number, code = piece.numbers()
    stream = STREAMS[number]
    pattern = getattr(spec.output, stream, None) if spec is not None else None
    if spec is None or pattern is None or not is_of_one(pattern):
        return [NOT_OPENED.format(stream, os.strerror(code))]
    return [NOT_LAUNCHED.format(rank) for rank in range(spec.tasks)]
