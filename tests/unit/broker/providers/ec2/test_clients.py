"""Calls by boto3 whose credentials come to be no good, and are renewed by whoever can."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from broker.providers.ec2.clients import READ_AGAIN_SECONDS, BotoApi
from broker.providers.ec2.errors import AwsError

REFUSAL = (
    "<Response><Errors><Error><Code>{}</Code><Message>no</Message></Error></Errors></Response>"
)
REGIONS = "<DescribeRegionsResponse><regionInfo/></DescribeRegionsResponse>"


@dataclass
class Aws:
    """Takes calls that one key has signed, and those of nobody else."""

    good: str = "NEW"
    code: str = "RequestExpired"
    asked: list[str] = field(default_factory=list)
    endpoint: str = ""


@pytest.fixture
def aws() -> Iterator[Aws]:
    known = Aws()

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            key = self.headers["Authorization"].partition("Credential=")[2].partition("/")[0]
            known.asked.append(key)
            text = REGIONS if key == known.good else REFUSAL.format(known.code)
            self.send_response(200 if key == known.good else 400)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    known.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield known
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("code", ["RequestExpired", "ExpiredToken", "AuthFailure", "NoCredentials"])
def test_credentials_that_are_renewed_in_their_file_are_used_without_a_restart(
    aws: Aws, short_tmp: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    path, time = short_tmp / "credentials", 0.0
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    api, aws.code = BotoApi(endpoint_url=aws.endpoint, clock=lambda: time), code

    def keep(key: str) -> None:
        path.write_text(f"[default]\naws_access_key_id = {key}\naws_secret_access_key = s\n")

    def refused() -> str:
        with pytest.raises(AwsError) as caught:
            api.call("ec2", "us-east-1", "describe_regions")
        return caught.value.code

    if code != "NoCredentials":
        keep("OLD")
    assert refused() == code
    keep("NEW")
    assert refused() == code, "they were read a moment ago"
    time += READ_AGAIN_SECONDS
    assert refused() == code, "who is refused asks with what was known"
    assert api.call("ec2", "us-east-1", "describe_regions")["Regions"] == []
    assert [key for key in aws.asked if key == aws.good] == ["NEW"]
