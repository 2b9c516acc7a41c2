"""Objects in a bucket of S3. Amounts of data are bytes."""

import base64
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from hashlib import md5
from itertools import islice
from typing import Any, BinaryIO, Final, TypeGuard

from broker.model.errors import Refused
from broker.providers.ec2.clients import NO_ANSWER, Api
from broker.providers.ec2.errors import AwsError
from broker.stage.objects import PART, Stored, digest_of, size_of

SCHEME: Final = "s3://"
HOME: Final = "us-east-1"
"""Where S3 is asked first; it says where else a bucket is."""
HASH = "sha256"
"""Name of an object's own metadata."""
SIGNED_SECONDS = 3600
MOST_PARTS = 10_000
MOST_DROPPED = 1_000
MISSING = frozenset({"404", "NoSuchKey", "NotFound"})
UNTAGGED = frozenset({"NoSuchTagSet", "NoSuchBucket"})
PASSING = frozenset({"NoSuchUpload", "SlowDown", "RequestTimeout", "OperationAborted"})
"""Somebody else was at it, or S3 has too much to do: another try goes on."""
PAGING: Mapping[str, Mapping[str, str]] = {
    "list_objects_v2": {"NextContinuationToken": "ContinuationToken"},
    "list_multipart_uploads": {
        "NextKeyMarker": "KeyMarker",
        "NextUploadIdMarker": "UploadIdMarker",
    },
    "list_parts": {"NextPartNumberMarker": "PartNumberMarker"},
}
"""What of a page's answer the next one is asked with."""
HINTS: Mapping[str, str] = {
    "NoSuchBucket": "make it, or name another",
    "AccessDenied": "`spz check` tells what the account may do",
    "NoCredentials": "`spz check` tells what is missing",
}


def split(url: str) -> tuple[str, str]:
    """Bucket and key of `s3://BUCKET/KEY`; the key may be empty."""
    bucket, _, key = url.removeprefix(SCHEME).partition("/")
    return bucket, key


def names(api: Api) -> set[str]:
    """Buckets of the account. Raises Refused, OSError."""
    with told(SCHEME):
        return {str(one["Name"]) for one in api.call("s3", HOME, "list_buckets").get("Buckets", ())}


@contextmanager
def told(url: str) -> Iterator[None]:
    """Raises Refused for a definite no, OSError for one that passes."""
    try:
        yield
    except AwsError as error:
        if error.code in PASSING or error.status >= 500:
            raise OSError(f"{url}: {error}") from error
        raise Refused(f"{url}: {error}", hint=HINTS.get(error.code, "")) from error


