"""What `launch`, `exec` and `logs` do with a client: plan, ask, send, follow."""

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import BinaryIO, NamedTuple

from broker.model.errors import Refused, SpzError, Unknown
from gateway.query.dollars import beside, oldest_in, usd
from gateway.sdk import show
from gateway.sdk.client import Client, Json, NoService
from gateway.sdk.follow import Follower, Which, logs_status, part_of
from gateway.sdk.sending import make_folders, names_folder
from sbatch_shim.grammar.values import read_digits

Say = Callable[[str], None]
Confirm = Callable[[str], bool]
INTERRUPTED = 130


@dataclass(slots=True)
class Launch:
    """One launch or exec, from its body to how its run ended."""

    service: Client
    say: Say
    as_json: bool = False
    out: BinaryIO = field(default_factory=lambda: sys.stdout.buffer)
    made: Json = field(default_factory=dict)

    def launch(self, body: Json, *, confirm: Confirm | None, dry_run: bool) -> bool:
        """Shows what it would be, asks, sends; whether it was sent. Raises Refused, Told."""
        plan = self.service.post("/v1/launch", {**body, "dry_run": True})
        for note in (*plan["notes"], *_left_out(plan)):
            self.say(f"note: {note}")
        if dry_run and self.as_json:
            self._print_json(plan)
        if not self.as_json:
            self._print(plan_text(plan))
        if dry_run:
            return False
        make_folders(body["home"], plan["cwd"])
        if confirm is not None and not plan["reused"] and not confirm(f"Launch {plan['cluster']}?"):
            raise Refused("nothing was launched", hint="-y launches without asking")
        self.made = self.service.persist("/v1/launch", {**body, "cluster": plan["cluster"]})
        return True

    def execute(self, cluster: str, body: Json) -> None:
        """Sends a run to a cluster that is up. Raises Told."""
        self.made = executed(self.service, cluster, body)
        for note in self.made["notes"]:
            self.say(f"note: {note}")

    def finish(self, *, detach: bool, goes: bool) -> int:
        """Follows the run if there is one; the exit status of the command.

        Whether the cluster goes with its last run is only told.
        """
        job, run, cluster = self.made["job"], self.made["run"], self.made["cluster"]
        self.say(f"cluster {cluster}, job {job}" + (f", run {run}" if run is not None else ""))
        if detach or run is None:
            return self._leave()
        ended = self._follow(Which(job, run))
        if ended is None:
            return INTERRUPTED
        stays = "goes when its runs are over" if goes else f"stays: `spz down {cluster}`"
        self.say(f"run {run} {ended['status']}; cluster {cluster} {stays}")
        if self.as_json:
            self._print_json({**self.made, "ended": ended})
        return logs_status(ended)

    def _leave(self) -> int:
        cluster, run = self.made["cluster"], self.made["run"]
        if run is not None:
            self.say(f"`spz logs {cluster} {run}` follows it")
        if self.as_json:
            self._print_json(self.made)
        return 0

    def _follow(self, which: Which) -> Json | None:
        """None if the user would not wait; the run goes on."""
        text = sys.stderr.buffer if self.as_json else self.out
        try:
            return Follower(self.service, text, say=self.say).follow(which)
        except KeyboardInterrupt:
            self._goes_on(which)
            return None
        except NoService:
            self._goes_on(which)
            raise

    def _goes_on(self, which: Which) -> None:
        cluster = self.made["cluster"]
        self.say(
            f"it goes on: `spz logs {cluster} {which.run}` follows it again, "
            f"`spz cancel {cluster}` ends it"
        )

    def _print_json(self, data: Json) -> None:
        self._print(json.dumps(data, indent=2))
        old = oldest_in(data)
        if old:
            self.say(old)

    def _print(self, text: str) -> None:
        self.out.write(text.encode("utf-8", "backslashreplace") + b"\n")
        self.out.flush()


def executed(service: Client, cluster: str, body: Json) -> Json:
    """A run in a cluster that is up. Raises Told, Refused for a workdir that lacks."""
    route, folder = f"/v1/clusters/{cluster}/exec", body["home"]
    if names_folder(body):
        folder = service.post(route, {**body, "dry_run": True})["cwd"]
    make_folders(body["home"], folder)
    return service.persist(route, body)


def _left_out(plan: Json) -> Iterator[str]:
    """What stays at home of a workdir that travels."""
    if plan["workdir"] is not None:
        found = import_module("gateway.sdk.leftout")  # patterns take a while to load
        text = found.left_out_text(found.left_out(plan["workdir"]))
        if text:
            yield text


def plan_text(plan: Json) -> str:
    if plan.get("reused"):
        return f"Cluster {plan['cluster']} is there (job {plan['job']}); the task goes to it."
    offers = plan["candidates"]
    if not offers:
        return f"Cluster {plan['cluster']} goes to nodes that are there."
    first, nodes = offers[0], plan["nodes"]
    price = usd(first["micro_usd_per_hour"])
    each = " each" if nodes > 1 else ""
    return (
        f"Considered for cluster {plan['cluster']} ({nodes} node{'s' if nodes > 1 else ''}), "
        f"the best first:\n{show.candidates(offers, nodes)}\n"
        f"{first['instance_type']} at {price} an hour{each}: {first['reason']}; "
        f"about ${first['expected_micro_usd'] / 1_000_000:.2f} for a run of an hour, "
        f"{usd(nodes * first['most_micro_usd_per_hour'])} an hour at most, as budgets count"
        f"{_beside(first['notes'])}."
    )


