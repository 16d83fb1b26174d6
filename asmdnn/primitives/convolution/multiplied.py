"""The types that a convolution multiplies, and the ISA level of the code that does it."""

from collections.abc import Mapping
from functools import cache

from asmdnn.errors import Unimplemented
from asmdnn.generators.dot.matmul_shape import RESULTS
from asmdnn.isa.dot import S32, Types, dot_level, multiplied, run_products
from asmdnn.memory import MemoryDesc
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution.description import ConvolutionDesc
from asmdnn.primitives.core.engine import Engine, at_level
from asmdnn.types import FLOATS, INTEGERS8, DataType, f32, s16, s32

INTEGERS = (*INTEGERS8, s16)  # words in scratch


def types_of(desc: ConvolutionDesc) -> Types:
    """The types of factors and sums."""
    return summed(desc.src.dtype, desc.weights.dtype)


@cache  # planning asks many times
def summed(src: DataType, weights: DataType) -> Types:
    """Products of integers are summed as s32, all others as f32."""
    if src == weights == s32:
        return S32
    return Types(src, weights, s32 if src in INTEGERS and weights in INTEGERS8 else f32)


def types_for(desc: ConvolutionDesc, attr: Attr, engine: Engine) -> Types:
    """The same of tiles, whose sums are those of runs of k in the type of factors where attributes ask for that.

    A sum that has one order for any batch has none: where its runs end is not looked at there.
    """
    types = types_of(desc)
    if attr.accumulation_mode != types.src.name or engine.any_batch:
        return types
    return run_products(types.src, types.weights, engine.isa) or types


def level_of(types: Types, engine: Engine) -> Engine:
    """The engine with the ISA level that multiplies these types.  Raises Refused if none of its levels does."""
    try:
        multiplied(types.src, types.weights, engine.isa)  # the same reason as from implementations that widen
    except Unimplemented as reason:
        raise Refused(str(reason)) from None
    return level_inside(types, engine)


def level_inside(types: Types, engine: Engine) -> Engine:
    """The same for types that no caller passes, but plans have in scratch."""
    try:
        return at_level(engine, dot_level(types, engine.isa))
    except Unimplemented as reason:
        raise Refused(str(reason)) from None


def level_of_rows(types: Types, engine: Engine) -> Engine:
    """The engine with the best level for kernels that load both factors into registers, where they are widened to f32
    if the level does not multiply them, as bytes are beside floats.  Raises Refused if none of its levels has these
    types."""
    return at_level(engine, dot_level(types_of_rows(types, engine), engine.isa))


def types_of_rows(types: Types, engine: Engine) -> Types:
    """What such kernels multiply.  Raises Refused as `level_of_rows` does."""
    try:
        return multiplied(f32 if are_bytes_by_floats(types) else types.src, types.weights, engine.isa)
    except Unimplemented as reason:
        raise Refused(str(reason)) from None


def are_bytes_by_floats(types: Types) -> bool:
    """Whether src alone is of bytes, which are numbers of f32 then."""
    return types.src in INTEGERS8 and types.weights in FLOATS


def is_widened(types: Types, engine: Engine) -> bool:
    """Whether the level does not multiply these types as they are, but src as f32."""
    try:
        return multiplied(types.src, types.weights, engine.isa) != types
    except Unimplemented:
        return False


def check_stored(tensors: Mapping[str, MemoryDesc]) -> None:
    """Raises Refused unless kernels can store, or read beside their sums, the types of all tensors."""
    for name, tensor in tensors.items():
        if name not in ("src", "weights") and tensor.dtype not in RESULTS:
            raise Refused(f"{name} is {tensor.dtype}, it must be one of {', '.join(map(str, RESULTS))}")


def check_f32(tensors: dict[str, MemoryDesc]) -> None:
    """Raises Refused unless all are f32."""
    for name, tensor in tensors.items():
        if tensor.dtype != f32:
            raise Refused(f"{name} is {tensor.dtype}, only f32 is implemented")
