"""Puts into the manual what is made from tables: `<!-- settings -->` becomes the settings."""

from gateway.config.manual import settings_page

MARKS = {"<!-- settings -->": settings_page}


def on_page_markdown(markdown: str, **_: object) -> str:
    """Called by MkDocs for each page."""
    for mark, make in MARKS.items():
        if mark in markdown:
            markdown = markdown.replace(mark, make())
    return markdown
