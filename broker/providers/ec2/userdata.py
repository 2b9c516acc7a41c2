"""What a machine is told at its first boot: keys, the timer that ends it, nothing secret of users.

It is cloud-config; JSON is YAML, so no text of ours is ever quoted by hand.
"""

import json

from broker.providers.ec2.keys import KeyPair

MOST_BYTES = 16 << 10
"""What EC2 takes, before base64."""


def user_data(*, host: KeyPair, login: str, minutes: int) -> str:
    """The machine's host key, who may log in, and when it ends by itself whatever happens.

    Raises ValueError if it is longer than EC2 takes.
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
    text = "#cloud-config\n" + json.dumps(config, indent=1) + "\n"
    if len(text.encode()) > MOST_BYTES:
        raise ValueError(f"user data of {len(text.encode())} bytes, EC2 takes {MOST_BYTES}")
    return text
