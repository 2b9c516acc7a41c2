"""An agent in memory: what a real one would write into its journal, in simulated time."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

KILLED = 9
TERMINATED = 15


class Fate(NamedTuple):
    """How a step goes if nobody interferes: seconds it takes, then exit code and signal."""

    seconds: int
    code: int = 0
    signal: int = 0
    stubborn: bool = False
    """Whether it ignores SIGTERM and has to be killed when the grace is over."""


Fates = Callable[[str, Mapping[str, Any]], tuple[int, int, int] | Fate]
"""From a step's key and order to its fate."""


@dataclass(slots=True)
class _Step:
    """A live step; `ends` is None while only a kill ends it. Instants in seconds UTC."""

    key: str
    began: int
    fate: Fate
    natural: int | None
    """When it ends if nobody interferes."""
    ends: int | None
    code: int
    signal: int
    cause: str = "exit"
    kill_wait: int = 30
    limit_at: int | None = None
    limit_serial: int = 0

    @property
    def attempt(self) -> str:
        return self.key.rpartition("/")[0]

    def limit_to(self, seconds: int | None, now: int) -> None:
        """Another limit, which changes nothing where an end is under way."""
        over = self.limit_at is not None and self.limit_at <= now
        if over or self.cause not in {"exit", "time_limit"}:
            return
        self.ends, self.cause = self.natural, "exit"
        self.code, self.signal = self.fate.code, self.fate.signal
        self.limit_at = None if seconds is None else max(now, self.began + seconds)
        if self.limit_at is not None and (self.natural is None or self.natural > self.limit_at):
            self.end_by(self.limit_at, cause="time_limit", grace=self.kill_wait)

    def end_by(self, at: int, *, cause: str, grace: int) -> None:
        """It is asked to end at an instant; one that ignores this is killed after the grace."""
        stubborn = self.fate.stubborn and grace > 0
        ends = at + grace if stubborn else at
        if self.ends is not None and self.ends <= ends and self.cause != "exit":
            return
        self.ends, self.cause, self.code = ends, cause, 0
        self.signal = KILLED if self.fate.stubborn else TERMINATED


