"""Bytes to calls and answers to frames."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.model.errors import SpzError
from gateway.api.wire import (
    Answer,
    BadEnvelope,
    Given,
    Peer,
    frames,
    parse_call,
    raw,
)

PEER = Peer(2001, 2001, 7)
ID = b"0123456789abcdef"


def envelope(
    *fields: bytes, argv: tuple[bytes, ...] = (), env: tuple[bytes, ...] = (), files: bytes = b"0\0"
) -> bytes:
    head = fields or (b"1", ID, b"squeue", b"/tmp", b"22", b"", b"")
    counted = [b"%d" % len(argv), *argv, b"%d" % len(env), *env]
    return b"".join(field + b"\0" for field in [*head, *counted]) + files


def test_a_call_keeps_every_byte() -> None:
    body = envelope(
        *(b"1", ID, b"sbatch", b"/a b\n\xff", b"77", b"", b"132"),
        argv=(b"", b"\xff\xfe", b"-J"),
        env=(b"A=1=2", b"B=\n\xff", b"no equals sign"),
        files=b"2\0job.sh\x000\x006\0-\x009\x000\0#!\0\xff\n\n",
    )
    call = parse_call(body, PEER)
    assert [raw(word) for word in call.argv] == [b"", b"\xff\xfe", b"-J"]
    assert (raw(call.cwd), call.umask, call.columns) == (b"/a b\n\xff", 0o77, 132)
    assert {raw(k): raw(v) for k, v in call.environ.items()} == {b"A": b"1=2", b"B": b"\n\xff"}
    assert call.files == {"job.sh": Given(b"#!\0\xff\n\n"), "-": Given(b"", 9)}
    assert (call.program, call.peer, call.request) == ("sbatch", PEER, ID.decode())


def test_who_says_the_same_is_told_apart_still() -> None:
    other = b"fedcba9876543210"
    said = {
        request: envelope(b"1", request, b"squeue", b"/", b"0", b"", b"") for request in (ID, other)
    }
    calls = [
        parse_call(said[ID], PEER),
        parse_call(said[other], Peer(0, 0)),
        parse_call(said[ID], PEER),
    ]
    assert [call.request for call in calls] == [ID.decode(), other.decode(), ID.decode()]
    assert [call.peer for call in calls] == [PEER, Peer(0, 0), PEER]


def test_the_kernels_table_of_limits_is_read() -> None:
    table = (
        b"Limit                     Soft Limit           Hard Limit           Units     \n"
        b"Max stack size            8388608              unlimited            bytes     \n"
        b"Max open files            1024                 524288               files     \n"
        b"Max tomorrow              1                    2                    files     \n"
    )
    call = parse_call(envelope(b"1", ID, b"sbatch", b"/", b"0", table, b""), PEER)
    assert call.limits == (("STACK", 8388608, -1), ("NOFILE", 1024, 524288))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "ends within its header"),
        (b"1\0" * 6, "ends within its header"),
        (envelope(b"0", ID, b"x", b"/", b"22", b"", b""), "spz shims install"),
        (envelope(b"1", b"short", b"x", b"/", b"22", b"", b""), "request id"),
        (envelope(b"1", b"0123456789abcde;", b"x", b"/", b"22", b"", b""), "request id"),
        (envelope(b"1", ID, b"x", b"../x", b"22", b"", b""), "'../x' is no absolute path"),
        (envelope(b"1", ID, b"x", b"/", b"9", b"", b""), "umask"),
        (envelope(b"1", ID, b"x", b"/", b"22", b"", b"wide"), "columns"),
        (envelope(b"1", ID, b"x", b"/", b"22", b"", b"\xb2"), "columns"),
        (envelope()[:-4] + b"999999999999\0", "ends within"),
        (envelope()[:-4] + b"9" * 30 + b"\0", "not a number"),
        (envelope(files=b"-1\0"), "file count"),
        (envelope(files=b"1\0a\x000\x005\0abc"), "ends within a file"),
        (envelope(files=b"1\0a\x000\x001\0abc"), "2 bytes stand behind"),
    ],
)
def test_hostile_bodies_are_refused_by_name(body: bytes, words: str) -> None:
    with pytest.raises(BadEnvelope) as refused:
        parse_call(body, PEER)
    assert words in f"{refused.value.message} {refused.value.hint}"


@given(st.binary(max_size=400))
def test_no_bytes_bring_a_traceback(body: bytes) -> None:
    for data in (body, envelope(files=body), b"1\0" + ID + b"\0" + body):
        with suppress(SpzError):
            parse_call(data, PEER)


def test_an_answer_is_text_then_one_end() -> None:
    answer = Answer(out="a\udcff", err=b"e", code=210)
    assert frames(answer) == b"e\0\0\0\x01eo\0\0\0\x02a\xffx\0\0\0\x03210"
    assert frames(Answer()) == b"x\0\0\0\x010"
    assert frames(Answer(out="?", ask="-\n")) == b"o\0\0\0\x01?a\0\0\0\x02-\n"
    assert frames(Answer(exec=("/bin/squeue", "-a"))) == b"c\0\0\0\x0f/bin/squeue\0-a\0"
    also = frames(Answer(also=("/bin/squeue", "-h"), code=3))
    assert also == b"b\0\0\0\x0f/bin/squeue\0-h\0x\0\0\0\x013"
