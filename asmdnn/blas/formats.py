"""The formats of packed operands, by side and type."""

from functools import lru_cache

from asmdnn.blas.checks import checked_identifier
from asmdnn.errors import InvalidArguments, shown
from asmdnn.forking import importing
from asmdnn.isa.dot import multiplied
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.memory.summed import SummedDesc
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.products.gemm import packed_desc, row_distance
from asmdnn.types import HALF_FLOATS, INTEGERS8, DataType, f32, s8

PACKED_TYPES = (f32, *HALF_FLOATS, *INTEGERS8)
KEPT_FORMATS = 1024


def level_of(dtype: DataType, engine: Engine) -> str:
    """The level by which formats of a type are told apart."""
    return f32_level(engine.isa) if dtype == f32 else engine.isa


def format_of(identifier: str, dims: tuple[int, int], dtype: DataType, engine: Engine) -> MemoryDesc:
    """Of an operand of rows and columns.  "A" is row-major, with rows that do not alias; "B" is in panels, and of
    bytes, which are s8 there, has sums of columns after them.  Raises InvalidArguments, Unimplemented."""
    checked_identifier(identifier)
    if not isinstance(dtype, DataType) or dtype not in PACKED_TYPES:
        raise InvalidArguments(f"dtype must be one of {', '.join(map(str, PACKED_TYPES))}, not {shown(dtype)}")
    if dtype == f32:
        return of_f32(identifier, *dims, engine.isa)
    if identifier == "A":
        return MemoryDesc(dims, dtype, strides=(row_distance(dims[1], dtype), 1))
    stored = s8 if dtype in INTEGERS8 else dtype
    if min(dims) == 0 or dims[1] == 1:
        return MemoryDesc(dims, stored, "ab")
    with importing():
        from asmdnn.primitives.products.matmul_tiles import in_panels

    panels = in_panels(dims, multiplied(stored, stored, engine.isa), engine)
    return SummedDesc(panels) if stored == s8 else panels


@lru_cache(KEPT_FORMATS)
def of_f32(identifier: str, rows: int, columns: int, isa: str) -> MemoryDesc:
    return packed_desc(identifier, rows, columns, isa)
