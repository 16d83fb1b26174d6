"""Random formats, broadcasts and chains, and what holds for every plan whatever the formats are."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import asmdnn as dnn
from asmdnn.memory.tags import LETTERS, tag_of
from tests.primitives.tensors import Storage, holding, read

BLOCKS = (2, 3, 4, 8, 16)
ENGINES = (
    dnn.Engine(isa="avx2", threads=1, l2_bytes=512 << 10),
    dnn.Engine(isa="avx512_core", threads=1, l2_bytes=1 << 20),
)
quick = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
thorough = settings(max_examples=1000, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@st.composite
def formats(draw: st.DrawFn, dims: tuple[int, ...]) -> dnn.MemoryDesc:
    """f32[dims]: permuted, blocked once or twice, with gaps and an offset, or left to the library."""
    kind = draw(st.sampled_from(("plain", "permuted", "blocked", "gaps", "any")))
    if kind in ("plain", "any"):
        return dnn.MemoryDesc(dims, dnn.f32, LETTERS[: len(dims)] if kind == "plain" else "any")
    order = tuple(draw(st.permutations(range(len(dims)))))
    if kind == "gaps":
        strides, step = [0] * len(dims), draw(st.sampled_from((1, 1, 2)))
        for dim in reversed(order):
            strides[dim] = step
            step = step * max(dims[dim], 1) + draw(st.integers(0, 3))
        return dnn.MemoryDesc(dims, dnn.f32, strides=strides, offset0=draw(st.integers(0, 5)))
    pairs = st.tuples(st.integers(0, len(dims) - 1), st.sampled_from(BLOCKS))
    blocks = draw(st.lists(pairs, min_size=1, max_size=2)) if kind == "blocked" else []
    return dnn.MemoryDesc(dims, dnn.f32, tag_of(order, tuple(blocks)))


@st.composite
def broadcast(draw: st.DrawFn, dims: tuple[int, ...]) -> tuple[int, ...]:
    """Dims of a tensor that broadcasts to `dims`."""
    return tuple(draw(st.sampled_from((1, n))) for n in dims)


def integers(seed: int, dims: tuple[int, ...]) -> Storage:
    """So small that all sums are exact."""
    return np.random.default_rng(seed).integers(-3, 4, dims).astype(np.float32)


@dataclass
class RandomChain:
    """Post-ops, what they read, and what they make of sums and of what dst held."""

    post_ops: list[Any] = field(default_factory=list)
    arrays: dict[str, Storage] = field(default_factory=dict)
    steps: list[Callable[[Any, Any], Any]] = field(default_factory=list)

    def add(self, kind: str, desc: dnn.MemoryDesc) -> None:
        number = len(self.post_ops)
        values = integers(50 + number, desc.dims)
        post_op, step = {
            "binary": (dnn.Binary("add", desc), lambda x, _: x + values),
            "prelu": (dnn.PReLU(desc), lambda x, _: np.where(x > 0, x, x * values)),
            "sum": (dnn.Sum(2.0), lambda x, old: x + 2 * old),
            "relu": (dnn.Eltwise("relu"), lambda x, _: np.maximum(x, 0)),
        }[kind]
        self.post_ops.append(post_op)
        self.steps.append(step)
        if kind in ("binary", "prelu"):
            self.arrays[f"{kind}_{number}"] = values

    def answer(self, x: Any, old: Any) -> Any:
        for step in self.steps:
            x = step(x, old)
        return x


@st.composite
def chains(draw: st.DrawFn, dims: tuple[int, ...]) -> RandomChain:
    """Up to 3 post-ops on tensors of every broadcast and format."""
    chain = RandomChain()
    for kind in draw(st.lists(st.sampled_from(("binary", "prelu", "sum", "relu")), max_size=3)):
        chain.add(kind, draw(formats(draw(broadcast(dims)))))
    return chain


def with_formats_of(chain: list[Any], tensors: Any) -> list[Any]:
    """The post-ops with the formats that a plan has chosen."""
    found = []
    for i, op in enumerate(chain):
        if op.kind == "binary":
            op = replace(op, src1=tensors[f"binary_{i}"])
        found.append(replace(op, weights=tensors[f"prelu_{i}"]) if op.kind == "prelu" else op)
    return found


def check(
    desc: Any, chain: RandomChain, arrays: dict[str, Storage], wanted: dict[str, Any], fields: dict[str, str]
) -> None:
    """A plan for each level, which is proved, and keeps the formats that it has chosen when asked for them; and exact
    results.  fields: of the description, by argument."""
    for engine in ENGINES:
        pd = dnn.primitive_desc(desc, dnn.Attr(chain.post_ops), engine)
        pd.plan.check()
        tensors = pd.plan.tensors
        chosen = replace(desc, **{f: tensors[name] for name, f in fields.items() if name in tensors})
        again = dnn.primitive_desc(chosen, dnn.Attr(with_formats_of(chain.post_ops, tensors)), engine)
        assert (again.plan.tensors, again.implementation) == (tensors, pd.implementation)
        assert [spec.name for spec in again.plan.specs] == [spec.name for spec in pd.plan.specs]
        if engine.isa == "avx2":
            memories = {name: holding(d, (arrays | chain.arrays)[name]) for name, d in tensors.items()}
            dnn.Primitive(pd).execute(**memories)
            for name, values in wanted.items():
                np.testing.assert_array_equal(read(memories[name]), values, err_msg=pd.explain())
