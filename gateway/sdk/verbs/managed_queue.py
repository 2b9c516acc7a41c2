"""jobs queue: which managed jobs are shown."""

import os
from collections.abc import Callable, Iterable
from datetime import datetime

from broker.model.errors import Refused
from gateway.config.problems import near
from gateway.sdk.client import Json
from gateway.sdk.managed import is_in
from gateway.sdk.records import ManagedJobStatus, managed_record
from gateway.sdk.show import wide
from gateway.sdk.show_managed import managed
from gateway.sdk.verbs.counter import Counter
from gateway.sdk.verbs.line import UsageError, Values
from gateway.translate.skypilot_values import duration

USUAL_LIMIT = 50
STATUSES = (*ManagedJobStatus, "SUBMITTED", "FAILED_PRECHECKS", "FAILED_CONTROLLER")
"""Ours, and what only SkyPilot's jobs come to."""
FORMS = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M")


def queue(given: Values, counter: Counter) -> int:
    """Raises Refused."""
    told = counter.service.get("/v1/managed", all=True)
    mine = [one for one in told["jobs"] if given["all_users"] or one["uid"] == os.getuid()]
    for fits in _filters(given, told["at"]):
        mine = list(filter(fits, mine))
    roots = list(dict.fromkeys(one["root"] for one in mine))
    if not given["all"]:
        roots = roots[: USUAL_LIMIT if given["limit"] is None else given["limit"]]
    shown = [one for one in mine if one["root"] in set(roots)]
    data = [managed_record(one) for one in shown]
    counter.show(data, given, lambda: managed(shown, told["at"], also=wide(given)))
    return 0


def _filters(given: Values, now: int) -> Iterable[Callable[[Json], bool]]:
    statuses = {one.strip().upper() for text in given["status"] for one in text.split(",")}
    for status in statuses - set(STATUSES):
        raise UsageError(f"option -s: {status!r} is no status", hint=near(status, STATUSES))
    if statuses:
        yield lambda one: one["status"] in statuses
    if given["skip_finished"]:
        yield lambda one: not one["over"]
    after, before = _window(given, now)
    yield lambda one: after <= one["submitted"] <= before
    if given["infra"]:
        yield lambda one: is_in(one, given["infra"])


def _window(given: Values, now: int) -> tuple[float, float]:
    if given["since"] and given["after"]:
        raise Refused("--since and --after exclude each other")
    after = _instant(given["after"], "--after") if given["after"] else 0.0
    if given["since"]:
        try:
            after = now - duration(given["since"], bare=1)
        except ValueError as error:
            raise UsageError(f"option --since: {error}") from error
    return after, _instant(given["before"], "--before") if given["before"] else float("inf")


def _instant(text: str, option: str) -> float:
    """Of a local time. Raises Refused."""
    for form in FORMS:
        try:
            return datetime.strptime(text, form).astimezone().timestamp()
        except ValueError:
            continue
    hint = f"{option} 2026-11-30 or {option} '2026-11-30 15:30:00'"
    raise UsageError(f"option {option}: {text!r} is no time", hint=hint)
