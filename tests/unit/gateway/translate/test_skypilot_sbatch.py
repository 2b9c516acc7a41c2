"""A task as a batch script and back, and a batch script as a task and back."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from broker.model.errors import BadSpec
from gateway.translate.skypilot import read_file
from gateway.translate.skypilot_sbatch import from_sbatch, to_sbatch
from gateway.translate.skypilot_yaml import written

CORPUS = Path(__file__).parents[3] / "tables" / "skypilot"
PLAIN = [
    file
    for file in sorted(CORPUS.glob("*.yaml"))
    if "---" not in file.read_text("utf-8") and "secrets" not in file.stem
]


def tree_of(file: Path) -> dict[str, Any]:
    return read_file(file.read_text("utf-8")).trees[0]


def meant(tree: dict[str, Any]) -> dict[str, Any]:
    """Without what is only another way to write it."""
    kept = {key: value for key, value in tree.items() if value not in (None, {})}
    for script in ("setup", "run"):
        if script in kept:
            kept[script] = kept[script].rstrip("\n") + "\n"
    if "envs" in kept:
        kept["envs"] = {k: None if v is None else str(v) for k, v in kept["envs"].items()}
    slurm = (kept.get("config") or {}).get("slurm") or {}
    if "sbatch_options" in slurm:
        options = {k: v if v is True else str(v) for k, v in slurm["sbatch_options"].items() if v}
        kept["config"] = {**kept["config"], "slurm": {**slurm, "sbatch_options": options}}
    return kept


@pytest.mark.parametrize("file", PLAIN, ids=lambda file: file.stem)
def test_a_task_survives_being_a_batch_script(file: Path) -> None:
    tree = tree_of(file)
    assert meant(from_sbatch(to_sbatch(tree), "t.sh")) == meant(tree)


@pytest.mark.parametrize("file", sorted(CORPUS.glob("*.yaml")), ids=lambda file: file.stem)
def test_what_is_written_can_be_read(file: Path) -> None:
    found = read_file(file.read_text("utf-8"))
    assert read_file(written(found.trees)).tasks == found.tasks or "secrets" in file.stem


SCRIPT = """\
#!/bin/bash
#SBATCH -J fit
#SBATCH -N 2 --cpus-per-task=8
#SBATCH --mem=32G --gres=gpu:a100:4
#SBATCH -t 1-00:00:00 -A lab --array=0-9%2
#SBATCH --output=fit-%j.out

module load cuda
srun python fit.py
"""


def test_a_batch_script_becomes_a_task() -> None:
    assert from_sbatch(SCRIPT, "fit.sh") == {
        "name": "fit",
        "num_nodes": 2,
        "resources": {"cpus": "8+", "memory": "32+", "accelerators": "a100:4"},
        "config": {
            "slurm": {
                "sbatch_options": {
                    "time": "1-00:00:00",
                    "account": "lab",
                    "array": "0-9%2",
                    "output": "fit-%j.out",
                }
            }
        },
        "run": "module load cuda\nsrun python fit.py\n",
    }


@pytest.mark.parametrize(
    ("lines", "options"),
    [
        ("--ntasks=4 --cpus-per-task=2", {"ntasks": "4", "cpus-per-task": "2"}),
        ("--nodes=1-4", {"nodes": "1-4"}),
        ("--mem=0", {"mem": "0"}),
        ("--gres=gpu:2", {"gres": "gpu:2"}),
        ("--exclusive", {"exclusive": True}),
        ("--mem=1500M", {}),
    ],
)
def test_what_a_task_cannot_say_stays_an_option(lines: str, options: dict[str, object]) -> None:
    tree = from_sbatch(f"#!/bin/sh\n#SBATCH {lines}\ntrue\n", "x.sh")
    found = tree.get("config", {}).get("slurm", {}).get("sbatch_options", {})
    assert found == options
    again = from_sbatch(to_sbatch(tree), "x.sh")
    assert again == tree


def test_a_script_for_another_interpreter_is_run_by_it() -> None:
    tree = from_sbatch("#!/usr/bin/python3\n#SBATCH -n1\nprint(1)\n", "x.py")
    assert tree["run"] == "/usr/bin/python3 /dev/fd/3 3<<'SPZ_SCRIPT'\nprint(1)\nSPZ_SCRIPT\n"


def test_secrets_are_in_neither() -> None:
    found = read_file("secrets: {TOKEN: hush}\nenvs: {A: it's}\nrun: use")
    script = to_sbatch(found.trees[0])
    assert "hush" not in script + written(found.trees)
    assert "TOKEN:?needs a value" in script
    assert from_sbatch(script, "x.sh")["secrets"] == {"TOKEN": None}
    assert from_sbatch(script, "x.sh")["envs"] == {"A": "it's"}


def test_secrets_are_not_shown_where_they_are_used_either() -> None:
    text = "secrets: {T: hush}\nworkdir: {url: 'https://$T@x/y'}\nfile_mounts: {/a: 's3://b/${T}'}"
    found = read_file(text)
    assert "hush" not in written(found.trees) + to_sbatch(found.trees[0])
    assert found.tasks[0].file_mounts == {"/a": "s3://b/hush"}


def test_what_sbatch_refuses_is_told_in_its_words() -> None:
    with pytest.raises(BadSpec, match="Invalid"):
        from_sbatch("#!/bin/sh\n#SBATCH --time=soon\n", "x.sh")


def test_yaml_keeps_texts_of_several_lines_as_blocks() -> None:
    text = written([{"run": "a\nb\n", "name": "x"}])
    assert text == "run: |\n  a\n  b\nname: x\n"
    assert yaml.safe_load(text)["run"] == "a\nb\n"
