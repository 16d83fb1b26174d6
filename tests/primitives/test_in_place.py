"""A result that would be written where an input is still read."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import PlanError
from tests.conformance.running import Conforming
from tests.support.cases import read


def numbers(*dims: int) -> Any:
    return np.random.default_rng(1).standard_normal(dims).astype(np.float32)


def test_an_output_of_another_descriptor_takes_no_inputs_place(isa: str) -> None:
    """The mean at the start of src would be written while src is read."""
    src, mean = dnn.MemoryDesc((8, 8), dnn.f32, "ab"), dnn.MemoryDesc((8,), dnn.f32, "a")
    desc = dnn.LayerNormForward(dnn.PropKind.forward_training, src, src, mean=mean, variance=mean)
    primitive = dnn.Primitive(dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa)))
    assert primitive.pd.plan.in_place == (("src", "dst"),)
    x = dnn.Memory.from_numpy(numbers(8, 8), src)
    start = dnn.Memory(mean, x.array[:8])
    with pytest.raises(dnn.InvalidArguments, match="mean overlaps src"):
        primitive.execute(src=x, dst=dnn.Memory(src), mean=start, variance=dnn.Memory(mean))


@pytest.mark.parametrize("words", [
    "--bnorm --dir=BWD_DW --flags=CHA mb3ic19ih2iw5", "--bnorm --dir=BWD_DW --tag=axb --flags=CHA mb3ic19ih2iw5",
    "--bnorm --dir=BWD_D --flags=R mb2ic16ih4", "--bnorm --dir=BWD_D --flags=A mb2ic16ih4",
    "--bnorm --dir=BWD_DW --flags=GCHA mb2ic16ih4", "--lnorm --dir=BWD_DW --flags=CH 7x40",
    "--prelu --dir=BWD_DW 2x19x5:2x19x5", "--prelu --dir=BWD_DW 2x19x5:1x19x1",
])  # fmt: skip
def test_every_input_in_the_place_of_every_output_that_it_may_have(words: str, isa: str) -> None:
    """The result is that of memory of its own, for each of several outputs of one descriptor."""
    (case,) = read(words)
    conforming = Conforming(case)
    pd = conforming.planned(isa, threads=2)
    plan, primitive, compared = pd.plan, dnn.Primitive(pd), 0
    for name, output in plan.in_place:
        apart, shared = conforming.memories(pd), conforming.memories(pd)
        apart[output].array[...] = apart[name].array
        shared[output] = shared[name]
        for memories in (apart, shared):
            primitive.execute(**memories)
        assert all(np.array_equal(shared[x].array, apart[x].array) for x in plan.outputs), (name, output)
        compared += 1
    assert compared


@pytest.mark.parametrize(("words", "pairs"), [
    ("--prelu --dir=BWD_DW 2x19x5:2x19x5", {("src", "diff_src"), ("diff_dst", "diff_src")}),
    ("--prelu --dir=BWD_DW 2x19x5:1x19x1", {("src", "diff_src"), ("diff_dst", "diff_src")}),
    ("--bnorm --dir=BWD_DW --flags=CHA mb3ic19ih2iw5",
     {("src", "diff_src"), ("diff_dst", "diff_src"), ("diff_dst", "diff_src_1")}),
    ("--bnorm --dir=FWD_D mb1ic19iw1", {("src", "dst")}),
])  # fmt: skip
def test_which_input_may_be_which_output(words: str, pairs: set[tuple[str, str]], planned_isa: str) -> None:
    (case,) = read(words)
    assert {*Conforming(case).planned(planned_isa).plan.in_place} == pairs


def test_the_proof_finds_an_input_that_is_read_after_its_place_was_written() -> None:
    (case,) = read("--bnorm --dir=BWD_DW --flags=CHA mb3ic19ih2iw5")
    plan = Conforming(case).planned("avx2").plan
    plan.check()
    with pytest.raises(PlanError, match="src is read after diff_src_1, whose memory it may be, was written"):
        replace(plan, in_place=(("src", "diff_src_1"), *plan.in_place)).check()


@pytest.mark.parametrize("words", [
    "--ip --dt=u8:s8:bf16 --attr-scales=wei:per_oc --bia-dt=bf16 mb1ic79ih3oc4",
    "--ip --dt=u8:s8:f32 --attr-scales=wei:per_oc --bia-dt=f32 mb1ic79ih3oc4",
    "--conv --dt=u8:s8:f32 --attr-scales=wei:per_oc --bia-dt=f32 mb1ic64ih1oc64oh1kh1",
])  # fmt: skip
def test_a_bias_of_other_dims_is_not_dst(words: str, planned_isa: str) -> None:
    """Though the row of a matrix that it is has dst's."""
    (case,) = read(words)
    plan = Conforming(case).planned(planned_isa).plan
    assert ("bias", "dst") not in plan.in_place
    plan.check()
