"""Settings of the service itself: its database, log, address, and the local provider."""

from decimal import Decimal
from typing import Annotated

from pydantic import Field, SecretStr

from broker.model.errors import Refusal, Refused, Width
from gateway.config.fields import Count, Dollars, Names, Positive, Settings, one_of

SHORTEST_TOKEN = 16


class DatabaseSettings(Settings):
    """Where state is kept."""

    url: str | None = Field(
        None,
        description="SQLAlchemy URL, such as postgresql+psycopg://user@host/database; "
        "absent: SQLite in the state directory. SKYPURZA_STATE_DB goes before it.",
    )


class LogSettings(Settings):
    """One line per event."""

    level: Annotated[str, one_of("debug", "info", "warning", "error")] = Field(
        "info", description="The least that is written."
    )
    path: str | None = Field(
        None, description="File; absent: log/gateway.log in the state directory."
    )
    max_mb: Positive = Field(10, description="Size in megabytes at which a new file is begun.")
    keep: Count = Field(5, description="Old files that are kept.")


class HttpSettings(Settings):
    """The service over TCP, beside its socket; off while no port is given."""

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int | None = Field(None, ge=1, le=65535, description="Port; absent: no TCP.")
    token: SecretStr | None = Field(
        None, description="What callers sign with, at least 16 characters; needed with a port."
    )
    dashboard_port: int = Field(
        0,
        ge=0,
        le=65535,
        description="Port of the pages on 127.0.0.1, which `spz dashboard` opens; 0: any free one.",
    )

    def key(self) -> bytes | None:
        """What callers sign with; None without a port. Raises Refused for a port without it."""
        if self.port is None:
            return None
        if self.token is None or len(self.token.get_secret_value()) < SHORTEST_TOKEN:
            raise Refused(
                f"http.port is set without an http.token of at least {SHORTEST_TOKEN} characters",
                hint="set http.token, or leave http.port out: then there is only the Unix socket",
            )
        return self.token.get_secret_value().encode()


class SmtpSettings(Settings):
    """A mail server that takes mails to users; given, `mail_prog` is not run."""

    host: str = Field(description="Its name or address.")
    port: Annotated[Positive, Field(le=65535)] = Field(
        25, description="Its port: 587 is usual with starttls, 465 with tls."
    )
    security: Annotated[str, one_of("none", "starttls", "tls")] = Field(
        "none", description="Whether what is said is encrypted, and from when on."
    )
    user: str | None = Field(None, description="Who logs in there; absent: nobody does.")
    password: SecretStr | None = Field(None, description="The user's.")
    sender: str | None = Field(
        None, description="Whom mails are from; absent: slurm at mail_domain, else at this host."
    )


class PushSettings(Settings):
    """Where nodes post what happens on them, over HTTPS; off while no partition says `push`."""

    url: str | None = Field(
        None,
        pattern=r"^https://[^/?#@\s]+(/[^?#\s]*)?$",
        description="The service as nodes reach it, such as https://gateway.example.org:8443.",
    )
    host: str = Field("0.0.0.0", description="Address to listen on.")
    port: int = Field(8443, ge=1, le=65535, description="Port to listen on.")
    certificate: str | None = Field(
        None, description="Certificate chain as PEM; absent: one of the service's own is made."
    )
    key: str | None = Field(None, description="Its key as PEM, without a passphrase.")
    ca: str | None = Field(
        None,
        description="Authorities as PEM by which nodes know the host of `url`, such as those of a "
        "proxy before the service; absent: by the certificate itself.",
    )


class LocalRefusal(Settings):
    """Launches that the local provider refuses, to try out what happens then; absent means any."""

    instance_type: str | None = Field(None, description="Of this type.")
    region: str | None = Field(None, description="In this region.")
    zone: str | None = Field(None, description="In this zone (id).")
    market: Annotated[str, one_of("on-demand", "spot")] | None = Field(
        None, description="Of this market."
    )
    refusal: Annotated[str, one_of(*Refusal)] = Field("capacity", description="What is said.")
    width: Annotated[str, one_of(*Width)] = Field(
        "type in zone", description="How much it rules out."
    )
    times: Positive | None = Field(None, description="How often; absent: always.")


class LocalSettings(Settings):
    """Virtual instances on this machine: directories and real processes."""

    boot_seconds: Decimal = Field(
        Decimal(1), ge=0, description="How long a machine takes to come up."
    )
    max_machines: Positive = Field(64, description="Machines that exist at a time.")
    max_processes: Positive | None = Field(
        None, description="Steps that really run at a time; absent: four per processor, at least 8."
    )
    capacity: dict[str, Count] = Field(
        {}, description="Machines that exist at a time, per instance type."
    )
    refusals: tuple[LocalRefusal, ...] = Field((), description="Launches that are refused.")


class ProviderSettings(Settings):
    """Where machines come from."""

    local: LocalSettings = Field(LocalSettings(), description="The embedded provider.")


class Ceiling(Settings):
    """What the whole site never goes beyond, whatever the partitions allow."""

    max_nodes: Count | None = Field(None, description="Bought machines at a time.")
    usd_per_hour: Dollars | None = Field(
        Decimal(100), description="Sum of the prices of machines of EC2; null: no limit."
    )
    account_usd_per_hour: Dollars | None = Field(
        None, description="The same of those bought for one account."
    )
    user_usd_per_hour: Dollars | None = Field(
        None, description="The same of those bought for one user."
    )


class PassthroughSettings(Settings):
    """A Slurm of the site's own beside this service, asked by its commands on the login node.

    Jobs are told apart by their ids: set first_job_id beyond those that the site's Slurm reaches,
    which its MaxJobId says.
    """

    bin: str = Field(description="Folder of its commands, the same on every login node.")
    partitions: Names = Field(
        (), description="Its partitions; absent: read of it, and until then all that are not ours."
    )
    refresh_seconds: Positive = Field(
        60, description="How often its partitions and job ids are read of it."
    )
