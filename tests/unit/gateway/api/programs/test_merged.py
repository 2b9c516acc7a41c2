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
    ("--only-job-state",),
    ("-s", "-l"),
    ("-s", "-S", "u"),
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


LONG = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
START = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
OF_THEIR_OWN = (
    # what is typed, the format of both sides, lines of headline, whether one of them is the date
    (("-l",), f"--format=%40P%40t%40Q{LONG}", 2, True),
    (("-l", "-S", "i"), f"--format=%40A{LONG}", 2, True),
    (("-l", "-h"), f"--format=%40P%40t%40Q{LONG}", 0, False),
    (("--start",), f"--format=%40S{START}", 1, False),
    (("--start", "-l"), f"--format=%40S{START}", 1, False),
    (("--start", "-S", "-i"), f"--format=%40A{START}", 1, False),
)


@pytest.mark.parametrize(("argv", "form", "headline", "dated"), OF_THEIR_OWN)
def test_listings_with_formats_of_their_own_are_one_listing_too(
    argv: tuple[str, ...], form: str, headline: int, dated: bool
) -> None:
    listing = merged("squeue", argv, {})
    assert listing is not None
    assert form in listing.ours
    assert form in listing.theirs
    assert "--long" not in (*listing.ours, *listing.theirs)
    assert (listing.headline, listing.dated) == (headline, dated)


def test_steps_of_both_stand_in_the_order_of_ids() -> None:
    listing = merged("squeue", ("-s", "-u", "me"), {})
    assert listing is not None
    assert (listing.ours, listing.theirs) == (("-s", "-u", "me"), ("-h", "-s", "-u", "me"))
    assert listing.spec == "1 0"


SINFO = (
    # what is typed, the format of both sides; None where the lines follow each other
    (("-N", "-o", "%N %t"), "--format=%40N%N %t"),
    (("-N", "-o", "%t", "-S", "-N"), "--format=%40N%t"),
    (("-o", "%.6t %P", "-S", "t,-P"), "--format=%40t%40P%.6t %P"),
    (("-o", "%P", "-S", "t"), None),
    (("-o", "%P"), None),
    (("-N",), None),
    (("-S", "#P", "-o", "%P"), None),
    (("-R", "-o", "%n", "-S", "n"), None),
    ((), None),
)


@pytest.mark.parametrize(("argv", "form"), SINFO)
def test_nodes_of_both_are_in_one_order_where_that_takes_no_line_apart(
    argv: tuple[str, ...], form: str | None
) -> None:
    listing = merged("sinfo", argv, {})
    found = None if listing is None else next(w for w in listing.ours if w.startswith("--format="))
    assert found == form
