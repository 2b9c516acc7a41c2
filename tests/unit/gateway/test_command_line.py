"""Command lines read by Typer by the table of verbs."""

import importlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.cli import read, run
from gateway.sdk.verbs import overview
from gateway.sdk.verbs.line import FLAG, MANY, NUMBER, PAIR, TEXT, Opt, Verb
from gateway.sdk.verbs.line import UsageError as Wrong
from gateway.sdk.verbs.table import BY_NAME, VERBS

VERB = Verb(
    "try",
    "x:y",
    "Try it.",
    "CLUSTER [ID...]",
    (
        Opt("-y --yes", FLAG, "Do not ask."),
        Opt("-c --cluster", TEXT, "Name.", "NAME"),
        Opt("-i --idle", NUMBER, "Minutes."),
        Opt("--env", MANY, "Variable."),
        Opt("--use-spot", PAIR, "Spot."),
        Opt("--no-setup", FLAG, "Leave setup out."),
        Opt("--async", FLAG, "Come back at once."),
        Opt("--tier", TEXT, "Of the disk.", "TIER", choices=("low", "high")),
    ),
)


@pytest.mark.parametrize(
    ("argv", "key", "value"),
    [
        (["a", "-c", "dev"], "cluster", "dev"),
        (["a", "-cdev"], "cluster", "dev"),
        (["--cluster=dev", "a"], "cluster", "dev"),
        (["a", "-yi30"], "idle", 30),
        (["a", "-i", "-1"], "idle", -1),
        (["a", "-y", "1", "2"], "words", ["a", "1", "2"]),
        (["a", "--", "-y"], "words", ["a", "-y"]),
        (["a", "--env", "A=1", "--env=B"], "env", ["A=1", "B"]),
        (["a", "--use-spot"], "use_spot", True),
        (["a", "--no-use-spot"], "use_spot", False),
        (["a"], "use_spot", None),
        (["a"], "yes", False),
        (["a"], "env", []),
        (["a"], "cluster", None),
        (["--no-setup", "--async", "a"], "no_setup", True),
        (["--no-setup", "--async", "a"], "async", True),
        (["--cluster", "-h", "a"], "cluster", "-h"),
        (["a", "--", "-h"], "words", ["a", "-h"]),
        (["a", "-"], "words", ["a", "-"]),
        (["a", "--tier", "High"], "tier", "high"),
        (["a"], "tier", None),
    ],
)
def test_options_and_words_stand_in_any_order(argv: Sequence[str], key: str, value: object) -> None:
    given = read(VERB, argv)
    assert given is not None and given[key] == value


def test_words_stop_options_where_the_row_says_so() -> None:
    verb = VERB._replace(words="[WORD...]!")
    given = read(verb, ["-y", "a", "-x", "--env", "b"])
    assert given is not None
    assert (given["yes"], given["words"]) == (True, ["a", "-x", "--env", "b"])


@pytest.mark.parametrize("argv", [["-n", "x", "t.yaml"], ["t.yaml", "--ports", "80"], ["--all"]])
def test_what_is_not_offered_takes_any_options_to_say_so(argv: Sequence[str]) -> None:
    assert read(BY_NAME["serve up"], argv) == {"words": argv}


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ([], "CLUSTER is missing"),
        (["a", "--zzz", "x"], "No such option: --zzz"),
        (["a", "--clustr", "x"], "No such option: --clustr (Possible options: --cluster)"),
        (["a", "-z"], "No such option: -z"),
        (["a", "-yz"], "No such option: -z"),
        (["a", "-c"], "Option '-c' requires an argument."),
        (["a", "-i", "soon"], "option --idle: 'soon' is no whole number"),
        (["a", "--yes=1"], "Option '--yes' does not take a value."),
        (["a", "--tier", "best"], "option --tier: 'best' is none of low, high"),
    ],
)
def test_a_line_that_does_not_fit_is_told(argv: Sequence[str], told: str) -> None:
    with pytest.raises(Wrong) as caught:
        read(VERB, argv)
    assert caught.value.message == told


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (["a", "--clustr"], "`spz try -h` lists what it takes"),
        ([], "Usage: spz try [OPTIONS] CLUSTER [ID...]"),
    ],
)
def test_the_way_out_is_told_too(argv: Sequence[str], hint: str) -> None:
    with pytest.raises(Wrong) as caught:
        read(VERB, argv)
    assert caught.value.hint == hint


def test_a_word_too_much_is_told() -> None:
    verb = VERB._replace(words="CLUSTER")
    with pytest.raises(Wrong, match="'b' is too much"):
        read(verb, ["a", "b"])


@pytest.mark.parametrize("argv", [["-h"], ["--help"], ["a", "-yh"], ["a", "-i", "soon", "--help"]])
def test_help_shows_words_and_options(
    argv: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert read(VERB, argv) is None
    text = capsys.readouterr().out
    assert text.startswith("Usage: spz try [OPTIONS] CLUSTER [ID...]\n\n  Try it.\n\nOptions:\n")
    assert "--use-spot / --no-use-spot  Spot.\n" in text
    assert "-c, --cluster NAME " in text
    assert "--tier TIER " in text
    assert "Of the disk: low, high.\n" in text
    assert "-h, --help " in text


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_verb_has_help_with_all_its_options(
    verb: Verb, capsys: pytest.CaptureFixture[str]
) -> None:
    assert read(verb, ["-h"]) is None
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: spz {verb.name} [OPTIONS]")
    assert [opt.names for opt in verb.options if ", ".join(opt.names.split()) not in text] == []


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_verb_is_done_somewhere_and_its_options_are_clear(verb: Verb) -> None:
    module, _, name = verb.does.partition(":")
    home = module if "." in module else f"gateway.sdk.verbs.{module}"
    assert callable(getattr(importlib.import_module(home), name))
    names = [name for opt in verb.options for name in opt.names.split()]
    assert len(names) == len(set(names))
    assert BY_NAME[verb.name] is verb


@pytest.mark.parametrize("group", sorted(overview.groups()))
def test_every_group_has_a_line_of_its_own_about_it(group: str) -> None:
    about = overview.listing(group).splitlines()[2].strip()
    assert about
    assert about != overview.ABOUT
    assert f"`spz {group} COMMAND -h`" in overview.listing(group)


def test_an_option_that_changes_nothing_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("SKYPURZA_HOME", str(tmp_path))
    assert run(BY_NAME["api logout"], ["--config", "a.b=c"]) == 0
    assert "note: option --config: ignored, settings are the service's" in capsys.readouterr().err
