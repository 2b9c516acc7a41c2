"""The error tree.

SpzError            message, hint, slurm_errno
├── Refused         the request is wrong: the user must change it     (400; sbatch exits 1)
│   ├── BadOption   option, value
│   ├── BadSpec     path in the YAML, value
│   └── OverLimit   limit, asked, allowed
├── Denied          not yours                                         (403)
├── Unknown         no such job, node, account                        (404)
├── Conflict        true now, perhaps not later                       (409)
│   └── IllegalTransition
├── Busy            try again: lost lease, full disk                  (503)
│   └── LostLease
├── Unforeseen      a fault of ours; nothing was changed              (500)
└── ProviderError   refusal, width, offer                             (never leaves the broker)
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Protocol


class SpzError(Exception):
    """Root of what can go wrong by somebody's doing; `hint` says the way out."""

    def __init__(self, message: str, *, hint: str = "", slurm_errno: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.slurm_errno = slurm_errno


class Refused(SpzError):
    """The request is wrong and will stay wrong until the user changes it."""


class BadOption(Refused):
    """An option of a command has a value that cannot be."""

    def __init__(self, option: str, value: str, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.option = option
        self.value = value


class BadSpec(Refused):
    """A field of a task file has a value that cannot be; `path` is such as `resources.cpus`."""

    def __init__(self, path: str, value: object, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.value = value


class OverLimit(Refused):
    """More than a limit allows, for ever."""

    def __init__(self, limit: str, asked: str, allowed: str, *, message: str) -> None:
        super().__init__(message)
        self.limit = limit
        self.asked = asked
        self.allowed = allowed


class Denied(SpzError):
    """Somebody else's, or an operator's."""


ACCESS_DENIED, USER_ID_MISSING = "Access/permission denied", "Invalid user id"
NODES_BUSY = "Requested nodes are busy"
"""Slurm's texts, by its names of these errors."""


class Unknown(SpzError):
    """No such job, node, partition, account."""


class Conflict(SpzError):
    """Not possible in the present state; perhaps later."""


class IllegalTransition(Conflict):
    """The transition table has no row for this state and event."""


class Busy(SpzError):
    """Try again in a moment."""


class LostLease(Busy):
    """Another gateway leads with a later epoch."""


class Unforeseen(SpzError):
    """A fault of ours met while deciding, before anything was changed; `__cause__` is it."""


class Refusal(StrEnum):
    """Why a provider said no."""

    CAPACITY = "capacity"
    QUOTA = "quota"
    AUTH = "auth"
    THROTTLED = "throttled"
    INVALID = "invalid"
    TRANSIENT = "transient"


class Width(StrEnum):
    """How much of the catalogue a refusal rules out for a while."""

    NOTHING = "nothing"
    TYPE_IN_ZONE = "type in zone"
    TYPE_IN_REGION = "type in region"
    FAMILY_IN_REGION = "family in region"
    MARKET_IN_REGION = "market in region"
    ZONE = "zone"
    REGION = "region"
    PROVIDER = "provider"


class ProviderError(SpzError):
    """A typed refusal; the next offer is tried at once."""

    def __init__(self, refusal: Refusal, width: Width, message: str) -> None:
        super().__init__(message)
        self.refusal = refusal
        self.width = width


class HasKind(Protocol):
    """A refusal as it is told, or as it is remembered."""

    @property
    def refusal(self) -> Refusal: ...
    @property
    def message(self) -> str: ...


CEILING = "ceiling of "
"""How the message of a refusal begins that is our own, for money."""


def quota_reason(told: Iterable[HasKind]) -> str | None:
    """Slurm's word where nothing but quotas and ceilings is in the way, None where more is."""
    found = list(told)
    if not found or any(one.refusal is not Refusal.QUOTA for one in found):
        return None
    money = any(one.message.startswith(CEILING) for one in found)
    return "AssocGrpBilling" if money else "AssocGrpCpuLimit"
