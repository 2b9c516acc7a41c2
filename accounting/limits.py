"""The limits that an association or a QOS may set."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

TresLimit = Mapping[str, int]
"""Counts by TRES name (`cpu`, `mem` in MiB, `gres/gpu`); a name that is absent is not limited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one level: None, or a TRES that is absent, sets none; times in seconds.

    `max_jobs` and `max_submit_jobs` count per user; only a QOS has the ones per account.
    """

    grp_jobs: int | None = None
    grp_jobs_accrue: int | None = None
    grp_submit_jobs: int | None = None
    grp_wall: int | None = None
    grp_tres: TresLimit = field(default_factory=dict)
    grp_tres_mins: TresLimit = field(default_factory=dict)
    grp_tres_run_mins: TresLimit = field(default_factory=dict)
    max_jobs: int | None = None
    max_jobs_accrue: int | None = None
    max_jobs_per_account: int | None = None
    max_submit_jobs: int | None = None
    max_submit_jobs_per_account: int | None = None
    max_wall: int | None = None
    max_tres_per_job: TresLimit = field(default_factory=dict)
    max_tres_per_node: TresLimit = field(default_factory=dict)
    max_tres_per_user: TresLimit = field(default_factory=dict)
    max_tres_per_account: TresLimit = field(default_factory=dict)
    max_tres_mins_per_job: TresLimit = field(default_factory=dict)
    max_tres_run_mins_per_user: TresLimit = field(default_factory=dict)
    max_tres_run_mins_per_account: TresLimit = field(default_factory=dict)
    min_tres_per_job: TresLimit = field(default_factory=dict)
    min_prio_threshold: int | None = None

    def value(self, name: str, tres: str | None = None) -> int | None:
        """The limit of that name, of one TRES where it has several; None if it is not set."""
        found: int | TresLimit | None = getattr(self, name)
        return found if found is None or isinstance(found, int) else found.get(tres or "")


NO_LIMITS = Limits()


def scaled(limits: Limits, factor: float | None) -> Limits:
    """The limits with those of TRES multiplied by a QOS's LimitFactor."""
    if factor is None:
        return limits
    found: dict[str, Any] = {
        name: {tres: int(count * factor) for tres, count in getattr(limits, name).items()}
        for name in OF_TRES
        if getattr(limits, name)
    }
    return replace(limits, **found)


OF_TRES = tuple(one.name for one in fields(Limits) if "tres" in one.name)
"""Limits that are a count for each TRES."""
