"""A generated kernel as the writers of this package see it: code with its listing, constants, names."""

import re
import sys
from typing import Final

from asmdnn.errors import InvalidArguments
from asmdnn.generators.contract import NOTHING, Footprint, Spec
from asmdnn.isa.assembler import Assembler, Line
from asmdnn.isa.levels import ANY_CPU, isa_of
from asmdnn.records import dataclass

JUMP: Final = re.compile(r"(\w+) 0x([0-9a-f]+) <(.+)>")  # as a listing writes a jump to a label
_CONSTANTS_ALIGNMENT: Final = 64


@dataclass(frozen=True, slots=True)
class DumpedKernel:
    """data: instructions, then, from the next multiple of 64, constants.  listing: of every instruction.

    tables: the offsets that each jump by a table may go to.
    """

    spec: Spec
    data: bytes
    listing: tuple[Line, ...]
    tables: tuple[tuple[int, ...], ...] = ()

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def symbol(self) -> str:
        """The name as an identifier of C."""
        name = re.sub(r"\W", "_", self.name, flags=re.ASCII)
        return f"_{name}" if name[0].isdigit() else name

    @property
    def code_bytes(self) -> int:
        """Where the instructions end."""
        last = self.listing[-1]
        return last.offset + len(last.data)

    @property
    def constants_offset(self) -> int:
        """Where the constants start; the size of `data` if there are none."""
        return min(len(self.data), self.code_bytes + -self.code_bytes % _CONSTANTS_ALIGNMENT)

    @property
    def isa(self) -> str:
        return self.spec.isa

    @property
    def streams(self) -> bool:
        """Whether it has streaming stores, which its caller fences."""
        return any("MOVNT" in line.text.upper().split(" ")[0] for line in self.listing)

    @property
    def features(self) -> tuple[str, ...]:
        """The CPU features of the kernel's level, by name."""
        return () if self.isa == ANY_CPU else tuple(sorted(isa_of(self.isa).features))

    @property
    def family(self) -> str:
        """The generator's module: conv, reorder, ..."""
        return type(self.spec).__module__.rpartition(".")[2]

    @property
    def contract(self) -> str:
        """What the generator's module and the spec say that a call computes."""
        texts = (sys.modules[type(self.spec).__module__].__doc__, type(self.spec).__doc__)
        return "\n\n".join(text.strip() for text in texts if text)

    @property
    def footprint(self) -> Footprint | None:
        """What a call touches; None for kernels whose frame holds other things than buffers."""
        claim = self.spec.footprint()
        return None if claim == NOTHING else claim

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the frame's words."""
        return self.spec.frame


def listed(spec: Spec) -> DumpedKernel:
    """The kernel of `spec`, generated with its listing; on any machine, whatever the spec's ISA level."""
    asm = Assembler(spec.name, listing=True)
    spec.generate(asm)
    code = asm.finish()
    if not code.listing:
        raise InvalidArguments(f"{spec.name} has no instruction: its generator must at least return")
    return DumpedKernel(spec, code.data, code.listing)
