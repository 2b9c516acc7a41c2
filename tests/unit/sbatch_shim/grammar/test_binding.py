"""`--cpu-bind` as Slurm reads it."""

import pytest

from sbatch_shim.grammar.binding import BindingError, CpuBind, read_cpu_bind

# fmt: off
READ: dict[str, CpuBind] = {
    "none":                     CpuBind(False, "none", ()),
    "No":                       CpuBind(False, "none", ()),
    "quiet":                    CpuBind(False, "", ()),
    "v,core":                   CpuBind(True, "cores", ()),
    "verbose,rank_ldom":        CpuBind(True, "rank_ldom", ()),
    "verbose,map_cpu:0x2,3,q":  CpuBind(False, "map_cpu", ("2", "3")),
    "mask_cpu:0x1,f*2":         CpuBind(False, "mask_cpu", ("1", "f", "f")),
    "mask_cpu:1,sockets":       CpuBind(False, "sockets", ()),
    "help":                     CpuBind(False, "help", ()),
    "none,threads":             CpuBind(False, "threads", ()),
}
WRONG: dict[str, str] = {
    "boards":       'unrecognized --cpu-bind argument "boards"',
    "v,foo":        'unrecognized --cpu-bind argument "foo"',
    "":             'unrecognized --cpu-bind argument ""',
    "map_cpu:":     'missing list for "--cpu-bind=map_cpu:<list>"',
    "map_cpu:-1":   'unrecognized --cpu-bind argument "map_cpu:-1"',
    "map_cpu:0,x":  'unrecognized --cpu-bind argument "x"',
    "map_cpu:0*99999999999": 'unrecognized --cpu-bind argument "map_cpu:0*99999999999"',
}
# fmt: on


@pytest.mark.parametrize("text", READ)
def test_a_binding_is_read(text: str) -> None:
    assert read_cpu_bind(text) == READ[text]


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_binding_is_refused_in_slurms_words(text: str) -> None:
    with pytest.raises(BindingError) as refused:
        read_cpu_bind(text)
    assert str(refused.value) == WRONG[text]
