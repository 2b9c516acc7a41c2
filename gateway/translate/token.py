"""By which machines elsewhere show who speaks: a command in a job, signed for its attempt, or the
agent of a node, signed for one launch of it.
"""

import hmac
import re
from hashlib import sha256

from accounting.ids import JobId
from broker.model.errors import Denied
from broker.model.ids import NodeName

VARIABLE = "SKYPURZA_TOKEN"
FORM = re.compile(r"([0-9]{1,10})a([0-9]{1,6})x([0-9a-f]{64})")

OF_NODE = re.compile(r"([0-9A-Za-z_.+-]{1,64})/([0-9]{1,18})/([0-9a-f]{64})")
REPORTS = "reports of "
"""Before what is signed for a node: no token of an attempt is one of a node."""


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


def sign_node(seal: bytes, node: NodeName, launch: int) -> str:
    """Of one launch of a node: good for its reports, as long as it lives, and for nothing else."""
    return f"{node}/{launch}/{_mac(seal, f'{REPORTS}{node}/{launch}')}"


def read_node(seal: bytes, token: str) -> tuple[NodeName, int]:
    """The node and its launch. Raises Denied."""
    found = OF_NODE.fullmatch(token)
    signed = found and _mac(seal, f"{REPORTS}{found[1]}/{found[2]}")
    if found is None or signed is None or not hmac.compare_digest(signed, found[3]):
        raise Denied("the token is not signed by this service for a node")
    return NodeName(found[1]), int(found[2])


def _mac(seal: bytes, attempt: str) -> str:
    return hmac.new(seal, attempt.encode("ascii"), sha256).hexdigest()
