"""The words of several components behind one srun."""

import asyncio
from typing import cast

import pytest

from gateway.api.programs.gangs import Tasks, commands, together
from gateway.api.stream import END, INPUT, SIGNAL, Line, Word
from gateway.api.text import Gone
from sbatch_shim.grammar.errors import GrammarError


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("-n1 a", ["-n1 a"]),
        ("-n1 a : -n2 b c", ["-n1 a", "-n2 b c"]),
        ("-n1 : -n2 : -n3 b c", ["-n1 b c", "-n2 b c", "-n3 b c"]),
        ("a : -n2 : b : --help", ["a", "-n2 b", "b", "--help"]),
        ("a : -n2", ["a", "-n2"]),
        ("a : ", ["a", ""]),
    ],
)
def test_a_component_without_a_command_has_that_of_the_next(line: str, found: list[str]) -> None:
    made = commands(line.split(), plugins=False)
    assert [" ".join(words) for words in made] == found


def test_the_first_option_that_is_none_is_told() -> None:
    with pytest.raises(GrammarError, match="--one"):
        commands(["--one", "a", ":", "--two", "b"], plugins=False)


class Typed:
    """A command's line on which words come, and then nothing more."""

    def __init__(self, *words: Word) -> None:
        self.words = list(words)

    async def hear(self) -> Word:
        if not self.words:
            raise Gone
        return self.words.pop(0)


def test_signals_and_the_end_of_input_are_for_all_components_input_for_the_first() -> None:
    typed = (Word(INPUT, b"a\n"), Word(SIGNAL, b"2"), Word(END))
    heard: list[list[Word]] = [[], [], []]

    def component(place: int, count: int) -> Tasks:
        async def run(line: Line) -> int:
            heard[place] += [await line.hear() for _ in range(count)]
            return place

        return run

    line = cast("Line", Typed(*typed))
    tasks = [component(place, count) for place, count in enumerate((3, 2, 2))]
    assert asyncio.run(together(line, tasks)) == 2
    assert heard == [list(typed), list(typed[1:]), list(typed[1:])]
