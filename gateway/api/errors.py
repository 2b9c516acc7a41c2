"""Errors told outside, in one place: HTTP status and JSON body, or Slurm's text and exit status."""

from broker.model import errors as err

STATUS: tuple[tuple[type[err.SpzError], int], ...] = (
    (err.Refused, 400),
    (err.Denied, 403),
    (err.Unknown, 404),
    (err.Conflict, 409),
    (err.Busy, 503),
)
"""The first class that fits counts."""
DETAILS = ("option", "value", "path", "limit", "asked", "allowed")

NUMBERS = {
    "Invalid partition name specified": 2000,
    "Access/permission denied": 2002,
    "Node count specification invalid": 2006,
    "Invalid user id": 2010,
    "Requested node configuration is not available": 2014,
    "Invalid job id specified": 2017,
    "Invalid node name specified": 2018,
    "Job/step already completing or completed": 2021,
    "Job is pending execution": 2024,
    "Invalid feature specification": 2029,
    "Requested operation is presently disabled": 2037,
    "Job dependency problem": 2038,
    "Invalid account or account/partition combination specified": 2045,
    "Requested time limit is invalid (missing or exceeds some limit)": 2051,
    "Job is in held state, pending scheduler release": 2042,
    "Invalid qos specification": 2066,
    "Invalid job array specification": 2081,
    "Not a valid federated job": 2111,
    "Operation not permitted on individual component of heterogeneous job": 2108,
}
"""Slurm's texts, which refusals carry as they are, and their numbers (25.11)."""


def status_of(error: err.SpzError) -> int:
    """The HTTP status of an error; 500 for what must never leave the broker."""
    return next((status for kind, status in STATUS if isinstance(error, kind)), 500)


def body_of(error: err.SpzError) -> dict[str, object]:
    """The JSON body: what is wrong, with the thing, the value and the way out."""
    told = {name: getattr(error, name) for name in DETAILS if hasattr(error, name)}
    told = {name: value if _plain(value) else str(value) for name, value in told.items()}
    return {
        "error": {
            "kind": type(error).__name__,
            "message": error.message,
            "hint": error.hint,
            "slurm_errno": number_of(error),
            **told,
        }
    }


def _plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def number_of(error: err.SpzError) -> int:
    """Slurm's number; 0 where it has none."""
    return error.slurm_errno or NUMBERS.get(error.message, 0)
