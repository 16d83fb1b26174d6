"""Matrix products on numpy arrays as the BLAS and MKL have them: sgemm, those of bytes and halves, and packed forms.

A packed operand is an array of bytes: a header that says what it is, then the elements in the order of the kernels.  It
can be written to a file, mapped back (numpy.memmap), and used by any number of threads at once.
"""

from asmdnn.blas.packing import gemm_pack, gemm_pack_get_size
from asmdnn.blas.single import gemm_compute, sgemm
from asmdnn.blas.typed import gemm_bf16bf16f32, gemm_f16f16f32, gemm_x8x8s32

__all__ = [
    "gemm_bf16bf16f32", "gemm_compute", "gemm_f16f16f32", "gemm_pack", "gemm_pack_get_size", "gemm_x8x8s32", "sgemm",
]  # fmt: skip
