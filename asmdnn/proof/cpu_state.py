"""Rules "direction flag", "vzeroupper", "mxcsr", "tiles" and "sfence": what code changes in the CPU is put back.

Tiles are used as their configuration says, which is known wherever they are; tiles.py has what that means.

MXCSR only before it returns: the executor sets it for the kernels that it calls.  Their streaming stores are in flight
when they return, so that the executor passes SFENCE before it meets other threads or returns.
"""

from typing import Final

from asmdnn.proof import tiles
from asmdnn.proof.kernel import PlacedInstruction
from asmdnn.proof.machine import Interpreter
from asmdnn.proof.state import State
from asmdnn.proof.tiles import NOT_CONFIGURED

LEAVING: Final = ("return", "indirect call")


def check(machine: Interpreter, step: PlacedInstruction, state: State) -> None:
    """Raise BrokenRule where a kernel returns or calls with something left undone, or uses tiles that do not fit."""
    tiles.check_use(machine.kernel, step, state.tiles)
    if step.fact.flow not in LEAVING:
        return
    streamed = state.in_flight and not step.fact.calls_kernel
    for undone, rule, reason in (
        (state.direction, "direction flag", "the direction flag may be set"),
        (state.upper, "vzeroupper", "ymm or zmm registers were used and no VZEROUPPER has followed"),
        (state.mxcsr and step.fact.flow == "return", "mxcsr", "MXCSR may not be what it was at the call"),
        (state.tiles != {NOT_CONFIGURED}, "tiles", "tiles are configured and no TILERELEASE has followed"),
        (streamed, "sfence", "a kernel was called, which may have streaming stores, and no SFENCE has followed"),
    ):
        if undone:
            raise machine.kernel.broken(rule, f"{reason}, on a path to here", step)
