"""Sockets, cores and threads, tasks per GPU and per socket, as a real Slurm counts them."""

import pytest

from gateway.translate.sbatch import Submission
from sbatch_shim.grammar.errors import GrammarError

from .conftest import Submit

SHORTEST = "Invalid time-min specification (exceeds job's time or other limits)"


def asked(sbatch: Submit, *words: str) -> Submission:
    made = sbatch(*words, "--wrap=true")
    assert isinstance(made, Submission)
    return made


@pytest.mark.parametrize(
    ("words", "tasks"),
    [
        (["-B", "1:2:1"], 2),
        (["-B", "1:2", "-n3"], 3),
        (["--cores-per-socket=2"], None),
        (["-N1", "--cores-per-socket=2"], 2),
        (["-N2", "--sockets-per-node=1", "--cores-per-socket=2"], 4),
        (["-N1-2", "--cores-per-socket=2"], None),
    ],
)
def test_a_fixed_number_of_nodes_of_a_shape_has_a_task_for_each_thread(
    sbatch: Submit, words: list[str], tasks: int | None
) -> None:
    assert asked(sbatch, *words).spec.resources.tasks == tasks


@pytest.mark.parametrize("long", ["ntasks-per-gpu", "ntasks-per-tres"])
@pytest.mark.parametrize(
    ("words", "gpus", "tasks"),
    [(["-n4"], 2, 4), (["-N2"], 2, 4), (["-w", "ec2-2"], 1, 2)],
)
def test_tasks_or_nodes_and_tasks_per_gpu_imply_gpus(
    sbatch: Submit, long: str, words: list[str], gpus: int, tasks: int
) -> None:
    found = asked(sbatch, *words, f"--{long}=2", "--mem-per-gpu=1G").spec.resources
    assert [(one.name, one.type, one.count) for one in found.gpus] == [("gpu", None, gpus)]
    assert found.tasks == tasks


def test_no_fewer_gpus_than_nodes_are_asked_for(sbatch: Submit) -> None:
    for words in (["-N2"], ["-w", "ec2-[3-4]"]):
        with pytest.raises(GrammarError, match="--gpus < -N"):
            sbatch("--gpus=1", *words, "--wrap=true")
    assert asked(sbatch, "--gpus=1", "-N1-2")


@pytest.mark.parametrize(
    "words", ["-N1", "-N2", "--ntasks-per-node=2", "-n2", "-B 1", "--gpus=1", "-N2 --gres=gpu:2"]
)
def test_gpus_of_tasks_need_to_know_how_many_tasks_there_are(sbatch: Submit, words: str) -> None:
    assert asked(sbatch, "--gpus-per-task=1", *words.split())
    for few in ("-N1-2", "-w ec2-1", "--gpus=0", "--gres=gpu:2"):
        with pytest.raises(GrammarError, match="used without either --gpus or -n/--ntasks"):
            sbatch("--gpus-per-task=1", *few.split(), "--wrap=true")


LAYOUTS = [
    (["-G4", "--gpus-per-node=2"], (2, 2, None, None)),
    (["-N1-2", "-G4", "--gpus-per-node=2"], (2, 2, None, None)),
    (["-G4", "--gpus-per-task=1"], (None, None, 4, None)),
    (["-G4", "--gpus-per-node=2", "--gpus-per-task=1", "-n4"], (2, 2, 4, 2)),
    (["-N2", "-n4", "--gpus-per-node=2", "--gpus-per-task=1"], (2, 2, 4, 2)),
    (["-N2", "-n3", "--gres=gpu:2", "--gpus-per-task=1"], (2, 2, 4, 2)),
    (["-n4", "--gpus-per-node=2", "--gpus-per-task=1"], (None, None, 4, 2)),
    (["-N2", "--gpus-per-node=2", "--ntasks-per-gpu=1"], (2, 2, 4, None)),
    (["--gres=gpu:2", "--ntasks-per-gpu=2"], (None, None, 4, None)),
    (["-G2", "--ntasks-per-gpu=2", "-n2"], (None, None, 4, None)),
    (["-G2", "--ntasks-per-gpu=2", "-n8"], (None, None, 8, None)),
    (["-G4", "--gpus-per-socket=2", "--sockets-per-node=1"], (2, 2, None, None)),
    (["-G4", "--gpus-per-socket=3", "--sockets-per-node=1"], (None, None, None, None)),
    (["-Ga10g:2", "--gres=gpu:h100:1"], (None, None, None, None)),
]


