"""Brings a node's agent up: the archive put there, started, asked whether it lives."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from broker.model.node import Node
from broker.model.offer import Machine
from broker.model.reports import Booted, NotBooted
from broker.ports import Done, Place, Provider, Reach
from broker.run.agent import version
from broker.run.launch import agent_package, agent_zipapp, leave, ping, push, reply, serve_argv

START_SECONDS = 20.0
"""How long the start of an agent may take."""
ARCHIVE = "agent.pyz"
INSTALL_SECONDS = 300.0
FIND_PYTHON = """\
wanted=$1
usable() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 6))' 2>/dev/null; }
link() {
  usable "$wanted" && return
  for name in python3 python3.13 python3.12 python3.11 python3.10 python3.9 python3.8 python3.7 \\
      python3.6 /usr/libexec/platform-python; do
    found=$(command -v "$name") && usable "$found" || continue
    mkdir -p "${wanted%/*}" && ln -sf "$found" "$wanted" && return
  done
  return 1
}
link && exit 0
if command -v apt-get; then
  apt-get -q update; DEBIAN_FRONTEND=noninteractive apt-get -yq install python3
elif command -v dnf; then dnf -yq install python3
elif command -v yum; then yum -yq install python3
elif command -v zypper; then zypper -nq install python3
elif command -v apk; then apk add -q python3
fi >&2
link && exit 0
echo "there is no Python 3.6 or newer, and none could be installed" >&2
exit 1
"""
"""Makes a Python 3.6 or newer run under the name that is given, for any POSIX shell."""


def prepare(node: Node, reach: Reach, providers: Iterable[Provider]) -> Booted | NotBooted | None:
    """Booted once the agent answers; None while the machine cannot be reached yet."""
    try:
        bring_up(node, reach.place(node))
    except OSError:
        return None
    except ValueError as error:
        return NotBooted(node=node.name, launch=node.launch, message=str(error))
    return Booted(node=node.name, launch=node.launch, machine=_as_it_is(node, providers))


def _as_it_is(node: Node, providers: Iterable[Provider]) -> Machine | None:
    """The machine as its provider shows it now: since when it is billed is known only then."""
    if node.declared:
        return None
    held = (machine for provider in providers for machine in provider.machines())
    return next((m for m in held if m.identity == node.identity), None)


def bring_up(node: Node, place: Place) -> Mapping[str, object]:
    """What the agent says of itself. Safe to repeat.

    Raises OSError if the node is out of reach, ValueError if it will not do.
    """
    said = _hello(node, place)
    if said is not None and not _gave_way(said, place):
        return _told(said, place)
    place.channel.put(agent_zipapp(), place.archive, 0o755)
    done = _serve(node, place)
    if done.code != 0:
        raise ValueError(f"the agent of {node.name} does not start: {_last_line(done.err)}")
    said = _hello(node, place)
    if said is None:
        raise OSError(f"the agent of {node.name} does not answer")
    return _told(said, place)


def _told(said: Mapping[str, object], place: Place) -> Mapping[str, object]:
    """It hears where to post, unless it knows; one of before that could be asked goes on as it was.

    Raises OSError.
    """
    known = said.get("push")
    if place.push is not None and known not in (None, version.told(asdict(place.push))):
        _ask(place, push(place.push))
    return said


def _serve(node: Node, place: Place) -> Done:
    """Where no Python is, one is found or installed first. Raises OSError, ValueError."""
    argv = serve_argv(place.python, place.archive, folder=place.folder, node=node.name)
    try:
        return place.channel.run([*argv, *place.options], timeout=START_SECONDS)
    except FileNotFoundError:
        find = ["/bin/sh", "-c", FIND_PYTHON, "sh", place.python]
        found = place.channel.run(find, timeout=INSTALL_SECONDS)
        if found.code != 0:
            raise ValueError(f"{node.name}: {_last_line(found.err)}") from None
    return place.channel.run([*argv, *place.options], timeout=START_SECONDS)


def answers(node: Node, place: Place) -> bool:
    """Whether the agent answers a ping."""
    return _hello(node, place) is not None


def _hello(node: Node, place: Place) -> Mapping[str, object] | None:
    """What the agent says of itself; None if there is none. It hears what is fetched."""
    try:
        said = _ask(place, ping(node.journal))
    except (OSError, ValueError):
        return None
    return said if said.get("ok") is True else None


def _gave_way(said: Mapping[str, object], place: Place) -> bool:
    """Whether an agent of another version has left; one with live steps leaves after them."""
    if said.get("package", "") in {"", agent_package()}:
        return False
    try:
        answer = _ask(place, leave())
    except (OSError, ValueError):
        return False
    return answer.get("ok") is True and not answer.get("live")


def _ask(place: Place, request: bytes) -> Mapping[str, object]:
    return reply(place.channel.ask(f"{place.folder}/agent.sock", request, timeout=5.0))


def _last_line(text: bytes) -> str:
    lines = text.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it says nothing"
