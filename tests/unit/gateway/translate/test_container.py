"""pyxis's options: taken where a site says so, unknown everywhere else."""

# ruff: noqa: E501 - a row stays on one line

from dataclasses import replace

import pytest

from broker.model.site import Site
from broker.model.spec import Container
from gateway.translate.sbatch import Setting, Submission, translate
from gateway.translate.srun import step
from sbatch_shim.grammar.errors import GrammarError

from .conftest import NOW, UIDS, GivenFile, Typed
from .test_srun import job, read


@pytest.fixture
def boxed(site: Site) -> Site:
    return replace(site, containers=True)


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
    words = ("--container-image", TAKEN.image, MOUNTS, "--container-workdir=/mnt", "true")
    made = step(read(boxed, *words, environ={"SLURM_JOB_ID": "700001"}), job(4), None)
    assert made.container == TAKEN.model_copy(update={"home": False})


def test_what_has_no_effect_is_named(boxed: Site) -> None:
    made = sbatch(boxed, "--container-image=x", "--container-name=kept")
    assert "--container-name has no effect here and is ignored" in made.stderr


# fmt: off
REFUSED = {
    "no image":  (["--container-mounts=/a:/b"], "pyxis: --container-mounts needs --container-image"),
    "relative":  (["--container-image=x", "--container-mounts=a:/b"], "pyxis: --container-mounts: 'a:/b' is not SRC:DST[:FLAGS] with absolute paths"),
    "colons":    (["--container-image=x", "--container-mounts=/a:/b:ro:rw"], "pyxis: --container-mounts: '/a:/b:ro:rw' is not SRC:DST[:FLAGS] with absolute paths"),
    "workdir":   (["--container-image=x", "--container-workdir=b"], "pyxis: --container-workdir: 'b' is no absolute path"),
    "an option": (["--container-image=--privileged"], "pyxis: --container-image: '--privileged' is no image"),
}
# fmt: on


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_refused_before_anything_is_allocated(boxed: Site, what: str) -> None:
    words, text = REFUSED[what]
    with pytest.raises(GrammarError) as refused:
        sbatch(boxed, *words)
    assert refused.value.stderr == f"sbatch: error: {text}\n"
    with pytest.raises(GrammarError) as refused:
        read(boxed, *words, "true")
    assert refused.value.stderr == f"srun: error: {text}\n"


def test_elsewhere_they_are_unknown(site: Site) -> None:
    with pytest.raises(GrammarError) as refused:
        sbatch(site, "--container-image=x")
    assert "unrecognized option '--container-image=x'" in refused.value.stderr
    with pytest.raises(GrammarError):
        sbatch(site, script="#!/bin/sh\n#SBATCH --container-image=x\n")
