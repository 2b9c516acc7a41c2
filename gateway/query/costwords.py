"""Words by which costs are told and chosen; light, as the command line loads it too."""

COLUMNS = {
    "account": "account", "user": "user", "qos": "qos", "partition": "partition",
    "type": "instance_type", "region": "region", "market": "market", "why": "why", "day": "start",
}  # fmt: skip
"""What costs can be told by, and the column of the sums."""
FILTERS = ("user", "account", "qos", "partition", "type", "region", "market")
"""What they can be chosen by."""
