"""Task files to specs, for tests."""

from collections.abc import Mapping

import pytest

from broker.model.errors import BadSpec
from broker.optimize.bundled import packaged
from gateway.translate.skypilot import read
from gateway.translate.skypilot_run import Origin
from gateway.translate.skypilot_supply import Supply
from gateway.translate.skypilot_task import Translated, translate

SUPPLY = Supply.of(packaged())
ORIGIN = Origin(
    cwd="/home/ann/project",
    home="/home/ann",
    logs="/home/ann/sky_logs",
    environ={"PATH": "/bin", "LC_ALL": "C", "EDITOR": "ed", "AWS_SECRET_ACCESS_KEY": "x"},
    host="login1",
)


def task(text: str, origin: Origin = ORIGIN, **given: Mapping[str, str]) -> Translated:
    (one,) = read(text, **given)
    return translate(one, origin, cluster="dev")


def refusal(text: str, **given: Mapping[str, str]) -> BadSpec:
    with pytest.raises(BadSpec) as caught:
        task(text, **given)
    return caught.value
