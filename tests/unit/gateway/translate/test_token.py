"""Tokens of jobs on machines elsewhere."""

import pytest

from broker.model.errors import Denied
from gateway.translate import token

SEAL = b"s" * 32
MADE = token.sign(SEAL, "4711/2")


def test_a_token_says_whose_it_is_and_is_one_word() -> None:
    assert token.read(SEAL, MADE) == (4711, 2)
    assert MADE.isalnum()


@pytest.mark.parametrize(
    "shown",
    ["", "4711a2x", MADE[:-1], MADE.replace("4711a2", "4711a3"), MADE.replace("4711", "4712"), "ä"],
)
def test_any_other_text_is_refused(shown: str) -> None:
    with pytest.raises(Denied):
        token.read(SEAL, shown)


def test_another_services_token_is_refused() -> None:
    with pytest.raises(Denied):
        token.read(b"t" * 32, MADE)