@dataclass(frozen=True, slots=True)
class Bucket:
    """`Objects` below a prefix of a bucket."""

    api: Api
    name: str
    prefix: str = ""
    """Before every key; ends with a slash where it is not empty."""
    region: str = HOME

    def make(self) -> None:
        """Makes the bucket; one that is ours already is enough. Raises Refused, OSError."""
        where = {} if self.region == HOME else {"LocationConstraint": self.region}
        given = {"CreateBucketConfiguration": where} if where else {}
        with self._told():
            try:
                self._call("create_bucket", **given)
            except AwsError as error:
                if error.code != "BucketAlreadyOwnedByYou":
                    raise

    def remove(self) -> None:
        """All that is in it, then the bucket; one that is not there counts as removed.

        Raises Refused, OSError.
        """
        with self._told():
            try:
                keys = [one["Key"] for one in self._pages("list_objects_v2", "Contents")]
                self.drop(keys)
                self._call("delete_bucket")
            except AwsError as error:
                if error.code != "NoSuchBucket":
                    raise

    def tags(self) -> dict[str, str]:
        """The bucket's; empty where it has none or is not there. Raises Refused, OSError."""
        with self._told():
            try:
                found = self._call("get_bucket_tagging")["TagSet"]
            except AwsError as error:
                if error.code in UNTAGGED:
                    return {}
                raise
        return {str(one["Key"]): str(one["Value"]) for one in found}

    def head(self, key: str) -> Stored | None:
        with self._told():
            try:
                said = self._call("head_object", Key=self.prefix + key)
            except AwsError as error:
                if error.code in MISSING:
                    return None
                raise
        at, size = int(said["LastModified"].timestamp()), int(said["ContentLength"])
        return Stored(key, size, at, said.get("Metadata", {}).get(HASH))

    def found(self, prefix: str = "") -> Iterator[Stored]:
        with self._told():
            for one in self._pages("list_objects_v2", "Contents", Prefix=self.prefix + prefix):
                at = int(one["LastModified"].timestamp())
                yield Stored(one["Key"].removeprefix(self.prefix), int(one["Size"]), at)

    def read(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        if length == 0:
            return b""
        last = "" if length is None else offset + length - 1
        part = {} if not offset and length is None else {"Range": f"bytes={offset}-{last}"}
        with self._told():
            try:
                body = self._call("get_object", Key=self.prefix + key, **part)["Body"]
                return bytes(body.read())
            except AwsError as error:
                if error.code in MISSING:
                    raise FileNotFoundError(2, "no such object", self._url(key)) from error
                if error.code == "InvalidRange":
                    return b""
                raise
            except NO_ANSWER as error:
                raise OSError(f"{self._url(key)}: {error}") from error

    def put(self, key: str, source: BinaryIO, *, digest: str | None = None) -> Stored:
        digest = digest or digest_of(source)
        size, there = size_of(source), self.head(key)
        if _is(there, size, digest):
            return there
        with self._told():
            if size <= PART:
                self._put_whole(key, source.read(), digest)
            else:
                self._put_parts(key, source, size=size, digest=digest)
        there = self.head(key)
        if _is(there, size, digest):
            return there
        # Parts that an upload of another digest had begun with, or another's object: again.
        raise OSError(f"{self._url(key)}: it is not what was put")

    def drop(self, keys: Iterable[str]) -> None:
        waiting = iter(keys)
        with self._told():
            while some := list(islice(waiting, MOST_DROPPED)):
                names = [{"Key": self.prefix + key} for key in some]
                self._call("delete_objects", Delete={"Objects": names, "Quiet": True})

    def url(self, key: str, *, put: bool) -> str:
        """Good for an hour to whoever has it; nothing is asked of S3."""
        said: object = self.api.call(
            "s3",
            self.region,
            "generate_presigned_url",
            ClientMethod="put_object" if put else "get_object",
            Params={"Bucket": self.name, "Key": self.prefix + key},
            ExpiresIn=SIGNED_SECONDS,
        )
        return str(said)

    # --- uploads

    def _put_whole(self, key: str, data: bytes, digest: str) -> None:
        self._call(
            "put_object",
            Key=self.prefix + key,
            Body=data,
            Metadata={HASH: digest},
            ContentMD5=base64.b64encode(_md5(data).digest()).decode("ascii"),
        )

    def _put_parts(self, key: str, source: BinaryIO, *, size: int, digest: str) -> None:
        """Goes on with an upload whose parts are this source's, else begins anew."""
        length = max(PART, -(-size // MOST_PARTS))
        upload, there = self._begun(key, source, length)
        if not upload:
            begun = self._call(
                "create_multipart_upload", Key=self.prefix + key, Metadata={HASH: digest}
            )
            upload = str(begun["UploadId"])
        sent = []
        for number in range(1, -(-size // length) + 1):
            tag = there.get(number) or self._send(
                key, upload, number=number, data=_part(source, number, length)
            )
            sent.append({"PartNumber": number, "ETag": tag})
        self._call(
            "complete_multipart_upload",
            Key=self.prefix + key,
            UploadId=upload,
            MultipartUpload={"Parts": sent},
        )

    def _send(self, key: str, upload: str, *, number: int, data: bytes) -> str:
        said = self._call(
            "upload_part",
            Key=self.prefix + key,
            UploadId=upload,
            PartNumber=number,
            Body=data,
            ContentMD5=base64.b64encode(_md5(data).digest()).decode("ascii"),
        )
        return str(said["ETag"])

    def _begun(self, key: str, source: BinaryIO, length: int) -> tuple[str, dict[int, str]]:
        """An interrupted upload and its parts by number; those of other bytes are given up."""
        own = self.prefix + key
        for one in list(self._pages("list_multipart_uploads", "Uploads", Prefix=own)):
            if one["Key"] != own:
                continue
            upload = str(one["UploadId"])
            told = self._pages("list_parts", "Parts", Key=own, UploadId=upload)
            parts = {int(part["PartNumber"]): str(part["ETag"]) for part in told}
            if parts and all(
                tag.strip('"') == _md5(_part(source, number, length)).hexdigest()
                for number, tag in parts.items()
            ):
                return upload, parts
            self._call("abort_multipart_upload", Key=own, UploadId=upload)
        return "", {}

    # --- calls

    def _call(self, operation: str, **params: Any) -> dict[str, Any]:
        return self.api.call("s3", self.region, operation, Bucket=self.name, **params)

    def _pages(self, operation: str, key: str, **params: Any) -> Iterator[Any]:
        more: dict[str, Any] = {}
        while True:
            said = self._call(operation, **params, **more)
            yield from said.get(key, ())
            if not said.get("IsTruncated"):
                return
            names = PAGING[operation].items()
            more = {asked: said[given] for given, asked in names if said.get(given)}

    def _url(self, key: str = "") -> str:
        return f"{SCHEME}{self.name}/{self.prefix}{key}"

    def _told(self) -> AbstractContextManager[None]:
        return told(self._url())


def _is(found: Stored | None, size: int, digest: str) -> TypeGuard[Stored]:
    return found is not None and (found.size, found.sha256) == (size, digest)


def _part(source: BinaryIO, number: int, length: int) -> bytes:
    source.seek((number - 1) * length)
    return source.read(length)


def _md5(data: bytes) -> Any:
    """What S3 calls an ETag; nothing rests on its being hard to forge."""
    return md5(data, usedforsecurity=False)
