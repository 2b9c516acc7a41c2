"""Mails to users by a mail server: what is said to it, and what becomes of refusals."""

import socketserver
import threading
from collections.abc import Iterator
from dataclasses import replace
from email import message_from_string, policy
from email.message import EmailMessage

import pytest

from broker.decide.mail import Mail
from broker.model.spec import StepSpec
from gateway.observe.post import addressed
from gateway.observe.smtp import Server, hand_in, letter
from tests.unit.gateway.api.office import Office

FROM = "slurm@site.example"


class MailServer(socketserver.ThreadingTCPServer):
    """Takes mails on loopback; an address that begins with `no` is refused."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Dialogue)
        self.said: list[str] = []
        self.letters: list[str] = []


class Dialogue(socketserver.StreamRequestHandler):
    """One client's."""

    server: MailServer

    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        for raw in self.rfile:
            line = raw.decode().rstrip("\r\n")
            self.server.said.append(line)
            word = line[:4].upper()
            if word == "DATA":
                self._data()
            self.wfile.write(self._answer(word, line))
            if word == "QUIT":
                return

    def _answer(self, word: str, line: str) -> bytes:
        if word == "EHLO":
            return b"250-here\r\n250-SMTPUTF8\r\n250 AUTH PLAIN\r\n"
        refused = word == "RCPT" and "<no" in line
        ends = {"QUIT": b"221 bye\r\n", "AUTH": b"235 in\r\n"}
        return b"550 nobody\r\n" if refused else ends.get(word, b"250 ok\r\n")

    def _data(self) -> None:
        self.wfile.write(b"354 go\r\n")
        lines = iter(self.rfile.readline, b".\r\n")
        self.server.letters.append(b"".join(lines).decode())


@pytest.fixture
def server() -> Iterator[MailServer]:
    with MailServer() as made:
        threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True).start()
        yield made
        made.shutdown()


@pytest.fixture
def mail() -> Mail:
    office = Office()
    job = office.job(office.submit(mail_types=("BEGIN",), batch=StepSpec(name="batch")))
    return Mail("alice@site.example", "Slurm Job_id=7 Name=x Began", "BEGIN", job)


def at(server: MailServer) -> Server:
    return Server("127.0.0.1", server.server_address[1], "none", FROM)


def read(text: str) -> EmailMessage:
    return message_from_string(text, policy=policy.default)


def test_a_mail_server_is_handed_subject_sender_and_address(server: MailServer, mail: Mail) -> None:
    hand_in(at(server), mail)
    assert server.said[1].startswith(f"mail FROM:<{FROM}>")
    assert server.said[2] == "rcpt TO:<alice@site.example>"
    got = read(server.letters[0])
    assert (got["From"], got["To"]) == (FROM, "alice@site.example")
    assert got["Subject"] == "Slurm Job_id=7 Name=x Began"
    assert got["Auto-Submitted"] == "auto-generated"


def test_who_has_a_user_there_logs_in(server: MailServer, mail: Mail) -> None:
    hand_in(replace(at(server), user="spz", password="pw"), mail)
    assert any(line.startswith("AUTH PLAIN") for line in server.said)


@pytest.mark.parametrize(
    ("subject", "sent"),
    [
        ("Name=a\nBcc: eve@x Began", "Name=a Bcc: eve@x Began"),
        ("Name=a\r\n\r\nbody", "Name=a body"),
        ("Name=\x1b[31m\x00", "Name= [31m"),
        ("Name=zähler", "Name=zähler"),
        ("Name=\udcff", "Name="),
        ("Name=" + "x" * 2000, "Name=" + "x" * 2000),
    ],
)
def test_a_name_of_a_job_stays_within_the_subject(mail: Mail, subject: str, sent: str) -> None:
    made = letter(Server("h", 25, "none", FROM), replace(mail, subject=subject), ["a@b"])
    got = read(made.as_string())
    assert got["Subject"].replace(" ", "") == sent.replace(" ", "")
    assert set(got.keys()) >= {"From", "To", "Subject"}
    assert "Bcc" not in got


@pytest.mark.parametrize("to", ["", "-oQ/tmp", "a\nRCPT TO:<b>", "a b", "a@b,", "a@b,c d"])
def test_what_is_no_address_is_not_said(server: MailServer, mail: Mail, to: str) -> None:
    with pytest.raises(ValueError, match="no address"):
        hand_in(at(server), replace(mail, to=to))
    assert server.said == []


@pytest.mark.parametrize(
    ("to", "told"), [("no@b", "550"), ("no@b,yes@b", r"127\.0\.0\.1 refused no@b")]
)
def test_a_refusal_is_an_error_that_names_it(
    server: MailServer, mail: Mail, to: str, told: str
) -> None:
    with pytest.raises(OSError, match=told):
        hand_in(at(server), replace(mail, to=to))
    assert len(server.letters) == to.count("yes")


def test_a_server_that_is_not_there_is_an_error(mail: Mail) -> None:
    with pytest.raises(OSError, match="refused"):
        hand_in(Server("127.0.0.1", 1, "none", FROM), mail)


@pytest.mark.parametrize(
    ("domain", "given", "to"),
    [(None, None, "alice"), ("x.org", None, "alice@x.org"), ("x.org", "bob", "alice")],
)
def test_the_sites_domain_stands_behind_users_who_gave_no_address(
    domain: str | None, given: str | None, to: str
) -> None:
    office = Office()
    batch = StepSpec(name="batch")
    job = office.job(office.submit(mail_types=("BEGIN",), mail_user=given, batch=batch))
    assert addressed(Mail("alice", "s", "BEGIN", job), domain).to == to
