"""Which format both sides of one listing print: the one that squeue alone would take."""

import pytest

from gateway.api.programs.merged import merged

USUAL = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
LETTERS, NAMES = {"SQUEUE_FORMAT": "%i"}, {"SQUEUE_FORMAT2": "JobID:9"}
FORMATS = [
    ((), {}, f"--format=%40Q{USUAL}"),
    (("-o", "%j"), {}, "--format=%40Q%j"),
    (("-O", "Name"), {}, "--Format=PriorityLong:40,Name"),
    ((), LETTERS, "--format=%40Q%i"),
    ((), NAMES, "--Format=PriorityLong:40,JobID:9"),
    ((), LETTERS | NAMES, "--format=%40Q%i"),
    (("-O", "Name"), LETTERS, "--Format=PriorityLong:40,Name"),
    (("-o", "%j"), NAMES, "--format=%40Q%j"),
]
APART = [
    ("-o", "%j", "-O", "Name"),
    ("-O", "Name", "-o", "%j"),
    ("-o", "%all"),
    ("-o", ""),
    ("-l",),
]


@pytest.mark.parametrize(("argv", "environ", "form"), FORMATS)
def test_the_format_that_counts_has_the_columns_to_sort_by_in_front(
    argv: tuple[str, ...], environ: dict[str, str], form: str
) -> None:
    listing = merged("squeue", ("--sort=-p", *argv), environ)
    assert listing is not None
    assert listing.ours == ("--sort=-p", form)
    assert listing.theirs == ("--noheader", "--sort=-p", form)


@pytest.mark.parametrize("argv", APART)
def test_formats_that_squeue_refuses_or_that_cannot_be_sorted_are_not_merged(
    argv: tuple[str, ...],
) -> None:
    assert merged("squeue", argv, {}) is None
