"""The resource vector: arithmetic, Slurm's text forms, billing weights."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.tres import (
    BillingMode,
    Tres,
    Weights,
    billing,
    by_id,
    by_name,
    gres_counts,
    memory_text,
    parse_weights,
)

COUNTS = st.integers(0, 10**6)
VECTORS = st.builds(
    Tres,
    cpu=COUNTS,
    mem_mib=COUNTS,
    node=COUNTS,
    gres=st.dictionaries(st.sampled_from(["gpu:a10g", "gpu:h100", "fpga"]), COUNTS).map(
        gres_counts
    ),
)
GPU = Tres(cpu=1, mem_mib=1024, node=1, gres=gres_counts({"gpu:a10g": 1}))
SITE = "CPU=1.0,Mem=0.25G,GRES/gpu=4.0"


def test_an_untyped_sum_stands_beside_each_type():
    counts = gres_counts({"gpu:h100": 1, "gpu:a10g": 2, "fpga": 1, "nic": 0})
    assert counts == (("fpga", 1), ("gpu", 3), ("gpu:a10g", 2), ("gpu:h100", 1))


@given(VECTORS, VECTORS)
def test_what_is_taken_away_comes_back(one, other):
    assert (one + other) - other == one
    assert one.fits(one + other)


@given(VECTORS, st.integers(0, 9))
def test_a_multiple_is_repeated_addition(one, factor):
    assert one.times(factor) == sum([one] * factor, Tres())


@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        (Tres(cpu=4, mem_mib=16000), True),
        (Tres(cpu=5), False),
        (Tres(mem_mib=16001), False),
        (Tres(gres=gres_counts({"gpu": 2})), True),
        (Tres(gres=gres_counts({"gpu:a10g": 3})), False),
        (Tres(gres=gres_counts({"gpu:h100": 1})), False),
        (Tres(node=7), True),
    ],
)
def test_a_request_fits_if_each_resource_does(asked, fits):
    free = Tres(cpu=4, mem_mib=16000, gres=gres_counts({"gpu:a10g": 2}))
    assert asked.fits(free) is fits


@pytest.mark.parametrize(
    ("part", "share"),
    [
        (Tres(cpu=1, mem_mib=1024), Fraction(1, 4)),
        (Tres(cpu=1, mem_mib=8000), Fraction(1, 2)),
        (Tres(cpu=1, gres=gres_counts({"gpu:a10g": 2})), Fraction(1)),
        (Tres(), Fraction(0)),
        (Tres(gres=(("fpga", 1),)), Fraction(0)),
    ],
)
def test_the_dominant_share_is_the_largest_fraction_of_any_resource(part, share):
    whole = Tres(cpu=4, mem_mib=16000, gres=gres_counts({"gpu:a10g": 2}))
    assert part.dominant_share(whole) == share


@pytest.mark.parametrize(
    ("mib", "text"),
    [
        (1, "1M"),
        (1000, "1000M"),
        (1024, "1G"),
        (1536, "1.50G"),
        (2560, "2.50G"),
        (16000, "16000M"),
        (64000, "62.50G"),
        (1024**2, "1T"),
        (1024 * 9999, "9999G"),
        (1024 * 100000, "100000G"),
    ],
)
def test_memory_is_shown_in_the_largest_unit_exact_to_a_half(mib, text):
    assert memory_text(mib) == text


# What Slurm 25.11.7 answered at a site with the weights above.
@pytest.mark.parametrize(
    ("tres", "scontrol", "sacct"),
    [
        (
            Tres(cpu=1, mem_mib=1024, node=1),
            "cpu=1,mem=1G,node=1,billing=1",
            "billing=1,cpu=1,mem=1G,node=1",
        ),
        (
            GPU,
            "cpu=1,mem=1G,node=1,billing=5,gres/gpu=1,gres/gpu:a10g=1",
            "billing=5,cpu=1,gres/gpu:a10g=1,gres/gpu=1,mem=1G,node=1",
        ),
        (
            Tres(cpu=1, mem_mib=1024, node=1, gres=(("gpu", 99),)),
            "cpu=1,mem=1G,node=1,billing=397,gres/gpu=99",
            "billing=397,cpu=1,gres/gpu=99,mem=1G,node=1",
        ),
        (
            Tres(cpu=16, mem_mib=64000, node=4, gres=gres_counts({"gpu:a10g": 8})),
            "cpu=16,mem=62.50G,node=4,billing=63,gres/gpu=8,gres/gpu:a10g=8",
            "billing=63,cpu=16,gres/gpu:a10g=8,gres/gpu=8,mem=62.50G,node=4",
        ),
        (
            Tres(cpu=4, mem_mib=16000, gres=gres_counts({"gpu:a10g": 2})),
            "cpu=4,mem=16000M,billing=15,gres/gpu=2,gres/gpu:a10g=2",
            "billing=15,cpu=4,gres/gpu:a10g=2,gres/gpu=2,mem=16000M",
        ),
        (
            Tres(cpu=9999, mem_mib=9999 * 1024, node=1),
            "cpu=9999,mem=9999G,node=1,billing=12498",
            "billing=12498,cpu=9999,mem=9999G,node=1",
        ),
        (Tres(), "", ""),
    ],
)
def test_text_and_billing_are_what_slurm_prints(tres, scontrol, sacct):
    units = billing(tres, parse_weights(SITE))
    assert by_id(tres, units) == scontrol
    assert by_name(tres, units) == sacct


def test_steps_are_shown_without_billing():
    assert by_name(GPU) == "cpu=1,gres/gpu:a10g=1,gres/gpu=1,mem=1G,node=1"


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        (SITE, Weights(1.0, 0.25 / 1024, 0.0, (("gpu", 4.0),))),
        ("cpu=2, mem=1", Weights(2.0, 1.0)),
        ("Mem=0.5t,Node=3", Weights(0.0, 0.5 / 1024**2, 3.0)),
        ("Mem=0.5K,CPU=1K", Weights(1 / 1024, 512.0)),
        ("GRES/gpu:A10G=1.5", Weights(gres=(("gpu:a10g", 1.5),))),
        ("License/x=3,Energy=1", Weights()),
        ("", None),
    ],
)
def test_weights_ignore_case_and_scale_memory_by_its_unit(text, weights):
    assert parse_weights(text) == weights


@pytest.mark.parametrize(
    "part",
    ["CPU", "CPU=", "CPU=x", "Mem=0.25X", "CPU=-1", "CPU=nan", "CPU=1e3", "GRES/=1", "nosuch=1"],
)
def test_a_bad_weight_is_named(part):
    with pytest.raises(ValueError, match="NAME=NUMBER") as caught:
        parse_weights(f"Mem=1,{part}")
    assert repr(part) in str(caught.value)


@pytest.mark.parametrize(
    ("mode", "gpus", "units"),
    [
        (BillingMode.SUM, 0, 3),
        (BillingMode.MAX_TRES, 0, 2),
        (BillingMode.SUM, 1, 5),
        (BillingMode.MAX_TRES, 1, 2),
        (BillingMode.MAX_TRES_GRES, 1, 4),
    ],
)
def test_billing_sums_or_takes_the_largest_as_the_flags_say(mode, gpus, units):
    tres = Tres(cpu=1, mem_mib=8192, node=1, gres=gres_counts({"gpu": gpus}))
    assert billing(tres, parse_weights("CPU=1,Mem=0.25G,GRES/gpu=2"), mode) == units


def test_without_weights_billing_is_the_number_of_cpus():
    assert billing(Tres(cpu=3, mem_mib=48000, node=3), parse_weights("")) == 3
