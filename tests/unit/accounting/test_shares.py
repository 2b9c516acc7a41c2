"""The tree of shares made from the book."""

from accounting.assoc import USE_PARENT, Account, Association, book
from accounting.fairshare import fill, stand, tree
from accounting.ids import AccountName, UserName


def own(user: str, account: str, shares: int, partition: str | None = None) -> Association:
    return Association(
        user=UserName(user), account=AccountName(account), fairshare=shares, partition=partition
    )


def test_the_tree_has_each_user_once_and_ranks_who_used_least_of_their_share_first() -> None:
    known = book(
        [Account(name=AccountName("a"), fairshare=3), Account(name=AccountName("b"))],
        [own("x", "a", 1), own("x", "a", 1, "debug"), own("y", "a", 1), own("z", "b", 1)],
    )
    root = tree(known)
    fill(root, {("a", "x"): 300.0, ("a", "y"): 100.0, ("b", "z"): 600.0})
    found = stand(root)
    factors = {key: one.factor for key, one in found.items() if key[1]}
    assert factors == {("a", "y"): 1.0, ("a", "x"): 2 / 3, ("b", "z"): 1 / 3}


def test_a_user_with_the_parents_shares_stands_as_the_account_does() -> None:
    known = book([Account(name=AccountName("a"))], [own("x", "a", USE_PARENT), own("y", "a", 1)])
    root = tree(known)
    fill(root, {("a", "x"): 10.0})
    found = stand(root)
    assert found["a", "x"].level == found["a", ""].level
