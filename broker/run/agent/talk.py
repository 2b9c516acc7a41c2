"""What is asked about live steps: input, window sizes, how much was read, what they use."""

import base64
import os
import time

from . import account, clock, feed, fetched, gpus, posting, spool, supervisor, usage, version, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from .clock import Told
    from .journal import Journal

    Live = dict[str, spool.Place]
    Request = dict[str, Any]

    class Agent(Protocol):
        """What is asked of the agent itself."""

        spoken: float
        leaving: bool
        live: Live
        package: str
        journal: Journal
        told: Told

        def note(self, kind: str, key: str | None = None, **facts: Any) -> None: ...


def add_input(live: "Live", request: "Request") -> "dict[str, Any]":
    """Bytes for a step that reads; none is taken twice. `size`: how much was taken in all; `shut`:
    whether nobody reads any more, as where this node's part of the step is over.
    """
    data = base64.b64decode(request.get("data") or "")
    if _is_over(live, request):
        return {"ok": True, "size": int(request.get("at", 0)) + len(data), "shut": True}
    place = _place(live, request)
    into = feed.Input(place.folder)
    at = int(request.get("at", into.size()))
    size = into.add(data, at)
    if request.get("eof") and size >= at + len(data):
        into.end()
    place.nudge(wire.encode({"do": "input"}))
    return {"ok": True, "size": size, "shut": into.is_shut()}


def resize(live: "Live", request: "Request") -> "dict[str, Any]":
    order = {"do": "window", "rows": int(request["rows"]), "cols": int(request["cols"])}
    _place(live, request).nudge(wire.encode(order))
    return {"ok": True}


def acknowledge(live: "Live", request: "Request") -> "dict[str, Any]":
    """So much of the step's io file was read."""
    place = live.get(request["key"])
    if place is not None:
        place.nudge(wire.encode({"do": "ack", "at": int(request["at"])}))
    return {"ok": True}


def forget(live: "Live", request: "Request") -> "dict[str, Any]":
    """Nobody will read the io file of this step, which is over, any more."""
    key = spool.checked(spool.KEY, request["key"])
    if key in live:
        raise spool.RefusedError("step {} is not over".format(key))
    spool.discard(spool.Place(key).io)
    return {"ok": True}


def _is_over(live: "Live", request: "Request") -> bool:
    """Whether the step began here and lives no more: what it wrote outlives it."""
    key = spool.checked(spool.KEY, request["key"])
    return key not in live and os.path.exists(spool.Place(key).io)


def _place(live: "Live", request: "Request") -> "spool.Place":
    place = live.get(spool.checked(spool.KEY, request["key"]))
    if place is None:
        raise spool.RefusedError("step {} does not live here".format(request["key"]))
    return place


def signal(live: "Live", request: "Request") -> "dict[str, Any]":
    """To a step, or to every live step of an attempt."""
    if request["scope"] not in supervisor.SCOPES:
        raise spool.RefusedError(
            "scope {!r} is none of steps, batch, full".format(request["scope"])
        )
    order = {"do": "signal", "signal": int(request["signal"]), "scope": request["scope"]}
    return {"ok": True, "steps": clock.pass_on(live, request["key"], order)}


def kill_step(agent: "Agent", request: "Request") -> "dict[str, Any]":
    """As `kill`, for one step, which is not begun any more if it was not."""
    key = spool.checked(spool.KEY, request["key"])
    how = {"grace": float(request["grace"]), "cause": str(request["cause"])}
    how["signal"] = int(request["signal"])
    if key in agent.live:
        agent.live[key].end(how)
    elif not agent.journal.says(key, "accepted") and not agent.journal.says(key, "refused"):
        agent.note("refused", key, cause="killed")
    return {"ok": True}


def use(agent: "Agent", request: "dict[str, Any]") -> "dict[str, Any]":
    """What the steps of a job use now."""
    job = int(request["job"])
    devices = gpus.of_job(agent.live.values(), job)
    grouped = account.of_job(agent.live, job)
    return dict(usage.of_job(job, grouped=grouped), gpus=devices, ok=True)


def ping(agent: "Agent", request: "Request") -> "dict[str, Any]":
    """Which agent it is, and how its node stands."""
    fetched.note(request)
    return {
        "ok": True,
        "version": version.PROTOCOL,
        "package": agent.package,
        "pid": os.getpid(),
        "live": sorted(agent.live),
        "journal": agent.journal.size,
        "time": time.time(),
        "free": spool.free(),
        "push": posting.known(),
    }


def leave(agent: "Agent") -> "dict[str, Any]":
    """Makes room for a successor, once nothing lives here; unlike `halt` not for good."""
    agent.leaving = True
    return {"ok": True, "live": sorted(agent.live)}


def idle(agent: "Agent") -> "dict[str, Any]":
    """For how long nobody has spoken to it, asking this not counted; what lives here; the time."""
    idle = time.monotonic() - agent.spoken
    live = sorted(key for key, place in agent.live.items() if not place.over)
    return {"ok": True, "idle": idle, "live": live, "now": agent.told.now()}


def notice(agent: "Agent", request: "Request") -> "dict[str, Any]":
    """The machine will be taken away; in the journal before this is answered."""
    agent.note("notice", action=str(request["action"]), when=str(request["when"]))
    return {"ok": True}
