"""The log: one line per event, `at=... level=... event=... key=value`, rotated, nothing secret.

Everybody logs with `structlog.get_logger().info("job.placed", job=4711)`; what libraries say
through the standard library's logging comes out in the same form.
"""

import contextlib
import logging
import os
import re
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

HIDDEN = "***"
SECRET_NAME = re.compile(
    r"token|password|passwd|secret|credential|authorization|cookie|private_key|environ|^env$|^script$",
    re.I,
)
PASSWORD_IN_URL = re.compile(r"(\w+://[^\s:/@]*):[^\s/@]*@")
LONGEST = 2000
"""Characters of a value, half of them from its end, where a traceback names the error."""
FIRST = ("at", "level", "event")
QUIET_LIBRARIES = ("boto3", "botocore", "paramiko", "urllib3", "uvicorn", "asyncio", "alembic")
SILENT_LIBRARIES = ("paramiko.transport",)
"""They log as errors what they also raise, with a traceback: a machine does not answer yet."""


def hide_secrets(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Values of secret names and passwords in addresses are not written."""
    return {key: HIDDEN if SECRET_NAME.search(key) else _clean(v) for key, v in event.items()}


def _clean(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    text = PASSWORD_IN_URL.sub(rf"\1:{HIDDEN}@", text)
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]}...{text[-LONGEST // 2 :]}"
    return text if text.isprintable() else text.encode("unicode_escape").decode()


class _PrivateFile(RotatingFileHandler):
    """A file that only its owner reads."""

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        return os.fdopen(os.open(self.baseFilename, flags, 0o600), "a", encoding="utf-8")


def configure(*, path: Path | None, level: str, max_bytes: int, keep: int) -> None:
    """From now on events of `level` and above go to the file, or to standard error without one.

    A file of `max_bytes` is put aside under a number, `keep` of those are kept. A log that cannot
    be written (full disk) stops nothing. May be called again.
    """
    close()
    handler = _handler(path, max_bytes=max_bytes, keep=keep)
    shared = _processors()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                hide_secrets,
                structlog.processors.LogfmtRenderer(key_order=FIRST, bool_as_flag=False),
            ],
        )
    )
    handler.set_name(__name__)
    logging.raiseExceptions = False
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(level.upper())
    for name in QUIET_LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in SILENT_LIBRARIES:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    _configure_structlog(shared)


def _handler(path: Path | None, *, max_bytes: int, keep: int) -> logging.Handler:
    if path is None:
        return logging.StreamHandler(sys.stderr)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return _PrivateFile(path, maxBytes=max_bytes, backupCount=keep, encoding="utf-8")


def _processors() -> Sequence[Processor]:
    return (
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="%Y-%m-%dT%H:%M:%S.%fZ", utc=True, key="at"),
        structlog.processors.format_exc_info,
    )


def _configure_structlog(shared: Sequence[Processor]) -> None:
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def close() -> None:
    """Closes what `configure` opened; events go nowhere in particular then."""
    root = logging.getLogger()
    for handler in [h for h in root.handlers if h.get_name() == __name__]:
        root.removeHandler(handler)
        with contextlib.suppress(OSError):  # what a full disk did not take
            handler.close()
    structlog.reset_defaults()
