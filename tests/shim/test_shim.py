"""The commands as real processes against a service of a few lines."""

import json
import os
import resource
import socket
import subprocess
from pathlib import Path

import pytest

from gateway.api.wire import ALSO_RUN, ASK, ERR, EXEC, EXIT, LINE, OUT, PROMPT, Call, frame
from sbatch_shim.install import PROGRAMS
from tests.shim.conftest import BARE, Commands
from tests.shim.service import Service, http

DONE = http(frame(EXIT, b"0"))
MODULES_OF = """
import sys, posix
posix._exit = lambda code: print(*sorted(sys.modules), file=sys.stderr)
sys.argv = sys.argv[1:]
exec(open(sys.argv[0]).read())
"""


def modules(*argv: str) -> set[str]:
    bare = [BARE, "-IS", "-c"]
    done = subprocess.run([*bare, *argv], env={}, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


QUICK = [name for name in PROGRAMS if name not in ("salloc", "sattach", "srun")]


@pytest.mark.parametrize("program", QUICK)
def test_a_command_loads_nothing_but_the_shim_and_sockets(commands: Commands, program: str) -> None:
    bare = modules("import sys; print(*sys.modules, file=sys.stderr)")
    with Service(commands.socket, [DONE]):
        loaded = modules(MODULES_OF, str(commands.prefix / "bin" / program), "-u", "me")
    assert loaded - bare - {"_socket"} == {"shim"}


def test_streams_and_exit_status_are_the_services(commands: Commands) -> None:
    body = frame(OUT, b"a\xff") + frame(ERR, b"b\n") + frame(OUT, b"c") + frame(EXIT, b"210")
    for reply in (http(body), http(body, chunks=3)):
        with Service(commands.socket, [reply]):
            done = commands.run("squeue")
        assert (done.stdout, done.stderr, done.returncode) == (b"a\xffc", b"b\n", 210)


def test_the_service_is_told_what_was_typed_and_where(commands: Commands, tmp_path: Path) -> None:
    argv = [b"-J", b"two words", b"", b"\xff\n'\"", b"--wrap=$x"]
    environ = {b"A": b"1\n2", b"B\xfe": b"\xff", b"EMPTY": b"", b"TZ": b"UTC-3"}
    with Service(commands.socket, [DONE]) as service:
        commands.run("sbatch", *argv, env=environ, cwd=tmp_path)
    (call,) = service.calls
    assert [word.encode("utf-8", "surrogateescape") for word in call.argv] == argv
    raw = {os.fsencode(name): os.fsencode(value) for name, value in call.environ.items()}
    assert raw == environ
    assert (call.program, call.cwd) == ("sbatch", str(tmp_path))
    assert call.umask == _umask()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert ("NOFILE", soft, hard) in call.limits
    assert (call.files, call.columns) == ({}, None)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_queries_send_only_the_variables_that_matter(commands: Commands) -> None:
    environ = {"SECRET": "x", "SQUEUE_FORMAT": "%i", "SLURM_TIME_FORMAT": "", "LC_ALL": "C"}
    with Service(commands.socket, [DONE]) as service:
        commands.run("squeue", env={**environ, "TZ": "UTC", "LANGUAGE": "de", "PATH": "/bin"})
    (call,) = service.calls
    assert set(call.environ) == {*environ, "TZ"} - {"SECRET"}
    assert call.limits == ()


def test_a_script_goes_along_with_the_first_request(commands: Commands, tmp_path: Path) -> None:
    script = b"#!/bin/sh\n" + b"\x00\xff" * (2 << 20)
    (tmp_path / "out.txt").write_bytes(b"not a script")
    (tmp_path / "job.sh").write_bytes(script)
    os.mkfifo(tmp_path / "fifo")
    with Service(commands.socket, [DONE]) as service:
        commands.run("sbatch", "-o", "out.txt", "-e", "fifo", "job.sh", "arg", cwd=tmp_path)
    (call,) = service.calls
    assert {path: given.content for path, given in call.files.items()} == {"job.sh": script}


def test_a_file_that_the_service_asks_for_comes_in_a_second_request(
    commands: Commands, tmp_path: Path
) -> None:
    (tmp_path / "plain").write_bytes(b"no first line\n")
    ask = [http(frame(ASK, path)) for path in (b"plain", b"missing", b".", b"-")]
    with Service(commands.socket, [*ask, DONE]) as service:
        commands.run("sbatch", "plain", stdin=b"from stdin", cwd=tmp_path)
    last = service.calls[-1]
    assert len({call.request for call in service.calls}) == 1
    assert {path: (given.content, given.error) for path, given in last.files.items()} == {
        "plain": (b"no first line\n", 0),
        "missing": (b"", 2),
        ".": (b"", 21),
        "-": (b"from stdin", 0),
    }


def test_a_file_is_written_where_the_user_said_or_under_a_plain_name(
    commands: Commands, tmp_path: Path
) -> None:
    (tmp_path / "below").mkdir()
    content = b"#!/bin/sh\n\xff" * 1000
    for name in ("slurm-7.sh", "below/script"):
        reply = http(frame(b"w", name.encode() + b"\0" + content) + frame(b"x", b"0"))
        with Service(commands.socket, [reply]):
            done = commands.run("scontrol", "write", "batch_script", "7", name, cwd=tmp_path)
        assert (done.returncode, (tmp_path / name).read_bytes()) == (0, content)


def test_a_file_that_nobody_asked_for_is_not_written(commands: Commands, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    reply = http(frame(b"w", os.fsencode(path) + b"\0oops") + frame(b"x", b"0"))
    with Service(commands.socket, [reply]):
        done = commands.run("scontrol", "write", "batch_script", "7", cwd=tmp_path)
    assert done.returncode == 1
    assert b"which nobody asked for" in done.stderr
    assert not path.exists()


def test_a_service_that_asks_without_end_is_left(commands: Commands) -> None:
    with Service(commands.socket, [http(frame(ASK, b"nothing"))] * 64):
        done = commands.run("sbatch")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"sbatch: error: the service asked for more than 64 files\n"


def test_questions_are_answered_line_by_line_and_printed_once(commands: Commands) -> None:
    def question(call: Call) -> bytes:
        given = call.files.get(LINE)
        lines = given.content.splitlines() if given else []
        prompts = frame(OUT, b"? " * (len(lines) + 1))
        if given and given.error:
            return http(prompts + frame(EXIT, b"7"))
        return http(prompts + frame(ASK, LINE.encode()))

    with Service(commands.socket, [question] * 4) as service:
        done = commands.run("scancel", "-i", stdin=b"y\nn")
    assert (done.stdout, done.returncode) == (b"? ? ? ", 7)
    given = service.calls[-1].files[LINE]
    assert (given.content, given.error) == (b"y\nn", 61)


def test_a_lost_connection_is_tried_again_with_the_same_request_id(commands: Commands) -> None:
    half = http(frame(OUT, b"Submitted batch job 7\n") + b"x" * 9)[:-9]
    whole = http(frame(OUT, b"Submitted batch job 7\n") + frame(OUT, b"!") + frame(EXIT, b"0"))
    with Service(commands.socket, [None, half, http(b"", "503 Busy"), whole]) as service:
        done = commands.run("sbatch", "--wait", "--wrap", "true")
    assert len({call.request for call in service.calls}) == 1
    assert (done.stdout, done.stderr) == (b"Submitted batch job 7\n!", b"")
    assert done.returncode == 0


def test_a_query_that_breaks_off_is_not_printed_twice(commands: Commands) -> None:
    with Service(commands.socket, [http(frame(OUT, b"JOBID\n"))]):
        done = commands.run("squeue")
    assert (done.stdout, done.returncode) == (b"JOBID\n", 1)
    assert b"Unable to contact slurm controller" in done.stderr


CONTACT = "Unable to contact slurm controller (connect failure)\n"


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("sbatch", f"sbatch: error: Batch job submission failed: {CONTACT}"),
        ("squeue", f"slurm_load_jobs error: {CONTACT}"),
        ("scancel", f"slurm_load_jobs error: {CONTACT}"),
        ("sinfo", f"slurm_load_partitions: {CONTACT}"),
        ("scontrol", f"slurm_load_ctl_conf error: {CONTACT}"),
        ("sacct", "sacct: error: Problem talking to the database: Connection refused\n"),
    ],
)
def test_without_a_service_a_command_says_slurms_words(
    commands: Commands, program: str, text: str
) -> None:
    launcher = commands.impatient(program)
    done = subprocess.run([launcher, "1"], env={}, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("", text, 1)


def test_the_version_is_known_without_a_service_at_once(commands: Commands) -> None:
    for option in ("--version", "-V"):
        done = commands.run("sinfo", option)
        assert (done.stdout, done.stderr, done.returncode) == (b"slurm 25.11.7\n", b"", 0)


def test_the_environment_may_name_another_socket(commands: Commands, short_tmp: Path) -> None:
    other = short_tmp / "other"
    with Service(other, [http(frame(OUT, b"other") + frame(EXIT, b"0"))]):
        done = commands.run("squeue", env={"SKYPURZA_SOCKET": str(other)})
    assert done.stdout == b"other"


def test_a_socket_path_that_is_too_long_is_named(commands: Commands) -> None:
    done = commands.run("squeue", env={"SKYPURZA_SOCKET": "/" + "x" * 108})
    assert done.returncode == 1
    assert done.stderr.startswith(b"squeue: error: socket path /xxx")
    assert b"too long" in done.stderr


def test_a_refused_request_is_told_as_it_came(commands: Commands) -> None:
    with Service(commands.socket, [http(b"no program 'squeue'", "400 Bad Request")]):
        done = commands.run("squeue")
    assert (done.stderr, done.returncode) == (b"squeue: error: no program 'squeue'\n", 1)


def test_a_frame_that_the_shim_does_not_know_names_the_way_out(commands: Commands) -> None:
    with Service(commands.socket, [http(frame(b"?", b"squeue"))]):
        done = commands.run("squeue")
    assert done.returncode == 1
    assert b"frame ?" in done.stderr
    assert b"spz shims install" in done.stderr


def test_a_command_becomes_the_sites_own_when_told(commands: Commands, tmp_path: Path) -> None:
    words = [b"/bin/sh", b"-c", b'echo "$0" "$A" "${LC_CTYPE-none}"; exit 3', b"it's"]
    with Service(commands.socket, [http(frame(EXEC, b"".join(w + b"\0" for w in words)))]):
        done = commands.run("squeue", env={"A": "a b"})
    assert (done.stdout, done.returncode) == (b"it's a b none\n", 3)
    with Service(commands.socket, [http(frame(EXEC, b"/nowhere\0"))]):
        done = commands.run("squeue")
    assert (done.stderr, done.returncode) == (
        b"squeue: error: /nowhere: No such file or directory\n",
        1,
    )


@pytest.mark.parametrize(
    ("ours", "ends", "code"), [(0, b"exit 3", 3), (4, b"exit 3", 4), (0, b"kill -9 $$", 137)]
)
def test_the_sites_command_follows_ours_and_the_worst_status_counts(
    commands: Commands, ours: int, ends: bytes, code: int
) -> None:
    words = (b"/bin/sh", b"-c", b'printf "%s %s;" "$1" "$KEPT"; ' + ends, b"x", b"a b\xff")
    reply = [
        frame(OUT, b"ours;"),
        frame(ALSO_RUN, b"".join(word + b"\0" for word in words)),
        frame(EXIT, b"%d" % ours),
    ]
    with Service(commands.socket, [http(b"".join(reply))]):
        done = commands.run("squeue", env={b"KEPT": b"\xfe"})
    assert (done.stdout, done.returncode) == (b"ours;a b\xff \xfe;", code)


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        (b"1 4 0:4:0", b"head\none 2\ntheirs 3\ntwo 10\n"),
        (b"1 4 0:4:1", b"head\ntwo 10\ntheirs 3\none 2\n"),
        (b"0 0", b"3   theirs 3\nHEADhead\n2   one 2\n10  two 10\n"),
    ],
)
def test_lines_of_both_stand_in_one_order(commands: Commands, spec: bytes, shown: bytes) -> None:
    ours = b"HEADhead\n2   one 2\n10  two 10\n"
    words = (b"", spec, ours, b"/bin/sh", b"-c", b"echo '3   theirs 3'; exit 3")
    reply = frame(ALSO_RUN, b"".join(word + b"\0" for word in words)) + frame(EXIT, b"0")
    with Service(commands.socket, [http(reply)]):
        done = commands.run("squeue")
    assert (done.stdout, done.returncode) == (shown, 3)


