"""Every flag that a user of SkyPilot may have typed is known to our verb of that name."""

from collections.abc import Callable

import pytest

from gateway.sdk.verbs import options
from gateway.sdk.verbs.line import PAIR
from gateway.sdk.verbs.table import BY_NAME
from gateway.translate import skypilot_values

OVERRIDES = (
    "--infra --gpus --cpus --memory -t --disk-size --disk-tier --network-tier --local-disk "
    "--use-spot --no-use-spot --image-id --ports --num-nodes --priority "
    "-n --workdir --git-url --git-ref --env --env-file --secret --secret-file -d"
)
FLAGS = {
    "launch": f"-c {OVERRIDES} -i --wait-for --down -r --no-setup --fast --resize "
    "--clone-disk-from --dryrun -y --async",
    "exec": f"-c {OVERRIDES} --async",
    "status": "-v -r --ip --endpoint --endpoints -u --no-show-managed-jobs -o",
    "queue": "-u -s -o",
    "logs": "--provision --hook --worker -s --status --no-follow --tail",
    "cancel": "-a -u -y --async",
    "stop": "-a -u -y --graceful --graceful-timeout --async",
    "start": "-a -i --down -r -f -y --async",
    "down": "-a -u -p --purge -y --graceful --graceful-timeout --async",
    "autostop": "-a -i --down --cancel --wait-for -y",
    "check": "-v -o",
    "gpus list": "-a --infra --all-regions -o",
    "cost-report": "-a --days -o",
    "jobs launch": f"{OVERRIDES} --job-recovery -p --num-jobs --job-group -y --async",
    "jobs queue": "-l -r --skip-finished -s --since --after --before --infra -u -a -o",
    "jobs cancel": "-n -p --task -a -u --graceful -y",
    "jobs logs": "-n --controller --no-follow --tail -s",
    "jobs pool apply": "-p --workers -y",
}


@pytest.mark.parametrize("verb", FLAGS)
def test_a_verb_takes_each_flag_of_skypilots(verb: str) -> None:
    known = set()
    for opt in BY_NAME[verb].options:
        names = opt.names.split()
        known.update(names)
        if opt.kind == PAIR:
            known.update(f"--no-{name.removeprefix('--')}" for name in names)
    assert set(FLAGS[verb].split()) - known == set()


CHOICES = {
    "launch": {
        "--disk-tier": "low medium high ultra best none",
        "--network-tier": "standard best",
        "--wait-for": "jobs_and_ssh jobs none",
    },
    "exec": {"--disk-tier": "low medium high ultra best none", "--network-tier": "standard best"},
    "start": {"--wait-for": "jobs_and_ssh jobs none"},
    "autostop": {"--wait-for": "jobs_and_ssh jobs none"},
    "status": {"--output": "table json"},
    "jobs pool apply": {"--mode": "rolling blue_green"},
}


@pytest.mark.parametrize("verb", CHOICES)
def test_an_option_of_few_words_knows_skypilots(verb: str) -> None:
    known = {opt.names.split()[-1]: set(opt.choices) for opt in BY_NAME[verb].options}
    for name, words in CHOICES[verb].items():
        assert set(words.split()) - known[name] == set()


@pytest.mark.parametrize(
    ("words", "reader"),
    [
        (options.DISK_TIERS, skypilot_values.disk_tier),
        (options.NETWORK_TIERS, skypilot_values.network_tier),
        (options.WAITS, skypilot_values.WAITS),
    ],
)
def test_an_option_takes_the_words_that_a_task_file_takes(
    words: tuple[str, ...], reader: Callable[[object], str]
) -> None:
    with pytest.raises(ValueError, match=f"is none of {', '.join(words)}$"):
        reader("?")
