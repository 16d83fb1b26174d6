"""Random numbers by a generator that counts elements, with a seed that every call passes."""

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.generators.functions.random_numbers import ARGUMENTS, DISTRIBUTIONS, RandomNumbersSpec
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reorder.copies import Inside, as_passed_or_copied
from asmdnn.primitives.shapes.formats import like, of_type, row_major
from asmdnn.primitives.shapes.numbered import NumberedKernels, add_pieces
from asmdnn.primitives.shapes.tensors import check_tensor, refuse_overlap
from asmdnn.records import dataclass
from asmdnn.types import f32, s32

NAME = "random"
SEED = MemoryDesc((2,), s32, "a")  # the words of an integer of 64 bits
STREAM = "stream"  # the constant that is added to the seed
STREAMS = 2**63


@dataclass(frozen=True, slots=True)
class RandomNumbers:
    """dst = random numbers: "uniform" ones from 0 to below 1, in steps of 2^-24, or "normal" ones, of mean 0 and
    variance 1 (Box and Muller), which have a relative error of 2^-21 at most.

    distribution: one of these.  stream: from -2^63 to 2^63 - 1; other ones have other numbers.

    Argument beside dst: seed, s32[2], the low and the high word of an integer of 64 bits, read by every call.  A number
    depends on the seed, on the stream and on the element's index in row-major order alone, so results are the same for
    any layout, level and number of threads: Philox4x32-10, whose key is a mix of both.
    dst: any format and type, rounded as element-wise functions are.  Raises InvalidArguments.
    """

    dst: MemoryDesc
    distribution: str = "uniform"
    stream: int = 0

    def __post_init__(self) -> None:
        check_tensor("dst", self.dst)
        if not isinstance(self.distribution, str) or self.distribution not in DISTRIBUTIONS:
            known = " or ".join(map(repr, DISTRIBUTIONS))
            raise InvalidArguments(f"distribution must be {known}, not {shown(self.distribution)}")
        if type(self.stream) is not int or not -STREAMS <= self.stream < STREAMS:
            raise InvalidArguments(f"stream must be an integer from -2**63 to 2**63 - 1, not {shown(self.stream)}")

    def __str__(self) -> str:
        return f"{self.distribution} random numbers to {self.dst}, stream {self.stream}"


def inside_of(desc: RandomNumbers, attr: Attr, engine: Engine) -> Inside:
    """The plan in row-major order.  Raises Refused."""
    isa, tuning = f32_level(engine.isa), engine.tuning.dropout
    refuse_attr(attr)
    dst = like(desc.dst, desc.dst)
    refuse_overlap(dst=dst)
    tensors = {"seed": SEED, "dst": of_type(row_major(dst.dims, dst), f32)}
    cycles = tuning.vector_cycles + tuning.normal_cycles * (desc.distribution == "normal")

    def spec_of(count: int) -> RandomNumbersSpec:
        return RandomNumbersSpec(isa=isa, count=count, distribution=desc.distribution)

    assembly, count = Assembly(engine.tuning, engine.isa), desc.dst.nelems()
    if count:
        assembly.constants[STREAM] = np.array([desc.stream], np.int64)
    add_pieces(assembly, count, NumberedKernels(ARGUMENTS, {"dst": f32.size_bytes}, spec_of, cycles))
    return Inside(assembly.plan(f"{NAME}:{isa}", tensors, ("dst",)), {"dst": dst}, engine.tuning, engine.isa)


plans = as_passed_or_copied(NAME, inside_of, f32_level)
