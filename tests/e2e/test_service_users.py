"""Several users on one service: each job is its submitter's, and nobody else's to change."""

import http.client
import json
import os
import shlex
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.run import USERS, make_user
from tests.e2e.agents import alive, until
from tests.e2e.browser import Visit, entered, visited
from tests.e2e.service import CONFIG, ROOT, Preloaded, Ran, Service, User, service

pytestmark = pytest.mark.root


@pytest.fixture(scope="module")
def users() -> tuple[User, User]:
    if shutil.which("useradd") is None:
        pytest.skip("no useradd here to make two users with")
    for name, uid in USERS.items():
        make_user(name, uid)
    alice, bob = (User.named(name) for name in USERS)
    return alice, bob


@pytest.fixture(scope="module")
def roots(preloaded: Preloaded, users: tuple[User, User]) -> Iterator[Service]:
    """root's service, which serves everybody."""
    with service(preloaded) as made:
        yield made


@pytest.fixture
def place(roots: Service, users: tuple[User, User]) -> Iterator[Path]:
    """A folder of alice's that nobody else may enter."""
    folder = roots.root / "alice's own"
    folder.mkdir(mode=0o700)
    os.chown(folder, users[0].uid, users[0].gid)
    yield folder
    shutil.rmtree(folder)


# --- root's service


@pytest.mark.parametrize("partition", ["own", "ec2"])
def test_a_job_runs_as_its_submitter(
    roots: Service, users: tuple[User, User], place: Path, partition: str
) -> None:
    alice, _ = users
    words = 'umask 027; exec "$0" -o out -p "$1" --wrap "$2"'
    told = "id -u; id -g; id -G; umask; stat -c %i .; id -ru; touch made"
    command = ("/bin/sh", "-c", words, str(roots.bin / "sbatch"), partition, told)
    ran = roots.run(*command, cwd=place, user=alice)
    job = int(ran.out.split()[-1])
    roots.wait(job, "COMPLETED")
    groups = sorted(os.getgrouplist(alice.name, alice.gid))
    assert (place / "out").read_text().split("\n") == [
        str(alice.uid),
        str(alice.gid),
        " ".join(map(str, groups)),
        "0027",
        str(place.stat().st_ino),
        str(alice.uid),
        "",
    ]
    for name in ("out", "made"):
        stat = (place / name).stat()
        assert (stat.st_uid, stat.st_gid, stat.st_mode & 0o777) == (alice.uid, alice.gid, 0o640)


def test_output_is_opened_as_the_submitter(
    roots: Service, users: tuple[User, User], place: Path
) -> None:
    """Neither another's folder nor a link to root's file is written to."""
    alice, _ = users
    secret = roots.root / "roots"
    secret.write_text("root's")
    secret.chmod(0o600)
    (place / "link").symlink_to(secret)
    forbidden = roots.root / "not-alices"
    for target in (forbidden, place / "link"):
        job = roots.submit("-o", str(target), "--wrap", "echo x", cwd=place, user=alice)
        roots.wait(job, "FAILED")
        assert roots.exit(job) == (0, 53)
    assert secret.read_text() == "root's"
    assert not forbidden.exists()


def test_a_job_cannot_touch_what_watches_it(
    roots: Service, users: tuple[User, User], place: Path
) -> None:
    alice, _ = users
    home = shlex.quote(str(roots.home))
    words = f"kill -9 $PPID; touch {home}/nodes/x; ls {home}; cat {home}/state.db; echo end"
    job = roots.submit("-o", "out", "--wrap", words, cwd=place, user=alice)
    roots.wait(job, "COMPLETED")
    told = (place / "out").read_text()
    assert told.endswith("end\n")
    refusals = ("Permission denied", "not permitted")
    assert sum(told.count(words) for words in refusals) == 4, told


