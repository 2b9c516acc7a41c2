"""The short texts of SkyPilot's `resources`."""

import pytest

from gateway.translate import skypilot_values as values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4", values.Cpus(4, exactly=True)),
        (4, values.Cpus(4, exactly=True)),
        ("4+", values.Cpus(4, exactly=False)),
        (0.5, values.Cpus(1, exactly=False)),
        ("0.5+", values.Cpus(1, exactly=False)),
    ],
)
def test_cpus_are_exact_unless_a_plus_follows(text: object, expected: values.Cpus) -> None:
    assert values.cpus(text) == expected


@pytest.mark.parametrize(
    ("text", "mib", "per_cpu", "exactly"),
    [
        (32, 32768, 0, True),
        ("32+", 32768, 0, False),
        ("64GB", 65536, 0, True),
        ("64GiB+", 65536, 0, False),
        ("1024MB", 1024, 0, True),
        ("16Gi+", 16384, 0, False),
        ("1tb", 1 << 20, 0, True),
        ("4x", 0, 4096, False),
        ("4x+", 0, 4096, False),
        (0.1, 103, 0, True),
        ("1e3", 1024000, 0, True),
        ("1E2+", 102400, 0, False),
    ],
)
def test_memory_is_read_in_every_form(text: object, mib: int, per_cpu: int, exactly: bool) -> None:
    assert values.memory(text) == values.Memory(mib, per_cpu, exactly)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("A10G", [("A10G", 1)]),
        ("A100:8", [("A100", 8)]),
        ("V100:0.5", [("V100", 1)]),
        ({"A100": 8}, [("A100", 8)]),
        ({"A100:1": None, "L4:1": None}, [("A100", 1), ("L4", 1)]),
        ("80GB", [("80GB", 1)]),
        ("80GB+", [("80GB+", 1)]),
        ("80GB:4", [("80GB", 4)]),
        ("nvidia:80GB", [("nvidia:80GB", 1)]),
        ("nvidia:80GB+:2", [("nvidia:80GB+", 2)]),
        ("A100:2+", [("A100", 2)]),
    ],
)
def test_accelerators_are_read_in_every_form(
    value: object, expected: list[tuple[str, int]]
) -> None:
    found = values.gpus(value)
    assert [(gpu.name, gpu.count) for gpu in found.choices] == expected
    assert not found.ordered


def test_a_list_of_accelerators_is_in_order_of_liking() -> None:
    assert values.gpus(["H100:8", "A100:8"]).ordered


def test_an_accelerator_by_memory_is_told_from_one_by_name() -> None:
    by_memory = [
        gpu.by_memory for gpu in values.gpus(["80GB", "A100-80GB", "nvidia:40GB+"]).choices
    ]
    assert by_memory == [True, False, True]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("aws", values.Place("aws")),
        ("AWS/us-east-1", values.Place("aws", "us-east-1")),
        ("aws/us-east-1/use1-az4", values.Place("aws", "us-east-1", "use1-az4")),
        ("*/us-east-1", values.Place(None, "us-east-1")),
        ("aws/*/use1-az4", values.Place("aws", None, "use1-az4")),
        ("k8s/my-context", values.Place("kubernetes")),
        ("slurm/site/part", values.Place("slurm")),
    ],
)
def test_infra_is_cloud_region_zone(text: str, expected: values.Place) -> None:
    assert values.place(text) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (8080, ("8080",)),
        ("8080, 9090", ("8080", "9090")),
        (["10022-10040", 80, None], ("10022-10040", "80")),
    ],
)
def test_ports_are_read_in_every_form(value: object, expected: tuple[str, ...]) -> None:
    assert values.ports(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, values.Autostop(300)),
        (False, None),
        (10, values.Autostop(600)),
        ("2h", values.Autostop(7200)),
        ({"idle_minutes": 5, "down": True}, values.Autostop(300, down=True)),
    ],
)
def test_autostop_is_read_in_every_form(value: object, expected: values.Autostop | None) -> None:
    assert values.autostop(value) == expected


@pytest.mark.parametrize(
    ("text", "mib"),
    [("nvme", 102400), ("ssd:500", 512000), ("nvme:1000+", 1024000), ("1000+", 1024000)],
)
def test_local_disk_is_a_size_of_all_disks_together(text: str, mib: int) -> None:
    assert values.local_disk_mib(text) == mib
