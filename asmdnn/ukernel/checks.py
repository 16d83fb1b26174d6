"""What the functions of this package ask of their arguments."""

from asmdnn.errors import InvalidArguments, did_you_mean, shown
from asmdnn.isa.levels import isa_of
from asmdnn.planning.host import effective_isa
from asmdnn.types import DATA_TYPES, DataType

MOST = 1 << 20  # of sizes


def size(field: str, value: object, least: int = 1, most: int = MOST) -> int:
    """A size, which is from `least` on.  Raises InvalidArguments that names the field."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or not least <= (number := value.__index__()) <= most:
        raise InvalidArguments(f"{field} must be a whole number from {least} to {most}, not {shown(value)}.")
    return int(number)


def leading(field: str, value: object, elements: int) -> int:
    """Elements from row to row: those of a row if 0, and no fewer.  Raises InvalidArguments."""
    return size(field, value, elements) if value != 0 or isinstance(value, bool) else elements


def type_of(field: str, value: object, allowed: tuple[DataType, ...]) -> DataType:
    """An element type by its name.  Raises InvalidArguments for others than are allowed."""
    found = value if isinstance(value, DataType) else DATA_TYPES.get(value) if isinstance(value, str) else None
    if found not in allowed:
        near = did_you_mean(value if isinstance(value, str) else "", [x.name for x in allowed])
        raise InvalidArguments(f"{field} {shown(value)} is not of its types; {near}")
    assert found is not None
    return found


def level(isa: str) -> str:
    """The level, or the best that this machine has and ASMDNN_MAX_CPU_ISA allows."""
    return isa_of(isa).name if isa != "" else effective_isa().name
