"""GPUs and other resources in the site's names."""

import pytest

from broker.model.site import Site
from gateway.translate.gres import Spelling, help_text
from sbatch_shim.grammar.errors import GrammarError
from sbatch_shim.grammar.resources import Item

from .conftest import Submit


@pytest.mark.parametrize(
    ("typed", "spelled"),
    [("A10G", "a10g"), ("a10g", "a10g"), ("nvidia_a10g", "a10g"), ("H100", "h100"), (None, None)],
)
def test_types_of_gpus_are_matched_in_any_case_and_spelled_as_nodes_have_them(
    site: Site, typed: str | None, spelled: str | None
) -> None:
    assert Spelling(site).type(typed) == spelled


def test_types_that_can_be_bought_are_known_too(site: Site) -> None:
    assert Spelling(site, ["a100-80gb"]).type("A100_80GB") == "a100-80gb"


def test_a_resource_asked_twice_counts_once_and_one_asked_0_times_not_at_all(site: Site) -> None:
    items = [Item("gpu", None, 1), Item("gpu", None, 2), Item("gpu", "A10G", 0)]
    assert [(gres.label(), gres.count) for gres in Spelling(site).gres(items)] == [("gpu", 2)]


def test_gres_help_lists_the_names(site: Site) -> None:
    assert help_text(Spelling(site)) == "Valid gres options are:\ngpu[[:type]:count]\n"


@pytest.mark.parametrize(
    ("argv", "gres", "gpus", "by_task"),
    [
        (["--gres=gpu:2"], ["gpu:2"], [], []),
        (["--gres=gpu:A10G:1"], ["gpu:a10g:1"], [], []),
        (["--gres=gpu:1", "--gpus-per-node=2"], ["gpu:1"], [], []),
        (["--gpus=4", "--gpus-per-node=2"], ["gpu:2"], [], []),
        (["--gpus-per-socket=1", "--sockets-per-node=2"], ["gpu:2"], [], []),
        (["-G", "a10g:2"], [], ["gpu:a10g:2"], []),
        (["-n2", "--gpus-per-task=1"], [], [], ["gpu:1"]),
        (["-n2", "--tres-per-task=cpu=2,gres/gpu:a10g=1"], [], [], ["gpu:a10g:1"]),
        (["-G", "2", "--gpus-per-task=1"], [], [], ["gpu:1"]),
        (["--gres=none"], [], [], []),
    ],
)
def test_options_become_resources_of_node_job_and_task(
    sbatch: Submit, argv: list[str], gres: list[str], gpus: list[str], by_task: list[str]
) -> None:
    asked = sbatch(*argv, "--wrap", "true").spec.resources  # type: ignore[union-attr]
    found = [
        [f"{one.label()}:{one.count}" for one in part]
        for part in (asked.gres, asked.gpus, asked.gpus_per_task)
    ]
    assert found == [gres, gpus, by_task]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--gres=GPU:1"], "Invalid generic resource (gres) specification"),
        (["--gres=gres:gpu:1"], "Invalid generic resource (gres) specification"),
        (["--gres=gpu:x:y:z"], "Invalid Trackable RESource (TRES) specification"),
        (["--mem-per-gpu=1G"], "Requested mem_per_tres=gres/gpu:1024 but did not request any GPU."),
        (["--cpus-per-gpu=3"], "Requested cpus_per_tres=gres/gpu:3 but did not request any GPU."),
        (["--gpus-per-task=1"], "Failed to validate job spec. --gpus-per-task or --tres-per-task"),
        (["--ntasks-per-gpu=1"], "gres_job_state_validate: --ntasks-per-tres needs either a GRES"),
        (["--gpus-per-socket=1"], "--gpus-per-socket option requires --sockets-per-node"),
    ],
)
def test_what_no_node_could_have_is_refused(sbatch: Submit, argv: list[str], said: str) -> None:
    with pytest.raises(GrammarError) as refused:
        sbatch(*argv, "--wrap", "true")
    assert refused.value.code == 1
    assert refused.value.stderr.startswith(f"sbatch: error: {said}")
