"""Mail to users: what committed facts ask for, sent by the site's mail program."""

import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from accounting.ids import JobId
from broker.decide.mail import Mail, mails
from broker.model import events as ev
from broker.model.facts import JobFact
from broker.model.job import Job

NO_MAIL = "none"
"""The value of `mail_prog` with which nothing is sent."""
SENDERS = 2
"""Mails that are sent at a time: a slow mail program delays mails and nothing else."""
SECONDS = 20.0
"""How long the mail program may take."""


class Log(Protocol):
    def warning(self, event: str, **fields: object) -> object: ...


def usable(program: str) -> bool:
    """Whether mails can be sent with it."""
    return program != NO_MAIL and os.access(program, os.X_OK)


def command(program: str, mail: Mail) -> tuple[list[str], bytes]:
    """What to run, and its input: a sendmail wants headers, all others what mail(1) takes.

    Raises ValueError for what is no address.
    """
    to = recipient(mail.to)
    if Path(program).name == "sendmail":
        return [program, "-i", to], f"To: {to}\nSubject: {subject(mail)}\n\n".encode()
    return [program, "-s", subject(mail), to], b""


def recipient(to: str) -> str:
    """The address. Raises ValueError for one that could be taken for something else."""
    if not to or to.startswith("-") or not to.isprintable() or " " in to:
        raise ValueError(f"{to!r} is no address that mail can be sent to")
    return to


def subject(mail: Mail) -> str:
    """One line that can be sent, whatever a job's name is made of."""
    told = "".join(char if char.isprintable() else " " for char in mail.subject)
    return " ".join(told.encode("utf-8", "replace").decode().split())


def addressed(mail: Mail, domain: str | None) -> Mail:
    """With the site's domain behind a user's name, unless the user gave an address."""
    if domain is None or mail.job.spec.mail_user:
        return mail
    return replace(mail, to=f"{mail.to}@{domain}")


def variables(mail: Mail) -> dict[str, str]:
    """What Slurm's mail programs find in their environment."""
    job = mail.job
    return {
        "PATH": os.defpath,
        "SLURM_JOB_ID": str(job.id),
        "SLURM_JOB_NAME": job.spec.name,
        "SLURM_JOB_USER": job.owner.user,
        "SLURM_JOB_ACCOUNT": job.account,
        "SLURM_JOB_PARTITION": job.partition,
        "SLURM_JOB_STATE": job.state.label,
        "SLURM_JOB_MAIL_TYPE": mail.kind,
    }


def send(program: str, mail: Mail) -> None:
    """Raises OSError, ValueError or SubprocessError if the program does not take it."""
    argv, text = command(program, mail)
    subprocess.run(
        argv,
        input=text,
        env=variables(mail),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=SECONDS,
        check=True,
        cwd="/",
    )


def nobody(base: JobId) -> Iterable[Job]:
    """Where no past is known."""
    return ()


class Post:
    """Tells of each committed fact once: what a restart has not sent yet stays unsent, as in Slurm.

    Has threads of its own, so that neither the engine nor the workers wait for a mail program.
    """

    def __init__(
        self,
        send: Callable[[Mail], None],
        log: Log,
        *,
        past: Callable[[JobId], Iterable[Job]] = nobody,
    ) -> None:
        """`past` are all tasks of an array, also those that memory has lost."""
        self._send = send
        self._log = log
        self._past = past
        self._pool = ThreadPoolExecutor(SENDERS, thread_name_prefix="mail")
        self._waiting: set[Future[None]] = set()

    def tell(self, facts: Iterable[ev.Event], jobs: Mapping[JobId, Job]) -> None:
        """Sends what follows from facts; `jobs` are as they left them. Does not block."""
        about = [
            (fact, job)
            for fact in facts
            if isinstance(fact, JobFact) and (job := jobs.get(fact.job)) and job.spec.mail_types
        ]
        for mail in _once(self._due(about, jobs.values())):
            sent = self._pool.submit(self._try, mail)
            self._waiting.add(sent)
            sent.add_done_callback(self._waiting.discard)

    def _due(self, about: Sequence[tuple[ev.Event, Job]], jobs: Iterable[Job]) -> Iterator[Mail]:
        """The mails; of tasks that began together each is the first that did."""
        arrays = _arrays(jobs) if any(job.array is not None for _, job in about) else {}
        begun = {job.id for fact, job in about if isinstance(fact, ev.Started)}
        for fact, job in about:
            tasks = self._tasks(job, arrays)
            if isinstance(fact, ev.Started):
                tasks = [replace(one, started=None) if one.id in begun else one for one in tasks]
            yield from mails(fact, job, tasks)

    def _tasks(self, job: Job, arrays: Mapping[JobId, list[Job]]) -> list[Job]:
        """All of the job's array; those that ended long ago are read once none is left to run."""
        if job.array is None:
            return []
        base = job.array.base
        known = arrays[base]
        if len(known) < job.array.count and all(one.state.final for one in known):
            ids = {one.id for one in known}
            return [*known, *(one for one in self._past(base) if one.id not in ids)]
        return known

    def _try(self, mail: Mail) -> None:
        try:
            self._send(mail)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self._log.warning("mail.failed", job=mail.job.id, to=mail.to, error=str(error))
        except Exception as error:  # border: a thread of the pool, whose result nobody reads
            why = f"{type(error).__name__}: {error}"
            self._log.warning("mail.failed", job=mail.job.id, to=mail.to, error=why)

    def close(self) -> None:
        """Lets what waits be sent for as long as one mail may take, then ends."""
        wait(tuple(self._waiting), timeout=SECONDS)
        self._pool.shutdown(cancel_futures=True)


def _once(due: Iterable[Mail]) -> Iterator[Mail]:
    """Of an array that is told of as a whole one mail, whose tasks began or ended together."""
    told: set[tuple[JobId, str]] = set()
    for mail in due:
        place = mail.job.array
        whole = place is not None and "ARRAY_TASKS" not in map(str.upper, mail.job.spec.mail_types)
        key = (place.base, mail.kind) if place is not None else (mail.job.id, mail.kind)
        if whole and mail.kind in ("BEGIN", "END", "FAIL") and key in told:
            continue
        told.add(key)
        yield mail


def _arrays(jobs: Iterable[Job]) -> dict[JobId, list[Job]]:
    """The tasks of each array."""
    found: dict[JobId, list[Job]] = {}
    for job in jobs:
        if job.array is not None:
            found.setdefault(job.array.base, []).append(job)
    return found


def both(chronicle: Callable[[Any], None], post: Callable[[Any], None]) -> Callable[[Any], None]:
    """Tells the one, then the other."""

    def tell(facts: Any) -> None:
        chronicle(facts)
        post(facts)

    return tell
