"""What was asked of EC2 and not answered yet, and where anything of ours may be: on disk."""

import hashlib
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from broker.providers.durable import write
from broker.providers.ec2 import naming
from broker.providers.ec2.requests import Call, call_from_json, call_to_json


class Intents:
    """One file per purchase whose outcome is not known; written before the call is made.

    It stays for a while after the answer: a service that is killed before it has told of what it
    bought would not find that, as long as EC2 does not show it yet.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._before = dict(self._of_before())
        """What was answered before this process began, by node."""

    def _of_before(self) -> Iterator[tuple[naming.Identity, tuple[Call, naming.Purchase]]]:
        for path in self._answered():
            asked = call_from_json(json.loads(path.read_text("utf-8")))
            yield from ((node, asked) for node in asked[1].nodes)

    def begin(self, call: Call, bought: naming.Purchase) -> None:
        """Durable when this returns."""
        with self._lock:  # several who share a purchase may ask about it at once
            write(self._path(bought), json.dumps(call_to_json(call, bought)))

    def end(self, bought: naming.Purchase) -> None:
        """Nothing came of it."""
        self._path(bought).unlink(missing_ok=True)
        for node in bought.nodes:
            self._before.pop(node, None)

    def answered(self, bought: naming.Purchase) -> None:
        """What it gave is known to who asked."""
        path = self._path(bought)
        with suppress(FileNotFoundError):  # another of those who share it was told sooner
            path.replace(path.with_suffix(f".{bought.at}"))

    def _answered(self) -> list[Path]:
        return [path for path in self._folder.iterdir() if path.suffix[1:].isdecimal()]

    def forget(self, before: int) -> None:
        """Those that were asked before that instant, and answered: EC2 shows what they gave."""
        for path in self._answered():
            if int(path.suffix[1:]) < before:
                path.unlink(missing_ok=True)

    def open(self, nodes: Sequence[naming.Identity]) -> tuple[Call, naming.Purchase] | None:
        """What was asked for these nodes, and perhaps for others beside them.

        Without an answer, or with one before this process began.
        """
        asked = (call_from_json(value) for value in self._values())
        found = next((one for one in asked if {*nodes} <= {*one[1].nodes}), None)
        known = self._before.get(nodes[0])
        if found is None and known is not None and {*nodes} <= {*known[1].nodes}:
            return known
        return found

    def regions(self) -> set[str]:
        """Where something may have been bought that nobody has heard of."""
        return {str(value["call"]["region"]) for value in self._values()}

    def _values(self) -> Iterator[Any]:
        """What is written down; one whose outcome becomes known meanwhile is left out."""
        for path in [path for path in self._folder.iterdir() if not path.suffix]:
            with suppress(FileNotFoundError):
                yield json.loads(path.read_text("utf-8"))

    def old(self, before: int) -> list[tuple[Call, naming.Purchase]]:
        """Those begun before that instant, which nobody asks about any more."""
        found = map(call_from_json, self._values())
        return [(call, bought) for call, bought in found if bought.at < before]

    def _path(self, bought: naming.Purchase) -> Path:
        words = [bought.token, *(f"{node}.{launch}" for node, launch in bought.nodes)]
        return self._folder / hashlib.sha256("\0".join(words).encode()).hexdigest()[:32]


class Regions:
    """Every region in which something was ever bought."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._names = set(path.read_text("ascii").split()) if path.exists() else set()

    def all(self) -> list[str]:
        with self._lock:
            return sorted(self._names)

    def add(self, region: str) -> None:
        """Durable when this returns."""
        with self._lock:
            if region not in self._names:
                self._names.add(region)
                write(self._path, "\n".join(sorted(self._names)) + "\n")
