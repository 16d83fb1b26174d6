"""Random numbers by a generator that counts elements, with a seed that every call passes."""

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.generators.functions.random_numbers import ARGUMENTS, DISTRIBUTIONS, RandomNumbersSpec
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.move_tuning import DropoutTuning
from asmdnn.planning.phase import Int64, Phase, records_of, views
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reorder.copies import Inside, as_passed_or_copied
from asmdnn.primitives.shapes.formats import like, of_type, row_major
from asmdnn.primitives.shapes.tensors import check_tensor
from asmdnn.records import dataclass
from asmdnn.types import f32, s32

NAME = "random"
SEED = MemoryDesc((2,), s32, "a")  # the words of an integer of 64 bits
STREAM, FIRSTS = "stream", "first"  # constants: what is added to the seed; the index of every record's first element
WORD_BYTES = 8  # of such an index
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
    if dst.may_overlap:
        raise Refused("elements of dst overlap")
    tensors = {"seed": SEED, "dst": of_type(row_major(dst.dims, dst), f32)}
    assembly, count = Assembly(engine.tuning, engine.isa), desc.dst.nelems()
    if count:
        starts = np.arange(0, count, tuning.record_elements)
        assembly.constants[STREAM] = np.array([desc.stream], np.int64)
        assembly.constants[FIRSTS] = starts.astype(np.int64)
        assembly.add([phase_of(desc, starts, count, isa, tuning)])
    return Inside(assembly.plan(f"{NAME}:{isa}", tensors, ("dst",)), {"dst": dst}, engine.tuning, engine.isa)


plans = as_passed_or_copied(NAME, inside_of, f32_level)


def phase_of(desc: RandomNumbers, starts: Int64, count: int, isa: str, tuning: DropoutTuning) -> Phase:
    """A record of every piece."""
    sizes, kernel = np.unique(np.minimum(tuning.record_elements, count - starts), return_inverse=True)
    columns = {"dst": f32.size_bytes * starts, FIRSTS: WORD_BYTES * np.arange(len(starts))}
    vector_cycles = tuning.vector_cycles + tuning.normal_cycles * (desc.distribution == "normal")
    cycles = tuning.call_cycles + vector_cycles * -(-sizes[kernel] // lanes_of(isa))
    specs = tuple(RandomNumbersSpec(isa=isa, count=int(size), distribution=desc.distribution) for size in sizes)
    return Phase(specs, views(ARGUMENTS), records_of(ARGUMENTS, columns, kernel), cycles.astype(np.int32))
