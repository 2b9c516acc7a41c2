"""Tables and, where it is there, the corpus of real scripts."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[4]


@pytest.fixture
def wild() -> Callable[[str], Iterator[dict[str, Any]]]:
    """Lines of a file of the corpus; skips where the corpus is not there."""
    folder = Path(os.environ.get("SKYPURZA_SHARED", ROOT.parent / "shared")) / "wild"

    def read(name: str) -> Iterator[dict[str, Any]]:
        if not (folder / name).exists():
            pytest.skip(f"no corpus of real scripts at {folder}")
        return (json.loads(line) for line in (folder / name).read_text().splitlines())

    return read
