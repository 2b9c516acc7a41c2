"""What a verb works with: the service, the terminal, who asks."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from broker.model.errors import SpzError
from gateway.config.paths import Paths
from gateway.query.dollars import oldest_in
from gateway.sdk.client import Client
from gateway.sdk.verbs.line import Values


@dataclass(frozen=True, slots=True)
class Counter:
    """The two sides of a command line."""

    paths: Paths
    environ: Mapping[str, str]
    commands: Callable[[Path], object] = lambda folder: None
    """Puts the service's commands below a folder."""

    @property
    def service(self) -> Client:
        return Client(self.paths.socket)

    @staticmethod
    def say(text: str) -> None:
        """To people, beside what programs read."""
        print(f"spz: {text}", file=sys.stderr)

    @staticmethod
    def confirm(question: str) -> bool:
        """Asked on standard error; nothing typed is yes; nobody there, and Ctrl-C, is no."""
        try:
            print(f"{question} [Y/n]: ", end="", file=sys.stderr, flush=True)
            answer = input().strip().lower()
        except EOFError:
            print("\nspz: nobody answers, so nothing is done; -y asks nothing", file=sys.stderr)
            return False
        except KeyboardInterrupt:
            print("\nspz: nothing is done", file=sys.stderr)
            return False
        return answer in {"", "y", "yes"}

    def requested(self, request: str) -> int:
        """The id alone is for programs; the exit status of what was begun."""
        self.say(f"`spz api status {request}` tells of it, `spz api logs` follows it")
        print(request)
        return 0

    def show(self, data: object, given: Values, text: Callable[[], str]) -> None:
        """JSON where asked for, and what tables say below of old prices beside it; else a table."""
        if not as_json(given):
            print(text())
            return
        print(json.dumps(data, indent=2))
        old = oldest_in(data)
        if old:
            self.say(old)


def tell(error: SpzError) -> None:
    """In words, on standard error."""
    for line in error.message.splitlines():
        print(f"spz: error: {line}", file=sys.stderr)
    if error.hint and not error.message.endswith(error.hint):
        print(f"     {error.hint}", file=sys.stderr)


def as_json(given: Values) -> bool:
    """In either spelling."""
    return bool(given.get("json")) or given.get("output") == "json"


def here() -> Counter:
    """The service meant by the environment. Raises Refused."""
    paths = Paths.from_environ(os.environ, uid=os.getuid(), user_home=Path.home())
    return Counter(paths, os.environ)
