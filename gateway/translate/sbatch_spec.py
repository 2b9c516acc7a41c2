"""One job component's options as a TaskSpec, judged as far as no record of a job is needed."""

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from broker.model.ids import Digest
from broker.model.spec import (
    UNLIMITED,
    ArraySpec,
    Dependency,
    DependencyKind,
    Limit,
    Output,
    SignalSpec,
    StepSpec,
    TaskSpec,
)
from broker.schedule.priority import TOP
from gateway.translate import refusals
from gateway.translate.sbatch_resources import Asking, must_know, resources
from gateway.translate.staging import Staging
from sbatch_shim.grammar.arrays import read_array
from sbatch_shim.grammar.dependencies import (
    Condition,
    DependencyError,
    UnsupportedKindError,
    read_dependencies,
)
from sbatch_shim.grammar.errors import failed
from sbatch_shim.grammar.options import lookup
from sbatch_shim.grammar.parse import Given
from sbatch_shim.grammar.show import show_given

Limits = tuple[tuple[str, int, int], ...]

LONGEST = {
    "account": 1024,
    "array": 4096,
    "comment": 1024,
    "constraint": 1024,
    "dependency": 128 * 1024,
    "exclude": 64 * 1024,
    "gres": 1024,
    "job-name": 1024,
    "licenses": 1024,
    "mail-user": 1024,
    "nodelist": 64 * 1024,
    "partition": 1024,
    "qos": 1024,
    "reservation": 1024,
    "wckey": 1024,
}
"""Characters that the controller takes (slurmctld's own bounds, 25.11)."""
RESV_PORTS = "Slurmstepd step management must be enabled to use --resv-ports for job allocations"
BATCH_FEATURES = "Job --batch option is invalid or not a subset of --constraint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitter:
    """Where and by whom it was submitted, and what runs."""

    cwd: str
    umask: int
    limits: Limits
    admin: bool
    name: str
    """The job's name where none is given."""
    command: str | None
    submit_line: str
    submit_host: str
    batch: StepSpec | None
    environment: Digest
    login: bool
    allocator: Literal["salloc", "srun"] | None = None
    staging: Callable[[str], Staging] = Staging
    """What travels with the job, by its working directory."""


def task_spec(asked: Asking, by: Submitter) -> TaskSpec:
    """Raises GrammarError with Slurm's text and exit status."""
    needs = resources(asked)
    array = _judged(asked, by)
    conditions, any_one = _dependencies(asked)
    cwd = _folder(asked, by.cwd)
    staging = by.staging(cwd)
    if "array" in asked.part:
        staging.must_suit_array(asked.program)
    return TaskSpec(
        name=by.name if "job-name" not in asked.part else asked.part["job-name"].text or "",
        partitions=_names(asked.text("partition")),
        account=asked.text("account"),
        qos=asked.text("qos"),
        resources=needs,
        batch=by.batch,
        allocator=by.allocator,
        environment=by.environment,
        login_environment=by.login,
        cwd=cwd,
        umask=by.umask,
        rlimits=_propagated(asked, by.limits),
        output=_output(asked),
        files=tuple(staging.files),
        results=tuple(staging.results),
        checkpoint=staging.checkpoint,
        time_limit=asked.value("time"),
        time_min=asked.number("time-min"),
        begin=asked.number("begin"),
        deadline=asked.number("deadline"),
        hold="hold" in asked.part or (by.admin and asked.value("priority") == 0),
        priority=_priority(asked, by),
        requeue=_requeue(asked),
        nice=asked.number("nice") or 0,
        array=array,
        after=conditions,
        after_any=any_one,
        kill_on_invalid_dep=asked.value("kill-on-invalid-dep"),
        signal=_signal(asked),
        comment=_typed(asked, "comment"),
        mail_types=asked.value("mail-type") or (),
        mail_user=asked.text("mail-user"),
        licenses=asked.text("licenses"),
        reservation=asked.text("reservation"),
        wckey=asked.text("wckey"),
        command=by.command,
        submit_line=by.submit_line,
        submit_host=by.submit_host,
        submit_dir=by.cwd,
        options=_options(asked),
    )


def _typed(asked: Asking, long: str) -> str | None:
    given = asked.part.get(long)
    return None if given is None else given.text or ""


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name for name in (text or "").split(",") if name)


def _folder(asked: Asking, here: str) -> str:
    """Where it runs; an empty `-D` is the folder it was typed in, with a slash (22.05)."""
    return posixpath.join(here, asked.part["chdir"].text or "") if "chdir" in asked.part else here


def _options(asked: Asking) -> tuple[tuple[str, str], ...]:
    """Every option in one form, however it was typed; texts stay as they are."""
    table = lookup(asked.program, plugins=True).by_long
    return tuple(
        (long, given.text or show_given(table[long], given))
        for long, given in sorted(asked.part.items())
    )


def _judged(asked: Asking, by: Submitter) -> ArraySpec | None:
    """The array, where the controller has nothing to refuse, in the order that it looks (22.05)."""
    _must_be_acceptable(asked, by)
    array = _array(asked)
    must_know(asked)
    _must_fit_together(asked)
    if asked.text("licenses") or asked.text("resources"):
        raise asked.refuse(refusals.BAD_LICENSE)
    return array


