"""A reservation on a real service: made, used, met by others, kept through a restart, deleted."""

import pytest

from tests.e2e.service import Preloaded, Service, User, service, until

pytestmark = pytest.mark.e2e
AWAY = "(ReqNodeNotAvail, May be reserved for other job)"


def pending_reason(served: Service, job: int) -> str:
    return served.run("squeue", "-h", "-j", str(job), "-o", "%R").out.strip()


def test_a_reserved_node_serves_the_reservations_jobs_alone(preloaded: Preloaded) -> None:
    me = User.present().name
    with service(preloaded) as served:
        words = ["starttime=now", "duration=60", f"users={me}", "nodes=own-1"]
        made = served.run("scontrol", "create", "reservation=mine", *words)
        assert (made.out, made.code) == ("Reservation created: mine\n", 0)
        until(lambda: " resv" in served.run("sinfo", "-h", "-n", "own-1").out, "the state")
        listed = served.run("sinfo", "-T", "-h").out.split()
        assert (listed[0], listed[1], listed[-1]) == ("mine", "ACTIVE", "own-1")
        outside = served.wrap("true", "-w", "own-1")
        until(lambda: pending_reason(served, outside) == AWAY, "the reason")
        inside = served.wrap("sleep 30", "--reservation=mine", "-o", "inside.out")
        served.wait(inside, "RUNNING")
        assert served.job(inside).shares[0].node == "own-1"
        served.restart()
        assert "ReservationName=mine " in served.run("scontrol", "show", "reservation").out
        refused = served.run("scontrol", "delete", "reservation=mine")
        assert refused.err == (
            "delete_reservation reservation=mine: Requested reservation is in use\n"
        )
        assert served.run("scancel", str(inside)).code == 0
        served.wait(inside, "CANCELLED")
        assert served.run("scontrol", "delete", "reservation=mine").code == 0
        served.wait(outside, "COMPLETED")
