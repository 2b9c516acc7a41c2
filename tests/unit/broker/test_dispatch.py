"""What is asked of no job is decided by a table: mypy cannot see whether it is whole."""

from typing import get_args

from broker.decide.dispatch import OF_THE_SITE, OfTheSite


def test_everything_that_is_asked_or_seen_of_the_site_has_its_row() -> None:
    assert OF_THE_SITE.keys() == set(get_args(OfTheSite))
