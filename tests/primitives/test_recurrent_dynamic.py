"""LSTMs of s8 weights whose rows become bytes as they come, at every level, against ONNX's equations in float64."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import asmdnn as dnn
from asmdnn.errors import AsmdnnError
from tests.support.plans import emulate_plan

LEVELS = ("avx2", "avx2_vnni", "avx512_core", "avx512_core_vnni")
BOTH, BACKWARDS = "bidirectional_concat", "unidirectional_right2left"
ROUNDINGS = 16 * 8 * 2.0**-24  # of gates up to 8, and what cells do with them
Arrays = dict[str, npt.NDArray[Any]]


def engine(isa: Any, threads: int = 1) -> dnn.Engine:
    return dnn.Engine(isa=isa, threads=threads, l2_bytes=1 << 20)


def described(
    sizes: tuple[int, int, int, int], layers: int = 1, direction: Any = "unidirectional_left2right", bare: bool = False
) -> tuple[dnn.LSTMForward, Arrays]:
    """A layer of t, n, i, h, and data; bare: without bias and states."""
    (t, n, i, h), directions, random = sizes, 2 if direction == BOTH else 1, np.random.default_rng(5)
    both = (layers, directions)
    data: Arrays = {"src_layer": random.standard_normal((t, n, i))}
    for name, k in (("weights_layer", i), ("weights_iter", h)):
        data[name] = random.integers(-128, 127, (*both, k, 4, h), endpoint=True)
        data[f"{name}_scales"] = random.uniform(0.5, 1.5, (*both, 4, h)) / 127 / np.sqrt(k)
    if not bare:
        data["bias"] = random.uniform(-1, 1, (*both, 4, h))
        data |= {name: random.uniform(-1, 1, (*both, n, h)) for name in ("src_iter", "src_iter_c")}
    is_weights = {name: x.ndim == 5 for name, x in data.items()}
    data = {name: x.astype(np.int8 if is_weights[name] else np.float32) for name, x in data.items()}
    tensors: dict[str, Any] = {
        name: dnn.MemoryDesc(x.shape, dnn.s8, "any") if is_weights[name] else dnn.MemoryDesc(x.shape, dnn.f32, "any")
        for name, x in data.items()
    }
    dst = {"dst_layer": (t, n, h * directions), "dst_iter": (*both, n, h), "dst_iter_c": (*both, n, h)}
    tensors |= {name: dnn.MemoryDesc(dims, dnn.f32, "any") for name, dims in dst.items()}
    return dnn.LSTMForward(**tensors, direction=direction), data


def as_integers(x: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], float]:
    """The integers that stand for x, and what 1 of them is: ONNX's DynamicQuantizeLinear, without its zero point."""
    floats = x.astype(np.float32)
    low, high = min(floats.min(), np.float32(0)), max(floats.max(), np.float32(0))
    scale = (high - low) / np.float32(255) or np.float32(1)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    return np.clip(np.rint(floats / scale) + zero, 0, 255).astype(np.int64) - np.int64(zero), float(scale)


def product(x: npt.NDArray[Any], data: Arrays, name: str, at: tuple[int, int]) -> npt.NDArray[Any]:
    """Of rounded rows and weights, whose sums are of integers."""
    integers, scale = as_integers(x)
    sums = np.einsum("...i,igo->...go", integers, data[name][at].astype(np.int64))
    return sums * (scale * data[f"{name}_scales"][at].astype(np.float64))


def answer(desc: dnn.LSTMForward, data: Arrays) -> Arrays:
    """Layer by layer, which rounds x of both directions alike."""
    s, x = desc.sizes, data["src_layer"]
    both = (s.layers, s.directions)
    found: Arrays = {name: np.zeros((*both, s.sequences, s.out)) for name in ("dst_iter", "dst_iter_c")}
    for layer in range(s.layers):
        outs = [direction_of(desc, data, x, (layer, d), found) for d in range(s.directions)]
        x = np.concatenate(outs, -1)
    return {"dst_layer": x, **found}


def direction_of(
    desc: dnn.LSTMForward, data: Arrays, x: npt.NDArray[Any], at: tuple[int, int], states: Arrays
) -> npt.NDArray[Any]:
    """h of all steps; the last states go into `states`."""
    gates = product(x, data, "weights_layer", at) + (data["bias"][at] if "bias" in data else 0)
    h, c = (data.get(name.replace("dst", "src"), zeros)[at].astype(np.float64) for name, zeros in states.items())
    steps = np.empty((*gates.shape[:2], gates.shape[-1]))
    for t in range(len(x))[:: -1 if at[1] or desc.direction == BACKWARDS else 1]:
        i, f, new, o = np.moveaxis(gates[t] + product(h, data, "weights_iter", at), -2, 0)
        c = logistic(f) * c + logistic(i) * np.tanh(new)
        h = steps[t] = logistic(o) * np.tanh(c)
    states["dst_iter"][at], states["dst_iter_c"][at] = h, c
    return steps


