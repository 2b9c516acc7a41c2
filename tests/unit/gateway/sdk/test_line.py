"""Command lines read by the table of verbs."""

import importlib
from collections.abc import Sequence

import pytest

from gateway.sdk.verbs.line import FLAG, MANY, NUMBER, PAIR, TEXT, Opt, Verb, help_text, read
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
        (["a", "-"], "words", ["a", "-"]),
    ],
)
def test_options_and_words_stand_in_any_order(argv: Sequence[str], key: str, value: object) -> None:
    assert read(VERB, argv)[key] == value


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ([], "CLUSTER is missing"),
        (["a", "--clster", "x"], "no such option: --clster"),
        (["a", "-z"], "no such option: -z"),
        (["a", "-c"], "option -c needs a value"),
        (["a", "-i", "soon"], "option -i: 'soon' is no whole number"),
        (["a", "--yes=1"], "option --yes takes no value"),
    ],
)
def test_a_line_that_does_not_fit_is_told(argv: Sequence[str], told: str) -> None:
    with pytest.raises(Wrong) as caught:
        read(VERB, argv)
    assert caught.value.message == told


def test_a_word_too_much_is_told() -> None:
    verb = VERB._replace(words="CLUSTER")
    with pytest.raises(Wrong, match="'b' is too much"):
        read(verb, ["a", "b"])


def test_a_near_name_is_suggested() -> None:
    with pytest.raises(Wrong) as caught:
        read(VERB, ["a", "--clustr", "x"])
    assert caught.value.hint == "did you mean --cluster?"


def test_help_shows_words_and_options() -> None:
    text = help_text(VERB)
    assert text.startswith("Usage: spz try [OPTIONS] CLUSTER [ID...]\n\n  Try it.\n")
    assert "--use-spot/--no-use-spot" in text
    assert "-i, --idle N" in text


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_verb_is_done_somewhere_and_its_options_are_clear(verb: Verb) -> None:
    module, _, name = verb.does.partition(":")
    home = module if "." in module else f"gateway.sdk.verbs.{module}"
    assert callable(getattr(importlib.import_module(home), name))
    names = [name for opt in verb.options for name in opt.names.split()]
    assert len(names) == len(set(names))
    assert BY_NAME[verb.name] is verb
