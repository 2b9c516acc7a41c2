"""Jobs on a real service: what reaches them, how they end, what holds while the service is dead."""

import json
import os
import random
import socket
import sqlite3
from pathlib import Path

from tests.e2e.agents import alive, until
from tests.e2e.service import CONFIG, Preloaded, Service, script, service

MIB = 1 << 20
ODD = b"a b\tc'd\"e\\f\n$HOME `id` $(id) *\xff\xfe\x80 \x1b[0m ;|&<>"
"""What any shell of ours, or any text of ours, would change."""


# --- bytes


def test_a_script_of_4_mb_reaches_the_job_byte_for_byte(served: Service) -> None:
    content = b"#!/bin/cat\n" + ODD + b"\n"
    filling = random.Random(1).randbytes(4 * MIB - len(content))
    content += filling.replace(b"\0", b"1").replace(b"\r", b"2")
    script(served.work, "large.sh", content)
    job = served.submit("-o", "large.out", "large.sh")
    served.wait(job, "COMPLETED")
    assert (served.work / "large.out").read_bytes() == content


def test_arguments_reach_the_job_byte_for_byte(served: Service) -> None:
    argv = [ODD, b"", b"--wrap=x", b"-n5", b"--", b"%j", "\u20ac".encode(), b"x" * 100_000]
    script(served.work, "argv.sh", "#!/bin/bash\nprintf '%s\\0' \"$@\"\n")
    job = served.submit("-o", "argv.out", "argv.sh", *argv)
    served.wait(job, "COMPLETED")
    assert (served.work / "argv.out").read_bytes() == b"".join(one + b"\0" for one in argv)


def test_an_environment_of_1_mib_reaches_the_job_byte_for_byte(served: Service) -> None:
    given = {b"LARGE_%03d" % n: bytes([n % 255 + 1]) * 100_000 for n in range(10)}
    given |= {b"ODD": ODD, b"BASH_FUNC_f%%": b"() {  echo f\n}", b"EMPTY": b"", b"\xff": b"\xfe"}
    given |= {b"FILL": b"x" * (MIB - sum(map(len, [*given, *given.values()])))}
    script(served.work, "env.sh", "#!/bin/cat /proc/self/environ\n")
    job = served.submit("-o", "env.out", "env.sh", env=given)
    served.wait(job, "COMPLETED")
    entries = (served.work / "env.out").read_bytes().split(b"\0")
    found = dict(entry.split(b"=", 1) for entry in entries if b"=" in entry)
    assert {name: found.get(name) for name in given} == given


def test_names_of_folders_and_files_reach_the_job_byte_for_byte(served: Service) -> None:
    folder = Path(os.fsdecode(os.fsencode(served.work) + b"/dir \xff'\"\n$x"))
    folder.mkdir()
    job = served.submit("-o", b"out \xfe'$y", "--wrap", "pwd", cwd=folder)
    served.wait(job, "COMPLETED")
    written = os.fsencode(folder) + b"/out \xfe'$y"
    assert Path(os.fsdecode(written)).read_bytes() == os.fsencode(folder) + b"\n"


# --- output


def test_output_appears_in_the_submit_folder_while_the_job_runs(served: Service) -> None:
    job = served.wrap("echo first; while ! [ -e go ]; do sleep 0.05; done; echo last")
    assert served.wait_file(f"slurm-{job}.out", "first") == "first\n"
    served.wait(job, "RUNNING")
    (served.work / "go").touch()
    served.wait(job, "COMPLETED")
    assert served.file(f"slurm-{job}.out") == "first\nlast\n"


def test_output_on_a_bought_machine_appears_there_too(served: Service) -> None:
    job = served.wrap("echo here; sleep 60", "-p", "ec2")
    assert served.wait_file(f"slurm-{job}.out", "here") == "here\n"
    served.run("scancel", str(job))
    served.wait(job, "CANCELLED")


# --- ends

