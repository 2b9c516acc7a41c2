"""Pieces of files from one side to the other: through us, or much of it from process to process."""

import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from broker.stage.pieces import asked
from broker.stage.plan import BATCH, STREAM, Move, Piece, batches
from broker.stage.sides import Side, Where, patience

MUCH = 16 << 20
"""Bytes from which on two processes and a connection of their own are worth it."""
LAST_WORDS = 5.0
"""Seconds that a giver has to end once the taker has all."""


def flow(
    moves: Sequence[Move],
    where: Where,
    tag: str,
    *,
    begun: Mapping[str, int],
    ends: tuple[Side, Side],
) -> Iterator[tuple[list[Piece], bytes]]:
    """Moves from the first end to the second: each batch, and what the taker says of it.

    `begun` are bytes by path that are there already. Raises as `Side.carry`.
    """
    giver, taker = ends
    much = sum(move.size - begun.get(move.path, 0) for move in moves) >= MUCH
    give, take = giver.words("pack", where), taker.words("unpack", where)
    if much and give and take:
        for batch in batches(moves, begun, STREAM):
            size = sum(piece.length for piece in batch)
            said = _streamed(asked(batch, tag), where, size=size, ends=ends, argvs=(give, take))
            yield batch, said
        return
    for batch, stream in _packed(batches(moves, begun, BATCH), where, tag, giver=giver):
        yield batch, taker.carry("unpack", where, stream)


def _packed(
    found: Iterable[list[Piece]], where: Where, tag: str, *, giver: Side
) -> Iterator[tuple[list[Piece], bytes]]:
    """Each batch as it travels; the next one is packed while one is on its way."""

    def pack(batch: list[Piece]) -> tuple[list[Piece], bytes]:
        return batch, giver.carry("pack", where, asked(batch, tag))

    with ThreadPoolExecutor(1) as ahead:
        waiting = None
        for batch in found:
            coming = ahead.submit(pack, batch)
            if waiting is not None:
                yield waiting.result()
            waiting = coming
        if waiting is not None:
            yield waiting.result()


def _streamed(
    wanted: bytes,
    where: Where,
    *,
    size: int,
    ends: tuple[Side, Side],
    argvs: tuple[list[str], list[str]],
) -> bytes:
    """What the taker says. Raises as `carry` of the one that failed first."""
    pipe = subprocess.PIPE
    with subprocess.Popen(argvs[0], stdin=pipe, stdout=pipe, stderr=pipe, cwd="/") as give:
        take = subprocess.Popen(argvs[1], stdin=give.stdout, stdout=pipe, stderr=pipe, cwd="/")
        _let_go(give)
        asking = threading.Thread(target=_ask, args=(give, wanted), daemon=True)
        asking.start()
        try:
            said, wrong = take.communicate(timeout=patience(size))
            with suppress(subprocess.TimeoutExpired):
                give.wait(LAST_WORDS)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"{where.path}: its files took too long") from error
        finally:
            gave = give.poll() or 0
            take.kill()
            give.kill()
            take.wait()
            asking.join()
        lost = give.stderr.read() if give.stderr is not None else b""
    if take.returncode != 0:
        raise ends[1].failure(where, wrong)
    if gave != 0:
        raise ends[0].failure(where, lost)
    return said


def _let_go(process: "subprocess.Popen[bytes]") -> None:
    """Its output is another's: it hears when that one ends."""
    if process.stdout is not None:
        process.stdout.close()
        process.stdout = None


def _ask(process: "subprocess.Popen[bytes]", wanted: bytes) -> None:
    with suppress(OSError):
        if process.stdin is not None:
            process.stdin.write(wanted)
            process.stdin.close()
