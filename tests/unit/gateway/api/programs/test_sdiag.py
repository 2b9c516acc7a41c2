"""sdiag: what planning and commands cost, in the order that was asked for."""

import json

import pytest

from gateway.api.programs.sdiag import sdiag
from tests.unit.gateway.query.desk import ask, desk_of, snapshot, text
from tests.unit.gateway.query.scene import queue

SPENT = {"squeue": (0.001, 0.003), "sbatch": (0.009,), "sacct": (0.002, 0.002, 0.002)}
WHO = {2001: (0.5, 0.5), 2002: (0.9,)}
ORDERS = [
    ((), "SACCT REQUEST_JOB_INFO REQUEST_SUBMIT_BATCH_JOB", "alice bob"),
    (("-i",), "SACCT REQUEST_JOB_INFO REQUEST_SUBMIT_BATCH_JOB", "alice bob"),
    (("-t",), "REQUEST_SUBMIT_BATCH_JOB SACCT REQUEST_JOB_INFO", "alice bob"),
    (("-T",), "REQUEST_SUBMIT_BATCH_JOB REQUEST_JOB_INFO SACCT", "bob alice"),
    (("--sort-by-time2", "--sort-by-id"), "SACCT REQUEST_JOB_INFO REQUEST_SUB", "alice bob"),
]


def answered(*words: str) -> str:
    desk = desk_of(snapshot(queue()))
    for name, each in SPENT.items():
        for seconds in each:
            desk.times.note(name, seconds)
    desk.times.note("/v1/jobs", 1.0)
    for uid, each in WHO.items():
        for seconds in each:
            desk.times.note_user(uid, seconds)
    for seconds in (0.004, 0.002):
        desk.cycles.note(seconds)
    return text(ask(sdiag, desk, ["sdiag", *words]).out)


@pytest.mark.parametrize(("words", "kinds", "users"), ORDERS)
def test_commands_are_counted_in_the_order_asked_for(
    words: tuple[str, ...], kinds: str, users: str
) -> None:
    out = answered(*words)
    _, by_kind, by_user = out.split("Remote Procedure Call statistics by ")
    assert " ".join(_names(by_kind)).startswith(kinds)
    assert " ".join(_names(by_user.partition("Pending RPC")[0])) == users


def _names(block: str) -> list[str]:
    return [line.split()[0] for line in block.splitlines()[1:] if line.startswith("\t")]


def test_lines_have_slurms_form() -> None:
    out = answered()
    assert (
        "\tREQUEST_JOB_INFO                        ( 2003) count:2      ave_time:2000   "
        "total_time:4000\n"
    ) in out
    assert ("\talice           (    2001) count:2      ave_time:500000 total_time:1000000\n") in out
    assert "\tLast cycle:   2000\n\tMax cycle:    4000\n\tTotal cycles: 2\n" in out
    assert "\tMean cycle:   3000\n" in out


def test_the_same_is_told_as_json() -> None:
    found = json.loads(answered("--json"))["statistics"]
    assert (found["schedule_cycle_max"], found["schedule_cycle_mean"]) == (4000, 3000)
    (bob,) = (one for one in found["rpcs_by_user"] if one["user"] == "bob")
    assert (bob["user_id"], bob["count"], bob["total_time"]) == (2002, 1, 900_000)
    kinds = {one["message_type"]: one["type_id"] for one in found["rpcs_by_message_type"]}
    assert kinds == {"REQUEST_JOB_INFO": 2003, "REQUEST_SUBMIT_BATCH_JOB": 4003, "SACCT": 0}
