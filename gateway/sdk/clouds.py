"""Clouds under SkyPilot's names, for `Resources(cloud=sdk.AWS())`: each is a word of task files.

Only AWS is served. An alternative on another cloud is left out; a task without any other is
refused when it is launched.
"""

from collections.abc import Callable


def _cloud(name: str) -> Callable[[], str]:
    def word() -> str:
        return name

    word.__doc__ = f"For `Resources(cloud=...)`: `{name}`."
    return word


AWS = _cloud("aws")
Azure = _cloud("azure")
Cudo = _cloud("cudo")
Fluidstack = _cloud("fluidstack")
GCP = _cloud("gcp")
Hyperbolic = _cloud("hyperbolic")
IBM = _cloud("ibm")
K8s = _cloud("kubernetes")
Kubernetes = _cloud("kubernetes")
Lambda = _cloud("lambda")
Mithril = _cloud("mithril")
Nebius = _cloud("nebius")
OCI = _cloud("oci")
Paperspace = _cloud("paperspace")
PrimeIntellect = _cloud("primeintellect")
RunPod = _cloud("runpod")
SCP = _cloud("scp")
SSH = _cloud("ssh")
Seeweb = _cloud("seeweb")
Shadeform = _cloud("shadeform")
Slurm = _cloud("slurm")
Vast = _cloud("vast")
Vsphere = _cloud("vsphere")
Yotta = _cloud("yotta")
