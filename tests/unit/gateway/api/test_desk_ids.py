"""Users and groups by name or number, as command lines say them."""

from collections.abc import Callable

import pytest

from gateway.api.desk import gid_named, uid_named


@pytest.mark.parametrize("named", [uid_named, gid_named])
@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("root", 0),
        ("0", 0),
        ("4123456", None),
        ("4294967294", None),
        ("4294967295", None),
        ("9" * 26, None),
        ("9" * 5000, None),
        ("²", None),
        ("nosuch\udcff", None),
        ("nosuch\ud800", None),
        ("root\0", None),
    ],
    ids=lambda value: str(value)[:20].encode("ascii", "replace").decode() if value else None,
)
def test_a_number_is_an_id_where_the_host_knows_it(
    named: Callable[[str], int | None], text: str, number: int | None
) -> None:
    assert named(text) == number
