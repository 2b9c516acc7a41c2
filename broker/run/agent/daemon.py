"""The agent of one node: takes orders on a socket, keeps the journal, outlives its masters."""

import os
import selectors
import signal
import time

from . import (
    apart,
    clock,
    fetched,
    hooks,
    identity,
    posting,
    procs,
    spool,
    talk,
    trouble,
    version,
    wire,
)
from .journal import Journal, load, save
from .order import Options, order_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

    Act = Callable[["Agent", "dict[str, Any]"], "Optional[dict[str, Any]]"]

NAME = b"spz-agent"
SOCKET = "agent.sock"
HALTED = "halted"
"""A file that is there from the order to halt on."""
TICK = 1.0
SOON = 0.05


class Agent:
    """One thread; everything that one turn decides is on disk before it is acted on or answered."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.journal = Journal("journal")
        self.live = {}  # type: dict[str, spool.Place]
        self.lost = {}  # type: dict[str, procs.Mark]
        self.changed = set()  # type: set[str]
        self.records = []  # type: list[dict[str, Any]]
        self.to_fork = []  # type: list[tuple[spool.Place, dict[str, Any]]]
        self.kills = {}  # type: dict[str, dict[str, Any]]
        self.halting = []  # type: list[wire.Caller]
        self.epilogs = hooks.Epilogs()
        self.told = clock.Told()
        self.halted = self.leaving = False
        self.package = version.own()
        self.spoken = time.monotonic()
        self.selector = selectors.DefaultSelector()

    # ---------------------------------------------------------------- the loop

    def run(self) -> None:
        while not self.over():
            self.turn(self.selector.select(self.patience()))
        self.close()

    def open(self) -> None:
        """From here on callers are heard; answered they are by `run`."""
        procs.prctl(procs.PR_SET_CHILD_SUBREAPER, 1)  # what a killed supervisor leaves comes here
        procs.prctl(procs.PR_SET_NAME, NAME)
        self.wake, waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(waker)
        self.listener = wire.listen(SOCKET)
        self.selector.register(self.wake, selectors.EVENT_READ, None)
        self.selector.register(self.listener, selectors.EVENT_READ, None)
        self.adopt()
        posting.begin()

    def close(self) -> None:
        os.unlink(SOCKET)
        for caller in self.halting:
            caller.say({"ok": True})

    def over(self) -> bool:
        if self.live or self.kills:
            return False
        idle = self.options.idle_exit
        return (
            self.halted
            or self.leaving
            or (idle is not None and time.monotonic() - self.spoken >= idle)
        )

    def patience(self) -> "Optional[float]":
        """Seconds until this agent looks by itself; None while it would be told of anything."""
        if self.lost:
            return SOON
        if any(place.pid is None or not place.started for place in self.live.values()):
            return TICK
        if self.options.idle_exit is None or self.live:
            return None
        return max(0.0, self.spoken + self.options.idle_exit - time.monotonic())

    def turn(self, events: "list[tuple[selectors.SelectorKey, int]]") -> None:
        if not events:
            self.changed.update(self.live)
        replies = []
        for key, _mask in events:
            replies += self.serve(key)
        self.reap()
        self.look()
        failure = self.commit()
        for caller, reply in replies:
            caller.say(failure or reply)
            self.drop_if_closed(caller)

    def serve(self, key: "selectors.SelectorKey") -> "list[tuple[wire.Caller, dict[str, Any]]]":
        """What to answer to whom, about one descriptor that is ready."""
        if key.fd == self.wake:
            os.read(self.wake, 4096)
        elif key.data is None:
            self.accept()
        else:
            return self.hear(key.data)
        return []

    def accept(self) -> None:
        try:
            caller = wire.Caller(self.listener.accept()[0])
        except OSError:
            return  # it went away, or there are too many
        self.selector.register(caller.sock, selectors.EVENT_READ, caller)

    def hear(self, caller: "wire.Caller") -> "list[tuple[wire.Caller, dict[str, Any]]]":
        try:
            lines = caller.lines()
        except wire.TooLongError:
            caller.open = False
            lines = []
        answers = [(caller, self.answer(line, caller)) for line in lines]
        self.drop_if_closed(caller, len(answers))
        return [(caller, answer) for caller, answer in answers if answer is not None]

    def drop_if_closed(self, caller: "wire.Caller", due: int = 0) -> None:
        if not caller.open and not due and caller.sock.fileno() >= 0:
            self.selector.unregister(caller.sock)
            caller.sock.close()

    # ---------------------------------------------------------------- orders

    def answer(self, line: bytes, caller: "wire.Caller") -> "Optional[dict[str, Any]]":
        """The reply to one line; None if there is none yet, or ever."""
        try:
            request = wire.decode(line)
            if request.get("do") == "halt":
                self.halt(caller)
                return None
            self.told.hear(request)
            act: "Act" = REQUESTS[request["do"]]
            if request["do"] not in UNSPOKEN:
                self.spoken = time.monotonic()
            return act(self, request)
        except spool.RefusedError as error:
            return {"ok": False, "refused": True, "error": str(error)}
        except (KeyError, TypeError, ValueError) as error:
            return {"ok": False, "error": "bad request: {!r}".format(error)}
        except OSError as error:
            trouble.tell()
            return {"ok": False, "error": str(error)}

    def poke(self, request: "dict[str, Any]") -> None:
        self.changed.add(request["key"])

    def start(self, request: "dict[str, Any]") -> "dict[str, Any]":
        key, step = spool.checked(spool.KEY, request["key"]), request["step"]
        if key in self.live or self.journal.says(key, "accepted"):
            return {"ok": True, "already": True}
        self.refuse_if_ended(key)
        step["job_ends"] = clock.ours(step.get("job_ends"), request.get("now"))
        problem = spool.flaw(step) or identity.problem(step)
        if problem:
            raise spool.RefusedError(problem)
        spool.drop_old_io(self.live)
        place = spool.Place(key)
        hooks.remember(step, key, ours=self.options.ours)
        place.make(step)
        self.live[key] = place
        self.to_fork.append((place, step))
        self.note("accepted", key)
        return {"ok": True, "already": False}

    def refuse_if_ended(self, key: str) -> None:
        attempt = spool.attempt_of(key)
        refused = self.journal.says(key, "refused")
        ended = attempt in self.kills or attempt in self.journal.gone or self.halted
        if not ended and not refused:
            return
        if not refused:
            self.note("refused", key, cause="killed")
        raise spool.RefusedError(
            "attempt {} has been ended here; {} does not start".format(attempt, key)
        )

    def kill(self, request: "dict[str, Any]") -> "dict[str, Any]":
        attempt = spool.checked(spool.ATTEMPT, request["attempt"])
        self.end(attempt, {"grace": float(request["grace"]), "cause": str(request["cause"])})
        return {"ok": True}

    def end(self, attempt: str, how: "dict[str, Any]") -> None:
        """The promise is on disk before it is given, so that it is kept after any kill."""
        save(spool.kill_file(attempt), how)
        self.kills[attempt] = how
        for place in self.steps_of(attempt):
            place.end_attempt(how)

    def steps_of(self, attempt: str) -> "list[spool.Place]":
        return [place for place in self.live.values() if place.attempt == attempt]

    def halt(self, caller: "wire.Caller") -> None:
        """Ends everything; answered when all is gone, just before this agent exits."""
        save(HALTED, {"at": time.time()}, durable=True)
        self.halting.append(caller)
        self.end_everything()

    def end_everything(self) -> None:
        """For good: an agent that is started here later only finishes this."""
        self.halted = True
        for attempt in {place.attempt for place in self.live.values()}:
            self.end(attempt, {"grace": 0, "cause": "killed"})

    # ---------------------------------------------------------------- looking

    def reap(self) -> None:
        by_pid = {place.pid: key for key, place in self.live.items() if place.pid is not None}
        while True:
            try:
                pid = os.waitpid(-1, os.WNOHANG)[0]
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.epilogs.reaped(pid)
            if pid in by_pid:
                self.changed.add(by_pid[pid])
                self.live[by_pid[pid]].pid = None

    def look(self) -> None:
        """Notes what has become of steps and of promised ends."""
        for key in self.changed & set(self.live):
            self.look_at(self.live[key])
        self.changed.clear()
        for key in list(self.lost):
            self.end_strays(key)
        for attempt in list(self.kills):
            if not self.steps_of(attempt) and not self.epilogs.pending(attempt):
                self.note("gone", attempt=attempt, cause=self.kills.pop(attempt)["cause"])

    def look_at(self, place: "spool.Place") -> None:
        if any(place is waiting for waiting, _step in self.to_fork):
            return
        began = load(place.file("started"))
        if began is not None and not place.started:
            place.started = True
            self.note("started", place.key, **began)
        stuck = None if place.unkillable else load(place.file("unkillable"))
        if stuck is not None:
            place.unkillable = True
            self.note("unkillable", place.key, **stuck)
        dead = place.pid is None and place.seize()
        ended = None if place.over else load(place.file("exit"))
        if ended is not None:
            place.over = True
            self.note("exited", place.key, **ended)
        if place.over and not place.stays():
            self.retire(place)
            if ended is None:
                place.remove()  # its end was told before
        elif dead:
            self.lost[place.key] = procs.Mark((place.order() or {"step": {}})["step"])

    def retire(self, place: "spool.Place") -> None:
        place.close()
        del self.live[place.key]
        self.spoken = time.monotonic()  # idleness begins with the last step's end

    def end_strays(self, key: str) -> None:
        """Kills what a killed supervisor left; notes its step's end when nothing is left."""
        place = self.live[key]
        supervisors = {one.pid for one in self.live.values() if one.pid is not None}
        sessions, mark = place.sessions(), self.lost[key]

        def find() -> "set[int]":
            return procs.strays(supervisors, sessions, mark)

        if procs.end_all(find):
            return
        del self.lost[key]
        self.retire(place)
        if place.over:
            place.remove()
            return
        began = (load(place.file("started")) or {}).get("started")
        facts = {"cause": "supervisor_lost", "started": began, "ended": time.time()}
        self.note("exited", key, code=0, signal=9, **facts)

    # ---------------------------------------------------------------- acting

    def note(self, kind: str, key: "Optional[str]" = None, **facts: "Any") -> None:
        record = {"at": self.told.now(), "kind": kind}
        if key is not None:
            record.update(key=key, attempt=spool.attempt_of(key))
        record.update(facts)
        self.records.append(record)

    def commit(self) -> "Optional[dict[str, Any]]":
        """Writes this turn's records, then acts on them; the reply for all callers if it cannot."""
        records, self.records = self.records, []
        forks, self.to_fork = self.to_fork, []
        if records and not self.written(records):
            self.undo(records, forks)
            return {"ok": False, "error": "the journal cannot be written now; try again"}
        for place, step in forks:
            self.fork(place, step)
        for record in records:
            self.clean_up(record)
        if any(record["kind"] in TOLD for record in records):
            posting.nudge()
            if self.options.wake:
                wire.shout(self.options.wake, wire.about_node(self.options.node))
        return None

    def clean_up(self, record: "dict[str, Any]") -> None:
        """What the journal tells needs no other file."""
        if record["kind"] == "exited" and record["key"] not in self.live:
            spool.Place(record["key"]).remove()
        elif record["kind"] == "gone":
            spool.discard(spool.kill_file(record["attempt"]))

    def written(self, records: "list[dict[str, Any]]") -> bool:
        try:
            self.journal.append(records)
        except OSError:
            trouble.tell()
            return False
        return True

    def undo(
        self, records: "list[dict[str, Any]]", forks: "list[tuple[spool.Place, dict[str, Any]]]"
    ) -> None:
        """As if this turn had not been; what was seen on disk is seen again."""
        for place, _step in forks:
            self.retire(place)
            place.remove()
        for record in records:
            if record["kind"] == "gone":
                self.kills[record["attempt"]] = {"cause": record["cause"], "grace": 0}
            elif record["kind"] in {"started", "exited"}:
                self.readopt(record["key"])

    def readopt(self, key: str) -> None:
        if key not in self.live:
            self.live[key] = spool.Place(key)
            self.live[key].open()
        self.live[key].started = self.journal.says(key, "started")
        self.live[key].over = False

    def fork(self, place: "spool.Place", step: "dict[str, Any]") -> None:
        """No new interpreter; the lock is held without a gap from here to the step's end."""
        place.seize()
        order = order_for(place, step, self.options)
        order.agent_socket = os.path.abspath(SOCKET)
        place.pid = os.fork()
        if place.pid == 0:
            apart.main(order, {place.door, place.lock})
        place.hand_over()

    # ---------------------------------------------------------------- starting

    def adopt(self) -> None:
        """Takes up what an agent before left: live steps, ended ones, promises."""
        self.kills = spool.pending_kills()
        for key in spool.step_keys():
            place = spool.Place(key)
            over = self.journal.says(key, "exited")
            if self.journal.says(key, "accepted") and (place.stays() or not over):
                self.take_up(place)
            else:
                place.remove()  # it is over, or nothing ran: the record comes first
        for attempt, how in self.kills.items():
            for place in self.steps_of(attempt):
                place.end_attempt(how)
        if os.path.exists(HALTED):
            self.end_everything()
        self.changed.update(self.live)
        self.turn([])

    def take_up(self, place: "spool.Place") -> None:
        place.open()
        place.end_again()
        place.started = self.journal.says(place.key, "started")
        place.over = self.journal.says(place.key, "exited")
        self.live[place.key] = place
        order = place.order()
        began = any(os.path.exists(place.file(name)) for name in ("started", "exit"))
        if began or order is None or not place.seize():
            return
        if place.attempt in self.kills:
            cause = self.kills[place.attempt]["cause"]
            self.note("exited", place.key, code=0, signal=int(signal.SIGTERM), cause=cause)
            self.retire(place)
        else:
            self.to_fork.append((place, order["step"]))  # it was accepted, but nothing ran yet


REQUESTS: "dict[str, Act]" = {
    "ping": talk.ping,
    "pulse": talk.ping,
    "heard": lambda agent, request: fetched.note(request),
    "push": lambda agent, request: posting.tell(request),
    "leave": lambda agent, request: talk.leave(agent),
    "poke": Agent.poke,
    "start": Agent.start,
    "signal": lambda agent, request: talk.signal(agent.live, request),
    "kill": Agent.kill,
    "kill_step": talk.kill_step,
    "limit": lambda agent, request: clock.tell(agent.live, request),
    "notify": lambda agent, request: clock.notify(agent.live, request),
    "input": lambda agent, request: talk.add_input(agent.live, request),
    "use": talk.use,
    "window": lambda agent, request: talk.resize(agent.live, request),
    "ack": lambda agent, request: talk.acknowledge(agent.live, request),
    "forget": lambda agent, request: talk.forget(agent.live, request),
    "idle": lambda agent, request: talk.idle(agent),
    "notice": talk.notice,
}
UNSPOKEN = {"poke", "pulse", "idle", "notice"}
TOLD = {"started", "exited", "gone", "notice", "unkillable"}
