"""`image_id: docker:IMAGE`: setup and run inside one container for each node of a cluster.

The container is started before the first phase that needs it and stays as long as the machine. It
has the host's network, the user's home and the folder of the task; docker or podman must be there.
"""

from typing import Final

from gateway.translate.skypilot import Task

PREFIX: Final = "docker:"
KEY: Final = "docker"
"""Beside regions in a map: a container on a machine with an image of its own."""
NOT_PASSED = "PATH|HOME|SHELL|USER|LOGNAME|PWD|OLDPWD|SHLVL|TMPDIR|HOSTNAME|LD_LIBRARY_PATH|_"
"""Variables that are the container's own."""
IN_CONTAINER = """\
tool=$(command -v docker || command -v podman) || {{
  echo "spz: neither docker nor podman is on $(hostname): cannot run {image}" >&2; exit 127
}}
name=spz-$SLURM_JOB_ID-$SLURMD_NODENAME key=/tmp/spz-$$
if [ "$("$tool" inspect -f '{{{{.State.Running}}}}' "$name" 2>/dev/null)" != true ]; then
  "$tool" rm -f "$name" >/dev/null 2>&1
  if [ -n "${{SKYPILOT_DOCKER_USERNAME:-}}" ]; then
    printf %s "$SKYPILOT_DOCKER_PASSWORD" | "$tool" login -u "$SKYPILOT_DOCKER_USERNAME" \\
      --password-stdin "${{SKYPILOT_DOCKER_SERVER:-}}" >/dev/null || exit
  fi
  "$tool" run -d --name "$name" --network host --ipc host ${{CUDA_VISIBLE_DEVICES:+--gpus all}} \\
    -v "$HOME:$HOME" -v "$PWD:$PWD" --entrypoint /bin/sh {image} -c 'sleep infinity' \\
    >/dev/null || exit
fi
passed=()
while IFS= read -r -d '' one; do
  case ${{one%%=*}} in {not_passed}) ;; *) passed+=(-e "${{one%%=*}}") ;; esac
done < <(env -0)
trap '"$tool" exec "$name" /bin/sh -c "kill -TERM \\$(cat $key)" 2>/dev/null' TERM
"$tool" exec -i "${{passed[@]}}" -w "$PWD" "$name" /bin/bash -c \\
  'echo $$ > "$0"; f=$(mktemp) && cat > "$f" && exec /bin/bash "$f" </dev/null' "$key" \\
  <<'{word}' &
{text}{word}
wait $!; code=$?
while kill -0 $! 2>/dev/null; do wait $!; code=$?; done
exit $code
"""


def image_of(task: Task) -> str | None:
    """The image of the first alternative that names one; None for machines as they are."""
    for candidate in task.resources.candidates:
        images = candidate.image_id
        named = images if isinstance(images, dict) else {"": images}
        for key, name in named.items():
            if name is not None and (name.startswith(PREFIX) or key == KEY):
                return name.removeprefix(PREFIX)
    return None


def inside(text: str, image: str) -> str:
    """A script that has another run in the container."""
    word = "SPZ_INSIDE"
    while word in text.splitlines():
        word += "_"
    whole = text if text.endswith("\n") else f"{text}\n"
    return IN_CONTAINER.format(image=quoted(image), not_passed=NOT_PASSED, word=word, text=whole)


def quoted(image: str) -> str:
    """For a shell; also inside double quotes, as an image's name has no characters of a shell."""
    kept = [char for char in image if char.isalnum() or char in "._-/:@"]
    return "".join(kept)
