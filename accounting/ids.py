"""The small types that every floor shares: who, which job, how much money."""

from typing import NewType

JobId = NewType("JobId", int)
UserName = NewType("UserName", str)
AccountName = NewType("AccountName", str)
MicroUsd = NewType("MicroUsd", int)

OVERHEAD = AccountName("overhead")
"""Whom idle time of a paid machine is charged to; no association of a site may have this name."""