class FakeAgent:
    """Speaks the agent's requests; `now` is passed in with each."""

    def __init__(self, fates: Fates) -> None:
        self.journal = bytearray()
        self._fates = fates
        self._steps: dict[str, _Step] = {}
        self._known: set[str] = set()
        self._refused: set[str] = set()
        self._killing: dict[str, str] = {}
        self._ended: set[str] = set()
        self._seq = 0
        self.halted = False
        self.notices: dict[tuple[str, int], str] = {}
        """Texts by step and number."""

    def ask(self, line: bytes, now: int) -> bytes:
        self.advance(now)
        request = json.loads(line)
        reply = _REQUESTS[request["do"]](self, request, now)
        self.advance(now)
        return json.dumps(reply).encode() + b"\n"

    def advance(self, now: int) -> None:
        """Writes down what has happened until `now`, in its order."""
        due = list(self._due(now))
        for step in sorted(due, key=lambda step: (step.ends or 0, step.key)) if due else ():
            del self._steps[step.key]
            at = step.ends or now
            self._note("exited", at, key=step.key, **_result(step, at))
            self._confirm(at)

    def next_event(self) -> int | None:
        """When the next step ends by itself or by the clock."""
        return min((s.ends for s in self._steps.values() if s.ends is not None), default=None)

    @property
    def live(self) -> list[str]:
        return sorted(self._steps)

    def _due(self, now: int) -> Iterator[_Step]:
        return (s for s in self._steps.values() if s.ends is not None and s.ends <= now)

    def _confirm(self, at: int) -> None:
        live = {step.attempt for step in self._steps.values()}
        for attempt in [attempt for attempt in self._killing if attempt not in live]:
            self._ended.add(attempt)
            self._note("gone", at, attempt=attempt, cause=self._killing.pop(attempt))

    def _note(self, kind: str, at: int, *, key: str = "", **facts: object) -> None:
        self._seq += 1
        named = {"key": key, "attempt": key.rpartition("/")[0]} if key else {}
        record = {"seq": self._seq, "at": float(at), "kind": kind, **named, **facts}
        self.journal += json.dumps(record).encode() + b"\n"

    # --- requests

    def ping(self, _request: Mapping[str, Any], _now: int) -> dict[str, object]:
        return {"ok": True, "version": 1, "live": self.live, "journal": len(self.journal)}

    def start(self, request: Mapping[str, Any], now: int) -> dict[str, object]:
        key, order = request["key"], request["step"]
        if key in self._known:
            return {"ok": True, "already": True}
        attempt = key.rpartition("/")[0]
        if attempt in self._ended or attempt in self._killing or key in self._refused:
            if key not in self._refused:
                self._note("refused", now, key=key, cause="killed")
            return {"ok": False, "refused": True, "error": f"attempt {attempt} has been ended"}
        self._known.add(key)
        self._note("accepted", now, key=key)
        self._steps[key] = self._begin(key, order, now)
        self._note("started", now, key=key, pid=len(self._known), started=float(now))
        return {"ok": True, "already": False}

    def _begin(self, key: str, order: Mapping[str, Any], now: int) -> _Step:
        fate = Fate(*self._fates(key, order))
        ends = None if order.get("hold") else now + fate.seconds
        step = _Step(key, now, fate, ends, ends, fate.code, fate.signal)
        step.kill_wait = order.get("kill_wait") or 0
        step.limit_to(order.get("time_limit"), now)
        return step

    def limit(self, request: Mapping[str, Any], now: int) -> dict[str, object]:
        """Of one step, or of an attempt's batch step; overtaken orders change nothing."""
        key = request.get("key") or f"{request['attempt']}/batch"
        step = self._steps.get(key)
        if step is not None and request["serial"] > step.limit_serial:
            step.limit_serial = request["serial"]
            step.limit_to(None if request.get("paused") else request["time_limit"], now)
        return {"ok": True, "steps": [] if step is None else [key]}

    def notify(self, request: Mapping[str, Any], _now: int) -> dict[str, object]:
        key = f"{request['attempt']}/batch"
        if key in self._steps:
            self.notices[key, request["serial"]] = request["text"]
        return {"ok": True, "steps": [key] if key in self._steps else []}

    def signal(self, request: Mapping[str, Any], now: int) -> dict[str, object]:
        """SIGKILL to the batch shell ends it; other signals change nothing here."""
        wanted = request["key"]
        reached = [s for s in self._steps.values() if wanted in {s.key, s.attempt}]
        for step in reached:
            hits = request["scope"] == "full" or step.key.endswith("/batch") == (
                request["scope"] == "batch"
            )
            if hits and request["signal"] == KILLED:
                step.ends, step.code, step.signal = now, 0, KILLED
        return {"ok": True, "steps": [step.key for step in reached]}

    def kill_step(self, request: Mapping[str, Any], now: int) -> dict[str, object]:
        """One that was not begun never will be."""
        key, cause = request["key"], request["cause"]
        if key in self._steps:
            self._steps[key].end_by(now, cause=cause, grace=int(request["grace"]))
        elif key not in self._known and key not in self._refused:
            self._refused.add(key)
            self._note("refused", now, key=key, cause="killed")
        return {"ok": True}

    def kill(self, request: Mapping[str, Any], now: int) -> dict[str, object]:
        attempt, cause = request["attempt"], request["cause"]
        self._killing[attempt] = cause
        for step in self._steps.values():
            if step.attempt == attempt:
                step.end_by(now, cause=cause, grace=int(request["grace"]))
        self._confirm(now)
        return {"ok": True}

    def halt(self, _request: Mapping[str, Any], now: int) -> dict[str, object]:
        self.halted = True
        for attempt in {step.attempt for step in self._steps.values()}:
            self.kill({"attempt": attempt, "cause": "killed", "grace": 0}, now)
        return {"ok": True}


_REQUESTS = {
    "ping": FakeAgent.ping,
    "start": FakeAgent.start,
    "signal": FakeAgent.signal,
    "kill_step": FakeAgent.kill_step,
    "kill": FakeAgent.kill,
    "limit": FakeAgent.limit,
    "notify": FakeAgent.notify,
    "halt": FakeAgent.halt,
}


def _result(step: _Step, at: int) -> dict[str, object]:
    used = max(0, at - step.began) * 1_000_000
    return {
        "code": step.code,
        "signal": step.signal,
        "cause": step.cause,
        "phase": None if step.ends is None else "run",
        "user_us": used,
        "sys_us": 0,
        "max_rss_kib": 1024,
        "started": float(step.began),
        "ended": float(at),
    }