@pytest.mark.parametrize(("words", "layout"), LAYOUTS, ids=[" ".join(row[0]) for row in LAYOUTS])
def test_gpus_asked_for_in_several_ways_are_the_same_and_say_how_many_nodes_and_tasks(
    sbatch: Submit, words: list[str], layout: tuple[int | None, ...]
) -> None:
    found = asked(sbatch, *words).spec.resources
    shown = found.min_nodes, found.max_nodes, found.tasks, found.tasks_per_node
    assert shown == layout


AT_ODDS = [
    ("--gpus=1 --gpus-per-node=2", "Failed to ensure --gpus >= --gres=gpu/--gpus-per-node >= "),
    ("--gpus=2 --gpus-per-task=4", "Failed to ensure --gpus >= --gres=gpu/--gpus-per-node >= "),
    ("--gres=gpu:1 --gpus-per-task=2", "Failed to ensure --gpus >= --gpus-per-task"),
    ("--gres=gpu:1 --gpus-per-socket=2", "Failed to ensure --gpus >= --gpus-per-task"),
    ("--gpus=3 --gres=gpu:2", "--gpus is not multiple of --gres=gpu/--gpus-per-node"),
    ("-N3 --gpus=4 --gpus-per-node=2", "required nodes (2) doesn't fall between min_nodes (3)"),
    ("--gpus=4 --gpus-per-task=3", "--gpus not multiple of --gpus-per-task"),
    ("--gpus=4 --gpus-per-task=1 -n2", "number of requested tasks differ from -n/--ntasks."),
    ("--gpus=2 --gpus-per-task=1 --ntasks-per-node=1", "differ from -n/--ntasks."),
    (
        "--gres=gpu:3 --gpus-per-socket=2 --sockets-per-node=1",
        "--gres=gpu/--gpus-per-node not multiple of --gpus-per-socket.",
    ),
    (
        "--gres=gpu:2 --gpus-per-socket=1 --sockets-per-node=1",
        "required number of sockets differ from --sockets-per-node.",
    ),
    ("--gres=gpu:3 --gpus-per-task=2 -n1", "not multiple of --gpus-per-task."),
    (
        "--gres=gpu:2 --gpus-per-task=1 --ntasks-per-node=1",
        "number of tasks per node differ from --ntasks-per-node.",
    ),
    (
        "--gpus-per-socket=3 --gpus-per-task=2 --sockets-per-node=1 -n2",
        "--gpus-per-socket not multiple of --gpus-per-task.",
    ),
    (
        "--gpus-per-socket=2 --gpus-per-task=1 --sockets-per-node=1 -n2 --ntasks-per-socket=1",
        "number of tasks per sockets differ from --ntasks-per-socket.",
    ),
    ("--ntasks-per-gpu=2 -n3", "-n/--ntasks has to be a multiple of --ntasks-per-gpu."),
    ("--ntasks-per-gpu=2 -N2 -n2", "--gpus < -N"),
    (
        "--ntasks-per-gpu=1 --gpus-per-task=1",
        "fatal: --gpus-per-task is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER",
    ),
    (
        "--ntasks-per-gpu=1 --gpus-per-socket=1",
        "fatal: --gpus-per-socket is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS",
    ),
]


@pytest.mark.parametrize(("line", "said"), AT_ODDS)
def test_gpus_that_are_at_odds_are_refused_in_slurms_words(
    sbatch: Submit, line: str, said: str
) -> None:
    with pytest.raises(GrammarError) as refused:
        sbatch(*line.split(), "--wrap=true")
    assert said in refused.value.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["-Ga10g:2", "--gpus-per-node=2"],
        ["--gres=gpu:1", "--gpus=a10g:1"],
        ["--gres=gpu:a10g:1", "--gpus-per-node=1"],
    ],
)
def test_gpus_with_and_without_a_type_are_not_asked_for_together(
    sbatch: Submit, words: list[str]
) -> None:
    with pytest.raises(GrammarError) as refused:
        sbatch(*words, "--wrap=true")
    said = "sbatch: error: Invalid GRES specification (with and without type identification)\n"
    assert refused.value.stderr == said


SHAPES = [
    (["--hint=compute_bound"], (None, None, 1)),
    (["--hint=memory_bound"], (None, 1, 1)),
    (["--hint=nomultithread", "--sockets-per-node=1"], (None, None, 1)),
    (["--hint=multithread", "--sockets-per-node=1"], (1, None, None)),
    (["-B", "1:4"], (1, 4, None)),
]


@pytest.mark.parametrize(("words", "shape"), SHAPES)
def test_a_hint_decides_on_the_shape_whatever_else_is_asked_of_it(
    sbatch: Submit, words: list[str], shape: tuple[int | None, ...]
) -> None:
    found = asked(sbatch, *words).spec.resources
    assert (found.sockets, found.cores_per_socket, found.threads_per_core) == shape
    assert found.min_cpus_per_node is None


