"""What EC2's refusals mean: one table from error code to kind and width; quotas by their codes."""

import re
from collections.abc import Mapping
from functools import lru_cache

from broker.model.errors import ProviderError, Refusal, Width
from broker.model.offer import Market, Offer, Unstarted


class AwsError(Exception):
    """A definite no of AWS, with its error code."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status


class NoAnswerError(OSError):
    """Nobody knows whether the call has worked: a time-out, a lost reply, a fault inside AWS."""


class ShutError(NoAnswerError):
    """AWS says for certain that a region is not for us: it was disabled, or we may not look."""


Meaning = tuple[Refusal, Width]
CAPACITY = (Refusal.CAPACITY, Width.TYPE_IN_ZONE)
QUOTA = (Refusal.QUOTA, Width.FAMILY_IN_REGION)
NOT_OFFERED = (Refusal.INVALID, Width.TYPE_IN_ZONE)
OF_RESERVATIONS = frozenset({Refusal.CAPACITY, Refusal.INVALID})
"""What is said of a launch into one is about that one alone: it is full, over, or otherwise."""
RESERVATION_FULL = "ReservationCapacityExceeded"
UNFIT = "UnfitImage"
"""Our own: what a job asks of its machines cannot be with this image; nobody else is concerned."""
REGION_SHUT = (Refusal.AUTH, Width.REGION)
ACCOUNT_SHUT = (Refusal.AUTH, Width.PROVIDER)
STALE = (Refusal.TRANSIENT, Width.REGION)
KEYLESS = STALE
"""Mostly a key of KMS, which encrypts volumes, that may not be used: it may be let in any time."""
BUSY = (Refusal.THROTTLED, Width.REGION)
OURS = (Refusal.INVALID, Width.TYPE_IN_REGION)
"""One that is not in the table."""

EC2_REFUSALS: Mapping[str, Meaning] = {
    "InsufficientInstanceCapacity": CAPACITY,
    "InsufficientHostCapacity": CAPACITY,
    "InsufficientCapacityOnHost": CAPACITY,
    "InsufficientCapacity": CAPACITY,
    "UnfulfillableCapacity": CAPACITY,
    "SpotMaxPriceTooLow": (Refusal.CAPACITY, Width.NOTHING),
    "InsufficientReservedInstanceCapacity": (Refusal.CAPACITY, Width.NOTHING),
    RESERVATION_FULL: (Refusal.CAPACITY, Width.NOTHING),
    "VcpuLimitExceeded": QUOTA,
    "InstanceLimitExceeded": QUOTA,
    "MaxSpotInstanceCountExceeded": QUOTA,
    "MaxFleetCountExceeded": (Refusal.QUOTA, Width.REGION),
    "InsufficientFreeAddressesInSubnet": (Refusal.CAPACITY, Width.ZONE),
    "InsufficientVolumeCapacity": (Refusal.CAPACITY, Width.ZONE),
    "VolumeLimitExceeded": (Refusal.QUOTA, Width.REGION),
    UNFIT: (Refusal.INVALID, Width.NOTHING),
    "Unsupported": NOT_OFFERED,
    "UnsupportedOperation": NOT_OFFERED,
    "InvalidInstanceType": NOT_OFFERED,
    "InvalidParameterCombination": NOT_OFFERED,
    "InvalidParameterValue": OURS,
    "InvalidParameter": OURS,
    "MissingParameter": OURS,
    "IdempotentParameterMismatch": (Refusal.TRANSIENT, Width.NOTHING),
    "RequestLimitExceeded": BUSY,
    "Throttling": BUSY,
    "ThrottlingException": BUSY,
    "EC2ThrottledException": BUSY,
    "SlowDown": BUSY,
    "UnauthorizedOperation": REGION_SHUT,
    "AccessDenied": REGION_SHUT,
    "AccessDeniedException": REGION_SHUT,
    "OptInRequired": REGION_SHUT,
    "PendingVerification": REGION_SHUT,
    "Blocked": ACCOUNT_SHUT,
    "AuthFailure": REGION_SHUT,
    "AuthFailure.ServiceLinkedRoleCreationNotPermitted": ACCOUNT_SHUT,
    "InvalidClientTokenId": ACCOUNT_SHUT,
    "UnrecognizedClientException": ACCOUNT_SHUT,
    "ExpiredToken": ACCOUNT_SHUT,
    "ExpiredTokenException": ACCOUNT_SHUT,
    "RequestExpired": ACCOUNT_SHUT,
    "SignatureDoesNotMatch": ACCOUNT_SHUT,
    "InvalidSignatureException": ACCOUNT_SHUT,
    "IncompleteSignature": ACCOUNT_SHUT,
    "NoCredentials": ACCOUNT_SHUT,
    "InvalidAMIID.NotFound": STALE,
    "InvalidAMIID.Unavailable": STALE,
    "InvalidKeyPair.NotFound": STALE,
    "InvalidGroup.NotFound": STALE,
    "InvalidSecurityGroupID.NotFound": STALE,
    "InvalidSubnetID.NotFound": STALE,
    "InvalidLaunchTemplateName.NotFoundException": STALE,
    "InvalidLaunchTemplateId.NotFound": STALE,
    "InvalidPlacementGroup.Unknown": STALE,
    "InvalidSnapshot.NotFound": STALE,
    "InvalidKMSKey": KEYLESS,
    "Client.InternalError": KEYLESS,
    "Server.InternalError": (Refusal.TRANSIENT, Width.TYPE_IN_ZONE),
    "InsufficientSetup": (Refusal.INVALID, Width.REGION),
}
"""By code, or its first word, as EC2 tells it of a call or of a machine that it had taken on.

