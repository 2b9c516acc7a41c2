"""spz budget: what is shown, what is sent."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from broker.model.errors import Refused
from gateway.sdk.verbs import budgets

ROW = {
    "scope": "account", "name": "lab", "micro_usd": 100_000_000, "spent_micro_usd": 81_500_000,
    "promised_micro_usd": 2_000_000, "window": "month", "zone": "Europe/Berlin", "since": 0,
    "until": None, "action": "stop", "running": "notice", "warn_percent": 80, "standing": "warn",
}  # fmt: skip
UNSET = dict.fromkeys(("window", "zone", "action", "running", "warn_percent", "json", "output"))


@dataclass
class Desk:
    """A counter whose service answers with one budget."""

    sent: list[Any] = field(default_factory=list)

    @property
    def service(self) -> "Desk":
        return self

    def post(self, route: str, body: Any) -> Any:
        self.sent.append((route, body))
        return {"budgets": [ROW]}

    def show(self, data: Any, given: Any, text: Any) -> None:
        del data, given
        self.sent.append(text())


def test_a_budget_is_shown_with_what_was_spent_and_promised() -> None:
    line = budgets.text([ROW]).splitlines()[1].split()
    assert line[:4] == ["account:lab", "$100.000", "$81.500", "$2.000"]
    assert line[4:] == ["month", "Europe/Berlin", "stop", "(notice)", "warn"]
    assert "spz budget set" in budgets.text([])


@pytest.mark.parametrize(("words", "usd"), [(["12.5"], 12.5), (["$7"], 7.0), (["none"], None)])
def test_what_is_set_is_sent(words: list[str], usd: float | None) -> None:
    desk = Desk()
    given = {**UNSET, "words": ["account:lab", *words], "window": "day"}
    assert budgets.put(given, desk) == 0  # type: ignore[arg-type]
    assert desk.sent[0] == (
        "/v1/budgets",
        {"scope": "account", "name": "lab", "usd": usd, "window": "day"},
    )


@pytest.mark.parametrize(
    "words", [["lab", "5"], ["account:", "5"], ["account:lab", "much"], ["account:lab"]]
)
def test_what_names_no_budget_or_no_dollars_is_refused(words: list[str]) -> None:
    with pytest.raises(Refused):
        budgets.put({**UNSET, "words": words}, Desk())  # type: ignore[arg-type]
