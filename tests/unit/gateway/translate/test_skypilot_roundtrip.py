"""Drawn tasks as batch scripts and back, and drawn batch scripts as tasks and back."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.translate.skypilot import read_file
from gateway.translate.skypilot_sbatch import MARK, from_sbatch, to_sbatch, unsaid
from gateway.translate.skypilot_yaml import written
from gateway.translate.staging import read_staging
from tests.unit.gateway.translate.test_skypilot_sbatch import CORPUS, meant

LINES = st.sampled_from(
    [
        *("echo hi", "SPZ_RUN", "SPZ_RUN_", "SPZ_SETUP", "#SBATCH --nodes=9", '#TASK name: "x"'),
        *("#SPZ stage-in=data", "#SPZ checkpoint=ck every=5", "export A=b", "", "  indented\t"),
        *("bash /dev/fd/3 3<<'SPZ_RUN'", "srun --ntasks-per-node=1 bash -s <<'SPZ_RUN'"),
        *('it\'s "q" $X `y` \\', "é ü", "#!/bin/bash", "exit 3", "#TASK not: json"),
    ]
)
SCRIPTS = st.lists(LINES, min_size=1, max_size=5).map("\n".join).filter(str.strip)
WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=9
)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)
VALUES = st.one_of(
    *(WORDS, st.integers(), st.booleans(), st.none()),
    st.sampled_from(["", "a\nb", "x y", "$(z)", "'", '"', "\\", "a\n\nb\n"]),
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "time": st.sampled_from(["1:00:00", "2-00"]),
        "account": st.sampled_from(["lab", "a b"]),
        "array": st.just("0-9%2"),
        "exclusive": st.just(True),
        "constraint": st.just("a&b"),
        "comment": WORDS.filter(lambda word: word.strip() == word and word[0] != "-"),
    },
)
RESOURCES = st.fixed_dictionaries(
    {},
    optional={
        "cpus": st.sampled_from([4, "4+", "8", 2.5, "0.5+"]),
        "memory": st.sampled_from([16, "16+", "64GB", "1024MB", "4x", "32GB+"]),
        "accelerators": st.sampled_from(
            ["A100:8", "L4", {"A10G": 1}, {"A100": 1, "L4": 1}, ["A100:1", "L4:1"], "80GB+:2"]
        ),
        "infra": st.sampled_from(["aws", "aws/us-east-1"]),
        "autostop": st.sampled_from([10, True, {"idle_minutes": 5, "down": True}]),
        "labels": st.dictionaries(NAMES, WORDS, min_size=1, max_size=2),
        "ports": st.sampled_from([80, ["80-90", 22], "8080"]),
        "use_spot": st.booleans(),
    },
)
TASKS = st.fixed_dictionaries(
    {},
    optional={
        "name": WORDS,
        "num_nodes": st.integers(1, 5),
        "workdir": st.sampled_from([".", "~/x y", "/a", {"url": "https://h/r", "ref": "main"}]),
        "setup": SCRIPTS,
        "run": SCRIPTS,
        "envs": st.dictionaries(NAMES, VALUES, min_size=1, max_size=3),
        "resources": RESOURCES,
        "file_mounts": st.just({"/a": "./a", "/b": {"name": "bucket", "mode": "MOUNT"}}),
        "config": st.fixed_dictionaries({"slurm": st.builds(dict, sbatch_options=OPTIONS)}),
        "inputs": st.just({"s3://b": 1}),
    },
)


def bare(value: Any) -> Any:
    """Without groups that hold nothing."""
    if not isinstance(value, dict):
        return value
    return {key: one for key, inner in value.items() if (one := bare(inner)) != {}}


@given(TASKS)
def test_a_drawn_task_survives_being_a_batch_script(tree: dict[str, Any]) -> None:
    told = read_file(written([tree])).trees[0]
    again = from_sbatch(to_sbatch(told), "t.sh")
    assert bare(meant(again)) == bare(meant(dict(told)))


def said(tree: dict[str, Any]) -> list[str]:
    """The script without what sbatch takes for comments of ours."""
    return [line for line in to_sbatch(tree).split("\n") if not line.startswith(MARK)]


def must_be_said_or_told(tree: dict[str, Any]) -> None:
    """Each key with a value changes the script, or is named as one that does not."""
    told, whole = unsaid(tree), said(tree)
    for group in ("", "resources", "config"):
        inner = tree.get(group) if group else tree
        for key, value in (inner if isinstance(inner, dict) else {}).items():
            path = f"{group}.{key}".lstrip(".")
            if path in {"resources", "config"} and isinstance(value, dict):
                continue  # key by key
            less = {name: one for name, one in inner.items() if name != key}
            changes = said({**tree, group: less} if group else less) != whole
            assert changes or path in told or bare({"": value}) in ({}, {"": None}), path


@given(TASKS)
def test_each_key_of_a_drawn_task_is_said_by_the_script_or_told_of(tree: dict[str, Any]) -> None:
    must_be_said_or_told(dict(read_file(written([tree])).trees[0]))


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.yaml")), ids=lambda path: path.stem)
def test_each_key_of_the_corpus_is_said_by_the_script_or_told_of(path: Path) -> None:
    for tree in read_file(path.read_text(encoding="utf-8")).trees:
        must_be_said_or_told(dict(tree))


DIRECTIVES = st.lists(
    st.sampled_from(
        [
            *("-J fit", "--job-name='a b'", "-N 2", "--nodes=1-4", "-n 8", "-c 4", "--mem=32G"),
            *(
                "--mem=1500M",
                "--mem=0",
                "--gres=gpu:a100:4",
                "--gres=gpu:2",
                "--gpus-per-node=l4:1",
            ),
            *("-t 1-00:00:00", "-A lab", "--array=0-9%2", "-o out-%j", "--exclusive", "-D '/w x'"),
            *("--comment=it\\'s", "--requeue", "-p ec2", "--dependency=singleton", "--hold"),
        ]
    ),
    max_size=5,
    unique=True,
)


@given(
    DIRECTIVES, SCRIPTS.filter(lambda text: "<<'SPZ_" not in text and '#TASK name: "x"' not in text)
)
def test_a_drawn_batch_script_says_the_same_after_being_a_task(
    directives: list[str], run: str
) -> None:
    script = "\n".join(["#!/bin/bash", *(f"#SBATCH {one}" for one in directives), run])
    tree = from_sbatch(script, "t.sh")
    made = to_sbatch(tree)
    assert meant(from_sbatch(made, "t.sh")) == meant(tree)
    here, there = (
        read_staging(text, name="t.sh", program="sbatch", cwd="/w") for text in (script, made)
    )
    assert (here.files, here.checkpoint) == (there.files, there.checkpoint)


def test_what_stands_for_the_task_alone_is_a_comment_to_sbatch() -> None:
    made = to_sbatch({"resources": {"use_spot": True}, "run": "#SPZ stage-in=data\necho\n"})
    assert "#TASK resources.use_spot: true\n" in made
    found = read_staging(made, name="t.sh", program="sbatch", cwd="/w")
    assert [mount.source for mount in found.files] == ["/w/data"]
