"""Mails to users: how they are handed to a mail program, and that nobody waits for it."""

from dataclasses import replace
from pathlib import Path

import pytest

from accounting.ids import JobId
from broker.decide.mail import Mail
from broker.model.events import Ended, Started
from broker.model.job import ArrayPlace, JobState
from broker.model.spec import StepSpec
from gateway.observe.post import Post, command, send, usable
from tests.unit.gateway.api.office import Office


class Log:
    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, object]]] = []

    def warning(self, event: str, **fields: object) -> None:
        self.lines.append((event, fields))


@pytest.fixture
def mail() -> Mail:
    office = Office()
    job = office.job(office.submit(mail_types=("BEGIN",), batch=StepSpec(name="batch")))
    return Mail("alice", "Slurm Job_id=7 Name=a\nb Began", "BEGIN", job)


def test_a_mail_program_gets_subject_and_address(mail: Mail) -> None:
    assert command("/bin/mail", mail) == (
        ["/bin/mail", "-s", "Slurm Job_id=7 Name=a b Began", "alice"],
        b"",
    )


def test_a_sendmail_gets_headers(mail: Mail) -> None:
    assert command("/usr/sbin/sendmail", mail) == (
        ["/usr/sbin/sendmail", "-i", "alice"],
        b"To: alice\nSubject: Slurm Job_id=7 Name=a b Began\n\n",
    )


@pytest.mark.parametrize("to", ["-oQ/tmp", "a\nBcc: b", "a b"])
def test_an_address_that_is_none_is_not_used(mail: Mail, to: str) -> None:
    with pytest.raises(ValueError, match="no address"):
        command("/bin/mail", replace(mail, to=to))


def test_what_a_program_is_run_with(mail: Mail, tmp_path: Path) -> None:
    program = tmp_path / "mail"
    program.write_text('#!/bin/sh\necho "$@ $SLURM_JOB_MAIL_TYPE" > "${0%/*}/sent"\n')
    assert not usable(str(program))
    program.chmod(0o755)
    assert usable(str(program))
    assert not usable("none")
    send(str(program), mail)
    assert (tmp_path / "sent").read_text() == "-s Slurm Job_id=7 Name=a b Began alice BEGIN\n"


@pytest.mark.parametrize("fault", [OSError("no such program"), IndexError("of an odd address")])
def test_a_mail_that_cannot_be_sent_is_logged_and_harms_nothing(
    mail: Mail, fault: Exception
) -> None:
    def broken(one: Mail) -> None:
        raise fault

    log = Log()
    post = Post(broken, log)
    post.tell([Started(job=mail.job.id, at=1)], {mail.job.id: mail.job})
    post.tell([Started(job=mail.job.id, at=1)], {})
    post.close()
    ((event, fields),) = log.lines
    assert (event, str(fault) in str(fields["error"])) == ("mail.failed", True)


@pytest.mark.parametrize(
    ("types", "count"), [(("BEGIN", "END"), 1), (("BEGIN", "END", "ARRAY_TASKS"), 3)]
)
def test_tasks_that_begin_or_end_together_are_told_of_once_unless_each_is_asked_for(
    types: tuple[str, ...], count: int
) -> None:
    office = Office()
    job = office.job(office.submit(mail_types=types, batch=StepSpec(name="batch")))
    place = ArrayPlace(base=job.id, task=0)
    tasks = {
        JobId(job.id + n): replace(
            job, id=JobId(job.id + n), array=replace(place, task=n), started=1
        )
        for n in range(3)
    }
    sent: list[str] = []
    post = Post(lambda mail: sent.append(mail.kind), Log())
    post.tell([Started(job=number, at=1) for number in tasks], tasks)
    ended = {n: replace(one, state=JobState.COMPLETED, ended=2) for n, one in tasks.items()}
    post.tell([Ended(job=n, at=2, state=JobState.COMPLETED, reason="None") for n in ended], ended)
    post.close()
    assert sorted(sent) == ["BEGIN"] * count + ["END"] * count
