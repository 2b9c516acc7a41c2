"""Where the service looks for its things."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from broker.model.errors import Refused
from gateway.config.load import MOST_BYTES, config_file, read, reread
from gateway.config.paths import Paths
from gateway.config.problems import ConfigError
from gateway.config.settings import Config

HOME = Path("/home/alice")


def paths(uid: int = 2001, **environ: str) -> Paths:
    return Paths.from_environ(environ, uid=uid, user_home=HOME)


def test_a_user_has_everything_below_the_home_directory() -> None:
    got = paths()
    assert got.home == HOME / ".skypurza"
    assert got.socket == got.home / "gateway.sock"
    assert got.pid == got.home / "gateway.pid"
    assert got.configs == (got.home / "config.yaml", Path("/etc/skypurza/config.yaml"))
    assert got.database(None) == "/home/alice/.skypurza/state.db"


def test_the_service_of_root_lives_in_var_lib() -> None:
    assert paths(uid=0).home == Path("/var/lib/skypurza")


def test_each_place_can_be_set() -> None:
    got = paths(
        SKYPURZA_HOME="/srv/spz", SKYPURZA_CONFIG="/etc/x.yaml", SKYPURZA_SOCKET="/run/spz.sock"
    )
    assert (got.home, got.configs) == (Path("/srv/spz"), (Path("/etc/x.yaml"),))
    assert (got.socket, got.lock) == (Path("/run/spz.sock"), Path("/srv/spz/lock"))


def test_the_environment_says_the_database_before_the_configuration() -> None:
    assert paths(SKYPURZA_STATE_DB="/tmp/a.db").database("sqlite:///b") == "/tmp/a.db"
    assert paths(SKYPURZA_STATE_DB="postgresql://x/y").database(None) == "postgresql://x/y"
    assert paths().database("sqlite:///b") == "sqlite:///b"


def test_a_relative_database_is_refused() -> None:
    with pytest.raises(Refused, match="neither a URL nor an absolute path"):
        paths(SKYPURZA_STATE_DB="a.db")


@pytest.mark.parametrize("name", ["SKYPURZA_HOME", "SKYPURZA_CONFIG", "SKYPURZA_SOCKET"])
def test_a_relative_path_is_refused_by_name(name: str) -> None:
    with pytest.raises(Refused, match=f"{name}=here: not an absolute path") as caught:
        paths(**{name: "here"})
    assert caught.value.hint == f'{name}="$PWD/here"'


def test_a_socket_path_that_linux_cannot_take_is_refused() -> None:
    assert paths(SKYPURZA_SOCKET="/" + "s" * 106).socket
    with pytest.raises(Refused, match="has 108 bytes") as caught:
        paths(SKYPURZA_SOCKET="/" + "s" * 107)
    assert "SKYPURZA_SOCKET" in caught.value.hint


def test_the_first_file_that_exists_is_read(tmp_path: Path) -> None:
    got = paths(SKYPURZA_HOME=str(tmp_path), SKYPURZA_SOCKET="/run/s")
    got = Paths(got.home, (tmp_path / "a", tmp_path / "b"), False, got.socket, "")
    assert (read(got).cluster, config_file(got)) == ("skypurza", None)
    (tmp_path / "b").write_text("cluster: second")
    assert (read(got).cluster, config_file(got)) == ("second", tmp_path / "b")
    (tmp_path / "a").write_text("cluster: first")
    assert read(got).cluster == "first"


def test_a_file_that_is_named_has_to_exist(tmp_path: Path) -> None:
    got = paths(SKYPURZA_CONFIG=str(tmp_path / "none.yaml"))
    with pytest.raises(ConfigError, match="no such file"):
        read(got)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"cluster: \xff")
    with pytest.raises(ConfigError, match=r"x\.yaml: 'utf-8' codec"):
        read(paths(SKYPURZA_CONFIG=str(tmp_path / "x.yaml")))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "{}: line 1: nothing is said (the running configuration stays; "),
        ("# being written\n", "{}: line 1: nothing is said"),
        (None, "{}: line 1: nothing is said"),
        ("nodes: [", "{}: line 1, column 9: "),
        ("kill_wait: 5\nclutser: x", "{}: clutser: no such setting"),
        (b"\xff", "{}: 'utf-8' codec"),
    ],
)
def test_a_service_that_runs_keeps_its_configuration_for_a_file_that_says_none(
    tmp_path: Path, text: str | bytes | None, told: str
) -> None:
    file = tmp_path / "config.yaml"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    where = replace(paths(SKYPURZA_HOME=str(tmp_path)), configs=(file,))
    with pytest.raises(ConfigError) as caught:
        reread(where, Config(kill_wait=5))
    assert caught.value.message.startswith(told.format(file))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (os.mkfifo, "not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
        (Path.mkdir, "Is a directory"),
        (lambda path: path.write_bytes(b"#" * (MOST_BYTES + 1)), f"more than {MOST_BYTES} bytes"),
    ],
)
def test_what_is_no_file_of_settings_is_refused_at_once(
    tmp_path: Path, make: Callable[[Path], object], told: str
) -> None:
    make(tmp_path / "config.yaml")
    where = replace(paths(SKYPURZA_HOME=str(tmp_path)), configs=(tmp_path / "config.yaml",))
    with pytest.raises(ConfigError, match=f"config.yaml: .*{told}"):
        reread(where, Config())


def test_who_runs_on_defaults_may_go_on_so(tmp_path: Path) -> None:
    where = replace(paths(SKYPURZA_HOME=str(tmp_path)), configs=(tmp_path / "none",))
    assert reread(where, Config()) == Config()
