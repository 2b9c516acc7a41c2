"""Which jobs and partitions a line of scontrol is about, words cut short included. Pure."""

from collections.abc import Iterator, Sequence

LEAST = 3
"""Letters that are enough for a verb (22.05)."""
FOLLOWED = (
    "hold", "listpids", "notify", "release", "requeue", "requeuehold", "resume", "suspend",
    "top", "uhold", "wait_job",
)  # fmt: skip
"""Verbs that jobs follow."""
JOBS = {"jobs": 1, "jobid": 4, "steps": 2}
"""What of a job is shown, and the letters that are enough."""
PARTITIONS = {"partitions": 1, "partitionname": 10}


def jobs(words: Sequence[str]) -> Iterator[str]:
    """Those that are named, each as it was typed."""
    verb = _verb(words)
    if verb == "show":
        yield from _shown(words[1:], JOBS)
    elif verb == "write" and words[1:2] == ["batch_script"]:
        yield from words[2:3]
    elif verb in FOLLOWED:
        yield from (name for word in words[1:] for name in word.rpartition("=")[2].split(","))
    elif verb == "update":
        yield from _changed(words[1:], "jobid")


def partitions(words: Sequence[str]) -> Iterator[str]:
    """Those that are named."""
    verb = _verb(words)
    if verb == "show":
        yield from _shown(words[1:], PARTITIONS)
    elif verb == "update":
        yield from _changed(words[1:], "partitionname")


def _verb(words: Sequence[str]) -> str | None:
    known = (*FOLLOWED, "show", "update", "write")
    word = words[0].lower() if words else ""
    if word in known:
        return word
    return next((one for one in known if len(word) >= LEAST and one.startswith(word)), None)


def _shown(words: Sequence[str], known: dict[str, int]) -> Iterator[str]:
    """`job 7` and `job=7`."""
    entity, equals, value = words[0].partition("=") if words else ("", "", "")
    word = entity.lower()
    if any(len(word) >= least and name.startswith(word) for name, least in known.items()):
        yield from (name for name in ([value] if equals else words[1:]) if name)


def _changed(words: Sequence[str], entity: str) -> Iterator[str]:
    """`jobid=7,8` anywhere, and `job 7` in front."""
    keyed = [word.partition("=") for word in words]
    if len(words) > 1 and not keyed[0][1]:
        keyed[0] = words[0], "=", words[1]
    for key, equals, value in keyed:
        if equals and len(key) >= LEAST and entity.startswith(key.lower()):
            yield from value.split(",")