def test_a_line_that_the_sites_command_left_unfinished_is_one_of_its_own(
    commands: Commands,
) -> None:
    words = (b"", b"1 0", b"head\nours\n", b"/bin/sh", b"-c", b"printf half; kill -9 $$")
    reply = frame(ALSO_RUN, b"".join(word + b"\0" for word in words)) + frame(EXIT, b"0")
    with Service(commands.socket, [http(reply)]):
        done = commands.run("squeue")
    assert (done.stdout, done.returncode) == (b"head\nhalf\nours\n", 137)


def test_turns_of_both_follow_each_other_as_they_come(commands: Commands) -> None:
    words = b"".join(w + b"\0" for w in (b"/bin/sh", b"-c", b"echo theirs"))
    turns = [frame(OUT, b"%d\n" % turn) + frame(ALSO_RUN, words) for turn in (1, 2)]
    with Service(commands.socket, [http(b"".join(turns) + frame(EXIT, b"0"))]):
        done = commands.run("squeue")
    assert done.stdout == b"1\ntheirs\n2\ntheirs\n"


def document(version: str | None, *records: object) -> str:
    """Of a version; None is a Slurm that knows no data_parser yet."""
    plugin = {"type": "openapi"} if version is None else {"data_parser": version}
    whole = {"jobs": list(records), "last_update": 7, "meta": {"plugin": plugin}, "errors": []}
    return json.dumps(whole, indent=2).replace("[],", "[\n  ],", 1) + "\n"


