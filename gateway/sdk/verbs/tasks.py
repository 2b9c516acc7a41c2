"""task check, show and schema: files alone, without a service."""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from broker.model.errors import BadSpec, Refused
from broker.optimize.bundled import packaged
from gateway.sdk.client import Json
from gateway.sdk.verbs.counter import Counter, as_json
from gateway.sdk.verbs.line import Values
from gateway.sdk.verbs.sent import variables_of
from gateway.translate.skypilot import read_file
from gateway.translate.skypilot_documents import Given
from gateway.translate.skypilot_sbatch import from_sbatch, to_sbatch, unsaid
from gateway.translate.skypilot_schema import SCHEMA
from gateway.translate.skypilot_slurm import unread
from gateway.translate.skypilot_summary import summary
from gateway.translate.skypilot_supply import Supply
from gateway.translate.skypilot_yaml import written

MOST_BYTES = 8 << 20


def check(given: Values, counter: Counter) -> int:
    """0 if all can be launched from, else 1; a line for each file."""
    typed, supply = _typed(given), Supply.of(packaged())
    outcomes = {path: _checked(path, typed, supply) for path in given["words"]}
    if as_json(given):
        found = [{"file": path, "ok": ok, "told": told} for path, (ok, told) in outcomes.items()]
        print(json.dumps(found, indent=2))
    else:
        for path, (ok, told) in outcomes.items():
            print(f"{path}: {told}", file=sys.stdout if ok else sys.stderr)
    return 0 if all(ok for ok, _ in outcomes.values()) else 1


def _checked(path: str, typed: Given, supply: Supply) -> tuple[bool, str]:
    try:
        return True, summary(read_file(text_of(path), typed), supply)
    except BadSpec as error:
        return False, error.message + (f" ({error.hint})" if error.hint else "")
    except Refused as error:
        return False, error.message.removeprefix(f"{path}: ")


def _typed(given: Values) -> Given:
    return Given(variables_of(given, "env"), variables_of(given, "secret"), {})


def text_of(path: str) -> str:
    """`-` is standard input. Raises Refused."""
    try:
        if path == "-":
            data = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with Path(path).expanduser().open("rb") as file:
                data = file.read(MOST_BYTES + 1)
    except (OSError, RuntimeError, ValueError) as error:
        raise Refused(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > MOST_BYTES:
        raise Refused(f"{path}: more than {MOST_BYTES >> 20} MiB are no task file")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"{path}: not UTF-8 (byte {error.start})") from error


def show(given: Values, counter: Counter) -> int:
    """Raises BadSpec, Refused."""
    (path,) = given["words"]
    text = text_of(path)
    script = text.startswith("#!")
    form = given["as"] or ("yaml" if script else "sbatch")
    trees: Sequence[Json]
    if script:
        trees = (from_sbatch(text, Path(path).name),)
    else:
        trees = read_file(text, _typed(given)).trees
    if form == "yaml":
        print(written(trees), end="")
        left = unread(read_file(written(trees)).tasks[0].slurm) if script else ()
        _tell(counter, left, "a task does not act on these options of sbatch's")
        return 0
    if len(trees) > 1:
        raise Refused(
            f"{path}: {len(trees)} tasks are as many batch scripts", hint="put them in files"
        )
    print(to_sbatch(trees[0]), end="")
    _tell(counter, unsaid(trees[0]), "sbatch does not act on these, they stay as #TASK comments")
    return 0


def _tell(counter: Counter, left: Iterable[str], what: str) -> None:
    """One line for all that is not carried over; none for nothing."""
    if names := ", ".join(left):
        counter.say(f"note: {what}: {names}")


def schema(given: Values, counter: Counter) -> int:
    print(json.dumps(SCHEMA, indent=2))
    return 0
