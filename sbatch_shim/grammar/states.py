"""Words of job states and node states as filters take them, to canonical names."""

from __future__ import annotations

# fmt: off
JOB_STATES = (
    ("PENDING", "PD"), ("RUNNING", "R"), ("SUSPENDED", "S"), ("COMPLETED", "CD"),
    ("CANCELLED", "CA"), ("FAILED", "F"), ("TIMEOUT", "TO"), ("NODE_FAIL", "NF"),
    ("PREEMPTED", "PR"), ("BOOT_FAIL", "BF"), ("DEADLINE", "DL"), ("OUT_OF_MEMORY", "OOM"),
    ("COMPLETING", "CG"), ("CONFIGURING", "CF"), ("RESIZING", "RS"), ("RESV_DEL_HOLD", "RD"),
    ("REQUEUED", "RQ"), ("REQUEUE_FED", "RF"), ("REQUEUE_HOLD", "RH"), ("REVOKED", "RV"),
    ("SIGNALING", "SI"), ("SPECIAL_EXIT", "SE"), ("STAGE_OUT", "SO"), ("STOPPED", "ST"),
)
# fmt: on

BASE_COUNT = 12
"""The first so many are base states with the numbers 0, 1, ...; the others are flags."""

CODES = dict(JOB_STATES)
NUMBERS = {long: number for number, (long, _) in enumerate(JOB_STATES[:BASE_COUNT])}
_ANY = {word: long for long, code in JOB_STATES for word in (long, code)}


def read_job_state(text: str) -> str | None:
    """The long name of a job state given long or short, in any case; None if there is none."""
    return _ANY.get(text.upper())
