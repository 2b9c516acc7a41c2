"""pyxis's options: taken where a site says so, unknown everywhere else."""

# ruff: noqa: E501 - a row stays on one line

from dataclasses import replace
from typing import Any

import pytest

from broker.model.site import Partition, Site
from broker.model.spec import Container
from gateway.translate.sbatch import Setting, Submission, translate
from gateway.translate.stepspec import step
from sbatch_shim.grammar.errors import GrammarError

from .conftest import NOW, UIDS, GivenFile, Typed
from .test_srun import job, read


@pytest.fixture
def boxed(site: Site) -> Site:
    parts = tuple(replace(part, containers=True) for part in site.partitions)
    return replace(site, containers=True, partitions=parts)


def sbatch(site: Site, *argv: str, script: str = "") -> Submission:
    files = {"job.sh": GivenFile(script.encode())}
    setting = Setting(site=site, now=NOW, zone=lambda _: 0, uid=UIDS["alice"])
    words = (*argv, "job.sh") if script else (*argv, "--wrap", "true")
    made = translate(Typed(words, files), setting)
    assert isinstance(made, Submission)
    return made


MOUNTS = "--container-mounts=/data:/mnt:ro+nosuid,/scratch"
TAKEN = Container(
    image="nvcr.io#nvidia/pytorch:24.01",
    mounts=(("/data", "/mnt", "ro+nosuid"), ("/scratch", "/scratch", "")),
    workdir="/mnt",
    home=True,
)


def test_a_batch_step_runs_in_the_image_that_its_script_names(boxed: Site) -> None:
    script = f"""#!/bin/sh
#SBATCH --container-image="nvcr.io#nvidia/pytorch:24.01"
#SBATCH {MOUNTS} --container-workdir=/mnt --container-mount-home
"""
    made = sbatch(boxed, script=script)
    assert made.spec.batch is not None
    assert made.spec.batch.container == TAKEN
    assert made.spec.option("container-image") == TAKEN.image
    assert sbatch(boxed).spec.batch == made.spec.batch.model_copy(
        update={"container": None, "phases": sbatch(boxed).spec.batch.phases}  # type: ignore[union-attr]
    )


def test_a_step_of_sruns_has_an_image_of_its_own(boxed: Site) -> None:
    words = ("--container-image", str(TAKEN.image), MOUNTS, "--container-workdir=/mnt", "true")
    made = step(read(boxed, *words, environ={"SLURM_JOB_ID": "700001"}), job(4), None)
    assert made.container == TAKEN.model_copy(update={"home": False})


def test_what_has_no_effect_is_named(boxed: Site) -> None:
    made = sbatch(boxed, "--container-image=x", "--container-entrypoint-log")
    assert "--container-entrypoint-log has no effect here and is ignored" in made.stderr


IMAGE = "--container-image=x"
# fmt: off
SERVED: dict[str, tuple[list[str], dict[str, Any]]] = {
    "kept":         (["--container-name=a.b-c"], {"image": None, "name": "a.b-c"}),
    "anew":         ([IMAGE, "--container-name=a:create"], {"name": "a", "reuse": "create"}),
    "in it":        (["--container-name=a:exec"], {"image": None, "name": "a", "reuse": "exec"}),
    "saved":        ([IMAGE, "--container-save=out/x.tar"], {"save": "out/x.tar"}),
    "as root":      ([IMAGE, "--container-remap-root"], {"root": True}),
    "not as root":  ([IMAGE, "--no-container-remap-root"], {}),
    "entry point":  ([IMAGE, "--container-entrypoint"], {"entrypoint": True}),
    "none":         ([IMAGE, "--no-container-entrypoint"], {}),
    "written":      ([IMAGE, "--container-writable"], {"writable": True}),
    "read only":    ([IMAGE, "--container-readonly"], {"writable": False}),
    "variables":    ([IMAGE, "--container-env=A,B"], {"env": ("A", "B")}),
    "home":         ([IMAGE, "--container-mount-home"], {"home": True}),
    "relative":     ([IMAGE, "--container-mounts=./:/m,../d:./e"], {"mounts": (("./", "/m", ""), ("../d", "./e", ""))}),
    "in memory":    ([IMAGE, "--container-mounts=tmpfs:/scratch"], {"mounts": (("tmpfs", "/scratch", ""),)}),
    "one twice":    ([IMAGE, "--container-mounts=/a,/a"], {"mounts": (("/a", "/a", ""),)}),
}
# fmt: on


@pytest.mark.parametrize("what", SERVED)
def test_each_of_pyxis_options_says_how_the_container_is(boxed: Site, what: str) -> None:
    words, told = SERVED[what]
    made = sbatch(boxed, *words)
    assert made.spec.batch is not None
    assert made.spec.batch.container == Container(**{"image": "x", **told})
    assert made.stderr == ""


