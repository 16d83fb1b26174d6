"""Attributes as the chain that kernels execute on results, and the arguments that it reads."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from asmdnn.errors import InvalidArguments, Unimplemented, shown
from asmdnn.generators.functions.postops import Operand, PostOp
from asmdnn.memory import MemoryDesc
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import Chain
from asmdnn.records import dataclass
from asmdnn.types import DataType
from asmdnn.ukernel.kernel import Pointed

PLAIN: Final = Attr()
ALLOWED: Final = ("post_ops", "scales", "zero_points")  # the others are for primitives


@dataclass(frozen=True)
class Chained:
    """post_ops: as generators take them, their operands numbered from `first` on, in the order of `buffers`."""

    post_ops: tuple[PostOp, ...]
    buffers: tuple[Pointed, ...]
    types: tuple[DataType, ...]


@contextmanager
def refusing() -> Iterator[None]:
    """What planners refuse, as Unimplemented: there is no other kernel to ask."""
    try:
        yield
    except Refused as refused:
        raise Unimplemented(f"{refused}.") from None


def attr_of(attr: object) -> Attr:
    """Attributes, or post-ops alone.  Raises InvalidArguments for such as have no meaning for a kernel."""
    found = attr if isinstance(attr, Attr) else Attr(attr)  # type: ignore[arg-type]
    for name in PLAIN.__dataclass_fields__:
        if name not in ALLOWED and getattr(found, name) != getattr(PLAIN, name):
            raise InvalidArguments(
                f"attr has {name} {shown(getattr(found, name))}: kernels take {', '.join(ALLOWED)} only."
            )
    return found


def chained(chain: Chain, dst: MemoryDesc, lanes: int, first: int, types: Iterable[DataType]) -> Chained:
    """The chain on dst of (rows, columns), whose operands are arguments number `first` on.

    Raises InvalidArguments for operands that do not broadcast to dst, or whose columns are not dense; Unimplemented for
    types.
    """
    with refusing():
        descs = chain.operands(dst, tuple(types))
    found, buffers = {}, []
    for number, name in enumerate(chain.names, first):
        desc = descs[name]
        rows, columns = desc.dims
        if desc.inner_blocks or (columns > 1 and desc.strides[1] != 1):
            raise InvalidArguments(f"{name} has strides {desc.strides}: its columns must be dense.")
        size = desc.dtype.size_bytes
        row_bytes = desc.strides[0] * size if rows > 1 else 0
        found[name] = Operand(number, row_bytes, size * lanes if columns > 1 else 0, columns == 1)
        buffers.append(Pointed(name, desc.dtype, str((rows - 1) * row_bytes + columns * size)))
    return Chained(chain.on_registers(found), tuple(buffers), tuple(b.dtype for b in buffers if b.dtype))
