"""What EC2 answers when it says no: code, HTTP status and text in one table."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Saying:
    status: int
    text: str


SAYINGS: Mapping[str, Saying] = {
    "InsufficientInstanceCapacity": Saying(
        500,
        "We currently do not have sufficient {instance_type} capacity in the Availability Zone you "
        "requested ({zone}).",
    ),
    "Unsupported": Saying(
        400,
        "Your requested instance type ({instance_type}) is not supported in your requested "
        "Availability Zone ({zone}).",
    ),
    "VcpuLimitExceeded": Saying(
        400,
        "You have requested more vCPU capacity than your current vCPU limit of {limit} allows for "
        "the instance bucket that the specified instance type belongs to.",
    ),
    "ReservationCapacityExceeded": Saying(
        400, "The requested reservation does not have sufficient compatible and available capacity."
    ),
    "InvalidCapacityReservationId.NotFound": Saying(
        400, "The capacity reservation ID '{id}' does not exist."
    ),
    "MaxSpotInstanceCountExceeded": Saying(400, "Max spot instance count exceeded"),
    "SpotMaxPriceTooLow": Saying(
        400, "Your Spot request price is lower than the minimum required Spot request price."
    ),
    "RequestLimitExceeded": Saying(503, "Request limit exceeded."),
    "IdempotentParameterMismatch": Saying(
        400, "Arguments on this idempotent request are inconsistent with arguments used before."
    ),
    "InvalidInstanceID.NotFound": Saying(400, "The instance ID '{id}' does not exist"),
    "InvalidPlacementGroup.Unknown": Saying(400, "The Placement Group '{name}' is unknown."),
    "InvalidPlacementGroup.Duplicate": Saying(400, "The Placement Group '{name}' already exists."),
    "InvalidPlacementGroup.InUse": Saying(400, "The placement group {name} is in use."),
    "UnauthorizedOperation": Saying(403, "You are not authorized to perform this operation."),
    "AuthFailure": Saying(401, "AWS was not able to validate the provided access credentials"),
    "OptInRequired": Saying(403, "You are not subscribed to this service."),
    "PendingVerification": Saying(400, "Your request for accessing resources is being validated."),
    "InternalError": Saying(500, "An internal error has occurred"),
    "Unavailable": Saying(503, "The service is unavailable. Please try again shortly."),
    "InsufficientFreeAddressesInSubnet": Saying(400, "Not enough free addresses in subnet."),
}


class Fault(Exception):
    """An error answer; `status` is HTTP's."""

    def __init__(self, code: str, message: str = "", **about: object) -> None:
        saying = SAYINGS.get(code, Saying(400, code))
        self.code = code
        self.status = saying.status
        self.message = message or saying.text.format_map({"zone": "any", **about})
        super().__init__(f"{code}: {self.message}")