def test_pages_are_those_of_who_was_let_in(
    roots: Service, users: tuple[User, User], place: Path
) -> None:
    """A log in a folder that its owner alone may enter is read with that user's rights."""
    alice, bob = users
    script = b"#!/bin/sh\necho for alice alone\n"
    job = roots.submit("-o", "out", cwd=place, user=alice, stdin=script)
    roots.wait(job, "COMPLETED")
    his, hers = _let_in(roots, bob), _let_in(roots, alice)
    assert "for alice alone" in visited(hers, f"jobs/{job}")[1]
    status, text = visited(his, f"jobs/{job}")
    assert (status, "echo for alice" in text, "for alice alone" in text) == (200, False, False)
    assert f"job {job} is {alice.name}&#39;s" in text
    assert "for alice alone" in visited(_let_in(roots, User.present()), f"jobs/{job}")[1]
    mixed = Visit(hers.root, his.cookie)
    assert visited(mixed, f"jobs/{job}")[0] == 403


def _let_in(served: Service, user: User) -> Visit:
    """As `spz dashboard` does for that user."""
    status, told = _post(served, user, "/v1/dashboard", "{}")
    assert status == 200, told
    return entered(json.loads(told)["url"])


def _asked(served: Service) -> dict[str, int]:
    """What requests leave behind; nodes go on with their own lives meanwhile."""
    counts = served.counts()
    return {name: counts[name] for name in ("jobs", "specs", "blobs", "requests", "next")}


def _denied(told: Ran) -> bool:
    """Slurm's words differ by command: an update of another's job has the `Invalid user id`."""
    return told.code != 0 and any(words in told.err for words in ("denied", "Invalid user id"))


