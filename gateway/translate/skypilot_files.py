"""A script for bash that brings a task's files to a node: a repository, local files, buckets.

It runs on every node before `setup`, as the user, and may run again: what is there is brought up
to date. Nothing in it is taken from the task but quoted words.
"""

import posixpath
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from broker.model.spec import Attached, Mount, OwnBucket
from gateway.translate.buckets import S3
from gateway.translate.skypilot import Git, Storage, Task
from gateway.translate.skypilot_documents import Tree
from gateway.translate.skypilot_schema import PRESETS

CACHES = "$HOME/.skypurza/caches"
"""Folder of the logs of cached mounts; a shell's text."""

COPY_LOCAL = """\
spz_copy() {  # FROM TO
  mkdir -p "$(dirname "$2")"
  if [ "$(readlink -f "$1")" = "$(readlink -m "$2")" ]; then return; fi
  if [ -d "$1" ]; then mkdir -p "$2"; cp -a "$1/." "$2/"; else cp -a "$1" "$2"; fi
}
"""
COPY_S3 = """\
spz_fetch() {  # BUCKET KEY TO
  mkdir -p "$(dirname "$3")"
  if command -v aws >/dev/null; then
    if [ -n "$2" ] && aws s3api head-object --bucket "$1" --key "$2" >/dev/null 2>&1; then
      aws s3 cp --only-show-errors "s3://$1/$2" "$3"
    else
      aws s3 sync --only-show-errors "s3://$1/$2" "$3"
    fi
  elif command -v rclone >/dev/null; then
    rclone copy ${AWS_ENDPOINT_URL:+--s3-endpoint "$AWS_ENDPOINT_URL"} \\
      ":s3,env_auth=true:$1/$2" "$3"
  else
    echo "spz: neither aws nor rclone is on $(hostname): cannot fetch s3://$1/$2" >&2; return 127
  fi
}
"""
MOUNT_S3 = """\
spz_mount() {  # BUCKET PREFIX TO [--read-only]
  mkdir -p "$3"
  if mountpoint -q "$3"; then return; fi
  if command -v mount-s3 >/dev/null; then
    mount-s3 "$1" "$3" ${2:+--prefix "$2/"} ${4:---allow-delete --allow-overwrite}
  elif command -v rclone >/dev/null; then
    rclone mount --daemon --vfs-cache-mode writes $4 \\
      ${AWS_ENDPOINT_URL:+--s3-endpoint "$AWS_ENDPOINT_URL"} ":s3,env_auth=true:$1/$2" "$3"
  else
    echo "spz: neither mount-s3 nor rclone is on $(hostname): cannot mount s3://$1" >&2; return 127
  fi
}
"""
CACHE_S3 = f"""\
spz_cache() {{  # BUCKET PREFIX TO LOG RCLONE'S...
  mkdir -p "$3" "{CACHES}"
  if mountpoint -q "$3"; then return; fi
  if ! command -v rclone >/dev/null; then
    echo "spz: rclone is not on $(hostname): cannot keep a cache of s3://$1" >&2; return 127
  fi
  rclone mount --daemon --vfs-cache-mode full --vfs-write-back 1s --vfs-cache-poll-interval 5s \\
    --log-level INFO --log-file "{CACHES}/$4.log" "${{@:5}}" \\
    ${{AWS_ENDPOINT_URL:+--s3-endpoint "$AWS_ENDPOINT_URL"}} ":s3,env_auth=true:$1/$2" "$3"
}}
"""
MAKE_S3 = """\
spz_bucket() {  # BUCKET
  if command -v aws >/dev/null; then
    if aws s3api head-bucket --bucket "$1" >/dev/null 2>&1; then return; fi
    aws s3 mb "s3://$1" >/dev/null
    local tags='TagSet=[{Key=ManagedBy,Value=skypurza}]'
    aws s3api put-bucket-tagging --bucket "$1" --tagging "$tags" ||
      echo "spz: s3://$1 takes no tag, so it stays when its cluster goes" >&2
  fi
}
"""
SEND_S3 = """\
spz_send() {  # FROM BUCKET
  if [ -d "$1" ]; then aws s3 sync --only-show-errors "$1" "s3://$2"
  else aws s3 cp --only-show-errors "$1" "s3://$2/"; fi
}
"""
FORGET_S3 = """\
spz_forget() {  # BUCKET
  command -v aws >/dev/null || return 0
  local who="TagSet[?Key=='ManagedBy'].Value"
  who=$(aws s3api get-bucket-tagging --bucket "$1" --query "$who" --output text 2>/dev/null)
  if [ "$who" = skypurza ]; then aws s3 rb --force "s3://$1" >/dev/null; fi
}
"""
"""Deletes a bucket that a task made."""
CLONE = """\
spz_clone() {  # URL REF
  local url=$1
  if [ -n "${GIT_TOKEN:-}" ] && [ "${url#https://}" != "$url" ]; then
    export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=http.extraHeader
    local pass; pass=$(printf 'x-access-token:%s' "$GIT_TOKEN" | base64 -w0)
    export GIT_CONFIG_VALUE_0="Authorization: Basic $pass"
  fi
  if [ -n "${GIT_SSH_KEY_PATH:-}" ]; then
    local key; key=$(printf %q "${GIT_SSH_KEY_PATH/#\\~/$HOME}")
    export GIT_SSH_COMMAND="ssh -i $key -o IdentitiesOnly=yes -o StrictHostKeyChecking=accept-new"
  fi
  if [ "$(git config --get remote.origin.url 2>/dev/null)" = "$url" ]; then
    git fetch -q --tags origin
  elif [ -z "$(ls -A)" ]; then
    git clone -q "$url" .
  else
    echo "spz: $PWD holds other things: $url is not cloned into it" >&2; return 1
  fi
  local ref=${2:-origin/HEAD}
  git checkout -q --detach "origin/$ref" 2>/dev/null || git checkout -q --detach "$ref"
}
"""
DRAIN = f"""\
for spz_log in {CACHES}/$1.*.log; do
  [ -e "$spz_log" ] || continue
  spz_seen=$(wc -l < "$spz_log")
  until tail -n "+$((spz_seen + 1))" "$spz_log" | grep -q "to upload 0, uploading 0"; do
    pgrep -f -- "--log-file $spz_log" >/dev/null || break
    sleep 1
  done
done
"""
"""Waits until everything written to the cached mounts of a cluster is in its bucket."""
FUNCTIONS: Mapping[str, str] = {
    "spz_copy": COPY_LOCAL,
    "spz_fetch": COPY_S3,
    "spz_mount": MOUNT_S3,
    "spz_cache": CACHE_S3,
    "spz_bucket": MAKE_S3,
    "spz_send": SEND_S3,
    "spz_clone": CLONE,
}


