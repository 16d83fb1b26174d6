"""Matrix products of any types: data, and what must come out, in int64 or float64."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import asmdnn as dnn
from asmdnn.bench.typed import narrowed
from asmdnn.bench.values import decoded, encoded
from asmdnn.isa.dot import multiplied
from asmdnn.planning.tuning import Tuning
from asmdnn.types import DATA_TYPES, DataType, s32
from tests.support.plans import proved_desc

Array = npt.NDArray[Any]
UNIT_ROUNDOFF = 2.0**-24
FLUSHED = 2.0**-126  # what VDPBF16PS may lose of each product
SCALE = 2.0**-9  # of products of bytes, so that both ends of 8 bits are met
LEVELS = ("avx2", "avx512_core", "avx512_core_vnni", "avx512_core_bf16")


def at_levels(levels: tuple[str, ...] = LEVELS) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("level", [pytest.param(x, marks=pytest.mark.isa(x)) for x in levels])


@dataclass(frozen=True, slots=True)
class TypedCase:
    """types: of src, weights and dst, as in "u8:s8:s32".  bias: its type, "" for none.  zero_points: of src, dst.
    scaled: by column.  sum_scale: of what dst held, 0 for none.  extreme: bytes are the least or the largest."""

    m: int
    n: int
    k: int
    types: str
    wtag: str = "any"
    bias: str = ""
    zero_points: tuple[int | None, int | None] = (None, None)
    scaled: bool = False
    sum_scale: float = 0.0
    extreme: bool = False
    l2_bytes: int = 1 << 20
    machine: str = "zen3"
    tuning: Tuning | None = None  # None: the machine's

    def dtypes(self) -> tuple[DataType, DataType, DataType]:
        src, weights, dst = (DATA_TYPES[name] for name in self.types.split(":"))
        return src, weights, dst

    def attr(self) -> dnn.Attr:
        points = {name: 0 for name, x in zip(("src", "dst"), self.zero_points, strict=True) if x is not None}
        post_ops = [dnn.Sum(self.sum_scale)] if self.sum_scale else []
        return dnn.Attr(post_ops, scales={"weights": 2} if self.scaled else {}, zero_points=points)

    def planned(self, isa: str, threads: int = 1) -> dnn.PrimitiveDesc:
        """The plan, proven."""
        src, weights, dst = self.dtypes()
        bias = dnn.MemoryDesc((1, self.n), DATA_TYPES[self.bias], "ab") if self.bias else None
        desc = dnn.MatMul(
            dnn.MemoryDesc((self.m, self.k), src, "ab"),
            dnn.MemoryDesc((self.k, self.n), weights, self.wtag),
            dnn.MemoryDesc((self.m, self.n), dst, "ab"),
            bias,
        )
        engine = dnn.Engine(isa=isa, threads=threads, l2_bytes=self.l2_bytes, machine=self.machine)
        return proved_desc(desc, self.attr(), replace(engine, tuning=self.tuning) if self.tuning else engine)

    def data(self, seed: int = 0) -> dict[str, Array]:
        """Arrays as memory has them."""
        random = np.random.default_rng(seed)
        src, weights, dst = self.dtypes()
        dims = {"src": (self.m, self.k), "weights": (self.k, self.n), "dst": (self.m, self.n), "bias": (1, self.n)}
        kinds = {"src": src, "weights": weights, "dst": dst} | ({"bias": DATA_TYPES[self.bias]} if self.bias else {})
        arrays = {name: values(random, dims[name], kind, self.extreme) for name, kind in kinds.items()}
        for name, point in zip(("src", "dst"), self.zero_points, strict=True):
            if point is not None:
                arrays[f"{name}_zero_points"] = np.array([point], np.int32)
        if self.scaled:
            arrays["weights_scales"] = (SCALE * random.integers(1, 3, self.n)).astype(np.float32)
        return arrays

    def expected(self, data: dict[str, Array], isa: str) -> tuple[Array, Array]:
        """The numbers of dst, and what each may be off: nothing for sums of integers, the bound of Higham (Accuracy and
        Stability of Numerical Algorithms, 2nd ed., section 3.1) for those of floats, twice it where products are
        flushed; and dst's own rounding, either way where a number is in doubt."""
        src, weights, dst = self.dtypes()
        of_integers = multiplied(src, weights, isa).sums == s32
        a, b = (np.float64(decoded(data[name], x)) for name, x in (("src", src), ("weights", weights)))
        x = (a - (self.zero_points[0] or 0)) @ b  # of integers exact: below 2^53
        size = np.abs(a) @ np.abs(b)
        if of_integers and dst == s32 and not (self.scaled or self.bias or self.sum_scale):
            return x, np.zeros_like(x)
        error = np.abs(x) * UNIT_ROUNDOFF if of_integers else (self.k + 2) * (2 * UNIT_ROUNDOFF * size + FLUSHED)
        if self.scaled:
            x, error = x * data["weights_scales"], error * data["weights_scales"]
        added = []
        if self.bias:
            added.append(np.float64(decoded(data["bias"], DATA_TYPES[self.bias])))
        if self.sum_scale:
            added.append(self.sum_scale * np.float64(decoded(data["dst"], dst)))
        added.append(np.float64(self.zero_points[1] or 0))
        for more in added:
            x = x + more
            error = error + 4 * UNIT_ROUNDOFF * (np.abs(x) + np.abs(more))
        return narrowed(x, error, dst)


def values(random: np.random.Generator, dims: tuple[int, ...], kind: DataType, extreme: bool) -> Array:
    """Bytes of any value; other integers small enough for f32; floats around 1."""
    if kind.size_bytes == 1:
        limits = np.iinfo(kind.numpy)
        if extreme:
            return random.choice((limits.min, limits.max), dims).astype(kind.numpy)
        return random.integers(limits.min, limits.max, dims, endpoint=True).astype(kind.numpy)
    if kind == s32:
        return random.integers(-(2**20), 2**20, dims).astype(np.int32)
    return encoded(random.standard_normal(dims).astype(np.float32), kind)


def memories_of(pd: dnn.PrimitiveDesc, data: dict[str, Array]) -> dict[str, dnn.Memory]:
    """In the formats that the plan has."""
    found = {}
    for name, desc in pd.plan.tensors.items():
        plain = dnn.MemoryDesc(data[name].shape, desc.dtype, "abcdef"[: data[name].ndim])
        memory = dnn.Memory(plain)
        memory.array[:] = data[name].ravel()
        found[name] = dnn.reorder(memory, desc) if name == "weights" else memory
    return found


def check(case: TypedCase, isa: str, seed: int = 0) -> dnn.PrimitiveDesc:
    """Run it, and compare every element."""
    pd = case.planned(isa)
    data = case.data(seed)
    memories = memories_of(pd, data)
    wanted, tolerance = case.expected(data, isa)
    dnn.Primitive(pd).execute(**memories)
    compare(memories["dst"], case, wanted, tolerance)
    return pd


def compare(dst: dnn.Memory, case: TypedCase, wanted: Array, tolerance: Array) -> None:
    got = np.float64(decoded(dst.array, case.dtypes()[2])).reshape(case.m, case.n)
    with np.errstate(invalid="ignore"):
        wrong = ~((got == wanted) | (np.abs(got - wanted) <= tolerance))
    assert not wrong.any(), f"{wrong.sum()} of {wrong.size} wrong: {got[wrong][0]} not {wanted[wrong][0]}"
