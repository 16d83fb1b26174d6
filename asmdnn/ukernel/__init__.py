"""The library's kernels as functions that other code calls, as oneDNN's ukernel API: by address, from C, JITs, Python.

    from asmdnn import ukernel

    pack = ukernel.transform(k=64, n=48, dtype="bf16")            # b in the order in which brgemm reads it
    gemm = ukernel.brgemm(6, 48, 64, "bf16", "bf16", attr=Attr("relu"))
    gemm.prototype, gemm.address                                  # void NAME(const uint16_t *a, ..., float *dst)
    gemm.save("gemm.o", "gemm.h")

Each is made for the sizes that it is given, is called with plain arguments under the System V ABI, allocates nothing,
and may run in any number of threads at once.  They work under the MXCSR of their caller.  docs/ukernel.md says more.
"""

from asmdnn.ukernel.brgemm import brgemm, compensation
from asmdnn.ukernel.kernel import UKernel
from asmdnn.ukernel.maps import eltwise, softmax
from asmdnn.ukernel.moves import convert, transform, transpose

__all__ = ["UKernel", "brgemm", "compensation", "convert", "eltwise", "softmax", "transform", "transpose"]
