"""Fair share: what is past counts less, and who used least of their share comes first."""

import pytest

from accounting.assoc import USE_PARENT
from accounting.fairshare import Branch, fill, stand


def tree() -> Branch:
    """Two accounts of equal shares: one with two users, one with one."""
    one = Branch(("one", ""), 1, [Branch(("one", "a"), 3), Branch(("one", "b"), 1)])
    two = Branch(("two", ""), 1, [Branch(("two", "c"), 1)])
    return Branch(("root", ""), 1, [one, two])


CASES = (
    ("nobody used anything", {}, {"a": 1.0, "b": 1.0, "c": 1.0}),
    ("the account that used less comes first", {"c": 100.0}, {"a": 1.0, "b": 1.0, "c": 1 / 3}),
    ("within an account by shares", {"a": 50.0, "b": 50.0}, {"c": 1.0, "a": 2 / 3, "b": 1 / 3}),
    (
        "accounts of one level are merged",
        {"a": 60.0, "b": 40.0, "c": 100.0},
        {"a": 1.0, "c": 2 / 3, "b": 1 / 3},
    ),
)


@pytest.mark.parametrize(("what", "used", "factors"), CASES)
def test_users_are_ranked_by_fair_tree(
    what: str, used: dict[str, float], factors: dict[str, float]
) -> None:
    accounts = {"a": "one", "b": "one", "c": "two"}
    root = tree()
    fill(root, {(accounts[user], user): count for user, count in used.items()})
    found = {key[1]: one.factor for key, one in stand(root).items() if key[1]}
    assert found == pytest.approx(factors), what


def test_parts_of_shares_and_use_are_told_among_siblings() -> None:
    root = tree()
    fill(root, {("one", "a"): 30.0, ("one", "b"): 10.0, ("two", "c"): 60.0})
    standing = stand(root)["one", "a"]
    assert (standing.norm_shares, standing.effective) == (0.75, 0.75)
    assert standing.norm_usage == pytest.approx(0.3)
    assert standing.level == pytest.approx(1.0)


PARENT = USE_PARENT
PARENTS = (
    # Slurm 22.05.8: shares of a, b, of their account; who used what; factors
    ("ties go on into accounts", 3, 1, 1, {}, {"a": 1.0, "b": 1.0, "c": 1.0}),
    (
        "who has the account's shares comes first in it",
        PARENT, 1, 1, {"a": 90.0, "b": 10.0}, {"c": 1.0, "a": 2 / 3, "b": 1 / 3},
    ),
    (
        "users of an account with its parent's shares stand beside it",
        8, 1, PARENT, {"a": 40.0, "b": 40.0, "c": 20.0}, {"a": 1.0, "c": 2 / 3, "b": 1 / 3},
    ),
)  # fmt: skip


@pytest.mark.parametrize(("what", "a", "b", "account", "used", "factors"), PARENTS)
def test_shares_of_the_parent_are_as_in_slurm(
    what: str, a: int, b: int, account: int, used: dict[str, float], factors: dict[str, float]
) -> None:
    one = Branch(("one", ""), account, [Branch(("one", "a"), a), Branch(("one", "b"), b)])
    root = Branch(("root", ""), 1, [one, Branch(("two", ""), 2, [Branch(("two", "c"), 1)])])
    accounts = {"a": "one", "b": "one", "c": "two"}
    fill(root, {(accounts[user], user): count for user, count in used.items()})
    found = {key[1]: each.factor for key, each in stand(root).items() if key[1]}
    assert found == pytest.approx(factors), what
