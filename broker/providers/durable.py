"""Files that a provider has to find again after any kill: whole, on disk, for their owner alone."""

import os
from pathlib import Path


def write(path: Path, text: str) -> None:
    """Replaces the file at once; it is durable when this returns. Raises OSError."""
    draft = path.with_name(path.name + ".new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with os.fdopen(os.open(draft, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
