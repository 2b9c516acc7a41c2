"""Calls of AWS: one client per service and region; errors come out as ours."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import boto3
from botocore import exceptions
from botocore.config import Config
from botocore.parsers import ResponseParserError

from broker.providers.ec2.errors import NEW_CREDENTIALS, UNKNOWN_OUTCOME, AwsError, NoAnswerError

Reply = dict[str, Any]
ONCE = frozenset({"run_instances", "create_fleet"})
"""Not repeated by the SDK: EC2 says that it has no capacity with HTTP 500, which it would retry."""
PAGE = 1000
HOME_REGION = "us-east-1"
"""Asked about what is the same in all regions."""
NO_ANSWER = (exceptions.BotoCoreError, exceptions.HTTPClientError)
NO_CREDENTIALS = (
    exceptions.NoCredentialsError,
    exceptions.PartialCredentialsError,
    exceptions.CredentialRetrievalError,
    exceptions.ProfileNotFound,
    exceptions.TokenRetrievalError,
)
READ_AGAIN_SECONDS = 10.0
"""Credentials that AWS does not take are read again no sooner: that takes a tenth of a second."""


class Api(Protocol):
    """AWS, as far as a provider needs it; may be called from any thread."""

    def call(self, service: str, region: str, operation: str, **params: Any) -> Reply:
        """Raises AwsError for a definite no, NoAnswerError where the outcome is not known."""
        ...


class BotoApi:
    """`Api` by boto3; clients are kept, since the first of each costs 10 ms and more."""

    def __init__(
        self,
        *,
        endpoint_url: str | None = None,
        profile: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._endpoint_url = endpoint_url
        self._profile = profile
        self._clock = clock
        self._session: boto3.session.Session | None = None
        self._read_at = 0.0
        self._clients: dict[tuple[str, str, bool], Any] = {}
        self._lock = threading.Lock()

    def call(self, service: str, region: str, operation: str, **params: Any) -> Reply:
        try:
            method = getattr(self._client(service, region, operation in ONCE), operation)
            reply: Reply = method(**params)
        except exceptions.ClientError as error:
            told = _told(error)
            if isinstance(told, AwsError) and told.code in NEW_CREDENTIALS:
                self._read_again()
            raise told from error
        except NO_CREDENTIALS as error:
            self._read_again()
            raise AwsError("NoCredentials", str(error), 401) from error
        except (exceptions.ParamValidationError, exceptions.UnknownRegionError) as error:
            raise AwsError("InvalidParameter", str(error)) from error
        except (*NO_ANSWER, ResponseParserError) as error:
            raise NoAnswerError(f"{service} {operation} in {region}: {error}") from error
        return reply

    def _client(self, service: str, region: str, once: bool) -> Any:
        key = service, region, once
        with self._lock:
            if key not in self._clients:
                if self._session is None:
                    self._session = boto3.session.Session(profile_name=self._profile)
                    self._read_at = self._clock()
                self._clients[key] = self._session.client(  # type: ignore[call-overload]
                    service,
                    region_name=region,
                    endpoint_url=self._endpoint_url,
                    config=_config(once=once),
                )
            return self._clients[key]

    def _read_again(self) -> None:
        """The SDK reads a file of credentials once: renewed ones are for new clients."""
        with self._lock:
            if self._clock() - self._read_at >= READ_AGAIN_SECONDS:
                self._session = None
                self._clients.clear()


def _config(*, once: bool) -> Config:
    return Config(
        connect_timeout=5,
        read_timeout=30,
        max_pool_connections=32,
        retries={"total_max_attempts": 1 if once else 5, "mode": "standard"},
        user_agent_extra="skypurza",
    )


def _told(error: exceptions.ClientError) -> AwsError | NoAnswerError:
    said = error.response.get("Error", {})
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
    code, message = str(said.get("Code", "")), str(said.get("Message", ""))
    if code in UNKNOWN_OUTCOME or (status >= 500 and code in {"", str(status)}):
        return NoAnswerError(f"{error.operation_name}: {code} {message}")
    return AwsError(code, message, status)


def pages(
    api: Api, region: str, operation: str, *, key: str, service: str = "ec2", **params: Any
) -> Iterator[Any]:
    """Everything under `key` of a call that lists, page by page."""
    token: str | None = None
    while True:
        more = {} if token is None else {"NextToken": token}
        reply = api.call(service, region, operation, **params, **more)
        yield from reply.get(key, ())
        token = reply.get("NextToken") or None
        if token is None:
            return


def region_names(api: Api, home: str) -> list[str]:
    """The regions that the account may use, sorted. Raises AwsError, NoAnswerError."""
    return sorted(one["RegionName"] for one in api.call("ec2", home, "describe_regions")["Regions"])
