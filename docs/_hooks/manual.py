"""Puts into the manual what is made from tables, in place of marks such as `<!-- settings -->`."""

from pathlib import Path

from gateway.config.manual import settings_page
from gateway.query.compatibility import fields_page, known_page, options_page
from gateway.sdk.verbs.manual import verbs_page
from gateway.translate.skypilot_manual import keys_page

KNOWN = Path(__file__).parents[2] / "tests" / "conformance" / "known.txt"


def differences() -> str:
    """The recorded cases that are known to differ."""
    return known_page(KNOWN.read_text("utf-8"))


MARKS = {
    "<!-- settings -->": settings_page,
    "<!-- options -->": options_page,
    "<!-- fields -->": fields_page,
    "<!-- differences -->": differences,
    "<!-- task keys -->": keys_page,
    "<!-- verbs -->": verbs_page,
}


def on_page_markdown(markdown: str, **_: object) -> str:
    """Called by MkDocs for each page."""
    for mark, make in MARKS.items():
        if mark in markdown:
            markdown = markdown.replace(mark, make())
    return markdown
