"""The box as a web application: its own pages, its weather, and moto behind them."""

import io
import json
import os
import socket
import threading
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qs

os.environ.setdefault("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")

import moto.ec2.urls
from moto import settings
from moto.core import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends
from moto.ec2.models import instances as moto_instances
from moto.moto_api._internal.models import moto_api_backend
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import BaseWSGIServer, make_server

from tests.lab.beside import TARGETS
from tests.lab.box import Box, Call
from tests.lab.controls import CALLS_KEPT, control, metadata
from tests.lab.faults import Fault
from tests.lab.instance import LabInstance
from tests.lab.machines import Delays, Hosts, Machine, Machines
from tests.lab.shop import Shop
from tests.lab.stock import Stock
from tests.lab.wares import Wares
from tests.lab.weather import Weather

# Its variable would count only where nobody has brought in moto before.
settings.ENABLE_AMI_VALIDATION = True

Environ = dict[str, Any]
Start = Callable[..., Any]
TICK = 0.05
STATUS = {
    200: "200 OK",
    400: "400 Bad Request",
    401: "401 Unauthorized",
    403: "403 Forbidden",
    404: "404 Not Found",
    500: "500 Internal Server Error",
    503: "503 Service Unavailable",
}
XML_ERROR = (
    "<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors>"
    "<RequestID>00000000-0000-0000-0000-000000000000</RequestID></Response>"
)


def new_box(
    hosts: Hosts, clock: Callable[[], float], delays: Delays, *, weather: Weather, wares: Wares
) -> Box:
    """A cloud with nothing in it; what moto held of a former one is forgotten."""
    moto_api_backend.reset()
    return Box(
        clock=clock,
        machines=Machines(hosts, delays),
        wares=wares,
        stock=Stock(wares),
        weather=weather,
    )


class Lab:
    """WSGI application; one at a time in a process, since moto's state is global."""

    def __init__(self, box: Box) -> None:
        self.box = box
        moto_instances.Instance = LabInstance
        moto.ec2.urls.url_paths = {"{0}/": type("BoxShop", (Shop,), {"box": box}).dispatch}
        self.moto = DomainDispatcherApplication(create_backend_app)

    def __call__(self, environ: Environ, start: Start) -> Iterable[bytes]:
        self.advance()
        path = str(environ.get("PATH_INFO", ""))
        if path.startswith("/lab/"):
            return self._own(environ, start, path.removeprefix("/lab/"))
        return self._aws(environ, start)

    def advance(self) -> None:
        """Brings every machine to the present."""
        with self.box.lock:
            for machine in self.box.machines.advance(self.box.now()):
                _forget(machine)

    def _own(self, environ: Environ, start: Start, name: str) -> Iterable[bytes]:
        if name.startswith("imds/"):
            _imds, id, _latest, path = [*name.split("/", 3), "", "", ""][:4]
            text = metadata(self.box, id, path)
            return _answer(start, 404 if text is None else 200, "text/plain", text or "")
        body = _body(environ)
        status, told = control(self.box, method=environ["REQUEST_METHOD"], name=name, body=body)
        return _answer(start, status, "application/json", json.dumps(told))

    def _aws(self, environ: Environ, start: Start) -> Iterable[bytes]:
        service, region, action = _asked(environ)
        begun = self.box.now()
        status: list[str] = []

        def started(line: str, *rest: Any) -> Any:
            status.append(line)
            return start(line, *rest)

        try:
            if service == "ec2":
                with self.box.lock:
                    self.box.weather.call()
            answer = self._beside(environ, started, region) or self.moto(environ, started)
            body = b"".join(answer)
        except Fault as fault:
            status.append(str(fault.status))
            self._note(begun, service, action, region, fault.code)
            return _refusal(start, service, fault)
        with self.box.lock:
            lost = service == "ec2" and self.box.weather.loses()
        ok = status[-1].startswith("2")
        outcome = "lost" if lost else "ok" if ok else _code(body)
        self._note(begun, service, action, region, outcome)
        if lost:
            self._lose(environ)
        return [body]

    def _beside(self, environ: Environ, start: Start, region: str) -> Iterable[bytes] | None:
        answer = TARGETS.get(environ.get("HTTP_X_AMZ_TARGET", ""))
        if answer is None:
            return None
        body = _body(environ)
        environ["wsgi.input"] = io.BytesIO(body)
        with self.box.lock:
            told = answer(self.box, region, json.loads(body or b"{}"))
        if told is None:
            return None
        return _answer(start, 200, "application/x-amz-json-1.1", json.dumps(told))

    def _lose(self, environ: Environ) -> None:
        """The caller waits, and then finds its connection gone."""
        threading.Event().wait(self.box.weather.hang_seconds)
        environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)

    def _note(self, begun: float, service: str, action: str, region: str, outcome: str) -> None:
        took = self.box.now() - begun
        self.box.calls.append(Call(begun, took, service, action, region, outcome))
        del self.box.calls[:-CALLS_KEPT]


def _forget(machine: Machine) -> None:
    """Takes a long terminated machine out of moto's lists."""
    backend = ec2_backends[DEFAULT_ACCOUNT_ID][machine.region]
    for reservation in list(backend.reservations.values()):
        left = [i for i in reservation.instances if i.id != machine.id]
        if not left:
            del backend.reservations[reservation.id]
        elif len(left) < len(reservation.instances):
            reservation.instances = left


def _asked(environ: Environ) -> tuple[str, str, str]:
    """Service, region and action of a signed request."""
    scope = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].split(",")[0]
    words = [*scope.split("/"), "", "", "", ""]
    region, service = words[2], words[3]
    action = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
    if not action and service in {"ec2", "sts", "iam", "sqs"}:
        body = _body(environ)
        environ["wsgi.input"] = io.BytesIO(body)
        action = parse_qs(body.decode("utf-8", "replace")).get("Action", [""])[0]
    return service, region, action


def _body(environ: Environ) -> bytes:
    size = int(environ.get("CONTENT_LENGTH") or 0)
    return bytes(environ["wsgi.input"].read(size)) if size else b""


def _answer(start: Start, status: int, kind: str, text: str) -> Iterable[bytes]:
    body = text.encode()
    start(STATUS[status], [("Content-Type", kind), ("Content-Length", str(len(body)))])
    return [body]


def _refusal(start: Start, service: str, fault: Fault) -> Iterable[bytes]:
    if service == "ec2":
        text = XML_ERROR.format(code=fault.code, message=fault.message)
        return _answer(start, fault.status, "text/xml", text)
    told = {"__type": fault.code, "message": fault.message}
    return _answer(start, fault.status, "application/x-amz-json-1.1", json.dumps(told))


def _code(body: bytes) -> str:
    return body.partition(b"<Code>")[2].partition(b"</Code>")[0].decode() or "error"


class Handler(MotoRequestHandler):
    """Says nothing of requests; connections stay open, as those of AWS do."""

    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:
        """Quiet."""


class Server:
    """A lab that answers on loopback until `close`."""

    def __init__(self, lab: Lab, port: int = 0) -> None:
        self.lab = lab
        self.server: BaseWSGIServer = make_server(
            "127.0.0.1", port, lab, threaded=True, request_handler=Handler
        )
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self.server.serve_forever, args=(TICK,), daemon=True),
            threading.Thread(target=self._tick, daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def _tick(self) -> None:
        while not self._over.wait(TICK):
            self.lab.advance()

    def close(self) -> None:
        self._over.set()
        self.server.shutdown()
        self.server.server_close()
        for thread in self._threads:
            thread.join(timeout=5)
