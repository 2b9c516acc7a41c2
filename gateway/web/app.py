"""The pages as an application of their own: who may look, what a browser may do with them.

Only GET is answered, and nothing here changes anything.
"""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from importlib.resources import files
from typing import Any, NamedTuple

from fastapi import FastAPI, Request, Response
from jinja2 import Environment, PackageLoader, StrictUndefined

from broker.model.errors import SpzError, Unknown
from gateway.web import jobs, money, past, site, work
from gateway.web.blocks import Block, plain
from gateway.web.doors import Doors
from gateway.web.sessions import SESSION_SECONDS, Sessions
from gateway.web.visit import Visit

COOKIE = "spz"
HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
"""Names by which a browser may come; another one would be a stranger's, turned to this address."""
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src data:; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
STATIC = {"page.css": "text/css", "page.js": "text/javascript"}
MISDIRECTED = 421
STRANGE = Unknown("this address is not ours", hint="`spz dashboard` tells it")
NO_PAGE = Unknown("there is no such page")

DoorsOf = Callable[[int, str], Doors]
"""The service in the name of a uid, with times in a zone."""
Scope = MutableMapping[str, Any]


class Page(NamedTuple):
    """A page: its path below the user's folder, its title, what it is made of."""

    path: str
    title: str
    make: Callable[[Visit], Awaitable[Sequence[Block]]]

    @property
    def name(self) -> str:
        """The page of which this one is a part."""
        return self.path.partition("/")[0]


PAGES = (
    Page("", "Overview", site.overview),
    Page("clusters", "Clusters", work.clusters),
    Page("managed", "Managed jobs", work.managed),
    Page("jobs", "Jobs", jobs.jobs),
    Page("history", "History", past.history),
    Page("nodes", "Nodes", site.nodes),
    Page("costs", "Costs", money.costs),
    Page("budgets", "Budgets", money.budgets),
    Page("storage", "Storage", money.storage),
    Page("infra", "Infra", site.infra),
    Page("requests", "Requests", work.requests),
)
"""In the order of the menu."""
PARTS = (
    Page("clusters/{word}", "Cluster", work.cluster),
    Page("managed/{word}", "Managed job", work.managed_job),
    Page("jobs/{word}", "Job", jobs.job),
    Page("nodes/{word}", "Node", site.node),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """What the application needs; `mark` is a text that nobody can guess."""

    sessions: Sessions
    doors: DoorsOf
    status_of: Callable[[SpzError], int]
    mark: str
    now: Callable[[], int]

    def application(self) -> Callable[[Scope, Any, Any], Awaitable[None]]:
        """As ASGI has it."""
        app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
        app.add_api_route("/enter/{ticket}", self._enter, methods=["GET"])
        app.add_api_route("/static/{name}", self._static, methods=["GET"])
        for page in (*PAGES, *PARTS):
            path = f"/{{folder}}/{page.path}"
            app.add_api_route(path, self._shown(page), methods=["GET"], response_class=Response)
        app.add_exception_handler(SpzError, self._refused)
        for status in (404, 405):
            app.add_exception_handler(status, self._lost)

        async def guarded(scope: Scope, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                return
            if _host(scope) not in HOSTS:
                await _told(MISDIRECTED, STRANGE)(scope, receive, send)
                return
            await app(scope, receive, send)

        return guarded

    async def _enter(self, ticket: str, page: str = "") -> Response:
        """A page that leads on by itself: what comes by a link from elsewhere has no cookie yet."""
        folder, cookie = self.sessions.enter(ticket)
        known = page if page in {one.path for one in PAGES} else ""
        answer = _html("entered.html", folder=folder, page=known)
        answer.set_cookie(
            COOKIE,
            cookie,
            max_age=SESSION_SECONDS,
            path=f"/{folder}/",
            httponly=True,
            samesite="strict",
        )
        return answer

    async def _static(self, name: str) -> Response:
        """Raises Unknown."""
        if name not in STATIC:
            raise NO_PAGE
        return _answer(SHEETS[name], media_type=STATIC[name], lasting=True)

    def _shown(self, page: Page) -> Callable[..., Awaitable[Response]]:
        async def show(request: Request, folder: str) -> Response:
            session = self.sessions.who(folder, _cookies(request))
            query, word = dict(request.query_params), request.path_params.get("word", "")
            doors = self.doors(session.uid, session.zone)
            blocks = await page.make(Visit(doors, query, word, self.mark))
            at = self.now()
            return _html(
                "page.html",
                blocks=blocks,
                title=plain(f"{page.title} {word}".rstrip()),
                root=f"/{folder}",
                here=page.name,
                pages=PAGES,
                at=datetime.fromtimestamp(at + doors.ahead(at), UTC).strftime("%Y-%m-%d %H:%M:%S"),
            )

        return show

    async def _refused(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, SpzError):
            raise error
        folder = str(request.path_params.get("folder", ""))
        return _told(self.status_of(error), error, root=self._root(folder, request))

    async def _lost(self, request: Request, error: Exception) -> Response:
        """What the framework says of an address or a method."""
        return _told(int(getattr(error, "status_code", 404)), NO_PAGE)

    def _root(self, folder: str, request: Request) -> str:
        """Where the menu leads, for who is known here."""
        try:
            self.sessions.who(folder, _cookies(request))
        except SpzError:
            return ""
        return f"/{folder}"


def _told(status: int, error: SpzError, *, root: str = "") -> Response:
    return _html(
        "refused.html",
        status=status,
        title=f"{status} {HTTPStatus(status).phrase}",
        message=error.message,
        hint=error.hint,
        root=root,
        here=None,
        pages=PAGES if root else (),
    )


def _host(scope: Scope) -> str:
    """The name by which the browser came, without the port; a tunnel may have another one."""
    found = [value for name, value in scope["headers"] if name == b"host"]
    text = found[0].decode("latin-1").lower() if len(found) == 1 else ""
    name, colon, port = text.rpartition(":")
    return name if colon and port.isdigit() else text


def _cookies(request: Request) -> list[str]:
    """All of our name: another service of this address may have set one too."""
    pairs = (part.strip().partition("=") for part in request.headers.get("cookie", "").split(";"))
    return [value for name, _, value in pairs if name == COOKIE]


TEMPLATES = Environment(
    loader=PackageLoader("gateway.web"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
SHEETS: Mapping[str, bytes] = {
    name: files("gateway.web").joinpath("static", name).read_bytes() for name in STATIC
}


def _html(template: str, *, status: int = 200, **values: object) -> Response:
    """Bytes of names that are no UTF-8 are shown as question marks."""
    text = TEMPLATES.get_template(template).render(values)
    return _answer(text.encode("utf-8", "replace"), status=status)


def _answer(
    content: bytes, *, status: int = 200, media_type: str = "text/html", lasting: bool = False
) -> Response:
    headers = {**HEADERS, "Cache-Control": "max-age=3600"} if lasting else HEADERS
    return Response(content, status, dict(headers), f"{media_type}; charset=utf-8")
