"""spz dashboard, spz jobs dashboard: the pages in a browser."""

from gateway.sdk.pages import enter, in_browser
from gateway.sdk.verbs.counter import Counter
from gateway.sdk.verbs.line import Values


def overview(given: Values, counter: Counter) -> int:
    return _opened("", given, counter)


def jobs(given: Values, counter: Counter) -> int:
    return _opened("jobs", given, counter)


def _opened(page: str, given: Values, counter: Counter) -> int:
    """Prints the address alone on standard output."""
    browser = None if given["no_browser"] else in_browser
    print(enter(counter.service, page, counter.environ, say=counter.say, browser=browser))
    return 0