OWN = "data_parser/v0.0.44"
LEFT = "squeue: warning: the site's own Slurm {}, we data_parser/v0.0.44: its jobs are left out\n"


@pytest.mark.parametrize(
    ("ours", "theirs", "jobs", "said"),
    [
        ([{"id": 9}], document(OWN, {"id": 1}, {"id": 2}), [1, 2, 9], ""),
        ([], document(OWN, {"id": 1, "name": "a]b"}), [1], ""),
        ([{"id": 9}, {"id": 10}], document(OWN), [9, 10], ""),
        ([{"id": 9}], document("data_parser/v0.0.39", {"id": 1}), [9],
         LEFT.format("speaks data_parser/v0.0.39")),
        ([{"id": 9}], document(None, {"id": 1}), [9], LEFT.format("speaks an older one")),
        ([{"id": 9}], "squeue: unrecognized option", [9], LEFT.format("gave no such JSON")),
        ([{"id": 9}], "[]", [9], LEFT.format("gave no such JSON")),
    ],
)  # fmt: skip
def test_documents_of_both_are_one_where_they_have_one_shape(
    commands: Commands, ours: list[object], theirs: str, jobs: list[int], said: str
) -> None:
    shell = ("", "json", document(OWN, *ours), str(commands.prefix / "squeue"), theirs)
    (commands.prefix / "squeue").write_text('#!/bin/sh\nprintf %s "$1"\n')
    (commands.prefix / "squeue").chmod(0o755)
    reply = frame(ALSO_RUN, b"".join(word.encode() + b"\0" for word in shell)) + frame(EXIT, b"0")
    with Service(commands.socket, [http(reply)]):
        done = commands.run("squeue")
    told = json.loads(done.stdout)
    assert [job["id"] for job in told["jobs"]] == jobs
    assert (told["last_update"], done.stderr.decode()) == (7, said)
    assert done.stdout.decode() == json.dumps(told, indent=2) + "\n"


