"""What every verb that changes clusters does besides: ssh's client learns which there are."""

import os
from collections.abc import Iterable
from pathlib import Path

from broker.model.errors import SpzError
from gateway.sdk import clusters
from gateway.sdk.client import Json
from gateway.sdk.entering import tell_ssh
from gateway.sdk.verbs.counter import Counter


def tell(counter: Counter, found: Iterable[Json]) -> None:
    """Lets `ssh NAME` reach the caller's clusters. What fails of it is told, and no more."""
    home, mine = Path(counter.environ.get("HOME") or "/"), os.getuid()
    try:
        tell_ssh(home, [one for one in found if one["uid"] == mine], commands=counter.commands)
    except (OSError, SpzError) as error:
        counter.say(f"note: ssh does not know the clusters: {error}")


def anew(counter: Counter) -> None:
    """The same after something was changed."""
    tell(counter, clusters.listed(counter.service))
