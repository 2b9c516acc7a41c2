"""The catalogue in force: the refreshed one below the service's home, else the package's."""

import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from broker.optimize.bundled import bundled, catalog_of, packaged
from broker.optimize.catalog import Catalog

FILE = "catalog.json.z"


class Shelf:
    """Catalogues by provider, read when first asked for and again after `reload`."""

    def __init__(self, home: Path) -> None:
        self.file = home / FILE
        self._read: dict[str, Catalog] = {}

    def get(self, provider: str) -> Catalog:
        """What the provider sells; the same figures for each. Raises OSError, ValueError."""
        if provider not in self._read:
            there = self.file.exists()
            fresh = catalog_of(self.document(), provider) if there else bundled(provider)
            self._read[provider] = fresh
        return self._read[provider]

    def document(self) -> dict[str, Any]:
        """The table itself. Raises OSError, ValueError for a file that is none."""
        if not self.file.exists():
            return packaged()
        try:
            document: dict[str, Any] = json.loads(zlib.decompress(self.file.read_bytes()))
        except (zlib.error, ValueError) as error:
            raise ValueError(f"{self.file} is no catalogue ({error}): remove it") from error
        return document

    def reload(self) -> dict[str, Catalog]:
        """Reads again what was read before."""
        known = list(self._read)
        self._read = {}
        return {provider: self.get(provider) for provider in known}

    def save(self, document: Mapping[str, Any]) -> int:
        """Bytes written; the file is whole or as it was."""
        data = zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 9)
        aside = self.file.with_suffix(f".{os.getpid()}")
        aside.write_bytes(data)
        aside.replace(self.file)
        return len(data)
