"""Feature expressions: what `--constraint` asks of a node."""

from collections.abc import Sequence


def has_features(constraint: str, features: Sequence[str]) -> bool:
    """Whether features satisfy `a&b|c`, read strictly left to right as Slurm does (25.11)."""
    known = set(features)
    held = True
    joined_by = "&"
    word = ""
    for char in constraint.replace("[", "").replace("]", "") + "&":
        if char not in "&|":
            word += char
            continue
        one = word.partition("*")[0].strip("()") in known
        held = (held and one) if joined_by == "&" else (held or one)
        joined_by, word = char, ""
    return held


def words(constraint: str) -> list[str]:
    """The feature names in an expression."""
    plain = constraint.translate(str.maketrans("&|[]()", "      "))
    return [word.partition("*")[0] for word in plain.split()]