def own_buckets(task: Task) -> tuple[OwnBucket, ...]:
    """Those that the task has by name, and that no `s3://` says to be somebody's."""
    named = (one for one in (task.file_mounts or {}).values() if isinstance(one, Storage))
    return tuple(
        OwnBucket(name=one.name, persistent=one.persistent is not False)
        for one in named
        if one.name is not None and next(_remote(one), None) is None
    )


def forgetting(task: Task) -> str | None:
    """A script for the end of the task's machines: buckets that are not to outlive them go."""
    passing = [one.name for one in own_buckets(task) if not one.persistent]
    calls = "".join(f"{shlex.join(['spz_forget', name])}\n" for name in passing)
    return FORGET_S3 + calls if calls else None


def volume_of(wanted: str | Tree) -> str | None:
    """The name of a volume that is there without the task; None where there is none."""
    name = wanted if isinstance(wanted, str) else wanted.get("name")
    return str(name) if name else None


def volumes(task: Task, path: Callable[[str], str]) -> tuple[Attached, ...]:
    """The volumes that it names; `path` makes a path of the task absolute."""
    found = ((target, volume_of(wanted)) for target, wanted in (task.volumes or {}).items())
    return tuple(Attached(volume=name, path=path(target)) for target, name in found if name)


@dataclass(frozen=True, slots=True)
class Files:
    """What a task brings to its nodes; `path` makes a path of the task absolute."""

    task: Task
    cluster: str
    path: Callable[[str], str]

    def script(self, *, mounts: bool = True) -> str | None:
        """None where nothing is to be brought; without `mounts` only the repository."""
        calls = [*self._repository(), *(self._mounts() if mounts else ())]
        if not calls:
            return None
        needed = {call[0] for call in calls}
        functions = "".join(text for name, text in FUNCTIONS.items() if name in needed)
        return f"set -e\n{functions}" + "".join(f"{shlex.join(call)}\n" for call in calls)

    def drain(self) -> str | None:
        """What has to be done after `run`; None for nothing."""
        modes = {_mode(source) for _, source in self._sources()}
        return DRAIN if "MOUNT_CACHED" in modes else None

    def _repository(self) -> Iterator[list[str]]:
        if isinstance(self.task.workdir, Git):
            yield ["spz_clone", self.task.workdir.url, self.task.workdir.ref or ""]

    def _sources(self) -> Iterator[tuple[str, str | Storage]]:
        yield from (self.task.file_mounts or {}).items()

    def _mounts(self) -> Iterator[list[str]]:
        for number, (target, source) in enumerate(self._sources()):
            to = self.path(target)
            if isinstance(source, Storage):
                yield from self._storage(source, to, number=number)
            elif source.startswith(S3):
                yield ["spz_fetch", *_bucket(source), to]
            elif self.path(source) != to:
                yield ["spz_copy", self.path(source), to]

    def brought(self, key: str | None) -> tuple[Mount, ...]:
        """Files of this host that have to be brought to nodes, from outside of the workdir.

        `key` is that of a repository.
        """
        found = (text for _, source in self._sources() for text in _local(source))
        paths = dict.fromkeys(self._normal(text) for text in (*found, *([key] if key else ())))
        return tuple(Mount(source=one, target=one) for one in paths if not self._travels(one))

    def _normal(self, path: str) -> str:
        return posixpath.normpath(self.path(path))

    def _travels(self, path: str) -> bool:
        """Whether it comes with the workdir."""
        folder = self.task.workdir
        return isinstance(folder, str) and _within(path, self._normal(folder))

    def _storage(self, source: Storage, to: str, *, number: int) -> Iterator[list[str]]:
        local, remote = _local(source), next(_remote(source), None)
        bucket, key = _bucket(remote) if remote else (source.name or "", "")
        if remote is None:
            yield ["spz_bucket", bucket]
            yield from (["spz_send", self.path(one), bucket] for one in local)
        mode = _mode(source)
        if mode == "COPY":
            yield ["spz_fetch", bucket, key, to]
        elif mode == "MOUNT":
            yield ["spz_mount", bucket, key, to, *mount_words(source)]
        else:
            log = f"{self.cluster}.{number}"
            yield ["spz_cache", bucket, key, to, log, *cache_words(source)]