def _post(served: Service, user: User, path: str, body: str | None = None) -> tuple[int, str]:
    """As that user, by our own routes."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.initgroups(user.name, user.gid)
            os.setgid(user.gid)
            os.setuid(user.uid)
            connection = http.client.HTTPConnection("localhost")
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.connect(str(served.socket))
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            os.write(write, json.dumps([reply.status, reply.read().decode()]).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    with os.fdopen(read, "rb") as told:
        status, body = json.loads(told.read())
    return status, body


CHANGES = [
    ("scancel", "{job}"),
    ("scancel", "-s", "USR1", "{job}"),
    ("scontrol", "hold", "{job}"),
    ("scontrol", "release", "{job}"),
    ("scontrol", "requeue", "{job}"),
    ("scontrol", "update", "JobId={job}", "Name=bobs"),
    ("scontrol", "update", "JobId={job}", "TimeLimit=1"),
    ("scontrol", "update", "JobId={job}", "Priority=0"),
]


@pytest.mark.parametrize("held", [True, False], ids=["held", "running"])
def test_another_users_job_cannot_be_changed(
    roots: Service, users: tuple[User, User], place: Path, held: bool
) -> None:
    alice, bob = users
    words = "echo $$ > pid; sleep 60"
    options = ["-o", "/dev/null", *(["-H"] if held else [])]
    job = roots.submit(*options, "--wrap", words, cwd=place, user=alice)
    if not held:
        pid = int(until(lambda: _text(place / "pid"), "its start"))
        roots.wait(job, "RUNNING")
    before = roots.job(job)
    for argv in CHANGES:
        told = roots.run(*(word.format(job=job) for word in argv), user=bob)
        assert _denied(told), (argv, told)
        assert roots.job(job) == before, argv
    for user in ("-u", "alice"), ("-n", "wrap"), ("-t", "PENDING"), ("-p", "own"):
        roots.run("scancel", *user, user=bob)
        assert roots.job(job) == before, user
    status, body = _post(roots, bob, f"/v1/jobs/{job}/cancel")
    assert (status, roots.job(job)) == (403, before), body
    assert str(job) in roots.run("squeue", "-h", "-o", "%A", user=bob).out.split()
    assert roots.run("scancel", str(job), user=alice).code == 0
    roots.wait(job, "CANCELLED")
    assert held or not alive(pid)


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_root_may_change_every_job(roots: Service, users: tuple[User, User], place: Path) -> None:
    job = roots.submit("-H", "--wrap", "true", cwd=place, user=users[0])
    assert roots.run("scontrol", "update", f"JobId={job}", "Name=roots").code == 0
    assert roots.run("scancel", str(job)).code == 0
    roots.wait(job, "CANCELLED")


def test_nobody_submits_as_somebody_else(roots: Service, users: tuple[User, User]) -> None:
    alice, bob = users
    before = roots.counts()
    told = roots.run("sbatch", f"--uid={alice.uid}", "--wrap", "true", user=bob)
    assert (told.code, told.err) == (255, "sbatch: error: --uid only permitted by root user\n")
    assert roots.counts() == before


# --- a user's own service


@pytest.fixture(scope="module")
def alices(preloaded: Preloaded, users: tuple[User, User]) -> Iterator[Service]:
    readable = ["test", "-r", str(ROOT / "gateway" / "serve.py")]
    if subprocess.run(readable, user=users[0].uid, check=False).returncode:
        pytest.skip(f"{users[0].name} cannot read {ROOT}")
    with service(preloaded, user=users[0]) as made:
        yield made


def test_a_users_service_serves_its_user(alices: Service, users: tuple[User, User]) -> None:
    alice, _ = users
    jobs = [alices.wrap("id -u", "-p", name, user=alice) for name in ("own", "ec2")]
    for job in jobs:
        alices.wait(job, "COMPLETED")
        assert alices.file(f"slurm-{job}.out") == f"{alice.uid}\n"


def test_a_users_service_refuses_others_with_the_owners_name(
    alices: Service, users: tuple[User, User]
) -> None:
    alice, bob = users
    job = alices.wrap("true", "-H", user=alice)
    before, asked = alices.job(job), _asked(alices)
    told = alices.run("sbatch", "--wrap", "true", user=bob)
    assert told.code == 1
    assert told.err.startswith(
        "sbatch: error: Batch job submission failed: Access/permission denied\n"
    )
    assert "alice" in told.err
    for argv in CHANGES:
        refused = alices.run(*(word.format(job=job) for word in argv), user=bob)
        assert _denied(refused), (argv, refused)
    assert _post(alices, bob, f"/v1/jobs/{job}/cancel")[0] == 403
    assert (alices.job(job), _asked(alices)) == (before, asked)
    assert str(job) in alices.run("squeue", "-h", "-o", "%A", user=bob).out.split()


def test_only_its_user_reads_a_users_state(alices: Service) -> None:
    modes = {name: (alices.home / name).stat().st_mode & 0o777 for name in ("", "state.db", "log")}
    assert modes == {"": 0o711, "state.db": 0o600, "log": 0o711}
    assert (alices.home / "gateway.sock").stat().st_mode & 0o777 == 0o666


def test_what_is_private_is_shown_to_its_user_and_to_root(
    preloaded: Preloaded, users: tuple[User, User]
) -> None:
    """By commands, as text and as JSON."""
    (alice, bob), root = users, User.present()
    with service(preloaded, config=CONFIG + "private_data: [jobs, usage, nodes]\n") as own:
        job = own.submit("-H", "-D", "/", "-o", "/dev/null", "--wrap", "true", user=alice)
        told = [own.run("squeue", "-h", "-o", "%i", user=who).out for who in (alice, bob, root)]
        assert told == [f"{job}\n", "", f"{job}\n"]
        shown = own.run("squeue", "--json", user=bob).out
        assert json.loads(shown)["jobs"] == []
        assert own.run("scontrol", "show", "job", str(job), user=bob).code == 1
        assert "denied" in own.run("sinfo", user=bob).err
        assert own.run("sinfo", user=root).code == 0
        past = [
            own.run("sacct", "-anXPj", str(job), "-o", "user", user=who).out for who in (bob, root)
        ]
        assert past == ["", f"{alice.name}\n"]
        config = own.run("scontrol", "show", "config").out
        assert "PrivateData             = jobs,nodes,usage\n" in config
