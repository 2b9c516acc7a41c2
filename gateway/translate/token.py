"""By which commands in jobs on machines elsewhere show whose they are: signed for one attempt."""

import hmac
import re
from hashlib import sha256

from accounting.ids import JobId
from broker.model.errors import Denied

VARIABLE = "SKYPURZA_TOKEN"
FORM = re.compile(r"([0-9]{1,10})a([0-9]{1,6})x([0-9a-f]{64})")


def sign(seal: bytes, attempt: str) -> str:
    """Of an attempt (`4711/1`); letters and digits only."""
    job, _, number = attempt.partition("/")
    return f"{job}a{number}x{_mac(seal, attempt)}"


def read(seal: bytes, token: str) -> tuple[JobId, int]:
    """The job and the number of its attempt. Raises Denied."""
    found = FORM.fullmatch(token)
    if found is None or not hmac.compare_digest(_mac(seal, f"{found[1]}/{found[2]}"), found[3]):
        raise Denied("the token is not signed by this service")
    return JobId(int(found[1])), int(found[2])


def _mac(seal: bytes, attempt: str) -> str:
    return hmac.new(seal, attempt.encode("ascii"), sha256).hexdigest()