Services that it needs beside have words of their own for the same, which end in `Exception`.
"""
SIDES = ("Client.", "Server.")
"""Whose fault it was: how codes of machines begin."""
UNKNOWN_OUTCOME = frozenset(
    {"InternalError", "InternalFailure", "ServiceUnavailable", "Unavailable", "RequestTimeout"}
)
"""Codes after which nobody knows what was done."""
THROTTLES = frozenset(code for code, meaning in EC2_REFUSALS.items() if meaning is BUSY)
NOT_USABLE = frozenset(
    code for code, (refusal, _) in EC2_REFUSALS.items() if refusal is Refusal.AUTH
)
"""The account, or this region of it, cannot be used at all."""
NEW_CREDENTIALS = {"AuthFailure"} | {
    code for code, meaning in EC2_REFUSALS.items() if meaning is ACCOUNT_SHUT
}
"""Codes after which others may have been put in the place of those that this process has read."""
NOT_LET_IN = THROTTLES | NOT_USABLE
"""Codes that say nothing of what a try before them did."""

Quota = tuple[str, str]
GPUS = ("G and VT", "P", "P5", "P6")
"""Groups of families, as quotas count them, with NVIDIA's GPUs."""
STANDARD = "Standard (A, C, D, H, I, M, R, T, Z)"
QUOTAS: Mapping[str, Mapping[Market, str]] = {
    STANDARD: {Market.ON_DEMAND: "L-1216C47A", Market.SPOT: "L-34B43A08"},
    "G and VT": {Market.ON_DEMAND: "L-DB2E81BA", Market.SPOT: "L-3819A6DF"},
    "P": {Market.ON_DEMAND: "L-417A185B", Market.SPOT: "L-7212CCBC"},
    "P5": {Market.ON_DEMAND: "L-417A185B", Market.SPOT: "L-C4BD4855"},
    "P6": {Market.ON_DEMAND: "L-417A185B"},
    "F": {Market.ON_DEMAND: "L-74FC7D96", Market.SPOT: "L-88CF9481"},
    "X": {Market.ON_DEMAND: "L-7295265B", Market.SPOT: "L-E3A00192"},
    "Inf": {Market.ON_DEMAND: "L-1945791B", Market.SPOT: "L-B5D1601B"},
    "Trn": {Market.ON_DEMAND: "L-2C3B7624", Market.SPOT: "L-6B0D517C"},
    "DL": {Market.ON_DEMAND: "L-6E869C2A", Market.SPOT: "L-85EED4F7"},
    "HPC": {Market.ON_DEMAND: "L-F7808C92"},
    "High Memory": {Market.ON_DEMAND: "L-43DA4232"},
}
"""Quotas of EC2 count vCPUs of a group of families, by region and market."""
GROUPS = (
    ("inf", "Inf"),
    ("trn", "Trn"),
    ("dl", "DL"),
    ("hpc", "HPC"),
    ("u-", "High Memory"),
    ("u7", "High Memory"),
    ("vt", "G and VT"),
    ("gr", "G and VT"),
    ("g", "G and VT"),
    ("p5", "P5"),
    ("p6", "P6"),
    ("p", "P"),
    ("f", "F"),
    ("x", "X"),
)
"""By how the name of a type begins; all others are standard."""


@lru_cache(maxsize=4096)
def quota_of(instance_type: str, market: Market) -> Quota:
    """The quota that a type counts against: its code ("" where none is known) and its group."""
    starts = (group for start, group in GROUPS if instance_type.startswith(start))
    group = next(starts, STANDARD)
    return QUOTAS[group].get(market, ""), group


def meaning(code: str) -> Meaning:
    """Kind and width of a refusal."""
    return _row(code) or OURS


def _row(code: str) -> Meaning | None:
    bare = code.partition(".")[2] if code.startswith(SIDES) else code
    found = map(EC2_REFUSALS.get, (code, bare, bare.partition(".")[0]))
    return next(filter(None, found), None)


def unstarted(error: AwsError, offer: Offer) -> Unstarted | None:
    """What EC2's reason for the end of a machine says of one that never ran; it costs nothing.

    None where it says that it was ended, by whomever.
    """
    if not error.code.startswith(SIDES) or _row(error.code) is None:
        return None
    told = refused(error, offer, zone="+".join(offer.zones))
    return Unstarted(told.refusal, told.width, told.message)


def refused(error: AwsError, offer: Offer, *, zone: str = "", nodes: int = 1) -> ProviderError:
    """The refusal in our words, with EC2's code."""
    refusal, width = meaning(error.code)
    where = offer.reservation or zone or offer.region
    if offer.reservation and refusal in OF_RESERVATIONS:
        width = Width.NOTHING  # the same type may well be had outside of it
    if refusal is Refusal.QUOTA and width is Width.FAMILY_IN_REGION:
        return ProviderError(refusal, width, quota_text(error, offer, nodes))
    message = f"{offer.instance_type} ({offer.market}) in {where}: {error.code}"
    if refusal not in {Refusal.CAPACITY, Refusal.THROTTLED}:
        message += f" ({error.message})"
    return ProviderError(refusal, width, message)


def quota_text(error: AwsError, offer: Offer, nodes: int) -> str:
    """Which quota it is, what it allows, what was wanted."""
    code, group = quota_of(offer.instance_type, offer.market)
    limit = re.search(r"limit of (\d+)", error.message)
    allowed = f" allows {limit[1]} vCPUs" if limit else " is reached"
    return (
        f"quota {code or 'of EC2'} ({group}, {offer.market}) in {offer.region}{allowed}, "
        f"{nodes * offer.cpus} more wanted"
    )
