"""How the agent comes to a machine by user data, before anybody has logged in. Pure.

Only where it is, by its hash, is told there: users of the machine can read its user data. What the
agent keeps secret comes over the first connection.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from broker.run.bootstrap import FIND_PYTHON

ARRIVE = """\
folder=$1 user=$2 find=$3 fetch=$4; shift 4
[ "$(id -un)" = "$user" ] || exit 0
case $folder in '~/'*) folder=$HOME/${folder#??} ;; esac
[ -e "$folder" ] && exit 0
umask 022
/bin/sh -c "$find" sh "$1" && exec "$1" -IS -c "$fetch" "$folder" "$@"
"""
"""Does nothing where anything was before: at a later boot, or where who logs in was quicker."""
FETCH = """\
import hashlib, http.client, os, ssl, sys, time
from urllib.parse import urlsplit
folder, python, url, digest, pin, names = sys.argv[1:7]
def said(url, method="GET", **headers):
    where = urlsplit(url)
    line = http.client.HTTPConnection(where.hostname, where.port, timeout=20)
    if where.scheme == "https":
        line = http.client.HTTPSConnection(where.hostname, where.port, timeout=20,
                                           context=ssl._create_unverified_context())
    line.connect()
    if pin and where.scheme == "https":
        shown = hashlib.sha256(line.sock.getpeercert(True)).hexdigest()
        if shown != pin:
            raise OSError("another certificate: " + shown)
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    line.request(method, where.path + ("?" + where.query if where.query else ""), None, headers)
    answer = line.getresponse()
    if answer.status != 200:
        raise OSError("%s answers %d" % (where.netloc, answer.status))
    return answer.read(64 << 20)
def name():
    known = names.split(",")
    if len(known) == 1:
        return known[0]
    imds = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or "http://169.254.169.254"
    ttl = {"X_aws_ec2_metadata_token_ttl_seconds": "60"}
    token = said(imds + "/latest/api/token", "PUT", **ttl).decode()
    index = said(imds + "/latest/meta-data/ami-launch-index", X_aws_ec2_metadata_token=token)
    return known[int(index)]
def arrive():
    own, data = name(), said(url)
    if hashlib.sha256(data).hexdigest() != digest:
        raise OSError("another archive than was told")
    os.makedirs(folder, 0o711, exist_ok=True)
    archive, draft = folder + "/agent.pyz", folder + "/.agent.%d" % os.getpid()
    with open(draft, "wb") as file:
        file.write(data)
    os.chmod(draft, 0o755)
    os.rename(draft, archive)
    words = [python, "-IS", archive, "serve", "--dir", folder, "--node", own]
    os.execv(python, words + sys.argv[7:])
for wait in [1] * 20 + [5] * 20:
    try:
        arrive()
    except (OSError, ValueError, IndexError, http.client.HTTPException) as error:
        sys.stderr.write("agent: %s\\n" % error)
    time.sleep(wait)
"""
"""The hash says whether it is what it should be; nothing else is believed. No proxy is asked."""
ASIDE = """\
told=/dev/console
{ : > "$told"; } 2> /dev/null || told=/dev/null
setsid /bin/sh -c "$@" < /dev/null > "$told" 2>&1 &
"""
"""Nothing else of the boot waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """What a machine is told; `names` are its node's, or of several by their launch index."""

    url: str
    digest: str
    """SHA-256 of the archive, in hexadecimal."""
    pin: str = ""
    """That of the certificate that is shown; empty: the hash of the archive is enough."""
    names: Sequence[str]
    folder: str
    """May begin with ~/."""
    python: str
    user: str
    """As whom the agent runs; another one starts nothing."""
    options: Sequence[str]

    def argv(self) -> list[str]:
        """What runs once, when the network is up."""
        told = (self.python, self.url, self.digest, self.pin, ",".join(self.names), *self.options)
        words = (ARRIVE, "sh", self.folder, self.user, FIND_PYTHON, FETCH, *told)
        return ["/bin/sh", "-c", ASIDE, "sh", *words]
