"""Which names a bucket of S3 can have: its rules for general purpose buckets (2025)."""

import re
from typing import Final

S3: Final = "s3://"
NEW = re.compile(
    r"(?!xn--|sthree-|amzn-s3-demo-|\d+\.\d+\.\d+\.\d+$)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
)
OTHERS: Final = ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")
"""Names of other things of S3 end so."""
OLD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}")
"""Of before 2018, with capitals and underscores; aliases of access points are named so, too."""
RULE: Final = "3 to 63 of a-z, 0-9, - and ., a letter or digit at both ends"


def can_be_made(name: str) -> bool:
    """Whether S3 makes a bucket of the name."""
    return NEW.fullmatch(name) is not None and ".." not in name and not name.endswith(OTHERS)


def can_be(url: str) -> bool:
    """Whether there can be a bucket as in `s3://BUCKET/KEY`."""
    name = url.removeprefix(S3).partition("/")[0]
    return OLD.fullmatch(name) is not None and ".." not in name
