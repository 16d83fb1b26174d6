"""What references of several kernel families share."""

import numpy as np

from asmdnn.generators.functions.postops import Operand, PostOp, ReluOp, SumOp
from tests.support.arena import Doubles, Elements

LANES = {"avx2": 8, "avx2_vnni": 8, **dict.fromkeys(
    ("avx512_core", "avx512_core_vnni", "avx512_core_bf16", "avx512_core_fp16"), 16
)}  # fmt: skip

Memory = dict[str, Elements]


def keeps_integers(chain: tuple[PostOp, ...]) -> bool:
    """Whether all steps are exact on small integers, so that nothing but equality will do."""
    return all(isinstance(op, SumOp | ReluOp) for op in chain)


def operand(o: Operand, row: int, vector: int, real: int, count: int, memory: Memory, first: int = 0) -> Doubles:
    """What a post-op reads for a vector of `count` lanes, of which the first `real` exist, from byte `first` on."""
    at, values = first + row * o.row_bytes + vector * o.vector_bytes, np.zeros(count)
    if real:
        values[:real] = memory[f"operand{o.argument}"].load(at, 1 if o.element else real)
    return values
