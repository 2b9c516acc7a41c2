"""A site's own Slurm beside ours: what is handed on, with which words, and what stays."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from broker.model.errors import Refused
from gateway.api.programs import scancel
from gateway.api.programs.beside import NO_COMMAND, READ_ALREADY, WAITS_FOR_OURS, Beside
from gateway.api.programs.both import YAML_ALONE, Both
from gateway.api.programs.merged import merged
from gateway.api.programs.sbatch import Sbatch
from gateway.api.programs.sinfo import Sinfo
from gateway.api.programs.squeue import Squeue
from gateway.api.stream import Exec, Hello, Interactive
from gateway.api.text import Program
from gateway.api.wire import Answer, Call, Given, Peer, raw
from gateway.passthrough.base import Border, SiteSlurm, Whose, depends_on, question, submission
from gateway.passthrough.cli import site_commands
from gateway.passthrough.learnt import Learnt
from gateway.passthrough.lines import by_cluster
from sbatch_shim.grammar.errors import GrammarError
from sbatch_shim.install import install
from tests.contract.facts import Said
from tests.unit.gateway.api.office import Office, wait

PROGRAMS = ("sbatch", "squeue", "sinfo", "scancel", "sacct", "scontrol", "srun", "salloc")
STAND_IN = '#!/bin/sh\nprintf \'%s|\' "${0##*/}" "$@"\nexit 5\n'
BORDER = Border(
    ours=frozenset({"ec2", "debug"}), first_job=1000, last_job=1999, cluster="cloud", theirs="hpc"
)
SCRIPT = "#!/bin/sh\n#SBATCH --partition={}\nhostname\n"


@pytest.fixture(params=["stand-ins", "real"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Commands of a site: stand-ins that print their words, and those of this machine."""
    if request.param == "real":
        found = shutil.which("sbatch")
        if found is None:
            pytest.skip("no real Slurm on this machine")
        return str(Path(found).parent)
    return str(stand_ins(tmp_path))


def stand_ins(where: Path) -> Path:
    folder = where / "site"
    folder.mkdir()
    for name in PROGRAMS:
        (folder / name).write_text(STAND_IN)
        (folder / name).chmod(0o755)
    return folder


def test_commands_are_found_by_name(folder: str) -> None:
    site: SiteSlurm = site_commands(folder)
    for name in ("sbatch", "squeue", "sinfo"):
        path = site.command(name)
        assert path == f"{folder}/{name}"
        assert os.access(path, os.X_OK)
    assert site.command("nosuchcommand") is None


def test_folders_that_cannot_be_the_sites_are_refused(tmp_path: Path) -> None:
    install(tmp_path / "own", tmp_path / "s", "slurm 25.11.7")
    for path, words in (
        (str(tmp_path / "own" / "bin"), "call themselves"),
        (str(tmp_path), "has no sbatch, squeue, sinfo"),
        ("bin", "no absolute path"),
    ):
        with pytest.raises(Refused, match=words):
            site_commands(path)


