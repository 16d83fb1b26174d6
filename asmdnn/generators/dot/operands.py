"""The frame of products that read two matrices, write one, and need nothing else."""

from asmdnn.isa.assembler import Assembler, Register, mem

OPERANDS = ("src", "weights", "dst")
SRC, WEIGHTS, DST = range(len(OPERANDS))


def load_operands(asm: Assembler) -> tuple[Register, Register, Register]:
    """The pointers to src, weights and dst from the frame, in registers of their own."""
    src, weights, dst = (asm.gp.take(name) for name in OPERANDS)
    for argument, pointer in enumerate((src, weights, dst)):
        asm.MOV(pointer, mem(asm.frame, 8 * argument))
    return src, weights, dst
