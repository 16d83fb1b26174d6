"""Matrix products to test: dims, layouts by words, data, and what must come out."""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from tests.primitives.conv_case import post_op
from tests.primitives.tensors import assert_within, bits, holding, read
from tests.support.plans import proved_desc
from tests.support.tuning import by_whole_rows

Floats = npt.NDArray[np.float32]
MACHINE = "zen3"  # plans are the same wherever the tests run
UNIT_ROUNDOFF = 2.0**-24


@dataclass(frozen=True, slots=True)
class MatmulCase:
    """Layouts: "any", "row", "col" (the last two dims swapped), "gap" (3 elements after each row), "far" (plain, every
    dim with gaps, columns apart), "off" (offset0), "panels" (weights).  bias: the dims that are dst's, as letters m, n,
    b; "-" for none, "1" for a single element."""

    src: tuple[int, ...]
    weights: tuple[int, ...]
    layouts: tuple[str, str, str] = ("row", "row", "row")
    bias: str = "-"
    post_ops: tuple[str, ...] = ()
    l2_bytes: int = 0

    @property
    def dst(self) -> tuple[int, ...]:
        batch = np.broadcast_shapes(self.src[:-2], self.weights[:-2])
        return (*batch, self.src[-2], self.weights[-1])

    def bias_dims(self) -> tuple[int, ...] | None:
        if self.bias == "-":
            return None
        *batch, m, n = self.dst
        kept = [size if "b" in self.bias else 1 for size in batch]
        return (*kept, m if "m" in self.bias else 1, n if "n" in self.bias else 1)

    def desc(self) -> dnn.MatMul:
        bias = self.bias_dims()
        src, weights, dst = map(layout, (self.src, self.weights, self.dst), self.layouts)
        return dnn.MatMul(src, weights, dst, None if bias is None else layout(bias, "row"))

    def attr(self) -> dnn.Attr:
        return dnn.Attr([post_op(word) for word in self.post_ops])

    def engine(self, isa: str, threads: int = 1) -> dnn.Engine:
        return by_whole_rows(dnn.Engine(isa=isa, threads=threads, l2_bytes=self.l2_bytes, machine=MACHINE))


def layout(dims: tuple[int, ...], word: str) -> dnn.MemoryDesc:
    letters = "abcdefghijkl"[: len(dims)]
    if word == "any":
        return dnn.MemoryDesc(dims, dnn.f32, "any")
    if word == "panels":
        return dnn.MemoryDesc(dims, dnn.f32, f"{letters[:-2]}{letters[-1].upper()}{letters[-2]}16{letters[-1]}")
    order = letters[:-2] + letters[-1] + letters[-2] if word in ("col", "far") else letters
    strides, step = dict.fromkeys(letters, 0), 2 if word == "far" else 1
    for letter in reversed(order):
        strides[letter] = step
        step = step * max(1, dims[letters.index(letter)]) + (3 if word in ("gap", "far") else 0)
    offset0 = 5 if word == "off" else 0
    return dnn.MemoryDesc(dims, dnn.f32, strides=list(strides.values()), offset0=offset0)


def planned(case: MatmulCase, isa: str, threads: int = 1) -> dnn.PrimitiveDesc:
    """The plan, proven."""
    return proved_desc(case.desc(), case.attr(), case.engine(isa, threads))


def make_data(pd: dnn.PrimitiveDesc, integers: bool, seed: int = 0) -> dict[str, Floats]:
    """Values for every tensor; what dst held before counts only for a sum."""
    random = np.random.default_rng(seed)
    dims = {name: desc.dims for name, desc in pd.plan.tensors.items()}
    if integers:
        return {name: random.integers(-3, 4, d).astype(np.float32) for name, d in dims.items()}
    return {name: random.uniform(-1, 1, d).astype(np.float32) for name, d in dims.items()}


def memories_of(pd: dnn.PrimitiveDesc, data: dict[str, Floats]) -> dict[str, dnn.Memory]:
    """The arguments; outputs are poison all over unless a post-op reads them."""
    kept = {name for name in pd.plan.tensors if name not in pd.plan.outputs or pd.attr.reads_dst()}
    return {name: holding(desc, data[name] if name in kept else None) for name, desc in pd.plan.tensors.items()}


def expected(case: MatmulCase, data: dict[str, Floats]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """dst in float64, and its bound: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1."""
    exact = {name: values.astype(np.float64) for name, values in data.items()}

    def compute(values: dict[str, Any], relu: bool) -> npt.NDArray[np.float64]:
        x = np.matmul(values["src"], values["weights"]) + values.get("bias", 0.0)
        for op in case.attr().post_ops:
            if isinstance(op, dnn.Sum):
                x = x + op.scale * values["dst"]
            elif relu:
                x = np.where(x > 0, x, op.alpha * x)
        return np.asarray(np.broadcast_to(x, case.dst))

    terms = case.src[-1] + 20 + 3 * len(case.post_ops)
    size = compute({name: np.abs(values) for name, values in exact.items()}, relu=False)
    return compute(exact, relu=True), size * terms * UNIT_ROUNDOFF / (1 - terms * UNIT_ROUNDOFF)


def run(primitive: dnn.Primitive, data: dict[str, Floats]) -> Floats:
    """dst; nothing else may have changed."""
    memories = memories_of(primitive.pd, data)
    before = {name: memory.array.copy() for name, memory in memories.items() if name not in primitive.pd.plan.outputs}
    primitive.execute(**memories)
    for name, array in before.items():
        assert np.array_equal(bits(memories[name].array), bits(array)), f"{name} was written"
    return read(memories["dst"])


def check(case: MatmulCase, isa: str, threads: int = 1) -> dnn.PrimitiveDesc:
    """Equal on integers, within the bound on real numbers; bits are the same a second time."""
    pd = planned(case, isa, threads)
    primitive = dnn.Primitive(pd)
    for integers in (True, False):
        data = make_data(pd, integers)
        wanted, bound = expected(case, data)
        result = run(primitive, data)
        assert_within(result, wanted, 0.0 if integers and exact(case) else bound)
        assert run(primitive, data).tobytes() == result.tobytes()
    return pd


def exact(case: MatmulCase) -> bool:
    """Whether sums of products of integers up to 3 stay integers that f32 holds."""
    return prod(case.src[-1:]) < 2**20
