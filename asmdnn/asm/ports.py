"""`f.bounds()`: what llvm-mca says of each loop, beside what `f.bench` measures."""

from asmdnn.analyze import mca
from asmdnn.analyze.model import Bound
from asmdnn.analyze.parts import bodies_of
from asmdnn.asm.machine import MachineCode
from asmdnn.errors import Unimplemented
from asmdnn.explain.kernels import instructions_of, loops_of
from asmdnn.records import dataclass


@dataclass(frozen=True)
class LoopBound:
    """A loop, or what is outside of all (name ""); ports: the cycles of a pass by the busiest port, which is `limit`,
    or the issue width; simulated: with latencies and dependencies, pass after pass."""

    name: str
    instructions: int
    ports: float
    limit: str
    simulated: float

    def __str__(self) -> str:
        cycles = f"{self.ports:.2f} cycles by {self.limit}, {self.simulated:.2f} with latencies"
        return f"{self.name or 'outside of loops'}: {self.instructions} instructions, {cycles}"


@dataclass(frozen=True)
class PortBounds:
    """cpu: whose model it is, by LLVM's name.  loops: in the order of the code; inner loops are not part of outer."""

    cpu: str
    loops: tuple[LoopBound, ...]

    def __str__(self) -> str:
        return "\n".join([f"by LLVM's model of {self.cpu}", *map(str, self.loops)])


def port_bounds(machine: MachineCode, cpu: str) -> PortBounds:
    """Raises Unimplemented without llvm-mca, InvalidArguments for a CPU that it does not know."""
    if not mca.is_installed():
        raise Unimplemented(f"bounds of {machine.prototype.name!r}: {mca.MISSING}.")
    listing = machine.code.listing
    assert listing is not None
    parts = bodies_of(listing, loops_of(list(instructions_of(listing))))
    bodies = [part.lines for part in parts]
    model, found = mca.modelled(bodies, machine.level.base, not machine.level.missing(), cpu)
    loops = (_loop(part.loop.name, len(part.lines), x) for part, x in zip(parts, found, strict=True) if x)
    return PortBounds(model, tuple(loops))


def _loop(name: str, instructions: int, bound: Bound) -> LoopBound:
    return LoopBound(name, instructions, bound.ports, bound.ports_limit, bound.simulated)
