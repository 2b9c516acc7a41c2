"""Root makes folders for users: where links may lead it, and where nobody can make it go."""

import os
import threading
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from broker.run.agent.landing import make_folder

USER = 23456
pytestmark = pytest.mark.root


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder of the user's, where the user may do anything."""
    tmp_path.chmod(0o755)
    folder = tmp_path / "user"
    folder.mkdir()
    os.chown(folder, USER, USER)
    return folder


def link(path: Path, target: str, owner: int = 0) -> None:
    path.symlink_to(target)
    os.chown(path, owner, owner, follow_symlinks=False)


def test_the_last_folder_is_the_users_and_those_above_are_roots(tmp_path: Path) -> None:
    make_folder(f"{tmp_path}/a//b/./c", USER, USER)
    owners = [(tmp_path / name).stat().st_uid for name in ("a", "a/b", "a/b/c")]
    assert owners == [0, 0, USER]


@pytest.mark.parametrize("who", [USER, USER + 1])
def test_root_makes_nothing_in_a_users_folder(mine: Path, who: int) -> None:
    with pytest.raises(PermissionError):
        make_folder(f"{mine}/a/b", who, who)
    assert list(mine.iterdir()) == []


def test_what_is_there_stays_as_it_is(mine: Path) -> None:
    (mine / "roots").mkdir()
    make_folder(str(mine / "roots"), USER, USER)
    assert (mine / "roots").stat().st_uid == 0


@pytest.mark.parametrize("target", ["real", "./real", "../root/real", "{}/root/real"])
def test_links_of_roots_are_followed(tmp_path: Path, target: str) -> None:
    (tmp_path / "root" / "real").mkdir(parents=True)
    link(tmp_path / "root" / "link", target.format(tmp_path))
    make_folder(f"{tmp_path}/root/link/new", USER, USER)
    assert (tmp_path / "root" / "real" / "new").stat().st_uid == USER


@pytest.mark.parametrize("owner", [0, USER])
def test_no_link_in_a_users_folder_is_followed(tmp_path: Path, mine: Path, owner: int) -> None:
    (tmp_path / "roots").mkdir()
    link(mine / "link", str(tmp_path / "roots"), owner)
    with pytest.raises(PermissionError):
        make_folder(f"{mine}/link/new", USER, USER)
    assert list((tmp_path / "roots").iterdir()) == []


def test_links_that_lead_round_end(tmp_path: Path) -> None:
    link(tmp_path / "a", "b")
    link(tmp_path / "b", "a")
    with pytest.raises(OSError, match="Too many levels"):
        make_folder(f"{tmp_path}/a/new", USER, USER)


def test_a_folder_that_is_exchanged_for_a_link_meanwhile_leads_nowhere(
    tmp_path: Path, mine: Path
) -> None:
    (tmp_path / "roots").mkdir()
    (mine / "real").mkdir()
    (mine / "link").symlink_to(tmp_path / "roots")
    over = threading.Event()

    def exchange() -> None:
        """A folder that was made in between stays beside."""
        for number in count():
            for old, new in (("real", "x"), ("link", "real"), ("real", "link"), ("x", "real")):
                with suppress(OSError):
                    (mine / old).rename(mine / new)
            with suppress(OSError):
                (mine / "x").rename(mine / f"old{number}")
            if over.is_set():
                return

    other = threading.Thread(target=exchange)
    other.start()
    try:
        for number in range(300):
            try:
                make_folder(f"{mine}/real/deep/{number}", USER, USER)
            except OSError:
                continue
    finally:
        over.set()
        other.join()
    assert list((tmp_path / "roots").iterdir()) == []


@pytest.mark.parametrize("path", ["/etc/spz-test/x", "/usr/local/spz-test", "/var/spz-test"])
def test_nothing_is_made_for_users_below_the_systems_own_folders(path: str) -> None:
    with pytest.raises(PermissionError):
        make_folder(path, USER, USER)
    assert not Path(path).exists()
    assert not Path(path).parent.name.startswith("spz-test") or not Path(path).parent.exists()


def test_no_way_round_leads_into_the_systems_own_folders(tmp_path: Path) -> None:
    link(tmp_path / "link", "/etc")
    for path in (f"{tmp_path}/link/spz-test", f"{tmp_path}/{'../' * 20}etc/spz-test"):
        with pytest.raises(PermissionError):
            make_folder(path, USER, USER)
    assert not Path("/etc/spz-test").exists()
