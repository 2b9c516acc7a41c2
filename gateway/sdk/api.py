"""The service for programs, under the names and with the parameters that `sky` has (0.14)."""

import os
from collections.abc import Sequence

from broker.model.errors import Refused
from gateway.sdk.asked import RequestId
from gateway.sdk.background import Background
from gateway.sdk.client import Json
from gateway.sdk.pages import enter
from gateway.sdk.requested import cancel
from gateway.sdk.sky import home, ignored, service


def dashboard(starting_page: str | None = None) -> None:
    """Opens the pages in a browser, or prints the address. Raises Refused for no page of ours."""
    print(enter(service(), starting_page or "", os.environ, say=print))


def api_info() -> Json:
    """Version, cluster, process and how it fares. Raises Told."""
    found: Json = service().get("/v1/health")
    return found


def api_status(
    request_ids: Sequence[str] | None = None,
    all_status: bool = False,
    limit: int | None = None,
    fields: Sequence[str] | None = None,
    cluster_name: str | None = None,
) -> list[Json]:
    """What requests have become. Raises Refused where none is named, Told for one that is none."""
    ignored(all_status=all_status, limit=limit, fields=fields, cluster_name=cluster_name)
    if not request_ids:
        raise Refused("no request named", hint="sdk.queue and sdk.jobs.queue list what runs")
    client = service()
    return [{**client.get(f"/v1/requests/{one}"), "request_id": str(one)} for one in request_ids]


def api_cancel(
    request_ids: str | Sequence[str] | None = None, all_users: bool = False, silent: bool = False
) -> RequestId[list[str]]:
    """Ends what was asked for; `get` gives the ids. Raises Refused where none is named, Told."""
    names = [request_ids] if isinstance(request_ids, str) else list(request_ids or ())
    if not names:
        raise Refused("no request named", hint="sdk.cancel and sdk.jobs.cancel end what runs")
    client = service()
    for name in names:
        cancel(client, name)
    return RequestId.done([str(name) for name in names])


def api_start(
    *,
    deploy: bool = False,
    host: str | None = None,
    foreground: bool = False,
    metrics: bool = False,
    metrics_port: int | None = None,
    enable_basic_auth: bool = False,
    port: int | None = None,
) -> None:
    """Starts the service in the background, if it does not run. Raises Refused."""
    asked = {"deploy": deploy, "host": host, "foreground": foreground, "metrics": metrics}
    ignored(**asked, metrics_port=metrics_port, enable_basic_auth=enable_basic_auth, port=port)
    Background(home(), _silent).start()


def api_stop() -> None:
    """Stops it; what runs goes on. Raises Refused."""
    Background(home(), _silent).stop()


def api_server_logs(follow: bool = True, tail: int | None = None) -> None:
    """Prints the end of its log."""
    print(Background(home(), _silent).log_end(50 if tail is None else tail), end="")


def _silent(_: str) -> None:
    """A program asks for nothing to be told."""
