"""Lines of `spz check` about AWS: what was looked at, whether it is right, and the way out."""

from collections.abc import Callable, Iterable

from broker.model.finding import Finding
from broker.providers.ec2.errors import AwsError, NoAnswerError

POLICY = "docs/aws-policy.json has all that is needed"
DENIED = frozenset({"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"})
RENEW = "these credentials are over: renew them (`aws sso login`)"
SIGNED = "look at the secret key, and at this host's clock"
WAYS_OUT = {
    "NoCredentials": "`aws configure`, AWS_PROFILE, or aws.profile in the configuration",
    "InvalidClientTokenId": "these credentials are not known: make new ones",
    "UnrecognizedClientException": "these credentials are not known: make new ones",
    "SignatureDoesNotMatch": SIGNED,
    "InvalidSignatureException": SIGNED,
    "IncompleteSignature": SIGNED,
    "RequestExpired": f"{RENEW}, or set this host's clock (chrony, ntpd)",
    "ExpiredToken": RENEW,
    "ExpiredTokenException": RENEW,
    "OptInRequired": "opt into the region, or leave it out of aws.regions",
    "AuthFailure": "opt into the region, or leave it out of aws.regions; where all of them say so, "
    "look at the keys, and at this host's clock",
    "AWS.SimpleQueueService.NonExistentQueue": "make the queue, or leave it out of "
    "aws.interruption_queues",
}


def guarded(name: str, look: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """What AWS says no to is a finding."""
    try:
        return list(look())
    except (AwsError, NoAnswerError) as error:
        return [failed(name, error)]


def failed(name: str, error: AwsError | NoAnswerError) -> Finding:
    """It is wrong, as AWS says or does not."""
    hint = "look at the network, and at aws.endpoint_url"
    return Finding(name, False, str(error), way_out(error) if isinstance(error, AwsError) else hint)


def way_out(error: AwsError) -> str:
    """What to do about it; "" where that is not known."""
    return POLICY if error.code in DENIED else WAYS_OUT.get(error.code, "")
