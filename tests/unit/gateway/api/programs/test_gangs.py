"""The words of several components behind one srun."""

import pytest

from gateway.api.programs.gangs import commands
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