def logistic(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.asarray(0.5 + 0.5 * np.tanh(x / 2))


def memories_of(plan: Any, data: Arrays) -> dict[str, dnn.Memory]:
    found = {}
    for name, desc in plan.tensors.items():
        array = data.get(name, np.full(desc.dims, np.nan, np.float32))
        found[name] = dnn.reorder(dnn.Memory.from_array(array), desc)
    return found


def compute(desc: dnn.LSTMForward, data: Arrays, own: dnn.Engine) -> Arrays:
    pd = dnn.primitive_desc(desc, engine=own)
    pd.plan.check()
    memories = memories_of(pd.plan, data)
    dnn.Primitive(pd).bind(**memories)()
    return {name: memories[name].numpy() for name in pd.plan.outputs}


def check(desc: dnn.LSTMForward, found: Arrays, data: Arrays) -> None:
    for name, wanted in answer(desc, data).items():
        assert np.abs(found[name] - wanted).max() <= ROUNDINGS, name


CASES: tuple[tuple[Any, ...], ...] = (
    ((3, 2, 42, 21), 2, BOTH),
    ((4, 1, 7, 40), 1, BACKWARDS, True),
    ((2, 9, 16, 8), 1),
    ((1, 1, 3, 1), 1, BOTH, True),
)


@pytest.mark.parametrize("isa", [pytest.param(isa, marks=pytest.mark.isa(isa)) for isa in LEVELS])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_layers(case: Any, isa: str) -> None:
    desc, data = described(*case)
    one, two = (compute(desc, data, engine(isa, threads)) for threads in (1, 2))
    check(desc, one, data)
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])


@pytest.mark.parametrize("isa", LEVELS)
def test_emulated(isa: str) -> None:
    desc, data = described((2, 3, 5, 9))
    plan = dnn.primitive_desc(desc, engine=engine(isa)).plan
    memories = memories_of(plan, data)
    emulate_plan(plan, memories)
    check(desc, {name: memories[name].numpy() for name in plan.outputs}, data)


@pytest.mark.isa("avx2")
def test_extremes() -> None:
    """Zeros are zeros; one sign has its zero point at an end; what is no number leaves none."""
    desc, data = described((2, 2, 6, 17))
    for src in (np.zeros((2, 2, 6)), np.full((2, 2, 6), 3e38), np.full((2, 2, 6), -1e-3)):
        given = {**data, "src_layer": src.astype(np.float32), "src_iter": np.zeros_like(data["src_iter"])}
        check(desc, compute(desc, given, engine("avx2")), given)
    for bad in (np.nan, np.inf):
        data["src_layer"][1, 1, 5] = bad
        assert np.isnan(compute(desc, data, engine("avx2"))["dst_layer"]).all()


@pytest.mark.isa("avx2")
def test_arrays() -> None:
    """`ops.lstm` by the same names, of plain weights and of packed ones."""
    desc, data = described((3, 2, 5, 8))
    weights = {name: x for name, x in data.items() if not name.startswith("src")}
    states = data["src_layer"], data["src_iter"], data["src_iter_c"]
    for given in (weights, dnn.ops.pack_recurrent("lstm", weights)):
        found = dnn.ops.lstm(states[0], given, *states[1:])
        check(desc, dict(zip(("dst_layer", "dst_iter", "dst_iter_c"), found, strict=True)), data)


ONE = dnn.MemoryDesc((1, 1, 4, 8), dnn.f32, "abcd")
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "one of two": ({"weights_iter_scales": None}, "weights_layer_scales is given without weights_iter_scales"),
    "dims": ({"weights_iter_scales": dnn.MemoryDesc((1, 1, 4, 1), dnn.f32, "abcd")}, "weights_iter_scales has dims"),
    "types": ({"weights_layer_scales": dnn.MemoryDesc((1, 1, 4, 8), dnn.bf16, "abcd")}, "weights_layer_scales is bf16"),
    "rows": ({"src_layer": dnn.MemoryDesc((2, 3, 5), dnn.u8, "abc")}, "src_layer is u8, with .* it is f32"),
    "weights": ({"weights_iter": dnn.MemoryDesc((1, 1, 8, 4, 8), dnn.f32, "abcde")}, "weights_iter is f32.* s8"),
    "both ways": ({"rnn_data_qparams": (1, 0)}, "rnn_data_qparams is given beside weights_layer_scales"),
    "lengths": ({"lengths": (2, 1, 1)}, "sequences of equal lengths take"),
    "training": ({"prop_kind": dnn.PropKind.forward_training}, "inference takes"),
}


@pytest.mark.parametrize("name", WRONG)
def test_refused(name: str) -> None:
    desc, _ = described((2, 3, 5, 8))
    tensors, (changed, words) = desc.tensors(), WRONG[name]
    with pytest.raises(AsmdnnError, match=words):
        dnn.primitive_desc(dnn.LSTMForward(**{**tensors, **changed}), engine=engine("avx2"))