ENTRY = "pyxis: could not add mount entry: "
# fmt: off
REFUSED = {
    "no image":   (["--container-mounts=/a:/b"], ["pyxis: --container-mounts needs --container-image or --container-name"]),
    "a flag":     (["--container-readonly"], ["pyxis: --container-readonly needs --container-image or --container-name"]),
    "empty":      (["--container-image="], ["pyxis: --container-image: argument required"]),
    "source":     ([IMAGE, "--container-mounts=a:/b"], ['pyxis: mount source must be a relative path, an absolute path, "tmpfs" or "umount"', f"{ENTRY}a:/b"]),
    "target":     ([IMAGE, "--container-mounts=/a:b"], ["pyxis: mount target must be a relative path or an absolute path", f"{ENTRY}/a:b"]),
    "no target":  ([IMAGE, "--container-mounts=/a:"], ["pyxis: --container-mounts: invalid format: /a:"]),
    "no entry":   ([IMAGE, "--container-mounts=/a,,/b"], ["pyxis: --container-mounts: invalid format: "]),
    "leads out":  ([IMAGE, "--container-mounts=/home:../home"], ["pyxis: --container-mounts: invalid format: /home:../home"]),
    "colons":     ([IMAGE, "--container-mounts=/a:/b:ro:rw"], ["pyxis: --container-mounts: invalid format: /a:/b:ro:rw"]),
    "umount":     ([IMAGE, "--container-mounts=umount:/b"], ["pyxis: --container-mounts: umount is not served here: umount:/b"]),
    "workdir":    ([IMAGE, "--container-workdir=b"], ["pyxis: --container-workdir: 'b' is no absolute path"]),
    "an option":  (["--container-image=--privileged"], ["pyxis: --container-image: '--privileged' is no image"]),
    "no name":    ([IMAGE, "--container-name=:exec"], ["pyxis: --container-name: empty name"]),
    "odd flag":   ([IMAGE, "--container-name=a:b"], ['pyxis: --container-name: flag must be "auto", "create", "exec" or "no_exec"']),
    "no_exec":    ([IMAGE, "--container-name=a:no_exec"], ["pyxis: --container-name: no_exec is not served here: use auto"]),
    "odd name":   ([IMAGE, "--container-name=../a"], ["pyxis: --container-name: '../a' is no name: letters, digits, _, . and - are"]),
    "a folder":   ([IMAGE, "--container-save=out/"], ["pyxis: --container-save: target is a directory"]),
    "no variable": ([IMAGE, "--container-env=A,,B"], ["pyxis: --container-env: invalid format: A,,B"]),
    "both":       ([IMAGE, "--container-writable", "--container-readonly"], ["pyxis: both --container-writable and --container-readonly were specified"]),
}
# fmt: on


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_refused_before_anything_is_allocated(boxed: Site, what: str) -> None:
    words, texts = REFUSED[what]
    with pytest.raises(GrammarError) as refused:
        sbatch(boxed, *words)
    assert refused.value.stderr == "".join(f"sbatch: error: {text}\n" for text in texts)
    with pytest.raises(GrammarError) as refused:
        read(boxed, *words, "true")
    assert refused.value.stderr == "".join(f"srun: error: {text}\n" for text in texts)


def test_elsewhere_they_are_unknown(site: Site) -> None:
    with pytest.raises(GrammarError) as refused:
        sbatch(site, "--container-image=x")
    assert "unrecognized option '--container-image=x'" in refused.value.stderr
    with pytest.raises(GrammarError):
        sbatch(site, script="#!/bin/sh\n#SBATCH --container-image=x\n")


@pytest.mark.parametrize(
    ("asked", "refused"), [((), "own"), (("-p", "own"), "own"), (("-p", "ec2"), None)]
)
def test_a_partition_may_take_none(
    boxed: Site, asked: tuple[str, ...], refused: str | None
) -> None:
    parts = (
        Partition(name="own", default=True, containers=False),
        Partition(name="ec2", containers=True),
    )
    there = replace(boxed, partitions=parts)
    if refused is None:
        assert sbatch(there, IMAGE, *asked).spec.batch is not None
        return
    for program, ask in (("sbatch", sbatch), ("srun", read)):
        words = (IMAGE, *asked, *(("true",) if program == "srun" else ()))
        with pytest.raises(GrammarError) as found:
            ask(there, *words)
        said = f"{program}: error: pyxis: partition {refused} takes no containers\n"
        assert found.value.stderr == said
    assert sbatch(there, *asked).spec.batch is not None
