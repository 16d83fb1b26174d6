"""Products with weights of 4 and 8 bits, as a kind of primitive."""

from asmdnn.primitives.core.any_batch import by_rows
from asmdnn.primitives.core.kind import Kind, Words, dims_word
from asmdnn.primitives.quantized import schedule, unpacked
from asmdnn.primitives.quantized.description import QuantizedMatMul


def words(desc: QuantizedMatMul) -> Words:
    return Words("matmul", f"group:{desc.group}", f"{dims_word(desc.src)}:{desc.src.dims[1]}x{desc.dst.dims[1]}")


KINDS = (Kind(QuantizedMatMul, (schedule.plan, unpacked.plan), words, any_batch_refusal=by_rows),)