def mount_words(source: Storage) -> list[str]:
    """What both programs are told of how a bucket is mounted."""
    asked = {**PRESETS.get(source.type or "", {}), **((source.config or {}).get("mount") or {})}
    return ["--read-only"] if asked.get("read_only") else []


def cache_words(source: Storage) -> list[str]:
    """What rclone is told of a cached mount: settings have the names of its options."""
    given = (source.config or {}).get("mount_cached") or {}
    asked = {**PRESETS.get(source.type or "", {}), **given}
    found = {f"--{name.replace('_', '-')}": value for name, value in asked.items()}
    return [f"{name}={_word(value)}" for name, value in found.items() if value is not None]


def unheard(task: Task) -> Iterator[tuple[str, str]]:
    """Settings of mounts that none of their programs is told of, by target."""
    for target, source in (task.file_mounts or {}).items():
        heard = {"MOUNT": "mount", "MOUNT_CACHED": "mount_cached"}.get(_mode(source))
        given = (source.config or {}) if isinstance(source, Storage) else {}
        yield from ((target, name) for name in given if name != heard)


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def sources_of(source: str | Storage) -> list[str]:
    """Where a mount's files come from, as written."""
    given = source.source if isinstance(source, Storage) else source
    return [given] if isinstance(given, str) else list(given or ())


def _local(source: str | Storage) -> list[str]:
    return [one for one in sources_of(source) if "://" not in one]


def _remote(source: Storage) -> Iterator[str]:
    return (one for one in sources_of(source) if "://" in one)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _mode(source: str | Storage) -> str:
    return (source.mode or "MOUNT") if isinstance(source, Storage) else "COPY"


def _bucket(url: str) -> tuple[str, str]:
    bucket, _, key = url.removeprefix(S3).partition("/")
    return bucket, key.rstrip("/")
