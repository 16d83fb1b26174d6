"""Dropout: elements are zeroed at random, by a generator that counts elements."""

from collections.abc import Mapping

from asmdnn.errors import InvalidArguments
from asmdnn.generators.functions.dropout import ARGUMENTS, DropoutSpec
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import Memory, MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reorder.copies import Inside, as_passed_or_copied
from asmdnn.primitives.shapes.formats import like, of_type, row_major
from asmdnn.primitives.shapes.numbered import NumberedKernels, add_pieces
from asmdnn.primitives.shapes.tensors import check_tensor, refuse_overlap
from asmdnn.records import dataclass
from asmdnn.types import f32, s32, u8

NAME = "dropout"
NUMBERS = {"probability": MemoryDesc((1,), f32, "a"), "seed": MemoryDesc((1,), s32, "a")}


@dataclass(frozen=True, slots=True)
class Dropout:
    """dst = src / (1 - p) where mask, else 0; mask = random > p: oneDNN's dropout, in training.

    Arguments beside src, dst and mask (u8, 1 where an element stays): probability, p, f32[1] from 0 to 1, and seed,
    s32[1], both read by every call.  The random number of an element depends on the seed and on the element's index in
    row-major order alone, so that results are the same for any layout, level and number of threads: Philox4x32-10.

    Dims are equal; any formats; src and dst of any type, rounded as element-wise functions are.  In place where src and
    dst are plain f32.  Raises InvalidArguments; calls do so for a probability that is none.
    """

    src: MemoryDesc
    dst: MemoryDesc
    mask: MemoryDesc

    def __post_init__(self) -> None:
        for name in ("src", "dst", "mask"):
            desc = getattr(self, name)
            check_tensor(name, desc)
            if desc.dims != self.src.dims:
                raise InvalidArguments(f"{name} has dims {desc.dims}, src has {self.src.dims}: make them equal")
        if self.mask.dtype != u8:
            raise InvalidArguments(f"mask is {self.mask.dtype}, it must be u8")

    def __str__(self) -> str:
        return f"dropout of {self.src} to {self.dst}, mask {self.mask}"


def check_memories(desc: Dropout, memories: Mapping[str, Memory]) -> None:
    """Raise InvalidArguments unless the probability is one."""
    check_probability(float(memories["probability"].array[0]))


def check_probability(probability: float) -> None:
    """Raise InvalidArguments unless it is one."""
    if not 0 <= probability <= 1:
        raise InvalidArguments(f"probability is {probability:g}, it must be from 0 to 1")


def inside_of(desc: Dropout, attr: Attr, engine: Engine) -> Inside:
    """The plan of a dropout.  Raises Refused."""
    isa = f32_level(engine.isa)
    refuse_attr(attr)
    passed = {"src": like(desc.dst, desc.src)}
    passed |= {"dst": like(passed["src"], desc.dst), "mask": like(row_major(desc.mask.dims, desc.mask), desc.mask)}
    refuse_overlap(dst=passed["dst"], mask=passed["mask"])
    mask = row_major(desc.mask.dims, desc.mask)
    plain = of_type(mask, f32)
    tensors = {"src": plain, "dst": plain, "mask": mask, **NUMBERS}
    sizes = {name: tensors[name].dtype.size_bytes for name in ("src", "dst", "mask")}
    cycles = engine.tuning.dropout.vector_cycles
    kernels = NumberedKernels(ARGUMENTS, sizes, lambda count: DropoutSpec(isa=isa, count=count), cycles)
    assembly = Assembly(engine.tuning, engine.isa)
    add_pieces(assembly, desc.src.nelems(), kernels)
    whole = assembly.plan(f"{NAME}:{isa}", tensors, ("dst", "mask"), (("src", "dst"),))
    return Inside(whole, passed, engine.tuning, engine.isa)


plans = as_passed_or_copied(NAME, inside_of, f32_level)