REFUSED = [
    (["--reboot"], 1, "rebooting of nodes is only allowed for admins", "Access/permission denied"),
    (["--nodelist="], 1, "Batch job submission failed: Node count specification invalid"),
    (["-marbitrary"], 1, "With Arbitrary distribution you need to specify a nodelist"),
    (["-mplane"], 255, "Invalid plane size or size not specified", "Invalid --distribution spec"),
    (["--gpu-bind=x"], 255, "Invalid --gpu-bind argument: x\n"),
    (["--gpu-freq=x"], 255, "Invalid --gpu-freq argument: gpu:x\n"),
    (["--mem-bind=x"], 255, 'unrecognized --mem-bind argument "x"\n'),
    (["--profile=x"], 255, "invalid --profile=x option\n"),
    (["--hint=x"], 1, 'unrecognized --hint argument "x", see --hint=help\n'),
    (["--acctg-freq=x"], 255, "Invalid --acctg-freq specification: x\n"),
    (["--gres-flags=x"], 255, "Invalid --gres-flags specification\n"),
    (["--switches=0"], 1, 'Invalid numeric value "0" for --switches.\n'),
    (["--thread-spec=0"], 1, 'Invalid numeric value "0" for --thread-spec.\n'),
    (["--sockets-per-node=x"], 1, 'Invalid numeric value "x" for --sockets-per-node.\n'),
    (
        ["--ntasks-per-node=2", "--ntasks-per-gpu=1"],
        1,
        "fatal: --ntasks-per-node is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER",
    ),
    (
        ["--ntasks-per-tres=1", "--ntasks-per-gpu=2"],
        1,
        "fatal: Inconsistent values set to --ntasks-per-gpu=2 and --ntasks-per-tres=1 \n",
    ),
    (["--gpus-per-task=1", "--gres=gpu:x"], 1, "Failed to validate job spec."),
    (["--time-min=1-0", "--gpus-per-socket=1"], 1, "requires --sockets-per-node specification"),
]


@pytest.mark.parametrize("row", REFUSED, ids=[" ".join(row[0]) for row in REFUSED])
def test_options_are_refused_in_slurms_words(
    sbatch: Submit, row: tuple[list[str], int, *tuple[str, ...]]
) -> None:
    words, code, *said = row
    with pytest.raises(GrammarError) as refused:
        sbatch(*words, "--wrap=true")
    assert refused.value.code == code
    assert [text for text in said if text not in refused.value.stderr] == []


TAKEN = [
    "--gpu-bind=closest,verbose",
    "--gpu-bind=map_gpu:0,1",
    "--gpu-freq=medium,memory=low",
    "--mem-bind=map_mem:0,1",
    "--profile=task,energy",
    "--acctg-freq=task=30s,energy=10",
    "--gres-flags=enforce-binding",
    "--signal=12@",
    "--core-spec=0",
]


@pytest.mark.parametrize("word", TAKEN)
def test_options_are_taken_in_every_form(sbatch: Submit, word: str) -> None:
    assert asked(sbatch, word)


def test_all_memory_of_a_node_is_asked_for_by_either_option(sbatch: Submit) -> None:
    found = asked(sbatch, "--mem-per-cpu=0").spec.resources
    assert (found.mem_per_node_mib, found.mem_per_cpu_mib) == ("ALL", None)


def test_no_more_named_nodes_than_tasks_are_kept(sbatch: Submit) -> None:
    found = asked(sbatch, "-n1", "-w", "ec2-[3-4]").spec.resources
    assert (found.nodelist, found.min_nodes) == (("ec2-3",), 1)
    assert asked(sbatch, "-w", "ec2-[3-4]").spec.resources.nodelist == ("ec2-3", "ec2-4")


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        (["--time-min=INFINITE"], True),
        (["--time-min=0"], True),
        (["-t0", "--time-min=0"], True),
        (["-t0", "--time-min=60"], False),
        (["-t5", "--time-min=6"], True),
        (["-t5", "--time-min=5"], False),
        (["--time-min=90"], True),
        (["-p", "debug", "--time-min=31"], True),
    ],
)
def test_the_shortest_limit_is_within_the_longest(
    sbatch: Submit, words: list[str], refused: bool
) -> None:
    if not refused:
        assert asked(sbatch, *words)
        return
    with pytest.raises(GrammarError) as error:
        sbatch(*words, "--wrap=true")
    assert SHORTEST in error.value.stderr