EXITS = [
    ("exit 0", "COMPLETED", "0:0"),
    ("exit 7", "FAILED", "7:0"),
    ("exit 300", "FAILED", "44:0"),
    ("kill -9 $$", "FAILED", "0:9"),
    ("kill -SEGV $$", "FAILED", "0:11"),
]


def test_exit_codes_and_signals_are_told(served: Service) -> None:
    jobs = {served.wrap(words): (state, code) for words, state, code in EXITS}
    for job, (state, _) in jobs.items():
        served.wait(job, state)
    told = served.run("sacct", "-n", "-P", "-X", "-o", "JobID,State,ExitCode").out
    rows = {int(row.split("|")[0]): tuple(row.split("|")[1:]) for row in told.splitlines()}
    assert {job: rows[job] for job in jobs} == jobs


def test_a_job_that_cannot_open_its_output_fails_as_in_slurm(served: Service) -> None:
    (served.work / "no-folder").touch()
    job = served.wrap("true", "-o", "no-folder/out")
    served.wait(job, "FAILED")
    assert served.exit(job) == (0, 53)


def _limit(served: Service, job: int, seconds: int) -> None:
    """A time limit shorter than sbatch can say, put into a held job's record while nobody runs."""
    served.stop()
    with sqlite3.connect(served.home / "state.db") as database:
        (doc,) = database.execute("select doc from jobs where job_id = ?", (job,)).fetchone()
        changed = json.dumps(json.loads(doc) | {"time_limit": seconds})
        database.execute("update jobs set doc = ? where job_id = ?", (changed, job))
    database.close()
    served.start()


def test_the_time_limit_holds_while_the_service_is_dead(preloaded: Preloaded) -> None:
    with service(preloaded) as served:
        job = served.wrap("trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done", "-H")
        _limit(served, job, 2)
        assert served.run("scontrol", "release", str(job)).code == 0
        pid = int(served.wait_file("pid", "\n"))
        served.kill()
        until(lambda: not alive(pid), "the job's end")
        assert not served.job(job).over
        served.start()
        served.wait(job, "TIMEOUT")
        assert "CANCELLED AT" in served.file(f"slurm-{job}.out")
        assert "DUE TO TIME LIMIT" in served.file(f"slurm-{job}.out")
        told = served.run("sacct", "-n", "-P", "-o", "JobID,State,ExitCode").out.splitlines()
        assert told[0] == f"{job}|TIMEOUT|0:0"


def test_a_limit_that_is_lengthened_holds_for_a_job_that_runs(preloaded: Preloaded) -> None:
    with service(preloaded) as served:
        job = served.wrap("sleep 5", "-H", "-o", "long.out")
        _limit(served, job, 3)
        assert served.run("scontrol", "release", str(job)).code == 0
        served.wait(job, "RUNNING")
        assert served.run("scontrol", "update", f"JobId={job}", "TimeLimit=5").code == 0
        until(lambda: served.job(job).limit_serial == 0, "the node's word")
        assert served.run("scontrol", "notify", str(job), "hello", "there").code == 0
        served.wait(job, "COMPLETED")
        assert served.file("long.out").endswith(" error: hello there\n")


def test_a_job_tells_its_user_by_mail(preloaded: Preloaded, tmp_path: Path) -> None:
    program = tmp_path / "mail"
    program.write_text('#!/bin/sh\nprintf "%s|" "$@" >> "${0%/*}/sent"\n')
    program.chmod(0o755)
    with service(preloaded, f"{CONFIG}mail_prog: {json.dumps(str(program))}\n") as served:
        job = served.wrap("exit 3", "--mail-type=ALL", "--mail-user=alice@example.org")
        served.wait(job, "FAILED")
        began, failed = until(lambda: _mails(tmp_path / "sent", 2), "the mails")
    assert began.startswith(f"Slurm Job_id={job} Name=wrap Began, Queued time 00:00:0")
    assert failed.startswith(f"Slurm Job_id={job} Name=wrap Failed, Run time 00:00:0")
    assert failed.endswith(", FAILED, ExitCode 3")