@pytest.mark.parametrize(
    ("program", "argv", "environ", "batch", "whose"),
    [
        ("sbatch", ["-p", "gpu", "x.sh"], {}, None, "site"),
        ("sbatch", ["--part=gpu", "x.sh"], {}, None, "site"),
        ("sbatch", ["-p", "ec2", "x.sh"], {"SBATCH_PARTITION": "gpu"}, None, "ours"),
        ("sbatch", ["x.sh", "-p", "gpu"], {}, None, "ours"),
        ("sbatch", ["x.sh"], {"SBATCH_PARTITION": "gpu"}, SCRIPT.format("ec2"), "site"),
        ("sbatch", ["x.sh"], {}, SCRIPT.format("gpu"), "site"),
        ("sbatch", ["x.sh"], {}, SCRIPT.format("ec2"), "ours"),
        ("sbatch", ["x.sh"], {}, "#!/bin/sh\n#PBS -q gpu\n", "site"),
        ("sbatch", ["x.sh"], {}, "#!/bin/sh\nhostname\n", "ours"),
        ("sbatch", ["-p", "gpu,big", "x.sh"], {}, None, "site"),
        ("sbatch", ["-p", "gpu,ec2", "x.sh"], {}, None, "ours"),
        ("sbatch", ["--nonsense", "-p", "gpu"], {}, None, "ours"),
        ("srun", ["-p", "gpu", "hostname"], {}, None, "site"),
        ("srun", ["hostname", "-p", "gpu"], {}, None, "ours"),
        ("srun", ["hostname"], {"SLURM_JOB_ID": "17"}, None, "site"),
        ("srun", ["hostname"], {"SLURM_JOB_ID": "1017"}, None, "ours"),
        ("srun", ["--jobid=17", "hostname"], {"SLURM_JOB_ID": "1017"}, None, "site"),
        ("salloc", [], {"SALLOC_PARTITION": "gpu"}, None, "site"),
        ("srun", ["--jobid=2000", "hostname"], {}, None, "site"),
        ("sbatch", ["-M", "hpc", "x.sh"], {}, None, "site"),
        ("sbatch", ["-M", "cloud", "-p", "gpu", "x.sh"], {}, None, "ours"),
        ("sbatch", ["x.sh"], {"SBATCH_CLUSTERS": "hpc"}, None, "site"),
        ("sbatch", ["x.sh"], {}, "#!/bin/sh\n#SBATCH -M hpc\n", "site"),
        ("sbatch", ["-M", "hpc,cloud", "x.sh"], {}, None, "ours"),
        ("sattach", ["17.0"], {}, None, "site"),
        ("sattach", ["-l", "1017.0"], {}, None, "ours"),
    ],
)  # fmt: skip
def test_a_submission_goes_where_its_partition_is(
    program: str, argv: list[str], environ: Mapping[str, str], batch: str | None, whose: str
) -> None:
    assert submission(program, argv, environ, border=BORDER, batch=batch) == whose


def test_partitions_that_are_listed_are_the_only_ones_of_the_site() -> None:
    listed = Border(ours=BORDER.ours, site=frozenset({"gpu"}))
    assert submission("sbatch", ["-p", "gpu"], {}, border=listed) is Whose.SITE
    assert submission("sbatch", ["-p", "typo"], {}, border=listed) is Whose.OURS


@pytest.mark.parametrize(
    ("program", "line", "whose"),
    [
        ("squeue", "", "both"),
        ("squeue", "--me -o %i", "both"),
        ("squeue", "-p gpu", "site"),
        ("squeue", "-p ec2,debug", "ours"),
        ("squeue", "-p ec2,gpu", "both"),
        ("squeue", "-j 17,18_3", "site"),
        ("squeue", "-j 17,1017", "both"),
        ("squeue", "--json", "both"),
        ("squeue", "-i 5", "both"),
        ("squeue", "-p gpu -i 5", "site"),
        ("squeue", "--version", "ours"),
        ("sinfo", "-N", "both"),
        ("squeue", "-M hpc", "site"),
        ("squeue", "-M hpc --json", "site"),
        ("squeue", "-M cloud", "ours"),
        ("squeue", "-M all", "both"),
        ("squeue", "-M cloud,hpc -j 17", "both"),
        ("squeue", "-M cloud,hpc --help", "ours"),
        ("sprio", "-M all", "ours"),
        ("sprio", "-M hpc", "site"),
        ("sshare", "-a -M hpc", "site"),
        ("sdiag", "-M hpc", "site"),
        ("sreport", "-M hpc cluster utilization", "site"),
        ("sshare", "-a", "ours"),
        ("sdiag", "", "ours"),
        ("sacctmgr", "show user alice", "ours"),
        ("sreport", "cluster utilization", "ours"),
        ("scontrol", "-M hpc show config", "site"),
        ("scontrol", "show job 2000", "site"),
        ("sacct", "-j 17.batch", "site"),
        ("sacct", "-r gpu -X", "site"),
        ("scancel", "17_[1-3]", "site"),
        ("scancel", "1017", "ours"),
        ("scancel", "17 1017", "both"),
        ("scancel", "-u alice", "both"),
        ("scontrol", "show job 17", "site"),
        ("scontrol", "show job 17 1017", "ours"),
        ("scontrol", "show job", "ours"),
        ("scontrol", "show node n17", "ours"),
        ("scontrol", "update JobId=17 Nice=5", "site"),
        ("scontrol", "hold 17,18", "site"),
        ("scontrol", "hold jobid=17", "site"),
        ("scontrol", "rel 17", "site"),
        ("scontrol", "sho jo 17", "site"),
        ("scontrol", "show job=17", "site"),
        ("scontrol", "show step 17.0", "site"),
        ("scontrol", "show jobid 1017", "ours"),
        ("scontrol", "upd JOB=17 nice=5", "site"),
        ("scontrol", "update job 17 nice=5", "site"),
        ("scontrol", "update name=a jobid=1017", "ours"),
        ("scontrol", "show partition gpu", "site"),
        ("scontrol", "show part=gpu", "site"),
        ("scontrol", "show partition ec2", "ours"),
        ("scontrol", "show partition", "ours"),
        ("scontrol", "update partitionname=gpu state=up", "site"),
        ("scontrol", "show", "ours"),
        ("scontrol", "show config", "ours"),
        ("scontrol", "sh job 17", "ours"),
        ("scontrol", "up", "ours"),
        ("scontrol", "write batch_script 17 -", "site"),
        ("seff", "17", "site"),
        ("sprio", "", "ours"),
        ("sstat", "-j 17", "site"),
    ],
)
def test_a_question_goes_where_its_jobs_and_partitions_are(
    program: str, line: str, whose: str
) -> None:
    assert question(program, line.split(), {}, border=BORDER) == whose


