"""What all of these kernels are: functions of asmdnn.asm whose arrays have element types of the library."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from asmdnn.asm import CFunction
from asmdnn.asm.footprint import extents_of
from asmdnn.asm.levels import level_of
from asmdnn.asm.prototype import parse_prototype
from asmdnn.errors import InvalidArguments
from asmdnn.records import dataclass
from asmdnn.types import DataType

if TYPE_CHECKING:
    from asmdnn.asm.emulation import EmulatedCall
    from asmdnn.asm.timing import Timing
    from asmdnn.asm.trace import Trace

C_TYPES: Final = {
    "<f4": "float",
    "<u2": "uint16_t",
    "<f2": "uint16_t",
    "<i4": "int32_t",
    "|i1": "int8_t",
    "|u1": "uint8_t",
}
NOT_C: Final = re.compile(r"\W", re.ASCII)


@dataclass(frozen=True)
class Pointed:
    """An argument that is a pointer.  read, written: how many bytes after it, in terms of integer arguments; "" none.

    ctype: where the elements are none of the library's.
    """

    name: str
    dtype: DataType | None
    read: str = ""
    written: str = ""
    ctype: str = ""

    def __str__(self) -> str:
        ctype = C_TYPES[self.dtype.numpy] if self.dtype else self.ctype
        return f"{'' if self.written else 'const '}{ctype} *{self.name}"


@dataclass(frozen=True)
class Count:
    """An argument that is a number of things."""

    name: str

    def __str__(self) -> str:
        return f"size_t {self.name}"


Argument = Pointed | Count


@dataclass(frozen=True)
class KernelText:
    """What a kernel is: its name, its level, its arguments in order, and the text that its header has.

    streams: whether it stores past the caches.
    """

    name: str
    isa: str
    arguments: tuple[Argument, ...]
    text: str
    streams: bool = False

    @property
    def prototype(self) -> str:
        return f"void {NOT_C.sub('_', self.name)}({', '.join(map(str, self.arguments))})"


class UKernel(CFunction):
    """A kernel with an address; everything that a function of asmdnn.asm has: raw, prove, emulate, bench, save.

    A call takes arrays of the stated types in the order of the prototype, numpy's or DLPack's; bf16 as that of
    ml_dtypes, or any 16-bit float as its bits in uint16.  It checks type, length, contiguity, writability.
    `raw` and `address` check nothing.
    streams: whether it stores past the caches, without a fence: the caller executes SFENCE before it tells another
    thread that the data is there.
    """

    def __init__(self, described: KernelText, body: Callable[..., None]) -> None:
        parsed = parse_prototype(described.prototype)
        buffers = [x for x in described.arguments if isinstance(x, Pointed)]
        reads = extents_of(parsed, {x.name: x.read for x in buffers if x.read}, "reads")
        writes = extents_of(parsed, {x.name: x.written for x in buffers if x.written}, "writes")
        super().__init__(body, parsed, (level_of(described.isa),), {}, (reads, writes))
        self.described, self.__doc__, self.__name__ = described, described.text, parsed.name

    @property
    def streams(self) -> bool:
        return self.described.streams

    def size_bytes(self, name: str, *counts: int) -> int:
        """How many bytes after the pointer `name` a call touches, counts being its integer arguments in their order.

        Raises InvalidArguments for a name of no pointer, and for another number of integers.
        """
        stated = [side[name] for side in self._extents if name in side]
        wanted = sum(argument.type.is_integer for argument in self._prototype.arguments)
        if not stated or len(counts) != wanted:
            raise InvalidArguments(f"size_bytes({name!r}) with {len(counts)} of {wanted} integers: {self.prototype}.")
        return max(extent.size(*counts) for extent in stated)

    def __call__(self, *arguments: Any) -> None:
        super().__call__(*self._viewed(arguments))

    def emulate(self, *arguments: Any, isa: str = "", most_instructions: int = 10_000_000) -> "EmulatedCall":
        return super().emulate(*self._viewed(arguments), isa=isa, most_instructions=most_instructions)

    def trace(self, *arguments: Any, isa: str = "", most_steps: int = 5000) -> "Trace":
        return super().trace(*self._viewed(arguments), isa=isa, most_steps=most_steps)

    def bench(self, *arguments: Any) -> "Timing":
        return super().bench(*self._viewed(arguments))

    def _viewed(self, given: Sequence[Any]) -> list[Any]:
        """Arrays of types that C lacks as unsigned integers.  Raises InvalidArguments for elements of another type."""
        if len(given) != len(self.described.arguments):
            return list(given)  # which is refused with the prototype
        return [
            _as_c(value, x, self.__name__) if isinstance(x, Pointed) and x.dtype and hasattr(value, "dtype") else value
            for x, value in zip(self.described.arguments, given, strict=True)
        ]


def _as_c(array: Any, buffer: Pointed, kernel: str) -> Any:
    dtype = buffer.dtype
    assert dtype is not None
    kind = str(array.dtype)
    in_c = C_TYPES[dtype.numpy].removesuffix("_t").replace("float", "float32")
    if kind in (dtype.extension, "float16" if dtype.numpy == "<f2" else None):
        return array.view(f"u{dtype.size_bytes}")
    if kind != in_c:
        also = f"{dtype.extension or 'float16'} or its bits in {in_c}" if dtype.size_bytes == 2 else in_c
        raise InvalidArguments(f"{buffer.name} of {kernel} is {kind}, where {dtype} is asked for: pass {also}.")
    return array
