"""Stochastic rounding to a smaller type: each number becomes a neighbour at random, so that the mean stays."""

from collections.abc import Mapping

import numpy as np

from asmdnn.errors import InvalidArguments, shown
from asmdnn.generators.functions.stochastic_grid import STEPS
from asmdnn.generators.functions.stochastic_rounding import ARGUMENTS, StochasticRoundingSpec
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.move_tuning import DropoutTuning
from asmdnn.planning.phase import Int64, Phase, records_of, views
from asmdnn.planning.plan import alike
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reorder.copies import Inside, as_passed_or_copied
from asmdnn.primitives.shapes.formats import like, row_major
from asmdnn.primitives.shapes.tensors import check_tensor
from asmdnn.records import dataclass
from asmdnn.types import f32, s32

NAME = "stochastic_rounding"
FIRSTS = "first"  # the constant with the index of every record's first element
WORD_BYTES, WORDS = 8, 4  # of such an index; what it is a multiple of
MOST_FIRST = 2**32
SEED = MemoryDesc((1,), s32, "a")


@dataclass(frozen=True, slots=True)
class StochasticRounding:
    """dst = src, rounded to one of the two neighbours in dst's type with the chances by which the mean is src.

    src and dst: any formats of the same dims; src f32, dst bf16, f16, f8_e5m2, f8_e4m3, s8, u8, or f32 whose numbers
    are those of bf16.  Argument beside them: seed, s32[1], read by every call.  The random number of an element depends
    on the seed and on its index in row-major order, so results are the same for any layout, level and number of
    threads.  first: the index of the first element, a multiple of 4 from 0 to 2^32.  Source: Gupta and others (2015).
    Raises InvalidArguments.
    """

    src: MemoryDesc
    dst: MemoryDesc
    first: int = 0

    def __post_init__(self) -> None:
        check_tensor("src", self.src)
        check_tensor("dst", self.dst, self.src.dims)
        for name, types in (("src", (f32,)), ("dst", tuple(STEPS))):
            if getattr(self, name).dtype not in types:
                wanted = " or ".join(filter(None, (", ".join(map(str, types[:-1])), str(types[-1]))))
                raise InvalidArguments(f"{name} is {getattr(self, name).dtype}, it must be {wanted}")
        if type(self.first) is not int or not 0 <= self.first <= MOST_FIRST or self.first % WORDS:
            raise InvalidArguments(f"first must be a multiple of 4 from 0 to 2**32, not {shown(self.first)}")

    def __str__(self) -> str:
        return f"stochastic rounding of {self.src} to {self.dst}"


def inside_of(desc: StochasticRounding, attr: Attr, engine: Engine) -> Inside:
    """The plan in row-major order.  Raises Refused."""
    isa = f32_level(engine.isa)
    refuse_attr(attr)
    passed = {"src": like(desc.dst, desc.src)}
    passed["dst"] = like(passed["src"], desc.dst)
    if passed["dst"].may_overlap:
        raise Refused("elements of dst overlap")
    tensors = {name: row_major(tensor.dims, tensor) for name, tensor in passed.items()} | {"seed": SEED}
    assembly, tuning = Assembly(engine.tuning, engine.isa), engine.tuning.dropout
    if desc.src.nelems():
        starts = np.arange(0, desc.src.nelems(), tuning.record_elements)
        assembly.constants[FIRSTS] = (starts + desc.first).astype(np.int64)
        assembly.add([phase_of(starts, tensors, isa, tuning)])
    plan = assembly.plan(f"{NAME}:{isa}", tensors, ("dst",), alike(tensors, ["src"], "dst"))
    return Inside(plan, passed, engine.tuning, engine.isa)


plans = as_passed_or_copied(NAME, inside_of, f32_level)


def phase_of(starts: Int64, tensors: Mapping[str, MemoryDesc], isa: str, tuning: DropoutTuning) -> Phase:
    """A record of every piece, which takes what dropout of it does."""
    left = tensors["src"].nelems() - starts
    sizes, kernel = np.unique(np.minimum(tuning.record_elements, left), return_inverse=True)
    columns = {name: tensors[name].dtype.size_bytes * starts for name in ("src", "dst")}
    columns[FIRSTS] = WORD_BYTES * np.arange(len(starts))
    cycles = tuning.call_cycles + tuning.vector_cycles * -(-sizes[kernel] // lanes_of(isa))
    specs = tuple(StochasticRoundingSpec(isa=isa, count=int(size), dst=tensors["dst"].dtype) for size in sizes)
    return Phase(specs, views(ARGUMENTS), records_of(ARGUMENTS, columns, kernel), cycles.astype(np.int32))
