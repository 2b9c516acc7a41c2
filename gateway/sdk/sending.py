"""What `launch` and `exec` send: a task's text with what was typed beside it."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from broker.model.errors import Refused
from gateway.sdk.client import Json

YAML = (".yaml", ".yml")
LOGS = "sky_logs"
"""Folder in the user's home that holds the text of runs."""


def task_text(words: Sequence[str]) -> str:
    """The file's text where a task file is named, else a task that runs the words as a command.

    Raises Refused for a file that cannot be read, and for words beside it.
    """
    if not words:
        return json.dumps({})
    named, there = Path(words[0]), file_of(words[0])
    if len(words) > 1:
        if named.suffix in YAML and there:
            beside = f"{words[0]} is a task's file, and {words[1]!r} stands beside it"
            raise Refused(beside, hint="--env NAME=VALUE takes no blanks around =")
        return json.dumps({"run": " ".join(words)})
    if not there and named.suffix not in YAML:
        return json.dumps({"run": words[0]})
    path = there or named
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"{path}: not UTF-8 (byte {error.start})") from error
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from error


def file_of(word: str) -> Path | None:
    """The file of that name; None where there is none, as of a command too long for a name."""
    try:
        path = Path(word).expanduser()
        return path if path.is_file() else None
    except (OSError, RuntimeError, ValueError):  # RuntimeError: `~` of a user who is none
        return None


def variables(
    given: Iterable[str], files: Iterable[Path], environ: Mapping[str, str], *, option: str
) -> dict[str, str]:
    """`NAME=value`, or `NAME` for the caller's own; files come before. Raises Refused."""
    found: dict[str, str] = {}
    for file in files:
        found.update(_from_file(file, environ))
    for text in given:
        name, equals, value = text.partition("=")
        if not equals and name not in environ:
            raise Refused(f"{option} {name}: not set in this shell", hint=f"{option} {name}=VALUE")
        found[name] = value if equals else environ[name]
    return found


def _from_file(path: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Raises Refused for one that cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    reader = import_module("gateway.sdk.envfile")  # its patterns take a while to load
    try:
        found: dict[str, str] = reader.read(text, environ)
    except Refused as error:
        raise Refused(f"{path}: {error.message}", hint=error.hint) from None
    return found


def body_of(
    words: Sequence[str] | None,
    overrides: Mapping[str, object],
    *,
    env: Iterable[str] | None,
    env_files: Iterable[Path] | None,
    secret: Iterable[str] | None,
) -> Json:
    """What to send for a command line. Raises Refused."""
    return request(
        task_text(words or ()),
        environ=os.environ,
        overrides=overrides,
        envs=variables(env or (), env_files or (), os.environ, option="--env"),
        secret=variables(secret or (), (), os.environ, option="--secret"),
    )


def request(
    text: str,
    *,
    environ: Mapping[str, str],
    overrides: Mapping[str, Any],
    envs: Mapping[str, str],
    secret: Mapping[str, str],
) -> Json:
    """The body for the service; its id is new."""
    home = environ.get("HOME") or str(Path.home())
    return {
        "request": os.urandom(16).hex(),
        "task": text,
        "overrides": {key: value for key, value in overrides.items() if value is not None},
        "envs": dict(envs),
        "secrets": dict(secret),
        "cwd": _here(environ),
        "home": home,
        "logs": f"{home}/{LOGS}",
        "environ": dict(environ),
        "commit": commit_of(Path.cwd()),
        "host": os.uname().nodename.split(".")[0],
    }


def commit_of(folder: Path) -> str | None:
    """What is checked out of the repository there; read from its files, as git takes long."""
    for parent in (folder, *folder.parents):
        git = parent / ".git"
        try:
            head = (git / "HEAD").read_text(encoding="ascii").strip()
            if not head.startswith("ref: "):
                return head
            name = head.removeprefix("ref: ")
            if (git / name).exists():
                return (git / name).read_text(encoding="ascii").strip()
            packed = (git / "packed-refs").read_text(encoding="utf-8").splitlines()
            return next((line.split()[0] for line in packed if line.endswith(f" {name}")), None)
        except NotADirectoryError:
            return None  # a work tree elsewhere
        except (OSError, UnicodeDecodeError):
            continue
    return None


def _here(environ: Mapping[str, str]) -> str:
    """As the user's shell calls it, where that is the same folder."""
    told = environ.get("PWD", "")
    if told.startswith("/") and Path(told).exists() and Path(told).samefile(Path.cwd()):
        return told
    return str(Path.cwd())


def names_folder(body: Json) -> bool:
    """Whether the task may have a workdir of its own: then it is looked at before it is sent."""
    return "workdir" in body["task"] or "workdir" in body["overrides"]


def make_folders(home: str, cwd: str) -> None:
    """The folders of logs and of tasks without a workdir. Raises Refused for another that lacks."""
    usual = Path(home, "sky_workdir")
    for folder in (Path(home, LOGS), *([usual] if Path(cwd) == usual else [])):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Refused(f"{folder}: {error.strerror}") from error
    if not Path(cwd).is_dir():
        raise Refused(f"workdir {cwd}: no such directory", hint="it is relative to where you are")
