"""Names of accelerators: one spelling for comparing, and the ways users write them."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Protocol

_MAKERS = re.compile(r"^(nvidia|tesla|aws|amd)(?=.)")
_MEMORY = re.compile(r"^(?:[a-z]+:)?(\d+)gb(\+?)$")
_LIKE = {"a10040gb": "a100", "h10080gb": "h100", "h200141gb": "h200", "v10016gb": "v100"}
"""Full names of what the catalogue lists under a short one."""


NOT_CUDA = frozenset({"amd-gpu", "gaudi", "other-gpu", "neuron", "inference", "fpga", "media"})
"""Accelerators that a request for any GPU does not mean; asked for by name they are found."""


class Device(Protocol):
    @property
    def gpu(self) -> str: ...
    @property
    def gpu_mem_mib(self) -> int: ...
    @property
    def cuda(self) -> bool: ...


@lru_cache(maxsize=1024)
def gpu_key(name: str) -> str:
    """The spelling that names are compared in: `A10G`, `a10g` and `nvidia_a10g` are the same."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    plain = _MAKERS.sub("", plain)
    return _LIKE.get(plain, plain)


def gres_type(name: str) -> str:
    """The type in a gres text such as `gpu:a100-80gb`: lower case, no blanks or signs."""
    return re.sub(r"[^a-z0-9-]", "", name.lower())


def nominal_gb(mem_mib: int) -> int:
    """The figure on the box: `24` of an A10G, though EC2 tells 22,888 MiB."""
    return mem_mib // 1024 if mem_mib % 1024 == 0 else round(mem_mib * 1.048576 / 1000)


def matching(name: str, devices: Iterable[Device]) -> frozenset[str]:
    """Keys that a user's word means: a name, or as in SkyPilot all GPUs of `80GB`, of `80GB+`."""
    size = _MEMORY.match(name.lower())
    if size is None:
        return frozenset((gpu_key(name),))
    least = int(size[1])
    most = 1 << 30 if size[2] else least
    sizes = ((device.gpu, nominal_gb(device.gpu_mem_mib)) for device in devices if device.cuda)
    return frozenset(gpu for gpu, size_gb in sizes if least <= size_gb <= most)