def beside(folder: Path, partitions: tuple[str, ...] = ()) -> Beside:
    known = Learnt([], Said(), clock=lambda: 0.0, every=60, listed=frozenset(partitions))
    return Beside(site_commands(str(folder)), known)


def around(
    folder: Path, name: str, program: Program, *, partitions: tuple[str, ...] = ()
) -> Program:
    made = beside(folder, partitions).around({name: program})[name]
    assert not isinstance(made, Interactive)
    return made


def run(answer: Answer) -> tuple[str, int]:
    assert answer.exec is not None
    done = subprocess.run(answer.exec, capture_output=True, text=True, check=False)
    return done.stdout, done.returncode


def test_the_sites_sbatch_gets_every_word_as_it_was_typed(tmp_path: Path) -> None:
    office = Office()
    program = around(stand_ins(tmp_path), "sbatch", Sbatch())
    words = ("-p", "gpu", "--comment=a b\n", "x y.sh", "", "$HOME")
    assert run(office.run(program, *words, name="sbatch")) == ("|".join(("sbatch", *words, "")), 5)
    assert office.asked == []


def test_a_script_is_read_before_its_partition_decides(tmp_path: Path) -> None:
    office = Office()
    program = around(stand_ins(tmp_path), "sbatch", Sbatch())
    assert office.run(program, "x.sh", name="sbatch").ask == "x.sh"
    theirs, ours = (
        office.run(
            program, "x.sh", name="sbatch", files={"x.sh": Given(SCRIPT.format(part).encode())}
        )
        for part in ("gpu", "ec2")
    )
    assert run(theirs) == ("sbatch|x.sh|", 5)
    assert (ours.exec, ours.code) == (None, 0)
    assert str(ours.out).startswith("Submitted batch job ")


@pytest.mark.parametrize(
    ("line", "script", "refused"),
    [
        ("-p gpu -d afterok:1017 x.sh", "", "1017"),
        ("-p gpu --dependency=afterany:17:1018_3?after:1017+5 x.sh", "", "1018"),
        ("x.sh", "#!/bin/sh\n#SBATCH -p gpu -d afterok:1017\n", "1017"),
        ("-p gpu -d afterok:17:18 x.sh", "", None),
        ("-p gpu -d singleton x.sh", "", None),
    ],
)
def test_jobs_of_ours_that_a_submission_waits_for_are_found(
    line: str, script: str, refused: str | None
) -> None:
    assert depends_on("sbatch", line.split(), {}, border=BORDER, batch=script) == refused


def test_what_waits_for_a_job_of_ours_is_not_handed_on(tmp_path: Path) -> None:
    program = around(stand_ins(tmp_path), "sbatch", Sbatch())
    answer = Office().run(program, "-p", "gpu", "-d", "afterok:7", "x.sh", name="sbatch")
    assert (answer.exec, answer.err) == (None, f"sbatch: error: {WAITS_FOR_OURS.format(7)}\n")