def _mails(sent: Path, wanted: int) -> list[str]:
    """Subjects, once there are so many."""
    words = sent.read_text().split("|") if sent.exists() else []
    found = sorted(word for word in words if word.startswith("Slurm "))
    return found if len(found) == wanted else []


def test_a_job_runs_on_through_restarts(preloaded: Preloaded) -> None:
    with service(preloaded) as served:
        words = "echo $$; while ! [ -e go ]; do sleep 0.05; done; exit 5"
        jobs = [served.wrap(words, "-p", partition) for partition in ("own", "ec2")]
        pids = [served.wait_file(f"slurm-{job}.out", "\n") for job in jobs]
        served.restart()
        served.stop()
        assert all(alive(int(pid)) for pid in pids)
        served.start()
        for job in jobs:
            served.wait(job, "RUNNING")
        listed = served.run("squeue", "-h", "-t", "R", "-o", "%A").out.split()
        assert sorted(map(int, listed)) == jobs
        (served.work / "go").touch()
        for job, pid in zip(jobs, pids, strict=True):
            served.wait(job, "FAILED")
            assert served.exit(job) == (5, 0)
            assert served.file(f"slurm-{job}.out") == pid


def test_a_job_that_ends_while_the_service_is_dead_is_recorded(preloaded: Preloaded) -> None:
    with service(preloaded) as served:
        job = served.wrap("echo up; while ! [ -e go ]; do sleep 0.05; done; echo done; exit 9")
        served.wait_file(f"slurm-{job}.out", "up")
        served.kill()
        (served.work / "go").touch()
        served.wait_file(f"slurm-{job}.out", "done")
        served.start()
        served.wait(job, "FAILED")
        assert served.exit(job) == (9, 0)


# --- order


def test_afterok_waits_and_a_failed_one_ends_its_dependent(served: Service) -> None:
    first = served.wrap("sleep 0.3; echo 1 >> order")
    second = served.wrap("echo 2 >> order; false", "-d", f"afterok:{first}")
    third = served.wrap("echo 3 >> order", "-d", f"afterok:{second}", "--kill-on-invalid-dep=yes")
    fourth = served.wrap("echo 4 >> order", "-d", f"afternotok:{second}")
    served.wait(third, "CANCELLED")
    served.wait(fourth, "COMPLETED")
    assert served.file("order") == "1\n2\n4\n"


def test_an_array_with_a_failing_element(served: Service) -> None:
    words = "echo $SLURM_ARRAY_TASK_ID; [ $SLURM_ARRAY_TASK_ID != 3 ]"
    job = served.wrap(words, "-a", "1-4", "-o", "a-%a.out")
    statement = "select array_task, state from jobs where array_base = ? and over = 1 order by 1"

    def over() -> bool:
        return len(served.rows(statement, job)) == 4

    until(over, "the array")
    states = [state for _, state in served.rows(statement, job)]
    assert states == ["COMPLETED", "COMPLETED", "FAILED", "COMPLETED"]
    assert [served.file(f"a-{task}.out") for task in range(1, 5)] == ["1\n", "2\n", "3\n", "4\n"]


def test_a_held_job_waits_until_it_is_released(served: Service) -> None:
    job = served.wrap("true", "-H")
    later = served.wrap("true")
    served.wait(later, "COMPLETED")
    assert served.run("squeue", "-h", "-j", str(job), "-o", "%T %r").out == "PENDING JobHeldUser\n"
    assert served.run("scontrol", "release", str(job)).code == 0
    served.wait(job, "COMPLETED")


def test_a_job_can_be_held_before_it_starts(served: Service) -> None:
    job = served.wrap("true", "--begin", "now+1hour")
    assert served.run("scontrol", "hold", str(job)).code == 0
    assert "JobHeldUser" in served.run("squeue", "-h", "-j", str(job), "-o", "%r").out
    assert served.run("scancel", str(job)).code == 0
    served.wait(job, "CANCELLED")


