"""Functions in machine code, written in Python: an assembler with names, loops and types of C.

    from asmdnn import asm
    from asmdnn.asm import mem

    @asm.function("uint64_t total(const uint64_t *x, size_t n)", reads={"x": "8*n"})
    def total(f, x, n):
        sum = f.gp.take("sum")
        f.XOR(sum, sum)
        with f.steps(n, 1, "words"):
            f.ADD(sum, mem(x))
            f.ADD(x, 8)
        f.ret(sum)

    total(numpy.arange(10, dtype="u8"), 10)  # 45

Nothing here knows of deep learning; docs/asm.md says the rest, examples/asm has functions to start from.
"""

import importlib
from typing import TYPE_CHECKING, Any

from asmdnn.asm.builder import FunctionBuilder
from asmdnn.asm.decorator import function
from asmdnn.asm.function import CFunction
from asmdnn.asm.reference import forms, instructions
from asmdnn.errors import no_attribute
from asmdnn.isa.assembler import (
    Label,
    OutOfRegisters,
    Pointer,
    Register,
    RegisterFile,
    high8,
    low32,
    mem,
    rd_sae,
    register,
    rn_sae,
    ru_sae,
    rz_sae,
    sae,
)

if TYPE_CHECKING:
    from asmdnn.asm.comparison import Mismatch, exact, ulp, within
    from asmdnn.asm.timing import Timing, bench

__all__ = [
    "CFunction", "FunctionBuilder", "Label", "Mismatch", "OutOfRegisters", "Pointer", "Register", "RegisterFile",
    "Timing", "bench", "exact", "forms", "function", "high8", "instructions", "low32", "mem", "rd_sae", "register",
    "rn_sae", "ru_sae", "rz_sae", "sae", "ulp", "within",
]  # fmt: skip

LATER = {
    **dict.fromkeys(("Mismatch", "exact", "ulp", "within"), "comparison"),
    **dict.fromkeys(("Timing", "bench"), "timing"),
}


def __getattr__(name: str) -> Any:
    """The names of comparisons, which need numpy, and of timing, when they are asked for (PEP 562)."""
    if name in LATER:
        return getattr(importlib.import_module(f"{__name__}.{LATER[name]}"), name)
    raise no_attribute(__name__, name, __all__)