def test_a_script_from_standard_input_cannot_be_handed_on(tmp_path: Path) -> None:
    program = around(stand_ins(tmp_path), "sbatch", Sbatch())
    files = {"-": Given(SCRIPT.format("gpu").encode())}
    answer = Office().run(program, name="sbatch", files=files)
    assert (answer.exec, answer.err) == (None, f"sbatch: error: {READ_ALREADY}\n")


def test_listings_follow_each_other_under_one_headline(tmp_path: Path) -> None:
    office, folder = Office(), stand_ins(tmp_path)
    answer = office.run(around(folder, "sinfo", Sinfo()), "-o", "%P", name="sinfo")
    assert raw(answer.out).startswith(b"PARTITION\n")
    assert (answer.code, answer.exec) == (0, None)
    assert answer.also == (f"{folder}/sinfo", "-h", "-o", "%P")


@pytest.mark.parametrize(
    ("program", "line", "ours", "theirs"),
    [
        ("squeue", "-h -M all", "--clusters=cloud --noheader", "--clusters=all --noheader"),
        ("squeue", "-M hpc,x,cloud", "--clusters=cloud", "--clusters=hpc,x"),
        ("sacct", "-M hpc,cloud -j 7", "--clusters=cloud --jobs=7", "-n --clusters=hpc --jobs=7"),
        ("scancel", "-M all 7", "--clusters=cloud 7", "--clusters=all 7"),
    ],
)
def test_each_side_is_asked_for_its_clusters(
    program: str, line: str, ours: str, theirs: str
) -> None:
    made = by_cluster(program, line.split(), {}, border=BORDER)
    assert [" ".join(words) for words in made or ()] == [ours, theirs]


def test_clusters_stand_below_their_names_with_a_line_between() -> None:
    both = Both("squeue", Squeue(), "/site/squeue", replace(BORDER, cluster="skypurza"))
    office = Office()
    for words, shown in (
        (("-o", "%i"), b"CLUSTER: skypurza\nJOBID\n\n"),
        (("-h", "-o", "%i"), b""),
    ):
        answer = office.run(both.answer, "-M", "all", *words, name="squeue")
        assert raw(answer.out) == shown
        assert (answer.also or ())[:2] == ("/site/squeue", "--clusters=all")


@pytest.mark.parametrize("line", ["-M cloud", "-M hpc", "-M x", "-p gpu"])
def test_one_cluster_is_asked_alone(line: str) -> None:
    assert by_cluster("squeue", line.split(), {}, border=BORDER) is None


def test_jobs_of_both_go_along_to_be_sorted_into_one_listing(tmp_path: Path) -> None:
    office, folder = Office(), stand_ins(tmp_path)
    answer = office.run(around(folder, "squeue", Squeue()), "-u", "x", "-o", "%i", name="squeue")
    empty, spec, lines, *words = answer.also or ()
    assert (raw(answer.out), empty, spec) == (b"", "", "1 120 0:40:0 40:80:0 80:120:1")
    assert lines[120:] == "JOBID\n"
    assert words == [f"{folder}/squeue", "--noheader", "--user=x", "--format=%40P%40t%40Q%i"]


def test_turns_are_of_both_each_with_its_date(tmp_path: Path) -> None:
    office, folder = Office(), stand_ins(tmp_path)
    program = around(folder, "squeue", Squeue())
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    office.desk.pause = pause
    first = office.run(program, "-i", "7", "-S", "i", "-o", "%i", name="squeue")
    assert first.rest is not None
    second = wait(first.rest)
    for answer, before in ((first, ""), (second, "\n")):
        assert raw(answer.out).decode() == f"{before}Tue Nov 14 22:13:20 2023\n"
        empty, _, lines, *words = answer.also or ()
        assert (empty, lines[40:]) == ("", "JOBID\n")
        assert words == [f"{folder}/squeue", "--noheader", "--sort=i", "--format=%40A%i"]
    second.rest.close()
    assert pauses == [7]