# --- cancelling


def test_cancel_in_every_state(preloaded: Preloaded) -> None:
    with service(preloaded) as served:
        machines = served.home / "machines"
        (machines / "behaviour.json").write_text('{"boot_seconds": 60}')
        pending = served.wrap("echo no > ran-pending", "-H")
        array = served.wrap("echo no > ran-array", "-H", "-a", "0-9")
        configuring = served.wrap("echo no > ran-configuring", "-p", "ec2")
        running = served.wrap("echo $$ > running; sleep 60")
        stubborn = served.wrap("trap '' TERM; echo $$ > stubborn; while :; do sleep 0.1; done")
        over = served.wrap("true")
        pids = [int(served.wait_file(name, "\n")) for name in ("running", "stubborn")]
        served.wait(over, "COMPLETED")
        served.wait(configuring, "CONFIGURING")
        for job in (pending, array, configuring, running, stubborn):
            assert served.run("scancel", str(job)).code == 0
            assert served.run("scancel", str(job)).code == 0, "a second time"
        for job in (pending, array, configuring, running, stubborn):
            served.wait(job, "CANCELLED")
        assert not any(alive(pid) for pid in pids)
        assert served.exit(running) == (0, 15)
        assert served.exit(stubborn) == (0, 9)
        told = served.run("scancel", str(over))
        assert told.code == 0
        assert not list(served.work.glob("ran-*"))


def test_a_job_that_is_cancelled_with_a_signal_of_its_own_handles_it(served: Service) -> None:
    job = served.wrap("trap 'echo told; exit 3' USR1; echo up; while :; do sleep 0.05; done")
    served.wait_file(f"slurm-{job}.out", "up")
    assert served.run("scancel", "-b", "-s", "USR1", str(job)).code == 0
    served.wait(job, "FAILED")
    assert served.exit(job) == (3, 0)
    assert "told" in served.file(f"slurm-{job}.out")


# --- resources


def test_jobs_see_gpus_of_their_own(served: Service) -> None:
    wait = "echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES; while ! [ -e gpus ]; do sleep 0.05; done"
    jobs = [served.wrap(wait, "--gres=gpu:1") for _ in range(2)]
    jobs.append(served.wrap(wait, "--gres=gpu:a10g:2"))
    told = [served.wait_file(f"slurm-{job}.out", "\n").split() for job in jobs]
    late = served.wrap("echo $CUDA_VISIBLE_DEVICES", "--gres=gpu:1")
    until(lambda: served.state(late) == "PENDING", "its waiting")
    (served.work / "gpus").touch()
    served.wait(late, "COMPLETED")
    (first, one), (second, two), (other, both) = told
    assert first == second != other
    assert {one, two} == {"0", "1"}
    assert both == "0,1"


def test_a_job_without_gpus_sees_none(served: Service) -> None:
    job = served.wrap('echo "[${CUDA_VISIBLE_DEVICES-none}]"')
    served.wait(job, "COMPLETED")
    assert served.file(f"slurm-{job}.out") in {"[none]\n", "[]\n", "[NoDevFiles]\n"}


def test_two_jobs_share_one_bought_machine(preloaded: Preloaded) -> None:
    with service(preloaded) as served:
        words = "echo $SLURMD_NODENAME; while ! [ -e go ]; do sleep 0.05; done"
        jobs, nodes = [], []
        for _ in range(2):  # one that is only being bought takes no second job
            jobs.append(served.wrap(words, "-p", "ec2", "--mem=500"))
            nodes.append(served.wait_file(f"slurm-{jobs[-1]}.out", "\n"))
        (served.work / "go").touch()
        for job in jobs:
            served.wait(job, "COMPLETED")
        assert nodes == ["ec2-1\n", "ec2-1\n"]
        assert len(list(served.home.glob("machines/*/machine.json"))) == 1


