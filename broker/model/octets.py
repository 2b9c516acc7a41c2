"""Text that was bytes: paths, arguments, variables, scripts; every byte comes back as it was."""


def text(data: bytes) -> str:
    """Bytes as text; what is no UTF-8 becomes lone surrogates, which `raw` turns back."""
    return data.decode("utf-8", "surrogateescape")


def raw(value: str) -> bytes:
    """The bytes that `text` was made from."""
    return value.encode("utf-8", "surrogateescape")
