"""Mail by a mail server, instead of a program of this host."""

import smtplib
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate, make_msgid

from broker.decide.mail import Mail
from gateway.observe.post import SECONDS, recipient, subject


@dataclass(frozen=True, slots=True)
class Server:
    """Where mails are handed in; `security` is none, starttls or tls."""

    host: str
    port: int
    security: str
    sender: str
    user: str | None = None
    password: str = ""


def hand_in(server: Server, mail: Mail) -> None:
    """Raises OSError or ValueError if the server does not take it for each of its addresses."""
    to = [recipient(part) for part in mail.to.split(",")]
    refused = _send(server, letter(server, mail, to), to)
    if refused:
        raise OSError(f"{server.host} refused {', '.join(refused)}")


def letter(server: Server, mail: Mail, to: list[str]) -> EmailMessage:
    """A subject without a body, as Slurm's; marked so that no program answers it."""
    made = EmailMessage()
    made["From"] = server.sender
    made["To"] = ", ".join(to)
    made["Subject"] = subject(mail)
    made["Date"] = formatdate(localtime=True)
    made["Message-ID"] = make_msgid(domain=server.sender.rpartition("@")[2])
    made["Auto-Submitted"] = "auto-generated"
    made.set_content("")
    return made


def _send(server: Server, made: EmailMessage, to: list[str]) -> list[str]:
    """The addresses that were refused while others were taken."""
    context = ssl.create_default_context()
    with _line(server, context) as line:
        if server.security == "starttls":
            line.starttls(context=context)
        if server.user is not None:
            line.login(server.user, server.password)
        return list(line.send_message(made, server.sender, to))


def _line(server: Server, context: ssl.SSLContext) -> smtplib.SMTP:
    if server.security == "tls":
        return smtplib.SMTP_SSL(server.host, server.port, timeout=SECONDS, context=context)
    return smtplib.SMTP(server.host, server.port, timeout=SECONDS)