def _beside(notes: Sequence[str]) -> str:
    return f" ({'; '.join(notes)})" if notes else ""


ELEMENT = re.compile(r"[0-9]+_[0-9]+")


def job_number(service: Client, text: str) -> int | None:
    """The id of a job named `12` or `12_3`; None for what is no such name. Raises Unknown."""
    if not ELEMENT.fullmatch(text):
        return read_digits(text)
    for route, more in (("/v1/jobs", {}), ("/v1/managed", {"all": True})):
        found = (one for one in service.get(route, **more)["jobs"] if one["slurm_id"] == text)
        one = next(found, None)
        if one is not None:
            return int(one["id"])
    raise Unknown(f"no job {text}", hint="`squeue` and `sacct` list them")


def which(service: Client, target: str, run: int | None) -> Which:
    """A job by id or by its cluster's name, and its run (the last without one). Raises Unknown."""
    number = job_number(service, target)
    if number is not None:
        return Which(number, run)
    cluster = service.get(f"/v1/clusters/{target}/queue")
    runs = [one["id"] for one in cluster["runs"]]
    if run is not None and run not in runs:
        raise Unknown(f"cluster {target!r} has no run {run}", hint=f"`spz queue {target}`")
    if run is None and not runs:
        return Which(cluster["job"], 1)
    return Which(cluster["job"], runs[-1] if run is None else run)


def state_of(service: Client, wanted: Which) -> Json:
    """The run as it is now. Raises Unknown, Told."""
    return part_of(service.get(f"/v1/jobs/{wanted.job}"), wanted)


def is_unknown(error: SpzError) -> bool:
    """Whether it says that there is no such thing."""
    return isinstance(error, Unknown) or getattr(error, "status", None) == 404


class Ending(NamedTuple):
    """What is being ended, in words, and what of it is to become of."""

    text: str
    goals: list[Json]


def cancel(service: Client, target: str, run: int | None, *, everything: bool) -> Ending:
    """Ends a job by id, or a run of a cluster (the last without a number)."""
    number = job_number(service, target)
    if number is not None:
        service.persist(f"/v1/jobs/{number}/cancel")
        goal = {"to": "gone", "job": number, "name": f"job {target}"}
        return Ending(f"Cancelling job {target}", [goal])
    route = f"/v1/clusters/{target}"
    if run is None and not everything:
        live = [one["id"] for one in service.get(f"{route}/queue")["runs"] if not one["over"]]
        run = live[-1] if live else None
    told = service.persist(f"{route}/cancel", run=None if everything else run)
    goals = [{"to": "over", "job": told["job"], "run": one, "name": target} for one in told["runs"]]
    return Ending(f"Cancelling run {', '.join(map(str, told['runs']))} of cluster {target}", goals)


def kept_running(service: Client) -> str:
    """What goes on without the service, in words."""
    try:
        told = service.get("/v1/health")
    except SpzError:
        return "It did not answer; what ran on machines goes on."
    machines = [node["name"] for node in told["nodes"] if not node["declared"]]
    if not machines:
        return f"{told['jobs_live']} jobs wait." if told["jobs_live"] else "Nothing was left to do."
    jobs = f"{told['jobs_running']} jobs go on" if told["jobs_running"] else "No job runs, but"
    return (
        f"{jobs}, machines keep costing money: {', '.join(sorted(machines))}. "
        "`spz api start` takes them up again."
    ).replace("but,", "but")


def sweep_text(told: Json, *, dry_run: bool) -> str:
    """What was found, by provider."""
    verb = "would be let go" if dry_run else "let go"
    lines: list[str] = []
    for one in told["providers"]:
        lines.append(f"{one['provider']}: {len(one['stray'])} machines nobody knows {verb}")
        lines += [
            f"  {m['id']} {m['node']} {m['instance_type']} {m['region']} "
            f"{usd(m['micro_usd_per_hour'])} an hour{beside(m['old_price'])}"
            for m in one["stray"]
        ]
        if one["lost"]:
            lines.append(f"  gone, though still known: {', '.join(one['lost'])}")
        lines += _left_behind(one["leftovers"], verb, dry_run=dry_run)
    return "\n".join(lines)


def _left_behind(found: Sequence[Json], verb: str, *, dry_run: bool) -> Iterator[str]:
    """Things that nothing uses, and whether they went."""
    if found:
        yield f"  {len(found)} things that nothing uses {verb}:"
    for one in found:
        stays = "" if dry_run or one["gone"] else " stays: it is used, or machines are bought there"
        yield f"  {one['kind']} {one['id']} in {one['region']}{stays}"
