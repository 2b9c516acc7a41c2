"""What a machine is told at its first boot: keys, the timer that ends it, nothing secret of users.

It is cloud-config; JSON is YAML, so no text of ours is ever quoted by hand.
"""

import json
from collections.abc import Sequence

from broker.providers.ec2.keys import KeyPair

MOST_BYTES = 16 << 10
"""What EC2 takes, before base64."""


def user_data(*, host: KeyPair, login: str, minutes: int, arrives: Sequence[str] = ()) -> str:
    """The machine's host key, who may log in, and when it ends by itself whatever happens.

    `arrives` brings the agent, as soon as there is a network; where that has no room the agent
    comes with who logs in first. Raises ValueError if it is longer than EC2 takes without it.
    """
    config = {
        "ssh_keys": {"ed25519_private": host.private, "ed25519_public": host.public},
        "ssh_genkeytypes": ["ed25519"],
        "ssh_deletekeys": True,
        "ssh_authorized_keys": [login],
        "disable_root": True,
        "ssh_pwauth": False,
        # Updates in the background would hold the package lock when the first job comes.
        "package_update": False,
        "package_upgrade": False,
        "runcmd": [f"shutdown -h +{minutes}"],
    }
    whole = _text({**config, "bootcmd": [list(arrives)]}) if arrives else ""
    if whole and len(whole.encode()) <= MOST_BYTES:
        return whole
    text = _text(config)
    if len(text.encode()) > MOST_BYTES:
        raise ValueError(f"user data of {len(text.encode())} bytes, EC2 takes {MOST_BYTES}")
    return text


def _text(config: dict[str, object]) -> str:
    return "#cloud-config\n" + json.dumps(config, indent=1) + "\n"
