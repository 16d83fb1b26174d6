"""What one instruction of a traced call did."""

from collections.abc import Mapping

from asmdnn.records import dataclass

Spans = Mapping[str, tuple[tuple[int, int], ...]]  # by region: first byte and end


@dataclass(frozen=True)
class TraceStep:
    """One instruction.

    line: its place in the listing.  changed: registers and flags by name, lowest byte first; an empty one is undefined.
    read, written: the bytes of arguments and stack that it touched.  stored: what is there in arguments now.
    """

    line: int
    changed: Mapping[str, bytes]
    read: Spans
    written: Spans
    stored: Mapping[str, tuple[tuple[int, bytes], ...]]
