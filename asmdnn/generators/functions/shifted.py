"""A kernel whose words lie further on in a frame: kernels of several kinds share a phase, and so its arguments.

| argument | what it is |
|---|---|
| 0 .. first - 1 | not read: those of other kernels of the phase |
| first ..       | the kernel's own |
"""

from asmdnn.generators.contract import Footprint, KernelSpec, Range
from asmdnn.isa.assembler import Assembler
from asmdnn.records import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftedSpec:
    """`kernel`, whose frame begins at word `first`."""

    kernel: KernelSpec
    first: int

    @property
    def isa(self) -> str:
        return self.kernel.isa

    @property
    def name(self) -> str:
        return f"at{self.first}_{self.kernel.name}"

    @property
    def frame(self) -> tuple[str, ...]:
        return (*(f"other{i}" for i in range(self.first)), *self.kernel.frame)

    @property
    def code_spec(self) -> "ShiftedSpec":
        """What the bytes depend on."""
        return replace(self, kernel=getattr(self.kernel, "code_spec", self.kernel))

    def footprint(self) -> Footprint:
        found = self.kernel.footprint()
        words = found.words and replace(found.words, argument=found.words.argument + self.first)
        taps = found.taps and replace(
            found.taps,
            argument=found.taps.argument + self.first,
            targets=tuple(argument + self.first for argument in found.taps.targets),
            groups=tuple(map(self.moved, found.taps.groups)),
        )
        return replace(found, reads=self.moved(found.reads), writes=self.moved(found.writes), words=words, taps=taps)

    def moved(self, ranges: tuple[Range, ...]) -> tuple[Range, ...]:
        return tuple(replace(x, argument=x.argument + self.first) for x in ranges)

    def generate(self, asm: Assembler) -> None:
        asm.role("start")
        asm.ADD(asm.frame, 8 * self.first)
        self.kernel.generate(asm)
