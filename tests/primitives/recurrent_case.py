"""Recurrent layers for tests: descriptions, data, the reference's answer, and what the library computes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from asmdnn.bench.values import decoded, encoded, poison, rounded
from asmdnn.definitions.recurrent.bounded import Bounded
from asmdnn.definitions.recurrent.layers import Net, ReferenceRun
from asmdnn.definitions.recurrent.values import Function, Handed
from asmdnn.primitives.recurrent.description import RecurrentForward, VanillaRNNForward
from asmdnn.types import DataType
from tests.primitives.guarded import guarded_memory, in_child

Array = npt.NDArray[np.float32]
Arrays = dict[str, Array]
LEFT2RIGHT, RIGHT2LEFT, CONCAT, SUM = DIRECTIONS = (
    "unidirectional_left2right", "unidirectional_right2left", "bidirectional_concat", "bidirectional_sum",
)  # fmt: skip
CELLS = (dnn.VanillaRNNForward, dnn.LSTMForward, dnn.GRUForward, dnn.LBRGRUForward)
NAMES = {
    "vanilla_rnn": "VANILLA_RNN",
    "vanilla_lstm": "VANILLA_LSTM",
    "vanilla_gru": "VANILLA_GRU",
    "lbr_gru": "LBR_GRU",
}
ROWS = ("src_layer", "src_iter", "dst_layer", "dst_iter")
WEIGHTS = ("weights_layer", "weights_iter", "weights_projection")
UNITS = {dnn.bf16: 2.0**-8, dnn.f16: 2.0**-11}
AVX2 = dnn.Engine(isa="avx2", threads=2, l2_bytes=512 << 10)


def f32(dims: Sequence[int], tag: str = "any") -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dnn.f32, tag)


def describe(
    kind: Any,
    sizes: tuple[int, int, int, int],
    layers: int = 1,
    direction: str = LEFT2RIGHT,
    states: bool = True,
    bias: bool = True,
    peephole: bool = False,
    projection: int = 0,
    **more: Any,
) -> Any:
    """A layer of (T, N, SLC, DHC); with several layers SLC becomes what they need."""
    t, n, src, hidden = sizes
    both, out = (layers, 2 if direction in (CONCAT, SUM) else 1), projection or hidden
    dst = out * (2 if direction == CONCAT else 1)
    src = dst if layers > 1 else src
    tensors = {
        "src_layer": f32((t, n, src), "tnc"),
        "weights_layer": f32((*both, src, kind.GATES, hidden)),
        "weights_iter": f32((*both, out, kind.GATES, hidden)),
        "dst_layer": f32((t, n, dst), "tnc"),
    }
    tensors |= {"bias": f32((*both, kind.BIAS_ROWS, hidden), "ldgo")} if bias else {}
    tensors |= {name: f32((*both, n, out), "ldnc") for name in ("src_iter", "dst_iter") if states}
    if kind is dnn.LSTMForward:
        tensors |= {name: f32((*both, n, hidden), "ldnc") for name in ("src_iter_c", "dst_iter_c") if states}
        tensors |= {"weights_peephole": f32((*both, 3, hidden), "ldgo")} if peephole else {}
        tensors |= {"weights_projection": f32((*both, hidden, out))} if projection else {}
    return kind(**tensors, direction=direction, **more)


def typed(desc: Any, rows: DataType, weights: DataType, others: DataType = dnn.f32) -> Any:
    """The same layer with tensors of other types."""
    types = dict.fromkeys(ROWS, rows) | dict.fromkeys(WEIGHTS, weights)
    tensors = {name: of_type(tensor, types.get(name, others)) for name, tensor in desc.tensors().items()}
    return desc.with_formats(tensors)


def of_type(tensor: dnn.MemoryDesc, dtype: DataType) -> dnn.MemoryDesc:
    return dnn.MemoryDesc(tensor.dims, dtype, "any" if tensor.is_any else tensor.tag)


def data_of(desc: RecurrentForward, seed: int = 0) -> Arrays:
    """Numbers that the types of tensors have."""
    random, scale = np.random.default_rng(seed), desc.sizes.hidden**-0.5
    found = {
        name: random.uniform(-1, 1, tensor.dims).astype(np.float32) * (scale if "weights" in name else np.float32(1))
        for name, tensor in desc.tensors().items()
        if not name.startswith("dst")
    }
    return {name: rounded(x, desc.tensors()[name].dtype).astype(np.float32) for name, x in found.items()}


def answer(desc: RecurrentForward, data: Arrays) -> dict[str, Bounded]:
    """The reference's results, of the library's destinations."""
    units = [UNITS.get(x.dtype, 0.0) for name, x in desc.tensors().items() if name in ROWS]
    hands = Handed(max(units))
    function = Function("tanh", hands=hands)
    if isinstance(desc, VanillaRNNForward):
        function = Function(desc.activation, desc.alpha, hands)
    direction = desc.direction.rpartition("_")[2]
    lengths = np.array(desc.lengths) if desc.lengths else None
    run = ReferenceRun(Net(NAMES[desc.NAME], direction, function), data, lengths)
    tensors = desc.tensors()
    found = {name: x for name, x in run.results.items() if name in tensors}
    if "dst_iter_c" in found:  # the others are what steps hand on
        found["dst_iter_c"] = Handed(UNITS.get(tensors["dst_iter_c"].dtype, 0.0)).of(found["dst_iter_c"])
    return found


def compute(desc: RecurrentForward, data: Arrays, engine: dnn.Engine = AVX2) -> Arrays:
    """What the library computes; destinations hold NaN before."""
    primitive = dnn.Primitive(dnn.primitive_desc(desc, engine=engine))
    memories = memories_of(primitive.pd.plan.tensors, data)
    primitive.execute(**memories)
    return {name: numbers_of(memories[name]) for name in primitive.pd.plan.outputs}


def memories_of(tensors: Mapping[str, dnn.MemoryDesc], data: Arrays) -> dict[str, dnn.Memory]:
    """The data, and NaN, or a pattern, for what has none."""
    arrays = {
        name: encoded(data[name], x.dtype) if name in data else poison(x.dims, x.dtype) for name, x in tensors.items()
    }
    return {name: dnn.Memory.from_numpy(array, tensors[name]) for name, array in arrays.items()}


def numbers_of(memory: dnn.Memory) -> Array:
    return decoded(memory.numpy(), memory.desc.dtype)


def check(desc: RecurrentForward, engine: dnn.Engine = AVX2, data: Arrays | None = None) -> Arrays:
    """Prove the plan, compute, and compare with the reference within its bound."""
    data = data_of(desc) if data is None else data
    dnn.primitive_desc(desc, engine=engine).plan.check()
    found = compute(desc, data, engine)
    for name, wanted in answer(desc, data).items():
        wrong = ~(np.abs(found[name] - wanted.value) <= wanted.bound)
        assert not wrong.any(), f"{name} of {desc}: {wrong.sum()} wrong, {np.abs(found[name] - wanted.value).max()}"
    return found


def with_tags(desc: RecurrentForward, **tags: str) -> RecurrentForward:
    return replace(desc, **{name: f32(getattr(desc, name).dims, tag) for name, tag in tags.items()})  # type: ignore[arg-type]


def check_inside(descs: Sequence[Any]) -> None:
    """Calls on tensors that begin, then end, at an unmapped page."""

    def run(at_end: bool) -> None:
        for desc in descs:
            primitive = dnn.Primitive(dnn.primitive_desc(desc, engine=AVX2))
            pairs = {name: guarded_memory(x, at_end) for name, x in primitive.pd.plan.tensors.items()}
            primitive.bind(**{name: memory for name, (memory, _) in pairs.items()})()

    for at_end in (False, True):
        assert in_child(lambda at_end=at_end: run(at_end)) == ""  # type: ignore[misc]