def _must_be_acceptable(asked: Asking, by: Submitter) -> None:
    """What a real site's controller refuses whatever its state."""
    texts = ((given.text or "", LONGEST.get(long)) for long, given in asked.part.items())
    if any(most is not None and len(text) > most for text, most in texts):
        raise asked.refuse(refusals.TOO_LONG)
    for long, refused in BLANK_NAMES.items():
        if long in asked.part and asked.text(long) is None:
            raise asked.refuse(refused)
    if (asked.number("nice") or 0) < 0 and not by.admin:
        raise asked.refuse(refusals.BAD_NICE)
    if "reboot" in asked.part and not by.admin:
        raise asked.refuse_after(refusals.NO_REBOOT, refusals.NOT_ALLOWED)


BLANK_NAMES = {"account": refusals.BAD_ACCOUNT, "qos": refusals.BAD_QOS}
"""Of which a blank one is not the user's default, but none that exists (22.05)."""


def _must_fit_together(asked: Asking) -> None:
    if "resv-ports" in asked.part and "stepmgr" not in asked.part:
        raise failed(asked.program, RESV_PORTS)
    if (asked.text("wckey") or "").startswith("*"):
        raise asked.refuse(refusals.BAD_WCKEY)
    binding = asked.text("tres-bind")
    if binding is not None and not binding.startswith("gres/"):
        raise asked.refuse(refusals.BAD_TRES)
    if (asked.text("batch") or "") not in (asked.text("constraint") or ""):
        raise asked.refuse(BATCH_FEATURES)
    limit, least = _longest(asked), asked.value("time-min")
    if least is not None and isinstance(limit, int) and (least == UNLIMITED or least > limit):
        raise asked.refuse("Invalid time-min specification (exceeds job's time or other limits)")


def _longest(asked: Asking) -> Limit | None:
    """The limit asked for, else what the first partition gives; without one what it allows."""
    names = _names(asked.text("partition"))
    site, limit = asked.site, asked.value("time")
    partition = site.partition(names[0]) if names else site.default_partition
    if partition is None:
        return limit if isinstance(limit, int) else None
    limit = limit or partition.default_time or UNLIMITED
    return partition.max_time if limit == UNLIMITED else int(limit)


def _array(asked: Asking) -> ArraySpec | None:
    text = asked.text("array")
    if text is None:
        return None
    found = read_array(text, asked.site.max_array_size)
    if found is None:
        raise asked.refuse(refusals.BAD_ARRAY)
    return ArraySpec(tasks=found.tasks, limit=found.limit, step=found.step)


def _dependencies(asked: Asking) -> tuple[tuple[Dependency, ...], bool]:
    try:
        found = read_dependencies(asked.text("dependency") or "")
    except UnsupportedKindError:
        raise asked.refuse(refusals.NOT_SUPPORTED) from None
    except DependencyError:
        raise asked.refuse(refusals.BAD_DEPENDENCY) from None
    return tuple(map(_dependency, found.all)), found.any_one


def _dependency(condition: Condition) -> Dependency:
    return Dependency(
        kind=DependencyKind(condition.kind),
        job=condition.job,
        task=condition.task if isinstance(condition.task, int) else None,
        whole_array=condition.task == "*",
        delay=condition.delay,
    )


def _signal(asked: Asking) -> SignalSpec | None:
    found = signal_of(asked.part)
    if found is not None and found.reservation:
        raise asked.refuse(refusals.NO_PREEMPTION)
    return found


def signal_of(part: Mapping[str, Given]) -> SignalSpec | None:
    """`--signal`, a minute before the end unless it says more."""
    given = part.get("signal")
    if given is None:
        return None
    return SignalSpec(
        number=given.value.number,
        before=60 if given.value.before is None else given.value.before,
        batch=given.value.batch,
        reservation=given.value.reservation,
        text=given.text or "",
    )


def _requeue(asked: Asking) -> bool | None:
    """The last of `--requeue` and `--no-requeue` counts."""
    said = [long for long in asked.part if long in ("requeue", "no-requeue")]
    return said[-1] == "requeue" if said else None


def _priority(asked: Asking, by: Submitter) -> int | None:
    """Only administrators set one; what others ask for changes nothing (25.11)."""
    wanted = asked.value("priority")
    if wanted is None or not by.admin:
        return None
    return TOP if wanted == "TOP" else min(int(wanted), TOP)


def _output(asked: Asking) -> Output:
    return Output(
        stdin=asked.text("input"),
        stdout=asked.text("output"),
        stderr=asked.text("error"),
        open_mode=asked.value("open-mode"),
    )


def _propagated(asked: Asking, limits: Limits) -> Limits:
    """The submitter's limits that go along: all of them unless `--propagate` says less."""
    names = asked.value("propagate")
    if not isinstance(names, tuple) or "ALL" in names:
        return limits
    wanted = {name.removeprefix("RLIMIT_") for name in names}
    return tuple(limit for limit in limits if limit[0] in wanted)
