"""Devices of others, and the kernel's word on them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from broker.run.agent import devices
from broker.run.agent.devices import END, INSTRUCTION, MAJOR, READ, SET, UNLESS

NULL, ZERO, FULL = (1, 3), (1, 5), (1, 7)


def allowed(program: bytes, device: tuple[int, int]) -> bool:
    """What the program ends with when that device is opened."""
    words, registers, place = list(INSTRUCTION.iter_unpack(program)), dict.fromkeys(range(4), 0), 0
    while True:
        code, which, offset, number = words[place]
        target, place = which & 15, place + 1
        if code == READ:
            registers[target] = device[0] if offset == MAJOR else device[1]
        elif code == UNLESS:
            place += offset if registers[target] != number else 0
        elif code == SET:
            registers[target] = number
        else:
            assert code == END
            return bool(registers[0])


def test_a_program_shuts_what_it_names_and_nothing_else() -> None:
    program = devices.program([(195, 1), (195, 3), (7, 0)])
    asked = [(195, 0), (195, 1), (195, 2), (195, 3), (7, 0), (7, 1), (1, 3)]
    assert [device for device in asked if not allowed(program, device)] == [
        (195, 1),
        (195, 3),
        (7, 0),
    ]
    assert allowed(devices.program([]), (195, 1))


def test_devices_of_others_are_those_with_other_numbers(tmp_path: Path) -> None:
    for name, device in (("nvidia0", "null"), ("nvidia1", "full"), ("nvidia12", "zero")):
        (tmp_path / name).symlink_to(f"/dev/{device}")
    for name in ("nvidiactl", "nvidia-uvm", "sda1"):
        (tmp_path / name).symlink_to("/dev/null")
    assert devices.others((0, 12), str(tmp_path)) == [FULL]
    assert devices.others((), str(tmp_path)) == [NULL, FULL, ZERO]


@pytest.mark.root
def test_the_kernel_keeps_a_shut_device_from_who_is_in_the_group() -> None:
    group = devices.around(f"{os.getpid()}/1/0", [FULL]) if os.getuid() == 0 else None
    if group is None:
        pytest.skip("needs root and control groups of version 2")
    ask = (
        "import os,sys\n"
        "open(sys.argv[1], 'w').write('0')\n"
        "os.close(os.open('/dev/zero', os.O_RDONLY))\n"
        "os.open('/dev/full', os.O_RDONLY)\n"
    )
    argv = [sys.executable, "-IS", "-c", ask, group.door]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    group.close()
    assert "PermissionError: [Errno 1] Operation not permitted: '/dev/full'" in done.stderr
    assert not Path(group.path).exists()
