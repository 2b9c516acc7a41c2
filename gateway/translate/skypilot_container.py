"""`image_id: docker:IMAGE`: setup and run inside one container for each node of a cluster.

It is kept as long as the cluster and has the user's home and the folder of the task; who runs in it
is root there, as in SkyPilot's.
"""

from typing import Final

from broker.model.spec import Container
from gateway.translate.skypilot import Candidate, Task
from gateway.translate.skypilot_supply import served

PREFIX: Final = "docker:"
KEY: Final = "docker"
"""Beside regions in a map: a container on a machine with an image of its own."""
NAME: Final = "task"
CREDENTIALS: Final = (
    "SKYPILOT_DOCKER_USERNAME",
    "SKYPILOT_DOCKER_PASSWORD",
    "SKYPILOT_DOCKER_SERVER",
)


def container_of(task: Task, folder: str | None) -> Container | None:
    """None for machines as they are; it begins in `folder`, if not in the cluster's own."""
    image = image_of(task)
    if image is None:
        return None
    return Container(
        image=image,
        workdir=folder,
        home=True,
        name=NAME,
        root=True,
        credentials=CREDENTIALS,
        options=task.docker.run_options,
    )


def image_of(task: Task) -> str | None:
    """The image of the first alternative, which is that of all; None for machines as they are.

    Those on other clouds do not count, unless there are no others.
    """
    first, *_ = served(task) or task.resources.candidates
    return own_image(first)


def own_image(candidate: Candidate) -> str | None:
    """The container's image that one alternative names."""
    images = candidate.image_id
    named = images if isinstance(images, dict) else {"": images}
    for key, name in named.items():
        if name is not None and (name.startswith(PREFIX) or key == KEY):
            return name.removeprefix(PREFIX)
    return None
