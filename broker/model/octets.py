"""Text that was bytes: paths, arguments, variables, scripts; every byte comes back as it was."""


def text(data: bytes) -> str:
    """Bytes as text; what is no UTF-8 becomes lone surrogates, which `raw` turns back."""
    return data.decode("utf-8", "surrogateescape")


def shown(value: str) -> str:
    """For people: what was no UTF-8 is escaped."""
    return raw(value).decode("utf-8", "backslashreplace")


def raw(value: str) -> bytes:
    """The bytes that `text` was made from."""
    return value.encode("utf-8", "surrogateescape")
