"""`#SPZ` lines: what they ask for, where they count, and what is said of wrong ones."""

import posixpath

import pytest

from broker.model.spec import Checkpoint, Mount, TaskSpec
from gateway.translate.sbatch import Submission
from sbatch_shim.grammar.errors import GrammarError

from .conftest import Submit

HOME = "/home/alice/work"


def spec(sbatch: Submit, *lines: str, argv: tuple[str, ...] = ()) -> TaskSpec:
    script = "\n".join(("#!/bin/sh", *lines, ""))
    made = sbatch(*argv, "job.sh", files={"job.sh": script.encode("utf-8", "surrogateescape")})
    assert isinstance(made, Submission)
    return made.spec


def mounts(*pairs: tuple[str, str]) -> tuple[Mount, ...]:
    return tuple(Mount(source=source, target=target) for source, target in pairs)


BROUGHT = (
    ("stage-in=/data/x", ("/data/x", "/data/x")),
    ("stage-in=in", (f"{HOME}/in", f"{HOME}/in")),
    ("stage-in=../in/", ("/home/alice/in", "/home/alice/in")),
    ("stage-in=/data/x:y", ("/data/x", f"{HOME}/y")),
    ("stage-in=s3://b/k/set", ("s3://b/k/set", f"{HOME}/set")),
    ("stage-in=s3://b/k/set/", ("s3://b/k/set/", f"{HOME}/set")),
    ("stage-in=s3://b/k:/scratch/k", ("s3://b/k", "/scratch/k")),
    ("stage-in='a b'", (f"{HOME}/a b", f"{HOME}/a b")),
)


@pytest.mark.parametrize(("line", "pair"), BROUGHT)
def test_what_is_brought(sbatch: Submit, line: str, pair: tuple[str, str]) -> None:
    assert spec(sbatch, f"#SPZ {line}").files == mounts(pair)


FETCHED = (
    ("stage-out=/data/y", ("/data/y", "/data/y")),
    ("stage-out=out:s3://b/run", (f"{HOME}/out", "s3://b/run")),
    ("stage-out=s3://b/run", (HOME, "s3://b/run")),
)


@pytest.mark.parametrize(("line", "pair"), FETCHED)
def test_what_is_fetched(sbatch: Submit, line: str, pair: tuple[str, str]) -> None:
    assert spec(sbatch, f"#SPZ {line}").results == mounts(pair)


def test_lists_and_repeated_lines_add_up(sbatch: Submit) -> None:
    found = spec(sbatch, "#SPZ stage-in=/a,/b stage-out=/c", "", "# else", "#SPZ stage-in=/d")
    assert found.files == mounts(("/a", "/a"), ("/b", "/b"), ("/d", "/d"))
    assert found.results == mounts(("/c", "/c"))


CHECKPOINTS = (
    ("checkpoint=ckpt", Checkpoint(folder=f"{HOME}/ckpt")),
    ("checkpoint=/scratch/c every=10", Checkpoint(folder="/scratch/c", every=600)),
    ("checkpoint=c every=0:30", Checkpoint(folder=f"{HOME}/c", every=30)),
    ("every=1:00:00 checkpoint=c # hourly", Checkpoint(folder=f"{HOME}/c", every=3600)),
)


@pytest.mark.parametrize(("line", "wanted"), CHECKPOINTS)
def test_a_checkpoint_is_a_folder_and_a_period(
    sbatch: Submit, line: str, wanted: Checkpoint
) -> None:
    assert spec(sbatch, f"#SPZ {line}").checkpoint == wanted


def test_paths_are_those_of_the_directory_that_the_job_runs_in(sbatch: Submit) -> None:
    found = spec(sbatch, "#SPZ checkpoint=c", argv=("-D", "sub"))
    assert found.checkpoint == Checkpoint(folder=f"{HOME}/sub/c")


def test_lines_count_where_sbatch_lines_do(sbatch: Submit) -> None:
    found = spec(sbatch, "#SBATCH -J n", "#SPZ stage-in=/a", "true", "#SPZ stage-in=/b nonsense")
    assert found.files == mounts(("/a", "/a"))
    made = sbatch("--wrap", "#SPZ nonsense")
    assert isinstance(made, Submission)


