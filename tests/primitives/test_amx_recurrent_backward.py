"""Gradients of recurrent layers of bf16 whose products tiles of AMX take, emulated, and where a CPU has them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.isa.dot import BF16
from asmdnn.primitives.recurrent.backward import kernel_format
from asmdnn.primitives.recurrent.backward_factors import packed_of
from tests.primitives.recurrent_backward_case import (
    backward,
    check_gradients,
    gradients,
    is_written,
    training_data,
)
from tests.primitives.recurrent_case import (
    CELLS,
    CONCAT,
    DIRECTIONS,
    RIGHT2LEFT,
    SUM,
    Arrays,
    describe,
    memories_of,
    numbers_of,
    of_type,
)
from tests.primitives.test_amx_recurrent import EMULATED, ENGINE, ISA, LARGE, halves
from tests.support.plans import emulate_plan, proved_desc

STATES = ("diff_src_iter", "diff_src_iter_c")


def emulated(desc: Any, data: Arrays, engine: dnn.Engine) -> Arrays:
    """What a plan computes."""
    pd = proved_desc(desc, engine=engine)
    memories = memories_of(pd.plan.tensors, data)
    emulate_plan(pd.plan, memories)
    return {name: numbers_of(memories[name]) for name in pd.plan.outputs}


def emulated_data(forward: Any) -> Arrays:
    return training_data(forward, ENGINE, run=emulated)


def gradient_of(forward: Any) -> Any:
    """The backward pass, with weights packed for tiles, which are taken then, however few rows there are."""
    desc = backward(forward)
    packed = {name: kernel_format(name, getattr(desc, name), ENGINE, BF16) for name in packed_of(desc)}
    return replace(desc, **packed)


def check(desc: Any, data: Arrays, lengths: tuple[int, ...] = ()) -> dnn.PrimitiveDesc:
    """Emulate the plan, which multiplies by tiles, and compare every gradient."""
    pd = proved_desc(desc, engine=ENGINE)
    assert pd.implementation.removeprefix("reorder+") == f"pairs+amx:{ISA}", pd.refusals
    found = emulated(desc, {name: x for name, x in data.items() if not is_written(name)}, ENGINE)
    for name, wanted in gradients(desc, data, np.array(lengths) if lengths else None).items():
        assert (np.abs(found[name] - wanted.value) <= wanted.bound).all(), name
    return pd


@EMULATED
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("kind", CELLS)
def test_cells(kind: type, direction: str) -> None:
    """Rows of an odd number of pairs, and of single ones; panels that end, and gates within one; several layers."""
    rows, hidden = {CONCAT: (17, 22), SUM: (32, 16), RIGHT2LEFT: (21, 34)}.get(direction, (19, 40))
    layers, steps = (2, 2) if direction in (CONCAT, SUM) else (1, 3)
    forward = halves(kind, (steps, rows, 5, hidden), layers, direction)
    check(gradient_of(forward), emulated_data(forward))


@EMULATED
@pytest.mark.parametrize("direction", [CONCAT, SUM])
def test_after_a_training_pass_by_tiles(direction: str) -> None:
    """What layers hand on is in the workspace as they had it, also where sequences have ended."""
    lengths = (2,) * 16 + (1,) * 16
    forward = halves(dnn.LBRGRUForward, (2, 32, 6, 20), 2, direction, lengths=lengths)
    training = replace(forward, prop_kind=dnn.PropKind.forward_training)
    assert dnn.primitive_desc(training, engine=ENGINE).implementation == f"pairs+amx:{ISA}"
    check(gradient_of(forward), emulated_data(forward), lengths)


@EMULATED
@pytest.mark.parametrize("peephole", [False, True])
def test_projection(peephole: bool) -> None:
    forward = halves(dnn.LSTMForward, (2, 17, 6, 18), 1, peephole=peephole, projection=12)
    check(gradient_of(forward), emulated_data(forward))


@EMULATED
@pytest.mark.parametrize("kind", [dnn.LSTMForward, dnn.GRUForward])
def test_sequences_of_different_lengths(kind: type) -> None:
    """Padded ones; steps of few rows are left to vectors."""
    lengths = (2,) * 17 + (1, 2)
    forward = halves(kind, (2, 19, 6, 20), lengths=lengths)
    check(gradient_of(forward), emulated_data(forward), lengths)


@EMULATED
def test_types_of_gradients() -> None:
    """What comes from the next layers may be bf16, what is written is rounded once."""
    forward = halves(dnn.GRUForward, (2, 17, 6, 20), states=False)
    desc, data = gradient_of(forward), emulated_data(forward)
    pd = check(desc, data)
    assert pd.plan.tensors["dst_layer"].dtype == dnn.bf16
    assert pd.plan.tensors["weights_iter"].tag == "abCdE32c2e"
    rounded = replace(desc, diff_src_layer=of_type(desc.diff_src_layer, dnn.bf16))
    assert dnn.primitive_desc(rounded, engine=ENGINE).implementation == f"reorder+pairs+amx:{ISA}"


@pytest.mark.isa(ISA)
@pytest.mark.parametrize("kind", CELLS)
def test_every_number_of_threads_gives_the_same_bits(kind: type) -> None:
    forward = halves(kind, (3, 33, 40, 72), 2, CONCAT)
    data, desc = training_data(forward, LARGE), gradient_of(forward)
    results = [check_gradients(desc, data, replace(ENGINE, threads=threads)) for threads in (1, 2, 3)]
    for other in results[1:]:
        for name, array in results[0].items():
            np.testing.assert_array_equal(array, other[name], name)


@pytest.mark.parametrize(
    ("desc", "name"),
    [
        (halves(dnn.LSTMForward, (4, 32, 256, 256)), f"pairs+amx:{ISA}"),
        (halves(dnn.GRUForward, (4, 16, 512, 512)), f"pairs+amx:{ISA}"),
        (halves(dnn.LSTMForward, (4, 1, 64, 64)), "reorder+floats:avx512_core"),
        (halves(dnn.LSTMForward, (4, 32, 256, 255)), "reorder+floats:avx512_core"),
        (describe(dnn.LSTMForward, (4, 32, 256, 256)), "floats:avx512_core"),
    ],
)  # fmt: skip
def test_expected_cycles_decide(desc: Any, name: str) -> None:
    pd = dnn.primitive_desc(backward(desc), engine=LARGE)
    assert pd.implementation == name, pd.refusals


def test_why_not() -> None:
    """Of every type that is no pair, and of channels that are none."""
    desc = backward(halves(dnn.LSTMForward, (4, 32, 256, 255)))
    refusals = [str(x) for x in dnn.primitive_desc(desc, engine=LARGE).refusals]
    assert any("255 hidden channels are no whole pairs" in x for x in refusals), refusals
    others = replace(desc, src_layer=of_type(desc.src_layer, dnn.f32))
    refusals = [str(x) for x in dnn.primitive_desc(others, engine=LARGE).refusals]
    assert any(
        "src_layer is f32, weights_layer bf16: tiles take rows and weights of one type" in x for x in refusals
    ), refusals
