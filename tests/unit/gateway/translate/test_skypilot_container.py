"""Which image a task runs in, and what of it does."""

import pytest

from broker.model.errors import BadSpec
from gateway.translate.skypilot import read
from gateway.translate.skypilot_container import CREDENTIALS, image_of
from gateway.translate.skypilot_notes import notes
from gateway.translate.skypilot_run import run_of
from gateway.translate.skypilot_task import translate

from .tasks import ORIGIN


@pytest.mark.parametrize(
    ("resources", "image"),
    [
        ("{image_id: 'docker:nvcr.io/a/b:1'}", "nvcr.io/a/b:1"),
        ("{image_id: ami-1}", None),
        ("{image_id: {us-east-1: 'docker:x'}}", "x"),
        ("{image_id: {us-east-1: ami-1, docker: 'debian:12'}}", "debian:12"),
        ("{image_id: {us-east-1: ami-1, docker: 'docker:debian'}}", "debian"),
        ("{any_of: [{image_id: 'docker:x'}]}", "x"),
        ("{any_of: [{infra: k8s, image_id: 'docker:x'}, {infra: aws}]}", None),
        ("{any_of: [{infra: k8s, image_id: 'docker:x'}, {image_id: 'docker:y'}]}", "y"),
        ("{any_of: [{infra: aws}, {image_id: 'docker:x'}]}", None),
        ("{}", None),
    ],
)
def test_the_image_is_the_first_alternatives(resources: str, image: str | None) -> None:
    (task,) = read(f"resources: {resources}")
    assert image_of(task) == image


@pytest.mark.parametrize(
    ("first", "second", "left", "told"),
    [
        ("docker:a", "docker:a", 2, None),
        ("docker:a", "docker:b", 1, "in other containers than a"),
        ("docker:a", "ami-1", 1, "in other containers than a"),
        ("ami-1", "docker:b", 1, "in containers"),
    ],
)
def test_no_alternative_runs_in_the_container_of_another(
    first: str, second: str, left: int, told: str | None
) -> None:
    each = ((first, "us-east-1"), (second, "us-west-2"))
    places = ", ".join(f"{{infra: aws/{place}, image_id: '{name}'}}" for name, place in each)
    (task,) = read(f"resources: {{any_of: [{places}]}}\nrun: x")
    made = translate(task, ORIGIN, cluster="c")
    assert len(made.spec.resources.any_of) == left
    why = "are left out, setup and run are in that of the first"
    assert told is None or f"resources.image_id: alternatives {told} {why}" in made.notes


TASK = """
resources: {image_id: 'docker:debian'}
file_mounts: {/data: /src}
setup: echo setup
run: echo run
"""


def test_setup_and_run_are_inside_and_what_lays_out_files_is_not() -> None:
    (task,) = read(TASK)
    step = run_of(task, cluster="c", origin=ORIGIN).step
    assert step.container is not None
    assert (step.container.image, step.container.credentials) == ("debian", CREDENTIALS)
    assert step.container.home and step.container.root
    inner = [one.argv[one.inside :] if one.inside is not None else None for one in step.phases]
    assert inner == [None, ("/bin/bash", None), ("/bin/bash", None)]


def test_a_task_on_machines_as_they_are_has_no_container() -> None:
    (task,) = read("run: echo run")
    assert run_of(task, cluster="c", origin=ORIGIN).step.container is None


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (
            "config: {docker: {run_options: ['-v /a:/b', '--shm-size=2g']}}",
            "-v /a:/b --shm-size=2g",
        ),
        ("config: {docker: {run_options: --privileged}}", "--privileged"),
        ("experimental: {config_overrides: {docker: {run_options: [-i]}}}", "-i"),
        ("config: {docker: {run_options: null}}", ""),
        ("config: {}", ""),
    ],
)
def test_options_of_docker_are_words_for_its_container(config: str, words: str) -> None:
    (task,) = read(f"{TASK}{config}\n")
    container = run_of(task, cluster="c", origin=ORIGIN).step.container
    assert container is not None
    assert container.options == tuple(words.split())
    assert not [note for note in notes(task) if "docker" in note]


def test_they_are_told_of_where_there_is_no_container_and_refused_where_they_are_no_words() -> None:
    (task,) = read("run: x\nconfig: {docker: {run_options: [--privileged]}}")
    told = "config.docker.run_options: ignored, the task is in no container"
    assert told in list(notes(task))
    with pytest.raises(BadSpec, match="No closing quotation"):
        read('config: {docker: {run_options: ["-e \'x"]}}')
