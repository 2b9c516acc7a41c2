"""Streams that lie elsewhere, under signed URLs; no library and no credentials are needed."""

import errno

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

SECONDS = 60.0
"""Without a byte."""


def opened(url: str, data: "Optional[bytes]" = None) -> "Any":
    """What is there, to be read; with `data` that is put there. Raises OSError, without the URL.

    The URL is a secret as long as it is good.
    """
    from urllib.error import HTTPError  # noqa: PLC0415
    from urllib.request import Request, build_opener  # noqa: PLC0415

    asked = Request(url, data=data, method="GET" if data is None else "PUT")
    if data is not None:
        asked.add_header("Content-Type", "")  # else urllib names one, which is not signed
    try:
        return build_opener().open(asked, timeout=SECONDS)
    except HTTPError as error:
        raise OSError(errno.EIO, "the store answers {}".format(error.code)) from None
    except OSError as error:
        raise OSError(errno.EIO, "the store does not answer: {}".format(error)) from None