def test_a_command_of_the_site_that_is_gone_is_named(commands: Commands) -> None:
    reply = frame(ALSO_RUN, b"/nowhere\0") + frame(EXIT, b"0")
    with Service(commands.socket, [http(reply)]):
        done = commands.run("squeue")
    assert done.stderr == b"squeue: error: /nowhere: No such file or directory\n"
    assert done.returncode == 1


def test_a_gone_folder_is_told_as_an_empty_one(commands: Commands, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    launcher = commands.prefix / "bin" / "sbatch"
    with Service(commands.socket, [DONE]) as service:
        subprocess.run(
            ["/bin/sh", "-c", 'rmdir "$PWD"; exec "$0" --wrap true', launcher],
            cwd=gone,
            check=True,
        )
    assert service.calls[0].cwd == ""


def test_closed_streams_are_passed_over(commands: Commands) -> None:
    reply = http(frame(OUT, b"text") + frame(ERR, b"text") + frame(EXIT, b"4"))
    launcher = commands.prefix / "bin" / "squeue"
    for closed in ("<&- >&- 2>&-", "<&-", ">&-", "2>&-"):
        with Service(commands.socket, [reply]):
            done = subprocess.run(
                ["/bin/sh", "-c", f'"$0" {closed}', launcher],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
            )
        assert done.returncode == 4, closed


def test_a_full_disk_is_told_and_the_exit_status_stays(commands: Commands) -> None:
    reply = http(frame(OUT, b"Submitted batch job 1\n") + frame(EXIT, b"0"))
    with Service(commands.socket, [reply]), Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [commands.prefix / "bin" / "sbatch"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.stderr == b"sbatch: error: standard output: No space left on device\n"
    assert done.returncode == 0


def test_a_reader_that_leaves_ends_the_command_by_sigpipe(commands: Commands) -> None:
    with Service(commands.socket, [http(frame(OUT, b"line\n" * 200_000) + frame(EXIT, b"0"))]):
        process = subprocess.Popen([commands.prefix / "bin" / "squeue"], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"line\n"
        process.stdout.close()
        assert process.wait() == -13


def test_output_that_does_not_block_is_still_written_whole(commands: Commands) -> None:
    text = b"0123456789" * 100_000
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    with Service(commands.socket, [http(frame(OUT, text) + frame(EXIT, b"0"))]), ours:
        process = subprocess.Popen([commands.prefix / "bin" / "squeue"], stdout=theirs)
        theirs.close()
        received = b"".join(iter(lambda: ours.recv(65536), b""))
        assert process.wait() == 0
    assert received == text


def test_several_hundred_kilobytes_of_arguments_arrive(commands: Commands) -> None:
    argv = [str(number) + "x" * 100 for number in range(4000)]
    with Service(commands.socket, [DONE]) as service:
        done = commands.run("scancel", *argv)
    assert (done.returncode, list(service.calls[0].argv)) == (0, argv)


@pytest.mark.parametrize(
    ("words", "out", "err"),
    [
        (["show", "hostnames", "n[1-2],m3"], "n1\nn2\nm3\n", ""),
        (["show", "hostnames"], "ec2-7\nec2-8\n", ""),
        (["show", "hostlist", "n1,n2,n3"], "n[1-3]\n", ""),
        (["show", "hostlistsorted", "b2,b1,a1"], "a1,b[1-2]\n", ""),
        (["sho", "hostn", "n["], "", "Invalid hostlist: n[\n"),
        (["show", "hostnames", ""], "", "scontrol: error: host list is empty\n"),
    ],
)
def test_host_lists_need_no_service(
    commands: Commands, words: list[str], out: str, err: str
) -> None:
    done = commands.run("scontrol", *words, env={"SLURM_NODELIST": "ec2-[7-8]"})
    assert (done.returncode, done.stdout, done.stderr) == (0, out.encode(), err.encode())


def test_a_jobs_token_goes_along(commands: Commands) -> None:
    for token, line in (("7a1xff", b"Authorization: Bearer 7a1xff"), ("a b\r\nx", None)):
        with Service(commands.socket, [DONE]) as service:
            commands.run("squeue", env={"SKYPURZA_TOKEN": token})
        (head,) = service.heads
        assert [one for one in head.split(b"\r\n") if one.startswith(b"Auth")] == (
            [line] if line else []
        )


SESSION = (
    # what is typed, what is printed beside the answers, what was sent, the exit status
    (b"", b"scontrol: \n", [], 0),
    (b"quit\n", b"scontrol: quit\n", [], 0),
    (b"exi\nping\n", b"scontrol: exi\n", [], 0),
    (b"ping\n\n", b"scontrol: ping\n<0>scontrol: \nscontrol: \n", ["-o ping"], 0),
    (b"show  job 7\n!!\nquit", b"scontrol: show  job 7\n<0>scontrol: !!\n<1>scontrol: quit",
     ["-o show job 7", "-o show job 7"], 0),
    (b"hide\nfoo\nexit\n", b"scontrol: hide\n<0>scontrol: foo\n<1>scontrol: exit\n",
     ["-o hide", "-o --hide foo"], 1),
    (b"all\nhide\nx\nq\n", b"scontrol: all\n<0>scontrol: hide\n<1>scontrol: x\n<2>scontrol: q\n"
     b"<3>scontrol: \n",
     ["-o all", "-o --all hide", "-o --hide x", "-o --hide q"], 0),
    (b"update n=1 reason='a b'\nexit", b"scontrol: update n=1 reason='a b'\n<0>scontrol: exit",
     ["-o update n=1 reason=a b"], 0),
)  # fmt: skip


@pytest.mark.parametrize(("typed", "printed", "sent", "code"), SESSION)
def test_a_prompt_sends_each_line_as_a_command_of_its_own(
    commands: Commands, typed: bytes, printed: bytes, sent: list[str], code: int
) -> None:
    prompt = http(frame(PROMPT, b"-o\0"))
    failed = [line.endswith("foo") for line in sent]
    answers = [
        http(frame(OUT, b"<%d>" % number) + frame(EXIT, b"1" if bad else b"0"))
        for number, bad in enumerate(failed)
    ]
    with Service(commands.socket, [prompt, *answers]) as service:
        done = commands.run("scontrol", "-o", stdin=typed)
    assert (done.stdout, done.returncode) == (printed, code)
    assert [" ".join(call.argv) for call in service.calls[1:]] == sent