def test_the_machine_of_a_job_is_charged_and_let_go(preloaded: Preloaded) -> None:
    with service(preloaded) as served:
        job = served.wrap("true", "-p", "ec2")
        served.wait(job, "COMPLETED")
        live = "select count(*) from nodes where gone = 0 and launch > 0"
        until(lambda: served.rows(live)[0][0] == 0, "the machine's end")
        cost = served.rows("select sum(cost) from ledger where job = ?", job)[0][0]
        told = served.run("sacct", "-n", "-P", "-X", "-j", str(job), "-o", "Cost").out
        assert told == f"{cost / 1e6:.6f}\n"
        assert cost > 0
        assert [words for words in served.processes().values() if "machines" in words] == []


# --- hostile bodies


def _send(served: Service, data: bytes, *, cut_off: bool) -> bytes:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(served.socket))
        connection.sendall(data)
        if cut_off:
            connection.shutdown(socket.SHUT_WR)
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
        return b"".join(parts)


def _post(body: bytes, path: bytes = b"/x/sbatch") -> bytes:
    return b"POST %b HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % (path, len(body)) + body


def _fields(*fields: bytes) -> bytes:
    return b"".join(item + b"\0" for item in fields)


HEAD = (b"1", b"0" * 32, b"sbatch", b"/tmp", b"22", b"", b"")
HOSTILE = {
    "nothing": b"",
    "no HTTP": b"\0\xff\xfe garbage\r\n\r\n",
    "an empty body": _post(b""),
    "a body of zeros": _post(b"\0" * 1000),
    "another version": _post(_fields(b"9", *HEAD[1:], b"0", b"0", b"0")),
    "a short request id": _post(_fields(b"1", b"x", *HEAD[2:], b"0", b"0", b"0")),
    "a request id of blanks": _post(_fields(b"1", b" " * 32, *HEAD[2:], b"0", b"0", b"0")),
    "more arguments than there are": _post(_fields(*HEAD, b"99", b"x")),
    "a huge count": _post(_fields(*HEAD, b"999999999999", b"x")),
    "a negative count": _post(_fields(*HEAD, b"-1")),
    "a umask that is none": _post(_fields(*HEAD[:4], b"9", b"", b"", b"0", b"0", b"0")),
    "a program that is none": _post(_fields(*HEAD, b"0", b"0", b"0"), b"/x/../../etc"),
    "another program than the path's": _post(_fields(*HEAD, b"0", b"0", b"0"), b"/x/squeue"),
    "a file longer than the rest": _post(
        _fields(*HEAD, b"0", b"0", b"1", b"f", b"0", b"99") + b"x"
    ),
    "bytes behind the files": _post(_fields(*HEAD, b"0", b"0", b"0") + b"rest"),
    "a body that ends early": b"POST /x/sbatch HTTP/1.0\r\nContent-Length: 100\r\n\r\nabc",
    "a body that is announced as huge": b"POST /x/sbatch HTTP/1.0\r\nContent-Length: %d\r\n\r\n"
    % (1 << 40),
    "a relative folder": _post(
        _fields(*HEAD[:3], b"relative", *HEAD[4:], b"2", b"--wrap", b"true", b"0", b"0")
    ),
}


CUT_OFF = {"nothing", "a body that ends early"}
"""After them the client says no more."""


def test_hostile_bodies_leave_nothing_and_end_nothing(served: Service) -> None:
    before = served.counts()
    for name, data in HOSTILE.items():
        answer = _send(served, data, cut_off=name in CUT_OFF)
        assert b"Submitted" not in answer, name
        assert b" 500 " not in answer[:20], (name, answer)
        assert alive(served.pid), name
    assert served.counts() == before
    assert "program.failed" not in served.words()


def test_a_service_that_is_told_to_end_while_it_starts_leaves_no_socket(
    preloaded: Preloaded,
) -> None:
    with service(preloaded) as served:
        for _ in range(10):
            served.stop()
            assert not served.socket.exists()
            served.start()  # returns with its first sign of life
