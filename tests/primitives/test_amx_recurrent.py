"""Recurrent layers whose steps tiles of AMX multiply, emulated: bf16 and bytes, rows of all numbers from 16 on."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.generators.recurrent.amx_step import AmxStepSpec
from asmdnn.isa.levels import AVX512_CORE_AMX
from asmdnn.ops.recurrent import packed_formats
from asmdnn.primitives.core.uses import inside
from asmdnn.records import replace
from tests.conformance.running import Conforming, of_parts
from tests.primitives import test_recurrent_bytes as of_bytes
from tests.primitives import test_recurrent_dynamic as of_dynamic_bytes
from tests.primitives.recurrent_case import (
    CELLS,
    CONCAT,
    DIRECTIONS,
    RIGHT2LEFT,
    SUM,
    answer,
    data_of,
    describe,
    memories_of,
    numbers_of,
    typed,
)
from tests.primitives.test_amx_matmul import ALWAYS
from tests.support.cases import read
from tests.support.plans import emulate_plan, proved_desc

ISA = AVX512_CORE_AMX.name
EMULATED = pytest.mark.emulated(ISA)
TRAINING = dnn.PropKind.forward_training
SLOW_PAIRS = replace(ALWAYS, products=replace(ALWAYS.products, bf16_cycles=99.0, amx_rows=16))
ENGINE = dnn.Engine(isa=ISA, threads=2, l2_bytes=1 << 20, machine="sapphire_rapids", tuning=SLOW_PAIRS)
LARGE = dnn.Engine(isa=ISA, threads=1, machine="sapphire_rapids")


def halves(*words: Any, **more: Any) -> Any:
    return typed(describe(*words, **more), dnn.bf16, dnn.bf16)


def steps_by_tiles(pd: dnn.PrimitiveDesc) -> set[tuple[str, int]]:
    """The cells of these, and rows of their calls."""
    kernels = [inside(spec) for spec in pd.plan.specs]
    return {(x.tile.cell.algorithm, x.tile.rows) for x in kernels if isinstance(x, AmxStepSpec)}


def check(desc: Any, engine: dnn.Engine = ENGINE) -> dnn.PrimitiveDesc:
    """Of bf16."""
    pd, data = proved_desc(desc, engine=engine), data_of(desc)
    assert pd.implementation.removeprefix("reorder+") == f"pairs+amx:{ISA}", pd.refusals
    memories = memories_of(pd.plan.tensors, data)
    emulate_plan(pd.plan, memories)
    for name, wanted in answer(desc, data).items():
        assert (np.abs(numbers_of(memories[name]) - wanted.value) <= wanted.bound).all(), name
    return pd


@EMULATED
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("kind", CELLS)
def test_cells(kind: type, direction: str) -> None:
    """Rows of an odd number of tiles, or of two; depths that end within a tile, or a group; tails of units."""
    rows, hidden = {CONCAT: (19, 21), SUM: (32, 16), RIGHT2LEFT: (35, 33)}.get(direction, (18, 40))
    pd = check(halves(kind, (2, rows, 5, hidden), 1, direction))
    assert {count for _, count in steps_by_tiles(pd)} == {rows}


@EMULATED
@pytest.mark.parametrize("direction", [CONCAT, SUM])
@pytest.mark.parametrize("kind", CELLS)
def test_training(kind: type, direction: str) -> None:
    """Layers hand on bf16, and the workspace has it as f32; test_amx_recurrent_backward.py reads all of that."""
    rows, hidden = {CONCAT: (19, 21), SUM: (32, 16)}[direction]
    check(halves(kind, (2, rows, 5, hidden), 2, direction, prop_kind=TRAINING))


@EMULATED
def test_lstm_with_everything() -> None:
    desc = halves(dnn.LSTMForward, (2, 20, 6, 19), 2, peephole=True, projection=12)
    assert steps_by_tiles(check(desc)) == {("lstm", 20), ("projection", 20)}


@EMULATED
@pytest.mark.parametrize("rows", [66, 97])
def test_many_rows(rows: int) -> None:
    """Calls of up to 64, whose pairs of tiles are a loop; without states at the start."""
    pd = check(halves(dnn.GRUForward, (2, rows, 4, 17), states=False))
    assert {count for _, count in steps_by_tiles(pd)} == {-(-rows // 2), rows // 2}


@EMULATED
@pytest.mark.parametrize("kind", [dnn.LSTMForward, dnn.LBRGRUForward])
def test_sequences_of_different_lengths(kind: type) -> None:
    """Each run of neighbouring sequences has calls of its own; a step with a short one is left to vectors."""
    slow = replace(SLOW_PAIRS, products=replace(SLOW_PAIRS.products, bf16_cycles=2.1))
    for lengths, rows in (((3,) * 17 + (1, 2) + (3,) * 16, {35, 17, 16}), ((2,) * 17 + (1,) + (2,) * 3, {21})):
        desc = halves(kind, (max(lengths), len(lengths), 6, 20), lengths=lengths)
        pd = check(desc, replace(ENGINE, tuning=slow))
        assert {count for _, count in steps_by_tiles(pd)} == rows


@EMULATED
@pytest.mark.parametrize("kind", of_bytes.KINDS)
@pytest.mark.parametrize("direction", DIRECTIONS[:3])
def test_bytes(kind: type, direction: str) -> None:
    desc = of_bytes.described(kind, (2, 18, 6, 35), 1, direction, floats=of_bytes.FLOATS * (direction == CONCAT))
    pd, data = proved_desc(desc, engine=ENGINE), of_bytes.data_of(desc)
    assert pd.implementation == f"bytes+amx:{ISA}"
    assert {count for _, count in steps_by_tiles(pd)} == {18}
    memories = memories_of(pd.plan.tensors, data)
    emulate_plan(pd.plan, memories)
    of_bytes.check(desc, {name: numbers_of(memories[name]) for name in pd.plan.outputs}, data)


@EMULATED
@pytest.mark.parametrize("bare", [False, True])
def test_bytes_of_rows_that_are_rounded_as_they_come(bare: bool) -> None:
    desc, data = of_dynamic_bytes.described((3, 17, 6, 21), 1, of_dynamic_bytes.BOTH, bare)
    pd = proved_desc(desc, engine=ENGINE)
    assert steps_by_tiles(pd) == {("lstm", 17)}
    memories = of_dynamic_bytes.memories_of(pd.plan, data)
    emulate_plan(pd.plan, memories)
    found = {name: memories[name].numpy() for name in pd.plan.outputs}
    of_dynamic_bytes.check(desc, found, data)


@pytest.mark.parametrize(
    ("desc", "name"),
    [
        (halves(dnn.LSTMForward, (4, 32, 256, 256)), f"pairs+amx:{ISA}"),
        (halves(dnn.GRUForward, (4, 16, 512, 512)), f"pairs+amx:{ISA}"),
        (halves(dnn.LSTMForward, (4, 1, 256, 256)), "reorder+floats:avx512_core"),
        (halves(dnn.LSTMForward, (4, 32, 256, 256), prop_kind=TRAINING), f"pairs+amx:{ISA}"),
        (halves(dnn.LSTMForward, (4, 32, 256, 256), projection=64, prop_kind=TRAINING), "reorder+floats:avx512_core"),
        (describe(dnn.LSTMForward, (4, 32, 256, 256)), "floats:avx512_core"),
        (of_bytes.described(dnn.LSTMForward, (4, 32, 256, 256)), f"bytes+amx:{ISA}"),
    ],
)  # fmt: skip
def test_expected_cycles_decide(desc: Any, name: str) -> None:
    pd = dnn.primitive_desc(desc, engine=LARGE)
    assert pd.implementation == name, pd.refusals
    assert bool(steps_by_tiles(pd)) == ("amx" in name)


def test_one_order_of_sums_has_no_tiles_of_floats() -> None:
    desc = halves(dnn.LSTMForward, (4, 32, 256, 256))
    one_order = dnn.primitive_desc(desc, dnn.Attr(deterministic="batch"), LARGE)
    assert one_order.implementation == "reorder+floats:avx512_core"


def test_f32_that_may_be_rounded() -> None:
    """Takes steps by tiles, too; weights that are packed for many sequences serve one."""
    attr, desc = dnn.Attr(fpmath_mode="bf16"), describe(dnn.LSTMForward, (4, 32, 256, 256))
    pd = dnn.primitive_desc(desc, attr, LARGE)
    assert pd.implementation == f"bf16+pairs+amx:{ISA}", pd.refusals
    weights = {name: np.zeros(getattr(desc, name).dims, np.float32) for name in ("weights_layer", "weights_iter")}
    packed = packed_formats(type(desc), weights, LARGE, attr)
    assert {name: packed[name] for name in weights} == {name: pd.plan.tensors[name] for name in weights}
    one = describe(dnn.LSTMForward, (4, 1, 256, 256)).with_formats({name: packed[name] for name in weights})
    assert dnn.primitive_desc(one, attr, LARGE).implementation.startswith("bf16+pairs")


def test_rows_between_steps_are_nobodys() -> None:
    """Of layers that are parts of larger tensors."""
    (case,) = read("--rnn --cfg=u8u8u8f32 --alg=VANILLA_GRU --trivial-strides=true t5mb17sic48")
    desc, attr = Conforming(case).work.describe()
    pd = dnn.primitive_desc(of_parts(desc), attr, dnn.Engine(isa=ISA, threads=2, machine="sapphire_rapids"))
    assert pd.implementation.endswith(f"bytes+amx:{ISA}")
    pd.plan.check()
