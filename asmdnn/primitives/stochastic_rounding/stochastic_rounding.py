"""Stochastic rounding to a smaller type: each number becomes a neighbour at random, so that the mean stays."""

from asmdnn.errors import InvalidArguments, shown
from asmdnn.generators.functions.stochastic_grid import STEPS
from asmdnn.generators.functions.stochastic_rounding import ARGUMENTS, StochasticRoundingSpec
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import alike
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reorder.copies import Inside, as_passed_or_copied
from asmdnn.primitives.shapes.formats import like, row_major
from asmdnn.primitives.shapes.numbered import NumberedKernels, add_pieces
from asmdnn.primitives.shapes.tensors import check_tensor, refuse_overlap
from asmdnn.records import dataclass
from asmdnn.types import f32, s32

NAME = "stochastic_rounding"
WORDS = 4  # what the index of a piece's first element is a multiple of
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
    refuse_overlap(dst=passed["dst"])
    tensors = {name: row_major(tensor.dims, tensor) for name, tensor in passed.items()} | {"seed": SEED}
    sizes = {name: tensors[name].dtype.size_bytes for name in ("src", "dst")}

    def spec_of(count: int) -> StochasticRoundingSpec:
        return StochasticRoundingSpec(isa=isa, count=count, dst=tensors["dst"].dtype)

    cycles = engine.tuning.dropout.vector_cycles  # a piece takes what dropout of it does
    assembly = Assembly(engine.tuning, engine.isa)
    add_pieces(assembly, desc.src.nelems(), NumberedKernels(ARGUMENTS, sizes, spec_of, cycles), desc.first)
    plan = assembly.plan(f"{NAME}:{isa}", tensors, ("dst",), alike(tensors, ["src"], "dst"))
    return Inside(plan, passed, engine.tuning, engine.isa)


plans = as_passed_or_copied(NAME, inside_of, f32_level)
