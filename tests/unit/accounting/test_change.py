"""Changes of the book: what is put, what goes, what is mended, and who may."""

from dataclasses import replace

import pytest

from accounting.assoc import Account, Association, Book, Person, Qos, book
from accounting.change import Change, changed, folded, may_make
from accounting.ids import AccountName, UserName

ALICE, BOB = UserName("alice"), UserName("bob")
LAB, CHEM = AccountName("lab"), AccountName("chem")


def account(name: str, parent: str = "root", **more: object) -> Account:
    return Account(name=AccountName(name), parent=AccountName(parent), **more)  # type: ignore[arg-type]


def own(user: str, name: str, **more: object) -> Association:
    return Association(user=UserName(user), account=AccountName(name), **more)  # type: ignore[arg-type]


def site(**people: str) -> Book:
    made = book(
        [account("lab", coordinators=(ALICE,)), account("chem", "lab"), account("art")],
        [own("alice", "lab"), own("bob", "chem", qos=("high", "normal"), default_qos="high")],
        qos=[Qos(name="high")],
    )
    levels = {
        UserName(name): Person(name=UserName(name), admin=level) for name, level in people.items()
    }
    return replace(made, people=levels)


def test_a_record_stands_in_place_of_the_one_of_its_name() -> None:
    after = changed(site(), Change(associations=(own("bob", "chem", fairshare=7),)))
    assert [one.fairshare for one in after.associations[BOB]] == [7]


def test_associations_of_an_account_that_goes_go_with_it() -> None:
    after = changed(site(), Change(no_accounts=(CHEM,)))
    assert BOB not in after.associations
    assert ALICE in after.associations


def test_accounts_below_one_that_goes_come_below_root() -> None:
    after = changed(site(), Change(no_accounts=(LAB,)))
    assert after.accounts[CHEM].parent == "root"


def test_accounts_never_come_below_themselves() -> None:
    after = changed(site(), Change(accounts=(account("lab", "chem"),)))
    assert [one.name for one in after.lineage(CHEM)][-1] == "root"


def test_a_qos_that_goes_leaves_every_list() -> None:
    after = changed(site(), Change(no_qos=("high",)))
    assert after.associations[BOB][0].qos == ("normal",)
    assert after.associations[BOB][0].default_qos is None


def test_changes_add_up_in_their_order() -> None:
    added = Change(accounts=(account("new"),))
    after = folded(site(), [added, Change(no_accounts=(AccountName("new"),))])
    assert after == site()


MAY = (
    # who, admin, change, may
    ("eve", True, Change(qos=(Qos(name="x"),)), True),
    ("eve", False, Change(accounts=(account("x"),)), False),
    ("eve", False, Change(associations=(own("eve", "lab"),)), False),
    ("alice", False, Change(associations=(own("eve", "chem"),)), True),
    ("alice", False, Change(accounts=(account("x", "chem"),)), True),
    ("alice", False, Change(accounts=(account("x"),)), False),
    ("alice", False, Change(accounts=(account("chem", "art"),)), False),
    ("alice", False, Change(associations=(own("eve", "art"),)), False),
    ("alice", False, Change(no_people=(BOB,)), True),
    ("alice", False, Change(qos=(Qos(name="x"),)), False),
    ("alice", False, Change(people=(Person(name=BOB, admin="Operator"),)), False),
    ("alice", False, Change(associations=(own("eve", "chem", qos=("normal",)),)), True),
    ("alice", False, Change(associations=(own("eve", "chem", qos=("high",)),)), False),
    ("alice", False, Change(accounts=(account("x", "chem", qos=("high",)),)), False),
    ("alice", False, Change(accounts=(account("chem", "lab", description="else"),)), False),
    ("olga", False, Change(qos=(Qos(name="x"),)), False),
    ("olga", False, Change(no_qos=("high",)), False),
    ("olga", False, Change(associations=(own("eve", "chem", qos=("high",)),)), True),
    ("olga", False, Change(accounts=(account("chem", "lab", description="else"),)), True),
    ("olga", False, Change(people=(Person(name=BOB, admin="Operator"),)), True),
    ("olga", False, Change(people=(Person(name=UserName("olga")),)), False),
    ("anna", False, Change(qos=(Qos(name="x"),)), True),
    ("olga", False, Change(people=(Person(name=BOB, admin="Administrator"),)), False),
    ("anna", False, Change(people=(Person(name=BOB, admin="Administrator"),)), True),
)


@pytest.mark.parametrize(("who", "admin", "change", "may"), MAY)
def test_operators_change_all_and_coordinators_what_is_below_their_accounts(
    who: str, admin: bool, change: Change, may: bool
) -> None:
    known = site(olga="Operator", anna="Administrator")
    assert may_make(known, change, who, admin=admin) is may