@pytest.mark.parametrize("program", ["squeue", "sinfo"])
def test_documents_go_along_to_become_one(tmp_path: Path, program: str) -> None:
    office, folder = Office(), stand_ins(tmp_path)
    office.submit()
    run = around(folder, program, Squeue() if program == "squeue" else Sinfo())
    answer = office.run(run, "--json", name=program)
    empty, form, content, *words = answer.also or ()
    assert (raw(answer.out), empty, form) == (b"", "", "json")
    assert json.loads(content)["meta"]["plugin"]["data_parser"] == "data_parser/v0.0.44"
    assert words == [f"{folder}/{program}", "--json"]
    yaml = office.run(run, "--yaml", name=program)
    assert yaml.also is None
    assert raw(yaml.err).decode() == f"{program}: warning: {YAML_ALONE}\n"
    assert office.run(run, "--json=list", name=program).also is None


MERGED = [
    (["squeue"], "--format=%40P%40t%40Q%.18i", "1 120"),
    (["squeue", "-h", "-S", "-i"], "--format=%40A%.18i", "0 40 0:40:1"),
    (["squeue", "-O", "jobid", "-S", "u"], "--Format=UserName:40,jobid", "1 40 0:40:0"),
    (["sacct", "-X"], "-n -X", "2 0"),
    (["sacct", "-P"], "-n -P", "1 0"),
    (["sacct", "-nX"], "-n -nX", "0 0"),
]


@pytest.mark.parametrize(("line", "words", "spec"), MERGED)
def test_what_lines_are_sorted_by_is_printed_in_front(
    line: list[str], words: str, spec: str
) -> None:
    found = merged(line[0], line[1:], {})
    assert found is not None
    assert words in " ".join(found.theirs)
    assert found.spec.startswith(spec)


@pytest.mark.parametrize(
    "line",
    [
        "squeue -o %all",
        "squeue -S &",
        "sinfo",
        "squeue -?",
    ],
)
def test_listings_with_an_order_of_their_own_follow_each_other(line: str) -> None:
    name, *argv = line.split()
    assert merged(name, argv, {}) is None


@pytest.mark.parametrize("words", ["-t nosuchstate", "-O jobid -o %j"])
def test_what_we_refuse_is_not_asked_of_the_site(tmp_path: Path, words: str) -> None:
    program = around(stand_ins(tmp_path), "squeue", Squeue())
    answer = Office().run(program, *words.split(), name="squeue")
    assert (answer.also, answer.exec, answer.code) == (None, None, 1)


def test_each_side_cancels_its_own_jobs(tmp_path: Path) -> None:
    office = Office()
    job = office.submit()
    program = around(stand_ins(tmp_path), "scancel", scancel.run)
    answer = office.run(program, "-s", "TERM", "3", str(job), name="scancel")
    assert answer.also == (f"{tmp_path}/site/scancel", "--signal=TERM", "3")
    assert f"job id {job}:" in str(answer.err)
    assert office.asked != []


class Silent:
    """A connected command that says nothing."""

    hello = Hello()


@pytest.mark.parametrize("name", ["srun", "salloc"])
def test_interactive_commands_become_the_sites(tmp_path: Path, name: str) -> None:
    async def never(desk: object, call: object, line: object) -> int:
        raise AssertionError

    made = beside(stand_ins(tmp_path)).around(
        {name: Interactive(never), "sattach": Interactive(never)}
    )
    talk, attach = made[name], made["sattach"]
    assert isinstance(talk, Interactive)
    assert isinstance(attach, Interactive)
    call = Call(program=name, argv=("-p", "gpu", "a b"), peer=Peer(0, 0), request="0" * 32)
    with pytest.raises(Exec) as other:
        wait(talk.run(Office().desk, call, Silent()))  # type: ignore[arg-type]
    assert other.value.words == (f"{tmp_path}/site/{name}", "-p", "gpu", "a b")
    call = replace(call, program="sattach", argv=("1.0",))
    with pytest.raises(GrammarError) as missing:
        wait(attach.run(Office().desk, call, Silent()))  # type: ignore[arg-type]
    assert missing.value.stderr == f"sattach: error: {NO_COMMAND.format('sattach')}\n"
