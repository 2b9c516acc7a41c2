"""GPUs that a step was not given stay shut to it, where the kernel lets us say so.

That takes root and control groups of version 2: a program of a few instructions, which the kernel
asks whenever one of the step's processes opens a device. Elsewhere variables alone tell a step
which are its own.
"""

import ctypes
import os
import re
import struct

from . import groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    Device = tuple[int, int]

GPU = re.compile(r"nvidia([0-9]+)")
CALLS = {"x86_64": 321, "aarch64": 280}
"""The number of the system call bpf, by machine."""
LOAD, ATTACH = 5, 8
"""BPF_PROG_LOAD, BPF_PROG_ATTACH."""
OF_DEVICES, AT_DEVICES, BESIDE_OTHERS = 15, 6, 2
"""BPF_PROG_TYPE_CGROUP_DEVICE, BPF_CGROUP_DEVICE, BPF_F_ALLOW_MULTI."""
INSTRUCTION = struct.Struct("<BBhi")
READ, UNLESS, SET, END = 0x61, 0x55, 0xB7, 0x95
"""Opcodes: a word of memory, a jump unless equal, a number, the end."""
MAJOR, MINOR = 4, 8
"""Where these are in what the program is told."""
ROOM = 128


class Fence:
    """Around one step."""

    def __init__(self, step: "dict[str, Any]", key: str) -> None:
        self.group = None  # type: Optional[groups.Group]
        shut = others(step.get("gpus") or ()) if os.geteuid() == 0 else []
        if shut:
            self.group = around(key, shut)
        step["fence"] = self.group.door if self.group is not None else ""

    def close(self) -> None:
        if self.group is not None:
            self.group.close()


def others(given: "Any", folder: str = "/dev") -> "list[Device]":
    """The numbers of all GPUs but these."""
    found = []
    for name in sorted(os.listdir(folder)):
        gpu = GPU.fullmatch(name)
        if gpu and int(gpu.group(1)) not in given:
            number = os.stat(os.path.join(folder, name)).st_rdev
            found.append((os.major(number), os.minor(number)))
    return found


def around(key: str, shut: "list[Device]") -> "Optional[groups.Group]":
    """A group whose processes cannot open these devices; None where none may be had."""
    group = groups.make_plain(key)
    if group is None:
        return None
    try:
        _attach(group.path, _loaded(program(shut)))
    except OSError:
        group.close()
        return None
    return group


def program(shut: "list[Device]") -> bytes:
    """Ends with 0 for a device that is shut, with 1 for all others."""
    words = [(READ, 2, 1, MAJOR, 0), (READ, 3, 1, MINOR, 0)]
    for major, minor in shut:
        words += [(UNLESS, 2, 0, 3, major), (UNLESS, 3, 0, 2, minor)]
        words += [(SET, 0, 0, 0, 0), (END, 0, 0, 0, 0)]
    words += [(SET, 0, 0, 0, 1), (END, 0, 0, 0, 0)]
    return b"".join(
        INSTRUCTION.pack(code, source << 4 | target, offset, number)
        for code, target, source, offset, number in words
    )


def _loaded(code: bytes) -> int:
    """A descriptor of the program. Raises OSError."""
    text, terms = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
    count = len(code) // INSTRUCTION.size
    places = ctypes.addressof(text), ctypes.addressof(terms)
    return _bpf(LOAD, struct.pack("<IIQQ", OF_DEVICES, count, *places))


def _attach(path: str, loaded: int) -> None:
    """Raises OSError."""
    group = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _bpf(ATTACH, struct.pack("<IIII", group, loaded, AT_DEVICES, BESIDE_OTHERS))
    finally:
        os.close(group)
        os.close(loaded)  # it lives on as long as the group


def _bpf(command: int, words: bytes) -> int:
    call = CALLS.get(os.uname().machine)
    if call is None:
        raise OSError("this machine's number of bpf is not known")
    room = ctypes.create_string_buffer(words, ROOM)
    done = ctypes.CDLL(None, use_errno=True).syscall(call, command, room, ROOM)
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(done)
