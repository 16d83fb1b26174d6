"""One reorder: proven, executed on bits, and what all of them must keep."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from asmdnn.isa.vectors import f32_level
from asmdnn.primitives.reorder.plan import WAYS
from tests.primitives.guarded import guarded_memory
from tests.primitives.raw import Bits, bits_of, elements_of, fill

NO_ATTR = dnn.Attr()
TYPES = {t.name: t for t in (dnn.f32, dnn.bf16, dnn.f16, dnn.s32, dnn.s8, dnn.u8, dnn.f8_e5m2, dnn.f8_e4m3)}
UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32}

Numbers = Mapping[str, npt.NDArray[np.float32] | npt.NDArray[np.int32]]


def prepared(desc: dnn.Reorder, attr: dnn.Attr = NO_ATTR, threads: int = 1) -> dnn.Primitive:
    engine = dnn.Engine(threads=threads)
    pd = dnn.primitive_desc(desc, attr, engine)
    assert pd.implementation in {f"{way}:{f32_level(engine.isa)}" for way in WAYS}
    pd.plan.check()
    return dnn.Primitive(pd)


def run(
    primitive: dnn.Primitive,
    values: Bits,
    old: Bits | None = None,
    numbers: Numbers | None = None,
    at_end: bool | None = None,
) -> Bits:
    """dst's elements in logical order.  old: what dst holds before.  numbers: scales and zero points by argument.

    at_end: all lie before (True) or after an unmapped page.  src, its padding too, must stay what it was.
    """
    memories, kept = {}, []
    for name, tensor in primitive.pd.plan.tensors.items():
        memory, buffer = (dnn.Memory(tensor), None) if at_end is None else guarded_memory(tensor, at_end)
        memories[name] = memory
        kept.append(buffer)
    fill(memories["src"], values)
    fill(memories["dst"], old)
    for name, array in (numbers or {}).items():
        memories[name].array[:] = np.asarray(array).ravel()
    before = bits_of(memories["src"]).copy()
    primitive.execute(**memories)
    assert np.array_equal(bits_of(memories["src"]), before)
    result = elements_of(memories["dst"]).copy()
    del memories, memory, kept
    return result


def random_bits(desc: dnn.MemoryDesc) -> Bits:
    kind = UNSIGNED[desc.dtype.size_bytes]
    return np.random.default_rng(1).integers(1, np.iinfo(kind).max, desc.dims, kind, endpoint=True)


def check_copy(src: dnn.MemoryDesc, dst: dnn.MemoryDesc, threads: int = 1, at_end: bool | None = None) -> None:
    """The same type on both sides: every bit."""
    values = random_bits(src)
    assert np.array_equal(run(prepared(dnn.Reorder(src, dst), threads=threads), values, at_end=at_end), values)
