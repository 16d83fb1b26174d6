"""LSTMs and GRUs of bytes, at every level, against the reference in float64 on what the bytes stand for."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.definitions.recurrent.bounded import Bounded
from asmdnn.definitions.recurrent.layers import Net, ReferenceRun
from asmdnn.definitions.recurrent.values import Function, Handed
from tests.primitives.recurrent_case import (
    CONCAT,
    DIRECTIONS,
    NAMES,
    ROWS,
    SUM,
    Arrays,
    compute,
    describe,
    memories_of,
    numbers_of,
    of_type,
)
from tests.primitives.test_amx_matmul import ALWAYS
from tests.primitives.test_amx_matmul import ISA as AMX
from tests.support.plans import emulate_plan

SCALE, SHIFT = DATA = (60.0, 100.0)
PRODUCTS = ("weights_layer", "weights_iter")
KINDS = (dnn.LSTMForward, dnn.GRUForward)
FLOATS = ("src_iter", "dst_iter", "dst_layer")
LEVELS = ("avx2", "avx2_vnni", "avx512_core", "avx512_core_vnni")


def engine(isa: Any) -> dnn.Engine:
    return dnn.Engine(isa=isa, threads=2, l2_bytes=1 << 20)


def described(
    kind: Any, sizes: tuple[int, int, int, int], *more: Any, floats: Any = (), one: bool = False, **words: Any
) -> Any:
    """A layer of bytes; rows in `floats` are f32."""
    plain = describe(kind, sizes, *more, **words)
    types = dict.fromkeys(ROWS, dnn.u8) | dict.fromkeys(PRODUCTS, dnn.s8) | dict.fromkeys(floats, dnn.f32)
    tensors = {name: of_type(x, types.get(name, dnn.f32)) for name, x in plain.tensors().items()}
    count = 1 if one else kind.GATES * sizes[3]
    scales = tuple(np.random.default_rng(1).uniform(80, 120, count).tolist())
    return replace(plain, **tensors, rnn_data_qparams=DATA, rnn_weights_qparams=scales)


def data_of(desc: Any) -> Arrays:
    """Bytes of all values, weights of iterations small enough that gates are not all saturated."""
    random, found = np.random.default_rng(3), {}
    for name, tensor in desc.tensors().items():
        if tensor.dtype == dnn.s8:
            numbers = random.integers(-128, 127, tensor.dims, endpoint=True) // (4 if name == "weights_iter" else 1)
        elif name in ROWS:
            numbers = random.integers(0, 255, tensor.dims, endpoint=True)
            numbers = (numbers - SHIFT) / SCALE if tensor.dtype == dnn.f32 else numbers
        else:
            numbers = random.uniform(-1, 1, tensor.dims)
        found[name] = np.asarray(numbers, np.float32)
    return {name: x for name, x in found.items() if not name.startswith("dst")}


def real(desc: Any, name: str, numbers: Any) -> Any:
    """What bytes stand for."""
    dtype = desc.tensors()[name].dtype
    if dtype == dnn.u8:
        return (numbers.astype(np.float64) - SHIFT) / SCALE
    if dtype != dnn.s8:
        return numbers
    scales = np.array(desc.rnn_weights_qparams)
    return numbers / (scales.reshape(numbers.shape[3:]) if len(scales) > 1 else scales)


def answer(desc: Any, data: Arrays) -> dict[str, Bounded]:
    net = Net(NAMES[desc.NAME], desc.direction.rpartition("_")[2], Function("tanh", hands=Handed(0.0, *DATA)))
    return ReferenceRun(net, {name: real(desc, name, x) for name, x in data.items()}).results


def check(desc: Any, found: Arrays, data: Arrays) -> None:
    for name, wanted in answer(desc, data).items():
        if name in found:
            difference = np.abs(real(desc, name, found[name]) - wanted.value)
            assert (difference <= wanted.bound).all(), f"{name} of {desc}: {difference.max()}"


@pytest.mark.parametrize("isa", [pytest.param(isa, marks=pytest.mark.isa(isa)) for isa in LEVELS])
@pytest.mark.parametrize("kind", KINDS)
def test_directions_and_layers(kind: type, isa: str) -> None:
    for direction in DIRECTIONS[:3]:
        for desc in (
            described(kind, (3, 4, 5, 21), 2, direction),
            described(kind, (2, 1, 7, 40), 1, direction, False, False),
            described(kind, (3, 2, 5, 8), 1, direction, floats=FLOATS, one=True),
            described(kind, (2, 7, 6, 33), 1, direction, floats=("src_layer", "dst_iter")),
        ):
            pd = dnn.primitive_desc(desc, engine=engine(isa))
            pd.plan.check()
            assert pd.implementation == f"bytes:{isa}"
            data = data_of(desc)
            if desc.src_layer.dtype == dnn.f32:
                data["src_layer"] = np.float32(np.rint(data["src_layer"] * SCALE) / SCALE)
            check(desc, compute(desc, data, engine(isa)), data)


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("kind", KINDS)
def test_emulated(kind: type, isa: str) -> None:
    desc = described(kind, (2, 3, 5, 9))
    data = data_of(desc)
    plan = dnn.primitive_desc(desc, engine=engine(isa)).plan
    memories = memories_of(plan.tensors, data)
    emulate_plan(plan, memories)
    check(desc, {name: numbers_of(memories[name]) for name in plan.outputs}, data)


@pytest.mark.emulated(AMX)
@pytest.mark.parametrize("kind", KINDS)
def test_tiles_multiply_the_rows_of_all_steps(kind: type) -> None:
    """Of AMX, from what is expected to be faster on."""
    for direction in DIRECTIONS[:3]:
        desc = described(kind, (2, 3, 5, 9), 1, direction)
        plan = dnn.primitive_desc(desc, engine=replace(engine(AMX), tuning=ALWAYS)).plan
        plan.check()
        assert plan.implementation == f"bytes+amx:{AMX}"
        data = data_of(desc)
        memories = memories_of(plan.tensors, data)
        emulate_plan(plan, memories)
        check(desc, {name: numbers_of(memories[name]) for name in plan.outputs}, data)
    large = dnn.Engine(isa=AMX, machine="sapphire_rapids", threads=1)
    assert dnn.primitive_desc(described(kind, (32, 4, 512, 512)), engine=large).implementation == f"bytes+amx:{AMX}"
    assert dnn.primitive_desc(described(kind, (2, 1, 64, 64)), engine=large).implementation.startswith("bytes:")


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("kind", KINDS)
def test_levels_and_threads_give_the_same_bytes(kind: type) -> None:
    """Sums are exact, so that all levels that run here agree but for the last bits of functions."""
    desc = described(kind, (4, 9, 30, 40), 1, CONCAT)
    data = data_of(desc)
    first, *others = (compute(desc, data, replace(engine("avx2"), threads=n))["dst_layer"] for n in (1, 2, 3))
    for other in others:
        np.testing.assert_array_equal(first, other)


@pytest.mark.isa("avx2")
def test_arrays() -> None:
    """The numbers of the primitive; packed weights give the same bytes."""
    desc = described(dnn.LSTMForward, (3, 2, 5, 8))
    data = data_of(desc)
    src = data["src_layer"].astype(np.uint8)
    weights: Any = {name: data[name].astype(np.int8) for name in PRODUCTS} | {"bias": data["bias"]}
    words = {"rnn_data_qparams": DATA, "rnn_weights_qparams": np.array(desc.rnn_weights_qparams)}
    state = data["src_iter"].astype(np.uint8), data["src_iter_c"]
    dst, h, c = dnn.ops.lstm(src, weights, *state, **words)
    assert (dst.dtype, h.dtype, c.dtype) == (np.uint8, np.uint8, np.float32)
    check(desc, {"dst_layer": dst, "dst_iter": h, "dst_iter_c": c}, data)
    packed = dnn.ops.pack_recurrent("lstm", weights)
    np.testing.assert_array_equal(dnn.ops.lstm(src, packed, *state, **words)[0], dst)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rnn_data_qparams": ()}, "weights_layer is s8, and rnn_data_qparams is not given: it says what bytes stand"),
        ({"rnn_weights_qparams": ()}, "weights_layer is s8, and rnn_weights_qparams is not given"),
        ({"prop_kind": dnn.PropKind.forward_training}, "weights_layer is s8, which inference takes"),
        ({"lengths": (3, 2)}, "weights_layer is s8, which sequences of equal lengths take"),
        ({"bias": dnn.MemoryDesc((1, 1, 4, 8), dnn.bf16, "ldgo")}, "bias is bf16, with weights of s8 it is f32"),
        ({"weights_iter": dnn.MemoryDesc((1, 1, 8, 4, 8), dnn.f32, "any")}, "weights_iter is f32, weights_layer s8"),
    ],
)
def test_refusals(change: dict[str, Any], says: str) -> None:
    with pytest.raises(dnn.Unimplemented, match=says):
        dnn.primitive_desc(replace(described(dnn.LSTMForward, (3, 2, 5, 8)), **change), engine=engine("avx2"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rnn_data_qparams": (0.0, 1.0)}, "rnn_data_qparams must be a scale above 0 and a shift"),
        ({"rnn_data_qparams": (1.0, 0.5)}, "rnn_data_qparams has the shift 0.5: zero points of u8 are whole, 0 to 255"),
        ({"rnn_data_qparams": (float("nan"), 0.0)}, "rnn_data_qparams must be a scale above 0"),
        ({"rnn_data_qparams": "scale"}, "rnn_data_qparams must be a scale above 0"),
        ({"rnn_weights_qparams": (1.0,) * 4}, "rnn_weights_qparams has 4 scales: it has 1, or 32, of every gate"),
        ({"rnn_weights_qparams": (-1.0,)}, "rnn_weights_qparams has the scale -1.0 at 0: scales are above 0"),
        ({"rnn_weights_qparams": (float("inf"),)}, "rnn_weights_qparams has the scale inf at 0"),
        ({"rnn_weights_qparams": (10**400,)}, "rnn_weights_qparams has the scale 1000"),
        ({"rnn_weights_qparams": (1e-30,)}, "rnn_weights_qparams has the scale 1e-30 at 0: scales are above 0, from"),
        ({"rnn_data_qparams": (10**400, 0)}, "rnn_data_qparams must be a scale above 0"),
        ({"rnn_weights_qparams": 7}, "rnn_weights_qparams must be scales, not 7"),
    ],
)
def test_numbers_that_say_nothing(change: dict[str, Any], says: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=says):
        replace(described(dnn.LSTMForward, (3, 2, 5, 8)), **change)


def test_kinds_and_directions_that_have_no_bytes() -> None:
    with pytest.raises(dnn.Unimplemented, match="which layers of one direction, or of both concatenated, take"):
        dnn.primitive_desc(described(dnn.GRUForward, (3, 2, 5, 8), 1, SUM), engine=engine("avx2"))
    plain = describe(dnn.LBRGRUForward, (3, 2, 5, 8))
    bytes_ = {name: of_type(getattr(plain, name), dnn.s8) for name in PRODUCTS}
    with pytest.raises(dnn.Unimplemented, match="weights_layer is s8, which LSTM and GRU take"):
        dnn.primitive_desc(replace(plain, **bytes_), engine=engine("avx2"))
    src = np.zeros((3, 2, 5), np.uint8)
    with pytest.raises(dnn.InvalidArguments, match="rnn_data_qparams is given with linear_before_reset=True"):
        dnn.ops.gru(src, {name: np.zeros((1, 1, 5, 3, 5), np.int8) for name in PRODUCTS}, linear_before_reset=True,
                    rnn_data_qparams=DATA)  # fmt: skip
    with pytest.raises(dnn.InvalidArguments, match="rnn_data_qparams must be a scale above 0 and a shift, not 'x'"):
        dnn.ops.gru(src, {name: np.zeros((1, 1, 5, 3, 5), np.int8) for name in PRODUCTS}, rnn_data_qparams="x")  # type: ignore[arg-type]
