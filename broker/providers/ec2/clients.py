"""Calls of AWS: one client per service and region; errors come out as ours."""

import threading
from collections.abc import Iterator
from typing import Any, Protocol

import boto3
from botocore import exceptions
from botocore.config import Config
from botocore.parsers import ResponseParserError

from broker.providers.ec2.errors import UNKNOWN_OUTCOME, AwsError, NoAnswerError

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


class Api(Protocol):
    """AWS, as far as a provider needs it; may be called from any thread."""

    def call(self, service: str, region: str, operation: str, **params: Any) -> Reply:
        """Raises AwsError for a definite no, NoAnswerError where the outcome is not known."""
        ...


class BotoApi:
    """`Api` by boto3; clients are kept, since the first of each costs 10 ms and more."""

    def __init__(self, *, endpoint_url: str | None = None, profile: str | None = None) -> None:
        self._endpoint_url = endpoint_url
        self._profile = profile
        self._session: boto3.session.Session | None = None
        self._clients: dict[tuple[str, str, bool], Any] = {}
        self._lock = threading.Lock()

    def call(self, service: str, region: str, operation: str, **params: Any) -> Reply:
        try:
            method = getattr(self._client(service, region, operation in ONCE), operation)
            reply: Reply = method(**params)
        except exceptions.ClientError as error:
            raise _told(error) from error
        except NO_CREDENTIALS as error:
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
                self._session = self._session or boto3.session.Session(profile_name=self._profile)
                self._clients[key] = self._session.client(  # type: ignore[call-overload]
                    service,
                    region_name=region,
                    endpoint_url=self._endpoint_url,
                    config=_config(once=once),
                )
            return self._clients[key]


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