WRONG = (
    ("stagein=/x", "stagein=/x: stagein is not known; did you mean stage-in?"),
    ("mount=/x", "mount=/x: mount is not known; one of: stage-in, stage-out, checkpoint, every"),
    ("stage-in", "stage-in: nothing is given; write stage-in=PATH[,PATH...]"),
    ("stage-in=gs://b/k", "gs://b/k: only s3:// is served"),
    ("stage-in=s3://../k", "s3://../k: names no bucket; write s3://BUCKET/KEY"),
    ("stage-out=a:s3:///k", "s3:///k: names no bucket; write s3://BUCKET/KEY"),
    ("stage-in=s3://", "stage-in=s3://: write s3://BUCKET/KEY"),
    ("stage-in=s3://b", "stage-in=s3://b: write s3://BUCKET/KEY"),
    ("stage-in=a:s3://b/k", "stage-in=a:s3://b/k: what is brought comes from s3://b/k"),
    ("stage-out=s3://b/k:a", "stage-out=s3://b/k:a: write PATH:s3://b/k"),
    ("checkpoint=.", "checkpoint=.: name a folder that holds nothing else"),
    ("checkpoint=..", "checkpoint=..: name a folder that holds nothing else"),
    ("checkpoint=a/%N", "checkpoint=a/%N: name one that is the same after a restart"),
    ("checkpoint=a/%r", "checkpoint=a/%r: name one that is the same after a restart"),
    ("checkpoint=//", "checkpoint=//: name a folder that holds nothing else"),
    (
        "checkpoint=s3://b/k",
        "checkpoint=s3://b/k: name a folder; where copies lie is configured",
    ),
    (
        "checkpoint=a checkpoint=b",
        f"checkpoint=b: a job has one; {HOME}/a is named before",
    ),
    ("checkpoint=a every=soon", "every=soon: write minutes, or HOURS:MINUTES:SECONDS"),
    ("checkpoint=a every=0", "every=0: write minutes, or HOURS:MINUTES:SECONDS"),
)


@pytest.mark.parametrize(("line", "said"), WRONG)
def test_wrong_words_are_refused_with_their_line_and_a_way_out(
    sbatch: Submit, line: str, said: str
) -> None:
    with pytest.raises(GrammarError) as error:
        spec(sbatch, "", f"#SPZ {line}")
    assert error.value.stderr == f"sbatch: error: job.sh: line 3: #SPZ {said}\n"
    assert error.value.code == 1


@pytest.mark.parametrize("folder", ["ckpt/%a", "ckpt-%A_%a", "%j", "/scratch/%3a"])
def test_tasks_of_an_array_may_have_a_folder_each(sbatch: Submit, folder: str) -> None:
    found = spec(sbatch, f"#SPZ checkpoint={folder}", argv=("-a", "1-3"))
    assert found.checkpoint == Checkpoint(folder=posixpath.join(HOME, folder))


@pytest.mark.parametrize("folder", ["ckpt", "ckpt/%A", "%x", "%%a"])
def test_tasks_of_an_array_cannot_share_a_folder(sbatch: Submit, folder: str) -> None:
    path = f"{HOME}/{folder}"
    with pytest.raises(GrammarError) as error:
        spec(sbatch, f"#SPZ checkpoint={folder}", argv=("-a", "1-3"))
    assert error.value.stderr == (
        f"sbatch: error: #SPZ checkpoint={path}: tasks of an array need a folder each; "
        f"write checkpoint={path}/%a, or %A_%a or %j in its name\n"
    )


def test_a_period_without_a_checkpoint_is_refused(sbatch: Submit) -> None:
    with pytest.raises(GrammarError, match=r"every=\.\.\. needs checkpoint=DIR"):
        spec(sbatch, "#SPZ every=5")


def test_no_word_of_other_bytes_breaks_it(sbatch: Submit) -> None:
    found = spec(sbatch, "#SPZ stage-in=/caf\udce9")
    assert found.files[0].source == "/caf\udce9"
