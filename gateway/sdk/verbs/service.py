"""api info, login and requests by id; what is not offered, and why."""

import os
from pathlib import Path

from broker.model.errors import Refused
from gateway.sdk import requested
from gateway.sdk.background import Background
from gateway.sdk.client import Json
from gateway.sdk.follow import Which, part_of
from gateway.sdk.show import service_text
from gateway.sdk.verbs.counter import Counter
from gateway.sdk.verbs.line import UsageError, Values
from gateway.sdk.verbs.listing import text_of

USUAL_LINES = 50
NO_SERVE = "serve: services are not kept up here"


def info(given: Values, counter: Counter) -> int:
    told = counter.service.get("/v1/health")
    data = {
        "socket": str(counter.paths.socket),
        "user": counter.environ.get("USER", str(os.getuid())),
        "status": told["status"],
        "cluster": told["cluster"],
        "version": told["version"],
        "pid": told["pid"],
    }
    counter.show(data, given, lambda: "\n".join(f"{key}: {data[key]}" for key in data))
    return 0


def login(given: Values, counter: Counter) -> int:
    """There is nothing to remember: who asks is known by the socket."""
    socket = given["endpoint"]
    if socket and not Path(socket).is_socket():
        raise Refused(
            f"{socket}: not a socket", hint="services of other hosts follow; name a socket here"
        )
    if socket:
        print(f"export SKYPURZA_SOCKET={socket}")
        counter.say("put that line into your shell; who you are is known by your uid")
        return 0
    counter.say(f"you are known to {counter.paths.socket} by your uid")
    return 0 if counter.service.answers() else 1


def status(given: Values, counter: Counter) -> int:
    """Of the service and the caller's requests that are not over, or of the requests named."""
    if not given["words"]:
        told = {**counter.service.get("/v1/health"), **counter.service.get("/v1/requests")}
        counter.show(told, given, lambda: service_text(told))
        return 0
    found = {word: counter.service.get(f"/v1/requests/{word}") for word in given["words"]}
    counter.show(found, given, lambda: "\n".join(map(_became, found, found.values())))
    return 0


def _became(request: str, told: Json) -> str:
    if told["job"] is None:
        return "\n".join([f"{request}: {told['verb']}: {told['state']}", *told["told"]])
    run = "" if told["run"] is None else f", run {told['run']}"
    cluster = f"cluster {told['cluster']}, " if told["cluster"] else ""
    return f"{request}: {cluster}job {told['job']}{run}: {told['state']}"


def log(given: Values, counter: Counter) -> int:
    """The end of the service's; or follows a request's and exits as `spz logs`."""
    if not given["words"]:
        asked = given["lines"] if given["tail"] is None else given["tail"]
        count = USUAL_LINES if asked is None else asked
        print(Background(counter.paths, counter.say).log_end(count), end="")
        return 0
    (request,) = given["words"]
    told = counter.service.get(f"/v1/requests/{request}")
    still = given["follow"] is False
    if told["job"] is None:
        return requested.follow(counter.service, request, print, still=still)
    wanted = Which(told["job"], told["run"])
    state = part_of(counter.service.get(f"/v1/jobs/{told['job']}"), wanted)
    how = {"status": False, "sync_down": False, "tail": given["tail"], "no_follow": still}
    return text_of(how, counter, wanted, state=state, title=request)


def cancel(given: Values, counter: Counter) -> int:
    """Raises Refused where nothing is named."""
    if not given["words"] and not (given["all"] or given["all_users"]):
        raise UsageError("no request named", hint="`spz jobs queue` and `spz queue` list what runs")
    names = given["words"] or _not_over(given, counter)
    if not names:
        print("No request waits.")
    for request in names:
        told = requested.cancel(counter.service, request)
        what = told["verb"] if told["job"] is None else f"job {told['job']}"
        print(f"Cancelling request {request} ({what})")
    return 0


def _not_over(given: Values, counter: Counter) -> list[str]:
    """Those of verbs; what was launched is listed by its jobs."""
    told = counter.service.get("/v1/requests", all_users=given["all_users"])["requests"]
    return [one["request"] for one in told]


ABSENT = "this is SkyPilot's alone: accounts part users' work, machines come from EC2 only"


def absent(given: Values, counter: Counter) -> int:
    raise Refused(ABSENT, hint="`spz -h` lists what there is")


def logout(given: Values, counter: Counter) -> int:
    counter.say("nothing is remembered: who you are is known by your uid")
    return 0


def serve(given: Values, counter: Counter) -> int:
    raise Refused(NO_SERVE, hint="`spz launch` runs the task once, without its `service`")
