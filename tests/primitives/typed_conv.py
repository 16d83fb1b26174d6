"""Convolutions of other types than f32: data that types have, and what the documentation says in exact arithmetic.

Sums of bytes are int64 here and have to be equal.  Sums of bf16 and f16 may differ by rounding: at most gamma(K) times
the sum of absolute products (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from asmdnn.bench.problems import ConvProblem, parse_problem
from asmdnn.bench.taps import sums_of
from tests.support.plans import execute, proved_desc

UNIT_ROUNDOFF = 2.0**-24
HALF_ULP = {dnn.f32: 2.0**-24, dnn.bf16: 2.0**-8, dnn.f16: 2.0**-11}  # of 1, at most that share of a number
LIMITS = {dnn.u8: (0, 255), dnn.s8: (-128, 127), dnn.s32: (-(2**31), 2**31 - 1)}
POISON_BYTE = 0x5A
SEED = 11

Array = npt.NDArray[Any]


def stored(values: Array, dtype: dnn.DataType) -> Array:
    """Numbers that the type has, as its elements."""
    if dtype == dnn.bf16:
        return (values.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return values.astype(dtype.numpy)


def numbers(elements: Array, dtype: dnn.DataType) -> Array:
    """What elements are: int64 or float64."""
    if dtype in LIMITS:
        return elements.astype(np.int64)
    if dtype == dnn.bf16:
        return (elements.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return elements.astype(np.float64)


def random_numbers(random: np.random.Generator, dims: tuple[int, ...], dtype: dnn.DataType) -> Array:
    """All that bytes have, s32 up to 1000, floats in [-1, 1) that the type has."""
    if dtype in (dnn.u8, dnn.s8):
        return random.integers(*LIMITS[dtype], dims, np.int64, endpoint=True)
    if dtype == dnn.s32:
        return random.integers(-1000, 1000, dims)
    values = random.uniform(-1, 1, dims).astype(np.float32)
    return numbers(stored(values, dtype), dtype)


@dataclass(frozen=True, slots=True)
class TypedConv:
    """A problem in benchdnn's words, types of src, weights and dst, and of the bias if there is one; formats."""

    text: str
    types: tuple[dnn.DataType, dnn.DataType, dnn.DataType]
    bias: dnn.DataType | None = None
    tags: tuple[str, str, str] = ("any", "any", "any")
    attr: dnn.Attr = field(default_factory=dnn.Attr)

    @property
    def problem(self) -> ConvProblem:
        return parse_problem(self.text)

    def desc(self) -> dnn.ConvolutionForward:
        p = self.problem
        dims = (p.src_dims, p.weights_dims, p.dst_dims)
        src, weights, dst = map(dnn.MemoryDesc, dims, self.types, self.tags)
        bias = dnn.MemoryDesc((p.oc,), self.bias, "a") if self.bias else None
        window = (p.strides, p.dilations, p.padding_l, p.padding_r)
        return dnn.ConvolutionForward(src, weights, dst, bias, *window)

    def planned(self, isa: str) -> dnn.PrimitiveDesc:
        """Its plan, which is checked."""
        engine = dnn.Engine(isa=isa, threads=1, l2_bytes=512 << 10, machine="zen3")
        return proved_desc(self.desc(), self.attr, engine)

    def data(self) -> dict[str, Array]:
        random, p = np.random.default_rng(SEED), self.problem
        dims = {"src": p.src_dims, "weights": p.weights_dims, "dst": p.dst_dims}
        found = {n: random_numbers(random, d, t) for (n, d), t in zip(dims.items(), self.types, strict=True)}
        return found | ({"bias": random_numbers(random, (p.oc,), self.bias)} if self.bias else {})


def holding(desc: dnn.MemoryDesc, values: Array) -> dnn.Memory:
    """A memory with these numbers, zero padding, sums where its format has them, and poison in gaps."""
    if not desc.holds_elements:
        return dnn.Memory.from_numpy(stored(values, desc.dtype), desc)
    memory = dnn.Memory(desc)
    memory.array.view(np.uint8)[:] = POISON_BYTE
    memory.array[desc.offsets(with_padding=True)] = 0
    memory.array[desc.offsets()] = stored(values, desc.dtype)
    desc.complete(values, memory.array)
    return memory


def computed(pd: dnn.PrimitiveDesc, data: dict[str, Array], emulated: bool = False) -> Array:
    """dst's numbers; its padding must be zero, and what lies between its elements untouched."""
    memories = {name: holding(desc, data[name]) for name, desc in pd.plan.tensors.items()}
    execute(pd, memories, emulated)
    dst = memories["dst"]
    inside = np.zeros(dst.array.size, bool)
    inside[dst.desc.offsets(with_padding=True)] = True
    assert (dst.array.view(np.uint8).reshape(dst.array.size, -1)[~inside] == POISON_BYTE).all()
    inside[dst.desc.offsets()] = False
    assert not dst.array[inside & np.isin(np.arange(dst.array.size), dst.desc.offsets(with_padding=True))].any()
    return numbers(dst.array[dst.desc.offsets()], dst.desc.dtype)


def by_channel(p: ConvProblem, values: Array) -> Array:
    return values.reshape(-1, *[1] * len(p.axes))


def rounded(values: Array, dtype: dnn.DataType) -> Array:
    """To nearest even and saturated, of an integer type."""
    return np.clip(np.rint(values), *LIMITS[dtype])


def check_halves(text: str, tags: tuple[str, str, str], src: dnn.DataType, level: str) -> dnn.PrimitiveDesc:
    """Within the bound of sums in f32, and rounded once to dst's type."""
    for dst, bias in ((dnn.f32, dnn.f32), (src, src)):
        case = TypedConv(text, (src, src, dst), bias, tags, dnn.Attr([dnn.Eltwise("relu")]))
        data, p = case.data(), case.problem
        added = by_channel(p, data["bias"])
        wanted = np.maximum(sums_of(p, data["src"], data["weights"]) + added, 0)
        size = sums_of(p, np.abs(data["src"]), np.abs(data["weights"])) + np.abs(added)
        terms = (p.reduction + 2) * UNIT_ROUNDOFF
        bound = size * terms / (1 - terms)
        pd = case.planned(level)
        error = np.abs(computed(pd, data) - wanted)
        assert (error <= bound + (wanted + bound) * HALF_ULP[dst] + 2.0**-24).all()
    return pd
